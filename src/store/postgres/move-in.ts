// Moves the books of a data folder into an empty database: in one transaction, whose sums are compared and whose books are
// checked before it ends. The folder is marked before, so that no process writes to it anymore, and says that the books are there
// only when they are. After a kill at any point the same command finds out how far it came, and continues.
import { Database as Sqlite } from "bun:sqlite";
import { getTableName } from "drizzle-orm";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { CommandError } from "../../core/expected-error.ts";
import type { Ms } from "../../core/types.ts";
import { openActivity } from "../activity/open-activity.ts";
import {
  activityName,
  lockDataFolder,
  missingLedger,
  filesDatabaseName,
  requestsName,
  responsesName,
  sealingKeyName,
  databaseName as ledgerName,
} from "../folder/data-folder.ts";
import { DataFolderInUse } from "../folder/folder-faults.ts";
import { movedMark, setMovedMark, whyMoved } from "../folder/moved-folder.ts";
import { booksOf, setServedMark } from "../folder/served-folder.ts";
import { readWhole } from "../folder/whole-file.ts";
import { migrate as migrateFolder } from "../ledger/migrate.ts";
import { openForReading } from "../open.ts";
import { openFilesDatabase } from "../files/files-database.ts";
import { openRequestLog } from "../requests/open-request-log.ts";
import { openStoredResponses } from "../responses/stored-responses-file.ts";
import { statement } from "../questions.ts";
import { arrayOf, call, PostgresServer } from "./connection.ts";
import { databaseName } from "./place-of-url.ts";
import { CommitUnknown, Database, sendIn, type Session, textParameter } from "./database.ts";
import { migrate } from "./migrations.ts";
import {
  columnsOf,
  type MovedTable,
  movedSums,
  movedTables,
  periodColumns,
  placeOf,
  quotasInDatabase,
  quotasInFolder,
} from "./moved-tables.ts";
import * as usage from "./schema-usage.ts";
import { sumUpFolded } from "./usage-days.ts";
import { violationsIn } from "./verify.ts";

export type MoveOrder = Readonly<{
  dataFolder: string;
  url: string;
  now: Ms;
  progress: (line: string) => void;
}>;

export type Moved = Readonly<{ accounts: number; lines: number; responses: number; to: string }>;

/** One transaction of whatever length; each of its statements is short. */
const limitMs = 24 * 3_600_000;
const rowsAtOnce = 1_000;
/** A record of a conversation may have a file of 11 MiB. */
export const recordsAtOnce = 10;
const progressRows = 100_000;
const arrivedName = "moved_in";

type Value = string | number | null | Uint8Array;

/** Throws CommandError in one sentence where it cannot be; then the folder is as it was, or says so. */
export async function moveIn(order: MoveOrder): Promise<Moved> {
  const { dataFolder, url, now, progress } = order;
  const to = placeOf(url);
  if (!existsSync(dataFolder)) throw new CommandError(`there is no data folder ${dataFolder}; name it with --data DIR`);
  const missing = missingLedger(dataFolder);
  if (missing !== null) throw new CommandError(missing);
  const folder = lock(dataFolder);
  let database: Database | null = null;
  try {
    if ((statSync(folder.databaseFile, { throwIfNoEntry: false })?.size ?? 0) === 0) {
      throw new CommandError(`there is no ledger in ${dataFolder}; name its folder with --data DIR`);
    }
    const known = movedMark(dataFolder);
    if (known?.state === "moved") throw new CommandError(whyMoved(dataFolder)!);
    if (known !== null && known.to !== to) throw new CommandError(whyMoved(dataFolder)!);
    migrateFolder(folder.databaseFile);
    const server = new PostgresServer(url);
    await makeTables(server, to);
    database = new Database(server, undefined, 1);
    const id = known?.id ?? crypto.randomUUID();
    if (known === null || !(await hasArrived(database, id))) {
      await checkEmpty(database, to);
      setMovedMark(dataFolder, { id, to, state: "moving", at: now });
      await copy(database, order, folder.databaseFile, id);
    } else progress("the books had arrived when the move was cut off");
    // A gateway of this folder then tells when it serves from other books, as by a mistyped address.
    const key = readWhole(join(dataFolder, sealingKeyName));
    if (key !== null) setServedMark(dataFolder, { books: booksOf(key), from: databaseName(url), at: now });
    setMovedMark(dataFolder, { id, to, state: "moved", at: now });
    return { ...(await countsOf(database)), to };
  } finally {
    await database?.close();
    folder.release();
  }
}

function lock(dataFolder: string) {
  try {
    return lockDataFolder(dataFolder);
  } catch (error) {
    if (!(error instanceof DataFolderInUse)) throw error;
    throw new CommandError(`a server runs on the data folder ${dataFolder}: stop it first, then move its books`);
  }
}

async function makeTables(server: PostgresServer, to: string): Promise<void> {
  let connection;
  try {
    connection = await server.connect();
    await migrate(connection);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`nothing was moved: ${to} cannot be used: ${(error as Error).message}`);
  } finally {
    connection?.close();
  }
}

const arrival = statement("arrival", "SELECT 1 AS arrived FROM jobs WHERE name = $1::text AND holder = $2::text");
const setArrival = statement("set arrival", "INSERT INTO jobs (name, holder, until) VALUES ($1::text, $2::text, 0)");
const setSealingKey = statement(
  "set sealing key",
  "UPDATE ledger_meta SET sealing_key = decode($1::text, 'base64') WHERE id = 1",
);
const livingLane = statement("living lane", "SELECT gateway FROM lanes WHERE gone_at IS NULL LIMIT 1");
const counts = statement(
  "moved counts",
  `SELECT (SELECT count(*) FROM accounts)::float8 AS accounts, (SELECT count(*) FROM journal)::float8 AS lines,
     (SELECT count(*) FROM stored_responses)::float8 AS responses`,
);

const hasArrived = (database: Database, id: string): Promise<boolean> =>
  database.read(async (session) => (await sendIn(session)(arrival, arrivedName, id)).length > 0);

const countsOf = (database: Database) =>
  database.read(async (session) => (await sendIn(session)<Omit<Moved, "to">>(counts))[0]!, limitMs);

async function checkEmpty(database: Database, to: string): Promise<void> {
  await database.read(async (session) => {
    const send = sendIn(session);
    const [lane] = await send<Readonly<{ gateway: string }>>(livingLane);
    if (lane !== undefined) {
      throw new CommandError(
        `nothing was moved: the gateway ${lane.gateway} serves from ${to}; stop all of them first`,
      );
    }
    for (const { name } of movedTables) {
      const [row] = await send(statement("look", `SELECT 1 AS found FROM ${name} LIMIT 1`));
      if (row === undefined) continue;
      throw new CommandError(`nothing was moved: ${to} has books already (its table "${name}" is not empty)`);
    }
  });
}

async function copy(database: Database, order: MoveOrder, databaseFile: string, id: string): Promise<void> {
  const { dataFolder, progress } = order;
  const source = openForReading(databaseFile);
  try {
    await database.transaction(
      async (session) => {
        const send = sendIn(session);
        source.run("BEGIN");
        try {
          for (const table of movedTables) await put(session, table, rowsIn(source, table), progress);
          await setPeriods(session);
          await setMarks(session, source);
          await putBeside(session, dataFolder, progress);
          const key = readWhole(join(dataFolder, sealingKeyName));
          if (key !== null) await send(setSealingKey, key.toBase64());
          await compare(session, source);
          progress("checking the books of every account");
          const [broken] = await violationsIn(session, 0, Number.MAX_SAFE_INTEGER);
          if (broken !== undefined) {
            throw new CommandError(
              `nothing was moved: the books contradict themselves (account ${broken.account}: ${broken.detail})`,
            );
          }
          await send(setArrival, arrivedName, id);
        } finally {
          source.run("ROLLBACK");
        }
      },
      { limitMs },
    );
  } catch (error) {
    if (error instanceof CommitUnknown) {
      throw new CommandError("it is unknown whether the books have arrived: run the same command again to find out");
    }
    throw error instanceof CommandError
      ? error
      : new CommandError(`nothing was moved: ${(error as Error).message}; run the same command again`);
  } finally {
    source.close();
  }
}

function* rowsIn(source: Sqlite, { name, columns }: MovedTable): Iterable<readonly Value[]> {
  const names = columns.map((column) => `"${column.name}"`).join(", ");
  const order = name === "journal" ? " ORDER BY sequence" : "";
  const query = source.query<Readonly<Record<string, Value>>, []>(`SELECT ${names} FROM ${name}${order}`);
  for (const row of query.iterate()) yield columns.map((column) => row[column.name]!);
}

async function put(
  session: Session,
  { name, columns }: MovedTable,
  rows: Iterable<readonly Value[]>,
  progress: (line: string) => void,
  atOnce = rowsAtOnce,
): Promise<void> {
  const insert = statement(
    `move ${name}`,
    `INSERT INTO ${name} (${columns.map((column) => column.name).join(", ")}) SELECT * FROM unnest(
       ${columns.map(({ type }, index) => `$${index + 1}::text::${type}[]`).join(", ")})`,
  );
  let some: (readonly Value[])[] = [];
  let done = 0;
  const write = async (): Promise<void> => {
    if (some.length === 0) return;
    await session.run([call(insert, ...columns.map((_, at) => arrayOf(some.map((row) => textOf(row[at]!)))))]);
    done += some.length;
    if (done % progressRows === 0) progress(`${done.toLocaleString("en-US")} rows of ${name}`);
    some = [];
  };
  for (const row of rows) {
    some.push(row);
    if (some.length === atOnce) await write();
  }
  await write();
}

const textOf = (value: Value): string | number | null =>
  value instanceof Uint8Array ? `\\x${value.toHex()}` : typeof value === "string" ? textParameter(value) : value;

/** The latest period of each quota goes into its account's row. */
async function setPeriods(session: Session): Promise<void> {
  const send = sendIn(session);
  for (const [quota, period, used] of periodColumns) {
    const latest = `SELECT account_id, max(period) AS period FROM quota_use WHERE quota = '${quota}' GROUP BY account_id`;
    await send(
      statement(
        `move ${quota}`,
        `UPDATE accounts SET ${period} = q.period, ${used} = q.used FROM quota_use AS q JOIN (${latest}) AS latest
           ON latest.account_id = q.account_id AND latest.period = q.period
         WHERE q.quota = '${quota}' AND accounts.id = q.account_id`,
      ),
    );
    await send(
      statement(
        `move ${quota}`,
        `DELETE FROM quota_use WHERE quota = '${quota}' AND EXISTS (
           SELECT 1 FROM accounts WHERE id = quota_use.account_id AND ${period} = quota_use.period)`,
      ),
    );
  }
}

/** Days whose lines are folded have sums as well. */
async function setMarks(session: Session, source: Sqlite): Promise<void> {
  const folded = source.query<{ at: Ms; sequence: number }, []>("SELECT at, sequence FROM journal_folded").get()!;
  const hasFolds = source.query("SELECT 1 FROM journal_folds LIMIT 1").get() !== null;
  if (!hasFolds) return;
  const send = sendIn(session);
  const setCounter = statement(
    "move mark",
    `INSERT INTO counters (name, value) VALUES ($1::text, $2::text::bigint)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
  );
  await send(setCounter, "folded_at", folded.at);
  for (const summing of sumUpFolded) await send(summing);
}

async function putBeside(session: Session, dataFolder: string, progress: (line: string) => void): Promise<void> {
  const responses = join(dataFolder, responsesName);
  await fromFile(responses, openStoredResponses, async (file) => {
    const rows = file.query<Readonly<Record<string, Value>>, []>(
      "SELECT id, account_id, previous_id, kept_at, bytes, input, output, settings FROM responses ORDER BY sequence",
    );
    const insert = statement(
      "move response",
      `INSERT INTO stored_responses (id, account_id, previous_id, kept_at, bytes, input, output, settings)
       VALUES ($1::text, $2::text::bigint, $3::text, $4::text::bigint, $5::text::bigint, $6::text, $7::text, $8::text)`,
    );
    // One by one: a single one may have 32 MiB.
    for (const row of rows.iterate()) await session.run([call(insert, ...Object.values(row).map(textOf))]);
    await session.run([
      call(
        statement(
          "move responses use",
          `INSERT INTO stored_responses_use (account_id, responses, bytes)
           SELECT account_id, count(*), sum(bytes) FROM stored_responses GROUP BY account_id`,
        ),
      ),
    ]);
  });
  const files = join(dataFolder, filesDatabaseName);
  await fromFile(files, openFilesDatabase, async (file) => {
    for (const table of usage.besideFiles) {
      const [name, columns] = [getTableName(table), columnsOf(table)];
      const rows = file.query<Readonly<Record<string, Value>>, []>(`SELECT * FROM ${name}`);
      const values = mapped(rows.iterate(), (row) => columns.map((column) => row[column.name]!));
      await put(
        session,
        { name, columns },
        values,
        progress,
        name === "conversation_records" ? recordsAtOnce : undefined,
      );
    }
  });
  const requests = join(dataFolder, requestsName);
  const openRequests = (): Closed => openRequestLog(requests, join(dataFolder, ledgerName), Number.MAX_SAFE_INTEGER);
  await fromFile(requests, openRequests, async (file) => {
    for (const table of [usage.failedRequests, usage.requestAddresses]) {
      const [name, columns] = [getTableName(table), columnsOf(table)];
      const rows = file.query<Readonly<Record<string, Value>>, []>(`SELECT * FROM ${name}`);
      const values = mapped(rows.iterate(), (row) => columns.map((column) => row[column.name]!));
      await put(session, { name, columns }, values, progress);
    }
    const move = statement("move counter", "INSERT INTO counters (name, value) VALUES ($1::text, $2::text::bigint)");
    const counters = file.query<{ name: string; value: number }, []>("SELECT name, value FROM counters").all();
    await session.run(counters.map(({ name, value }) => call(move, name, value)));
  });
  const activity = join(dataFolder, activityName);
  await fromFile(activity, openActivity, async (file) => {
    const columns = columnsOf(usage.activity);
    const rows = file.query<Readonly<Record<string, Value>>, []>("SELECT * FROM activity");
    const values = mapped(rows.iterate(), (row) => columns.map(({ name }) => row[name]!));
    await put(session, { name: "activity", columns }, values, progress);
  });
}

function* mapped<From, To>(rows: Iterable<From>, map: (row: From) => To): Iterable<To> {
  for (const row of rows) yield map(row);
}

type Closed = Readonly<{ close(): void }>;

/** Nothing where the file was never made. `open` makes one of this version of it. */
async function fromFile(
  file: string,
  open: (file: string) => Closed,
  work: (database: Sqlite) => Promise<void>,
): Promise<void> {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  open(file).close();
  const database = openForReading(file);
  try {
    await work(database);
  } finally {
    database.close();
  }
}

/** Both say the same, to the token. */
async function compare(session: Session, source: Sqlite): Promise<void> {
  const send = sendIn(session);
  const there = movedSums(quotasInDatabase);
  for (const [index, [what, sql]] of movedSums(quotasInFolder).entries()) {
    const here = source.query<{ sums: string }, []>(sql).get()!.sums;
    const [arrived] = await send<Readonly<{ sums: string }>>(statement(`sums of ${what}`, there[index]![1]));
    if (arrived!.sums === here) continue;
    throw new CommandError(
      `nothing was moved: ${what} sum up to ${here} in the folder and to ${arrived!.sums} in the database`,
    );
  }
}
