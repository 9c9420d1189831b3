// Moves the books of a database into an empty data folder. The move waits until no gateway lives, and closes the database: none
// starts on it anymore. All is read in one state, sums are compared and the books checked, the database notes where they go, and
// only then the ledger gets its name in the folder. Whatever is killed, and wherever: the same command again begins anew, or says
// that it is done; another folder gets no second copy.
import type { Database as Sqlite } from "bun:sqlite";
import { getTableName } from "drizzle-orm";
import { closeSync, existsSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { CommandError } from "../../core/expected-error.ts";
import type { Ms } from "../../core/types.ts";
import { openActivity } from "../activity/open-activity.ts";
import {
  activityName,
  databaseName,
  drainedName,
  lockDataFolder,
  lockName,
  filesDatabaseName,
  requestsName,
  responsesName,
  sealingKeyName,
  toldName,
} from "../folder/data-folder.ts";
import { clearServedMark, servedName } from "../folder/served-folder.ts";
import { flush, writeWhole, giveToOwner } from "../folder/whole-file.ts";
import { migrate as migrateFolder } from "../ledger/migrate.ts";
import { openForReading, openForWriting } from "../open.ts";
import { openFilesDatabase } from "../files/files-database.ts";
import { openRequestLog } from "../requests/open-request-log.ts";
import { openStoredResponses } from "../responses/stored-responses-file.ts";
import { ledgerViolations } from "../verify/verify.ts";
import { type Send, statement } from "../questions.ts";
import { PostgresServer } from "./connection.ts";
import { Database, sendIn } from "./database.ts";
import { GoneLanes } from "./gone-lanes.ts";
import { laneGoneMs } from "./limits.ts";
import { type MoveOrder, recordsAtOnce } from "./move-in.ts";
import {
  columnsOf,
  type MovedTable,
  movedSums,
  movedTables,
  placeOf,
  quotasInDatabase,
  quotasInFolder,
} from "./moved-tables.ts";
import { systemPace } from "./pace.ts";
import { counters } from "./schema.ts";
import * as usage from "./schema-usage.ts";

export type MovedOut = Readonly<{ accounts: number; lines: number; responses: number; from: string }>;

const limitMs = 24 * 3_600_000;
const rowsAtOnce = 1_000;
const lookMs = 1_000;
/** Killed gateways are known to be gone after `laneGoneMs`; the user has to stop the others. */
const waitMs = 4 * laneGoneMs;
/** What a folder may have in which no books are: its lock, and the parts of a move that was cut off. */
const partSuffix = ".moving";
/** The ledger comes last: a folder without it has no books. */
const books: readonly string[] = [
  responsesName,
  requestsName,
  filesDatabaseName,
  activityName,
  sealingKeyName,
  databaseName,
];

type Value = string | number | null | Uint8Array;

/** `dataFolder`: where to. Throws CommandError in one sentence where it cannot be; then the database is as it was. */
export async function moveOut({ dataFolder, url, progress }: MoveOrder): Promise<MovedOut> {
  const from = placeOf(url);
  if (existsSync(join(dataFolder, databaseName))) {
    throw new CommandError(`${dataFolder} has books already: name a folder that has none`);
  }
  const folder = lockDataFolder(dataFolder);
  const server = new PostgresServer(url);
  const database = new Database(server, undefined, 2);
  const place = placeOfFolder(dataFolder);
  let closing: "open" | "closed" | "for good" = "open";
  try {
    const earlier = await movedTo(database, from);
    if (earlier !== null && earlier !== place) {
      throw new CommandError(`the books in ${from} were moved to ${earlier} already: they are closed`);
    }
    // Of a move to here that was cut off, whose ledger has no name yet.
    const isOurs = (name: string): boolean => name.includes(partSuffix) || (earlier === place && books.includes(name));
    const known = [servedName, drainedName, toldName]; // of a gateway that served from the database
    const isKnown = (name: string): boolean => name.startsWith(lockName) || known.includes(name) || isOurs(name);
    const strange = readdirSync(dataFolder).filter((name) => !isKnown(name));
    if (strange.length > 0)
      throw new CommandError(`${dataFolder} is not empty: it has ${strange.slice(0, 3).join(", ")}`);
    for (const name of readdirSync(dataFolder)) if (isOurs(name)) rmSync(join(dataFolder, name), { force: true });
    // Before it is closed: the user may interrupt this to stop gateways, and nothing has changed.
    await waitForGateways(database, server, progress);
    await close(database);
    closing = earlier === null ? "closed" : "for good";
    await waitForGateways(database, server, progress); // one that began in between
    const counts = await copy(database, dataFolder, progress, async () => {
      await database.change((send) => send(setMovedTo, movedOutName, place));
      closing = "for good";
    });
    return { ...counts, from };
  } catch (error) {
    if (closing === "closed") {
      await reopen(database).catch(() => progress(`the books in ${from} stay closed until this is done`));
    }
    if (closing === "for good") progress("the move is not done: the same command goes on with it");
    throw error instanceof CommandError ? error : new CommandError(`nothing was moved: ${(error as Error).message}`);
  } finally {
    await database.close();
    folder.release();
  }
}

/** A folder on a machine: that of another machine has the same path. */
const placeOfFolder = (dataFolder: string): string => `${hostname()}:${resolve(dataFolder)}`;

const setClosed = statement("close books", "UPDATE ledger_meta SET closed = true WHERE id = 1 RETURNING 1 AS done");
const setOpen = statement("reopen books", "UPDATE ledger_meta SET closed = false WHERE id = 1");
const living = statement(
  "living gateways",
  "SELECT DISTINCT gateway FROM lanes WHERE gone_at IS NULL ORDER BY gateway",
);

const movedOutName = "moved out";
const readMovedTo = statement("moved to", "SELECT holder FROM jobs WHERE name = $1::text");
const setMovedTo = statement(
  "set moved to",
  "INSERT INTO jobs (name, holder, until) VALUES ($1::text, $2::text, 0) ON CONFLICT (name) DO UPDATE SET holder = $2::text",
);

/** Where an earlier move brought the books, or was about to; null: there was none. */
async function movedTo(database: Database, from: string): Promise<string | null> {
  try {
    const [found] = await database.ask<Readonly<{ holder: string }>>(readMovedTo, movedOutName);
    return found?.holder ?? null;
  } catch (error) {
    throw new CommandError(
      `nothing was moved: there are no books in ${from} that can be read: ${(error as Error).message}`,
    );
  }
}

const close = (database: Database): Promise<unknown> => database.change((send) => send(setClosed));

const reopen = (database: Database): Promise<unknown> => database.change((send) => send(setOpen));

/** Those that were killed are given up as gateways do it: when their rows have not changed for 15 s. */
async function waitForGateways(
  database: Database,
  server: PostgresServer,
  progress: (line: string) => void,
): Promise<void> {
  const gone = new GoneLanes(server, systemPace, () => {});
  try {
    const until = systemPace.monotonic() + waitMs;
    for (let shown = ""; ;) {
      await gone.look();
      const alive = await database.read(async (session) => sendIn(session)<Readonly<{ gateway: string }>>(living));
      if (alive.length === 0) return;
      const names = alive.map(({ gateway }) => gateway).join(", ");
      if (names !== shown) progress(`waiting for gateways to end: ${names}`);
      shown = names;
      if (systemPace.monotonic() > until) {
        throw new CommandError(
          `nothing was moved: ${names} still ${alive.length === 1 ? "runs" : "run"}; stop all gateways first`,
        );
      }
      await Bun.sleep(lookMs);
    }
  } finally {
    gone.close();
  }
}

/** `settle`: called when all is on disk, but for the names. */
async function copy(
  database: Database,
  dataFolder: string,
  progress: (line: string) => void,
  settle: () => Promise<void>,
) {
  const part = (name: string): string => join(dataFolder, `${name}${partSuffix}`);
  const ledger = part(databaseName);
  for (const name of [databaseName, responsesName, requestsName, filesDatabaseName, activityName]) {
    closeSync(openSync(part(name), "a", 0o600)); // readable by their owner alone
  }
  migrateFolder(ledger);
  const target = openForWriting(ledger);
  const counts = await database.transaction(
    async (session) => {
      const send = sendIn(session);
      target.transaction(() => target.run("DELETE FROM audit_log"))();
      for (const table of movedTables) await takeTable(send, target, table, progress);
      await takeMarks(send, target);
      await compare(send, target);
      const responses = await takeBeside(send, part, ledger);
      const [meta] = await send<Readonly<{ key: string | null }>>(sealingKey);
      if (meta!.key !== null)
        writeWhole(join(dataFolder, `${sealingKeyName}${partSuffix}`), Uint8Array.fromBase64(meta!.key));
      return responses;
    },
    { access: "snapshot", limitMs },
  );
  target.run("PRAGMA wal_checkpoint(TRUNCATE)");
  target.close();
  const checked = openForReading(ledger);
  const [broken] = ledgerViolations(checked, progress);
  const { accounts, lines } = checked
    .query<{ accounts: number; lines: number }, []>(
      "SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM journal) AS lines",
    )
    .get()!;
  checked.close();
  if (broken !== undefined) {
    throw new CommandError(
      `nothing was moved: the books contradict themselves (account ${broken.account}: ${broken.detail})`,
    );
  }
  const names = books.filter((name) => existsSync(part(name)));
  for (const name of names) {
    for (const log of ["-wal", "-shm"]) rmSync(part(name) + log, { force: true });
    flush(part(name));
    giveToOwner(part(name));
  }
  giveToOwner(join(dataFolder, lockName));
  await settle();
  for (const name of names) renameSync(part(name), join(dataFolder, name));
  clearServedMark(dataFolder);
  flush(dataFolder);
  return { accounts, lines, responses: counts };
}

const sealingKey = statement(
  "sealing key",
  "SELECT encode(sealing_key, 'base64') AS key FROM ledger_meta WHERE id = 1",
);

/** A column as SQLite keeps it: whole numbers, bytes as hexadecimal text. */
const read = ({ name, type }: MovedTable["columns"][number]): string =>
  type === "bytea"
    ? `encode(${name}, 'hex') AS ${name}`
    : type === "boolean"
      ? `CASE WHEN ${name} THEN 1 ELSE 0 END AS ${name}`
      : type === "text"
        ? name
        : `${name}::float8 AS ${name}`;

type Found = Readonly<Record<string, string | number | null>>;

/** Rows of a query, some at a time; within a transaction. */
async function* rowsOf(send: Send, query: string, atOnce = rowsAtOnce): AsyncIterable<readonly Found[]> {
  await send(statement("open rows", `DECLARE moved NO SCROLL CURSOR FOR ${query}`));
  for (;;) {
    const rows = await send<Found>(statement("next rows", `FETCH ${atOnce} FROM moved`));
    if (rows.length > 0) yield rows;
    if (rows.length < atOnce) break;
  }
  await send(statement("close rows", "CLOSE moved"));
}

async function takeTable(
  send: Send,
  target: Sqlite,
  { name, columns }: MovedTable,
  progress: (line: string) => void,
): Promise<void> {
  // Line 1 is left out: what is folded stands before it.
  let sequence = 1;
  const isJournal = name === "journal";
  const names = [...(isJournal ? ["sequence"] : []), ...columns.map((column) => column.name)];
  const insert = target.prepare<unknown, Value[]>(
    `INSERT INTO ${name} (${names.map((column) => `"${column}"`).join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
  );
  const query =
    name === "quota_use"
      ? `SELECT account_id::float8 AS account_id, quota, period, used::float8 AS used FROM (${quotasInDatabase}) AS uses`
      : `SELECT ${columns.map(read).join(", ")} FROM ${name}${isJournal ? " ORDER BY journal.at, billing_key" : ""}`;
  let done = 0;
  for await (const rows of rowsOf(send, query)) {
    target.transaction(() => {
      for (const row of rows) {
        const values = columns.map(({ name: column, type }): Value => {
          const value = row[column]!;
          return type === "bytea" && typeof value === "string" ? Uint8Array.fromHex(value) : value;
        });
        insert.run(...(isJournal ? [(sequence += 1)] : []), ...values);
      }
    })();
    done += rows.length;
    if (done % (100 * rowsAtOnce) === 0) progress(`${done.toLocaleString("en-US")} rows of ${name}`);
  }
  insert.finalize();
}

async function takeMarks(send: Send, target: Sqlite): Promise<void> {
  const mark = statement("folded mark", "SELECT value::float8 AS at FROM counters WHERE name = 'folded_at'");
  const [folded] = await send<Readonly<{ at: Ms }>>(mark);
  const hasFolds = target.query("SELECT 1 FROM journal_folds LIMIT 1").get() !== null;
  if (hasFolds) target.run("UPDATE journal_folded SET sequence = 1, billing_key = '', at = ?", [(folded?.at ?? 1) - 1]);
}

async function compare(send: Send, target: Sqlite): Promise<void> {
  const here = movedSums(quotasInFolder);
  for (const [index, [what, sql]] of movedSums(quotasInDatabase).entries()) {
    const [there] = await send<Readonly<{ sums: string }>>(statement(`sums of ${what}`, sql));
    const { sums } = target.query<{ sums: string }, []>(here[index]![1]).get()!;
    if (sums === there!.sums) continue;
    throw new CommandError(
      `nothing was moved: ${what} sum up to ${there!.sums} in the database and to ${sums} in the folder`,
    );
  }
}

/** What stands in files beside the ledger's; gives how many responses are stored. */
async function takeBeside(send: Send, part: (name: string) => string, ledger: string): Promise<number> {
  const stored = openStoredResponses(part(responsesName));
  let responses = 0;
  try {
    const put = stored.prepare<unknown, Value[]>(
      `INSERT INTO responses (id, account_id, previous_id, kept_at, bytes, input, output, settings)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    const query = `SELECT id, account_id::float8 AS account_id, previous_id, kept_at::float8 AS kept_at,
      bytes::float8 AS bytes, input, output, settings FROM stored_responses ORDER BY kept_at, id`;
    for await (const rows of rowsOf(send, query, 1)) {
      for (const row of rows) put.run(...Object.values(row));
      responses += rows.length;
    }
    stored.run(`INSERT INTO responses_use (account_id, responses, bytes)
      SELECT account_id, count(*), sum(bytes) FROM responses GROUP BY account_id`);
    stored.run("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    stored.close();
  }
  // Made as the server makes them, then filled.
  openFilesDatabase(part(filesDatabaseName)).close();
  for (const table of usage.besideFiles) {
    await fill(send, part(filesDatabaseName), getTableName(table), columnsOf(table), "", recordsAtOnce);
  }
  openRequestLog(part(requestsName), ledger, 1).close();
  await fill(send, part(requestsName), "failed_requests", columnsOf(usage.failedRequests), "ORDER BY sequence");
  await fill(send, part(requestsName), "request_addresses", columnsOf(usage.requestAddresses));
  await fill(
    send,
    part(requestsName),
    "counters",
    columnsOf(counters),
    "WHERE name IN ('failed_requests', 'failed_gone')",
  );
  openActivity(part(activityName)).close();
  await fill(send, part(activityName), "activity", columnsOf(usage.activity));
  return responses;
}

async function fill(
  send: Send,
  file: string,
  table: string,
  columns: MovedTable["columns"],
  which = "",
  atOnce = rowsAtOnce,
): Promise<void> {
  const target = openForWriting(file);
  try {
    const names = columns.map(({ name }) => `"${name}"`);
    const put = target.prepare<unknown, Value[]>(
      `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
    );
    for await (const rows of rowsOf(send, `SELECT ${columns.map(read).join(", ")} FROM ${table} ${which}`, atOnce)) {
      target.transaction(() => {
        for (const row of rows) put.run(...columns.map(({ name }) => row[name]!));
      })();
    }
    put.finalize();
    target.run("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    target.close();
  }
}
