// The request log in a file of its own, as its Worker has it, which reads the journal beside it and never writes there. The
// journal's lines are nearly in the order of time, so that a time is found by halving.
import type { Database } from "bun:sqlite";
import { type ArrivalPage, arrivalPage, type ArrivalRow } from "../../core/arrivals.ts";
import type { LogFilter, LogPlace } from "../../core/request-log.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { type Beside, openBeside } from "../beside-ledger.ts";
import { journalDisorderMs } from "../limits.ts";
import { type Questions, SqliteQuestions, statement } from "../questions.ts";
import { isReply } from "../usage/usage-sum.ts";
import type { FoundRow } from "./log-page.ts";
import {
  conditionsOf,
  logColumns,
  RequestLogTables,
  type Search,
  type ServedLines,
  servedLog,
} from "./request-log-tables.ts";

/** What a page of arrivals has: 20 ms. */
const arrivalsAtOnce = 10_000;

/** What ids begin with is their time. */
const addresses = `
  CREATE TABLE IF NOT EXISTS request_addresses (
    request_id TEXT PRIMARY KEY,
    account_id INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    address TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS addresses_by_key ON request_addresses (account_id, key_id, request_id);
  `;
const counters = "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;";

/** A killed process loses nothing that was committed; a power cut may take the last of it, never the file. */
const form: Beside = {
  name: "request log",
  version: 2,
  pragmas: ["synchronous = NORMAL", "secure_delete = ON"],
  tables: `
  CREATE TABLE failed_requests (
    sequence INTEGER PRIMARY KEY,
    request_id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    -- 0: none
    account_id INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    asked_model TEXT,
    tags TEXT,
    priority TEXT,
    status INTEGER NOT NULL,
    reason TEXT NOT NULL,
    cause TEXT,
    node TEXT,
    wait_ms INTEGER,
    sent_ms INTEGER,
    first_token_ms INTEGER,
    duration_ms INTEGER,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    more INTEGER NOT NULL
  ) STRICT;

  CREATE INDEX failed_by_account ON failed_requests (account_id, sequence);
  ${counters}
  `,
  upgrades: {
    1: `
    ALTER TABLE failed RENAME TO failed_requests;
    ${counters}
    INSERT INTO counters SELECT 'failed_gone', requests FROM gone;
    INSERT INTO counters SELECT 'failed_requests', coalesce(max(sequence), 0) FROM failed_requests;
    DROP TABLE gone;
    `,
  },
};

class SqliteRequestLog extends RequestLogTables {
  readonly #database: Database;

  constructor(database: Database, keepMs: Ms, search?: Search) {
    const tables = new SqliteQuestions(database);
    super(tables, new SqliteServedLines(tables), keepMs, search);
    this.#database = database;
  }

  /** Nothing of an account is in the file afterwards, nor in its log. */
  override async erase(account: AccountId): Promise<void> {
    await super.erase(account);
    this.#database.run("PRAGMA main.wal_checkpoint(TRUNCATE)");
  }

  close(): void {
    this.#database.close();
  }
}

/** Opens the file beside a journal, and makes it where there is none that can be read. Throws what SQLite throws. */
export const openRequestLog = (file: string, journalFile: string, keepMs: Ms, search?: Search): SqliteRequestLog =>
  openBeside(file, journalFile, form, (database) => {
    const columns = database.query("PRAGMA table_info(failed_requests)").all() as { name: string }[];
    for (const later of ["cause", "asked_model", "tags", "priority"]) {
      if (columns.some(({ name }) => name === later)) continue;
      database.run(`ALTER TABLE failed_requests ADD COLUMN ${later} TEXT`);
    }
    database.run(addresses);
    return new SqliteRequestLog(database, keepMs, search);
  });

class SqliteServedLines implements ServedLines {
  readonly #tables: Questions;

  constructor(tables: Questions) {
    this.#tables = tables;
  }

  async part(
    filter: LogFilter,
    named: string | null,
    before: LogPlace["served"] | null,
    lines: number,
    limit: number,
  ): ReturnType<ServedLines["part"]> {
    const { from, to } = filter;
    const [last] = await this.#tables.ask<Line>(lastLine);
    const newest = (last?.sequence ?? 0) + 1;
    const first = from === null ? 0 : await this.#sequenceAt(from - journalDisorderMs);
    const until = Math.min(
      Number(before ?? newest),
      to === null ? newest : await this.#sequenceAt(to + journalDisorderMs),
    );
    if (!(until > first)) return { rows: [], last: null };
    const start = named === null ? Math.max(first, until - lines) : first;
    // A plus keeps SQLite from an index: one that was named is found by its name.
    const sequence = named === null ? "log.sequence" : "+log.sequence";
    const { where, values } = conditionsOf(filter, named, 3);
    const found = statement(
      "served requests",
      `SELECT log.sequence, ${logColumns} FROM (${servedLog("journal", "sequence, kind,")}) AS log
       WHERE ${sequence} < $1 AND ${sequence} >= $2 AND ${isReply} ${where}
         AND NOT EXISTS (SELECT 1 FROM failed_requests AS f WHERE f.request_id = log.request_id)
       ORDER BY log.sequence DESC LIMIT $3`,
    );
    const rows = await this.#tables.ask<FoundRow>(found, until, start, limit, ...values);
    const end = rows.length < limit ? start : Number(rows.at(-1)!.sequence);
    return { rows, last: end > first ? { sequence: end, at: await this.#atOf(end) } : null };
  }

  async arrivals(from: Ms, after: ArrivalPage["next"]): Promise<ArrivalPage> {
    const first = Math.max(Number(after ?? 0), (await this.#sequenceAt(from - journalDisorderMs)) - 1);
    const rows = await this.#tables.ask<ArrivalRow & Line>(readArrivals, first, from, arrivalsAtOnce);
    return arrivalPage(rows, rows.length < arrivalsAtOnce ? null : rows.at(-1)!.sequence);
  }

  readonly allowances = "SELECT account_id, used FROM quota_use WHERE quota = 'allowance' AND period = $1::text::int";

  /** The first line at or after a time, as far as lines are in order. */
  async #sequenceAt(at: Ms): Promise<number> {
    let low = (await this.#tables.ask<Line>(firstLine))[0]?.sequence ?? 0;
    let high = ((await this.#tables.ask<Line>(lastLine))[0]?.sequence ?? 0) + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if ((await this.#atOf(middle)) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Of the line, or of the next that there is. */
  async #atOf(sequence: number): Promise<Ms> {
    const [line] = await this.#tables.ask<Readonly<{ at: Ms }>>(timeFrom, sequence);
    return line?.at ?? Number.MAX_SAFE_INTEGER;
  }
}

type Line = Readonly<{ sequence: number }>;

const readArrivals = statement(
  "arrivals",
  `SELECT sequence, at, account_id AS account, key_id AS key, end_user_id AS "endUser", model, node, priority,
     input_fresh + input_cached AS input, input_cached AS cached, output,
     wait_ms AS "waitMs", sent_ms AS "sentMs", first_token_ms AS "firstTokenMs", duration_ms AS "durationMs"
   FROM journal WHERE sequence > $1 AND at >= $2 AND ${isReply} ORDER BY sequence LIMIT $3`,
);
const firstLine = statement("first line", "SELECT sequence FROM journal ORDER BY sequence LIMIT 1");
const lastLine = statement("last line", "SELECT sequence FROM journal ORDER BY sequence DESC LIMIT 1");
const timeFrom = statement("time from", "SELECT at FROM journal WHERE sequence >= $1 ORDER BY sequence LIMIT 1");
