// What the database's tables are for this program: whether they are made, and whether it may write to them.
import { type Connection, call, isFailed, type Row } from "./connection.ts";
import { limited, type Pace, systemPace } from "./pace.ts";
import { postgresTables, schemaVersion } from "./schema.ts";
import { readMeta } from "./statements.ts";
import { getTableConfig } from "drizzle-orm/pg-core";

export type Meta = Readonly<{ schema: number; oldest_program: number; closed: boolean }>;

/** Why this program may not write to tables, in words; null: it may. */
export const outdated = ({ schema, oldest_program: oldest }: Pick<Meta, "schema" | "oldest_program">): string | null =>
  oldest <= schemaVersion
    ? null
    : `a newer Tollgate has made the tables of this database (version ${schema}), and programs before version ${oldest} of them may not write: update this one`;

/**
 * `foreign`: a table of another program that has a name of ours, null where there is none. `mayMake`: whether tables can be
 * made; null where the server does not tell it.
 */
export type TablesState =
  Readonly<{ made: true; meta: Meta }> | Readonly<{ made: false; foreign: string | null; mayMake: boolean | null }>;

const findTables = call({
  name: "find tables",
  text: "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()",
});
const askRights = call({
  name: "ask rights",
  text: "SELECT has_schema_privilege(current_schema(), 'CREATE') AS may",
});

/** Changes nothing. Rejects with StatementError. */
export async function tablesState(connection: Connection, pace: Pace = systemPace): Promise<TablesState> {
  const send = async (asked: typeof findTables): Promise<readonly Row[]> => {
    const [outcome] = await limited(pace, connection.send([asked]), () => {});
    if (outcome === undefined || isFailed(outcome)) throw outcome ?? new Error("no answer");
    return outcome;
  };
  const names = new Set((await send(findTables)).map((row) => row["table_name"] as string));
  if (names.has("ledger_meta")) {
    const [meta] = (await send(call(readMeta))) as unknown as readonly Meta[];
    if (meta !== undefined && meta.schema > 0) return { made: true, meta };
  }
  const foreign = postgresTables.map(({ table }) => getTableConfig(table).name).find((name) => names.has(name)) ?? null;
  const [rights] = await limited(pace, connection.send([askRights]), () => {});
  const mayMake =
    rights === undefined || isFailed(rights) ? null : ((rights[0]?.["may"] as boolean | null | undefined) ?? null);
  return { made: false, foreign, mayMake };
}
