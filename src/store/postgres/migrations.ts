// Makes the ledger's tables in PostgreSQL as `schema.ts` describes them, and adds what an older ledger lacks, under the
// lock of one row: gateways that start at once do it one after the other. Only additions: programs of both versions work on
// the tables while gateways are replaced. A request for a table's lock blocks all requests behind it, so that it is
// asked for briefly, only where something is missing, and again a moment later.
import { SQL } from "drizzle-orm";
import { getTableConfig, IndexedColumn, PgDialect, type PgColumn, type PgTable } from "drizzle-orm/pg-core";
import { assert } from "../../core/assert.ts";
import { CommandError } from "../../core/expected-error.ts";
import { call, isFailed, StatementError, type Call, type Connection, type Row } from "./connection.ts";
import { ledgerMeta, oldestProgram, postgresTables, schemaVersion } from "./schema.ts";
import { migrationGiveUpMs, migrationLockMs, migrationPauseMs } from "./limits.ts";
import { type Blocker, blockerInWords } from "./locked-accounts.ts";
import { type Pace, systemPace } from "./pace.ts";
import { giveBack, lockHolders, otherTransactions } from "./statements.ts";
import { type Meta, outdated } from "./tables-state.ts";
import { sumUpFolded } from "./usage-days.ts";

/** The oldest server whose releases are still cared for. */
const serverVersionMin = 140_000;

const run = (text: string, name = text.slice(0, 40)): Call => call({ name, text });
const serverFacts = run(
  "SELECT current_setting('server_version_num')::int AS version, current_setting('server_encoding') AS encoding",
);
const metaOf = run("SELECT schema, oldest_program, closed FROM ledger_meta WHERE id = 1 FOR UPDATE");

/** What a program is to the tables; for tests, that of another one. */
export type ProgramVersion = Readonly<{ schema: number; oldestProgram: number }>;

/** Brings the tables to the program's version. Throws CommandError, in one sentence, when that cannot be. */
export async function migrate(
  connection: Connection,
  program: ProgramVersion = { schema: schemaVersion, oldestProgram },
  pace: Pace = systemPace,
): Promise<void> {
  const [found] = await all(connection, [serverFacts]);
  const { version, encoding } = found![0]! as { version: number; encoding: string };
  if (version < serverVersionMin) {
    throw new CommandError(`PostgreSQL ${Math.floor(version / 10_000)} is too old: Tollgate needs 14 or later`);
  }
  if (encoding !== "UTF8") {
    throw new CommandError(
      `this database keeps text as ${encoding}, which not every text fits: make another with createdb -E UTF8 -T template0`,
    );
  }
  const known = await columnsOf(connection);
  // Looked at before anything is made: a database of others stays as it was.
  if (!known.has(getTableConfig(ledgerMeta).name)) refuseForeign(known);
  // A table that two make at once is an error of the second, whatever IF NOT EXISTS says: it only has to look again.
  await all(connection, [run(creationOf(ledgerMeta, null))], ["23505", "42P07", "42710"]);
  await all(connection, [run("INSERT INTO ledger_meta VALUES (1, 0, 0, NULL, false) ON CONFLICT DO NOTHING")]);
  const until = pace.monotonic() + migrationGiveUpMs;
  while (!(await extended(connection, program))) {
    if (pace.monotonic() > until) throw new CommandError(await whoLocks(connection));
    await new Promise<void>((resolve) => void pace.after(migrationPauseMs, resolve));
  }
}

/** False: others have locks that it needs, and nothing was changed. */
async function extended(connection: Connection, program: ProgramVersion): Promise<boolean> {
  try {
    const begin = [run("BEGIN"), run(`SET LOCAL lock_timeout = ${migrationLockMs}`)];
    const [, , rows] = await all(connection, [...begin, metaOf]);
    const meta = rows![0]!;
    check(meta);
    const isNew = meta["schema"] === 0;
    if ((meta["schema"] as number) < program.schema) {
      const lanes =
        !isNew && (meta["oldest_program"] as number) < program.oldestProgram ? await endLanes(connection) : [];
      await all(connection, await additions(connection, isNew, program));
      for (const lane of lanes) await all(connection, [call(lockHolders, lane, null), call(giveBack, lane, null)]);
    }
    await all(connection, [run("COMMIT")]);
    return true;
  } catch (thrown) {
    await connection.send([run("ROLLBACK")]);
    if (thrown instanceof StatementError && (thrown.state === "55P03" || thrown.state === "40P01")) return false;
    throw thrown;
  }
}

async function whoLocks(connection: Connection): Promise<string> {
  const [found] = await all(connection, [call(otherTransactions)]);
  const by = (found as readonly Row[] as readonly Blocker[]).map(blockerInWords).join(", ");
  return `the tables of this database cannot be made ready while others have them locked: wait for the end of ${by || "their work"}`;
}

function check(meta: Row): void {
  if (meta["closed"] === true) {
    throw new CommandError("the books in this database were moved elsewhere, or a move was cut off: they are closed");
  }
  const isOld = outdated(meta as unknown as Meta);
  if (isOld !== null) throw new CommandError(isOld);
}

/** The columns that each table of the database has. */
async function columnsOf(connection: Connection): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const known = new Map<string, Set<string>>();
  const [columns] = await all(connection, [
    run("SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"),
  ]);
  for (const { table_name, column_name } of columns! as readonly Record<string, string>[]) {
    const names = known.get(table_name!) ?? new Set();
    known.set(table_name!, names.add(column_name!));
  }
  return known;
}

function refuseForeign(known: ReadonlyMap<string, unknown>): void {
  const foreign = postgresTables.map(({ table }) => getTableConfig(table).name).find((name) => known.has(name));
  if (foreign === undefined) return;
  throw new CommandError(`this database has a table "${foreign}" of another program: Tollgate needs one of its own`);
}

/**
 * Programs that were allowed until now are not anymore. A batch is committed by the lane's row alone, so that they write nothing
 * from here on; those that are allowed register again. Lanes come first in the order of locks. Gives their ids.
 */
async function endLanes(connection: Connection): Promise<readonly string[]> {
  const [ended] = await all(connection, [
    run("UPDATE lanes SET gone_at = clock_timestamp() WHERE gone_at IS NULL RETURNING id", "end lanes"),
  ]);
  return ended!.map(({ id }) => id as string);
}

async function additions(connection: Connection, isNew: boolean, program: ProgramVersion): Promise<readonly Call[]> {
  const known = await columnsOf(connection);
  if (isNew) refuseForeign(known);
  const [indexes] = await all(connection, [
    run("SELECT indexname AS name FROM pg_indexes WHERE schemaname = current_schema()"),
  ]);
  const made = new Set(indexes!.map(({ name }) => name as string));
  const calls: Call[] = [];
  for (const { table, fillFactor } of [{ table: ledgerMeta }, ...postgresTables] as typeof postgresTables) {
    const { name, columns } = getTableConfig(table);
    const existing = known.get(name);
    if (existing === undefined) calls.push(run(creationOf(table, fillFactor ?? null)));
    for (const column of columns) {
      if (existing === undefined || existing.has(column.name)) continue;
      assert(!column.notNull || column.default !== undefined, `${name}.${column.name} can be added`);
      calls.push(run(`ALTER TABLE ${name} ADD COLUMN IF NOT EXISTS ${definitionOf(column)}`));
    }
    // One that is there locks the table as well.
    const missing = indexesOf(table).filter(({ name }) => !made.has(name));
    calls.push(...missing.map(({ text }) => run(text)));
  }
  if (!isNew && !known.has("served_days")) calls.push(...sumUpFolded.map((statement) => call(statement)));
  const version = `UPDATE ledger_meta SET schema = ${program.schema}, oldest_program = greatest(oldest_program, ${program.oldestProgram})`;
  return [...calls, run(version)];
}

/** Sends calls; gives their rows. Throws the first error, but for those whose states are expected. */
async function all(
  connection: Connection,
  calls: readonly Call[],
  expected: readonly string[] = [],
): Promise<readonly (readonly Row[])[]> {
  const outcomes = await connection.send(calls);
  return outcomes.map((outcome) => {
    if (!isFailed(outcome)) return outcome;
    if (outcome.state !== null && expected.includes(outcome.state)) return [];
    throw outcome.state === "42501" ? new StatementError("42501", `it gives no rights to make tables`) : outcome;
  });
}

function creationOf(table: PgTable, fillFactor: number | null): string {
  const { name, columns, checks, primaryKeys } = getTableConfig(table);
  const keys = primaryKeys.map((key) => `PRIMARY KEY (${key.columns.map((column) => column.name).join(", ")})`);
  const rules = checks.map((rule) => `CONSTRAINT ${rule.name} CHECK (${textOf(rule.value)})`);
  const options = fillFactor === null ? "" : ` WITH (fillfactor = ${fillFactor})`;
  return `CREATE TABLE IF NOT EXISTS ${name} (${[...columns.map(definitionOf), ...keys, ...rules].join(", ")})${options}`;
}

function indexesOf(table: PgTable): readonly Readonly<{ name: string; text: string }>[] {
  const { name, indexes } = getTableConfig(table);
  return indexes.map(({ config }) => {
    const of = config.columns.map((column) =>
      column instanceof IndexedColumn
        ? column.name!
        : column instanceof SQL
          ? textOf(column)
          : (column as PgColumn).name,
    );
    const some = config.where === undefined ? "" : ` WHERE ${textOf(config.where)}`;
    const index = config.name!;
    const made = `CREATE ${config.unique ? "UNIQUE " : ""}INDEX IF NOT EXISTS ${index}`;
    return { name: index, text: `${made} ON ${name} (${of.join(", ")})${some}` };
  });
}

function definitionOf(column: PgColumn): string {
  const parts = [column.name, column.getSQLType()];
  if (column.primary) parts.push("PRIMARY KEY");
  else if (column.notNull) parts.push("NOT NULL");
  const otherwise = column.default as number | boolean | string | undefined;
  if (otherwise !== undefined) parts.push(`DEFAULT ${typeof otherwise === "string" ? `'${otherwise}'` : otherwise}`);
  return parts.join(" ");
}

const textOf = (value: SQL): string => new PgDialect().sqlToQuery(value).sql;
