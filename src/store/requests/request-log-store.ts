// The request log: refused and failed requests in a file of their own, and served ones as lines of the journal, which is
// read beside it and never written. A page is a merge of the two, the newest first.
//
// The journal has no index by time, model or node, because each would cost every charge. Its lines are nearly in the order
// of time, so that a time is found by halving; whatever else is asked for is looked for line by line, for a while.
import type { Database } from "bun:sqlite";
import { type ArrivalPage, arrivalPage, type ArrivalRow } from "../../core/arrivals.ts";
import { systemClock } from "../../core/clock.ts";
import { failedAccountRowsMax, failedRowsMax, journalDisorderMs, logSearchLines, logSearchMs } from "../limits.ts";
import {
  type FailedBatch,
  type FailedRow,
  type LogFilter,
  type LogPage,
  type LogPlace,
  type LogRow,
  requestIdBeginning,
} from "../../core/request-log.ts";
import type { ReportAsked, ReportPart } from "../../core/report.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { type BesideLedger, openBesideLedger } from "../beside-ledger.ts";
import { merged, statusFits } from "./log-page.ts";
import { cutDayText, type FoundSums, reportRowOf, reportText, reportValues } from "./report.ts";

/** Raised when the tables change: what another version wrote is let go of. */
const storeVersion = 1;
const pruneIntervalMs = 60_000;
/** What a page of arrivals has: 20 ms. */
const arrivalsAtOnce = 10_000;

const tables = `
  CREATE TABLE failed (
    sequence INTEGER PRIMARY KEY,
    request_id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    -- 0: none
    account_id INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
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

  CREATE INDEX failed_by_account ON failed (account_id, sequence);

  -- Of requests that are not kept.
  CREATE TABLE gone (id INTEGER PRIMARY KEY CHECK (id = 1), requests INTEGER NOT NULL) STRICT;

  INSERT INTO gone (id, requests) VALUES (1, 0);
`;

/** What is billed of one that failed is of what was delivered, so that its own numbers give no sum. */
const rates = [
  "input_cents",
  "cached_input_cents",
  "output_cents",
  "input_parts",
  "cached_input_parts",
  "output_parts",
];
const noRates = rates.map((column) => `NULL AS ${column}`).join(", ");
const ratesAsNamed = `input_cents AS inputCents, cached_input_cents AS cachedInputCents, output_cents AS outputCents,
  input_parts AS inputParts, cached_input_parts AS cachedInputParts, output_parts AS outputParts`;

/** The same columns of both, by which filters and readers know them. */
const views = `
  CREATE TEMP VIEW served_log AS
    SELECT sequence, at, billing_key AS request_id, account_id, key_id, endpoint, model, 200 AS status, NULL AS reason, NULL AS cause,
      node, wait_ms, sent_ms, first_token_ms, duration_ms, input_fresh + input_cached AS input, input_cached AS cached_input,
      output, reasoning, billed_tokens, input_cents, cached_input_cents, output_cents, input_parts, cached_input_parts, output_parts, 0 AS more
    FROM ledger.journal WHERE kind IN ('charge', 'coder_usage');

  CREATE TEMP VIEW failed_log AS
    SELECT sequence, at, request_id, account_id, key_id, endpoint, model, status, reason, cause,
      node, wait_ms, sent_ms, first_token_ms, duration_ms, input, 0 AS cached_input, output, 0 AS reasoning,
      coalesce((SELECT billed_tokens FROM ledger.journal WHERE billing_key = request_id), 0) AS billed_tokens,
      ${noRates}, more
    FROM main.failed;
`;
const logColumns = `sequence, at, request_id AS requestId, account_id AS account, key_id AS key, endpoint, model, status, reason, cause,
  node, wait_ms AS waitMs, sent_ms AS sentMs, first_token_ms AS firstTokenMs, duration_ms AS durationMs, input,
  cached_input AS cachedInput, output, reasoning, billed_tokens AS billedTokens, ${ratesAsNamed}, more,
  (SELECT name FROM ledger.api_keys AS k WHERE k.account_id = log.account_id AND k.id = key_id) AS keyName`;

/** Lines of its first step, and how long it goes on. */
type Search = Readonly<{ lines: number; ms: Ms }>;
const usualSearch: Search = { lines: logSearchLines, ms: logSearchMs };

type Found = LogRow & Readonly<{ sequence: number }>;
type Stopped = Readonly<{ sequence: number; at: Ms }>;
type ServedLines = Readonly<{ rows: readonly Found[]; stoppedAt: Stopped | null }>;
type Bound = string | number;

/** A killed process loses nothing that was committed; a power cut may take the last of it, never the file. */
const form: BesideLedger = {
  name: "request log",
  version: storeVersion,
  tables,
  pragmas: ["synchronous = NORMAL", "secure_delete = ON"],
};

export class RequestLogStore {
  readonly #database: Database;
  readonly #statements: ReturnType<typeof prepare>;
  #keepMs: Ms;
  #prunedAt = Number.NEGATIVE_INFINITY;

  private constructor(database: Database, keepMs: Ms) {
    this.#database = database;
    this.#keepMs = keepMs;
    this.#statements = prepare(database);
  }

  /** Opens the file beside a journal, and makes it where there is none that can be read. Throws what SQLite throws. */
  static open(file: string, journalFile: string, keepMs: Ms): RequestLogStore {
    return openBesideLedger(file, journalFile, form, (database) => {
      const columns = database.query("PRAGMA table_info(failed)").all() as { name: string }[];
      // A file of before; a program of before works on one of now, too.
      if (!columns.some(({ name }) => name === "cause")) database.run("ALTER TABLE failed ADD COLUMN cause TEXT");
      database.run(views);
      return new RequestLogStore(database, keepMs);
    });
  }

  add({ rows, more, lost }: FailedBatch, now: Ms): void {
    const { insert, addMore, addGone, ofAccountBeyond, removeTo, beyond, removeAllTo } = this.#statements;
    this.#database.transaction(() => {
      if (this.#keepMs > 0) {
        for (const row of rows.toSorted((one, other) => one.at - other.at)) insert.run(...valuesOf(row));
        for (const [requestId, count] of more) addMore.run(count, requestId);
        if (lost > 0) addGone.run(lost);
      }
      for (const account of new Set(rows.map((row) => row.account))) {
        const last = ofAccountBeyond.get(account, failedAccountRowsMax)?.sequence;
        if (last !== undefined) this.#countGone(removeTo.all(account, last));
      }
      const last = beyond.get(failedRowsMax)?.sequence;
      if (last !== undefined) this.#countGone(removeAllTo.all(last));
    })();
    if (now - this.#prunedAt >= pruneIntervalMs) this.prune(now);
  }

  #countGone(removed: readonly Readonly<{ more: number }>[]): void {
    const requests = removed.reduce((sum, { more }) => sum + 1 + more, 0);
    if (requests > 0) this.#statements.addGone.run(requests);
  }

  prune(now: Ms): void {
    this.#prunedAt = now;
    this.#statements.prune.run(now - this.#keepMs);
  }

  keep(keepMs: Ms, now: Ms): void {
    this.#keepMs = keepMs;
    this.prune(now);
  }

  /** Nothing of an account is in the file afterwards, nor in its log. */
  erase(account: AccountId): void {
    this.#statements.erase.run(account);
    this.#database.run("PRAGMA main.wal_checkpoint(TRUNCATE)");
  }

  page(filter: LogFilter, before: LogPlace | null, limit: number, now: Ms, search: Search = usualSearch): LogPage {
    return this.#database.transaction(() => {
      const place = before ?? { served: Number.MAX_SAFE_INTEGER, failed: Number.MAX_SAFE_INTEGER };
      const { requestId, reason } = filter;
      const beginning = requestId === null ? null : requestIdBeginning(requestId);
      const gone = this.#statements.gone.get()!.requests;
      if (requestId !== null && beginning === null) return { rows: [], next: null, searchedTo: null, gone };
      const [condition, bounds] = conditionOf(filter, beginning);
      const keptFrom = now - this.#keepMs;
      const failed =
        reason === "served"
          ? []
          : this.#failedBefore(place.failed, condition, bounds, limit + 1).filter(({ at }) => at >= keptFrom);
      const isServed = (reason === null || reason === "served") && statusFits(filter.status, 200);
      const served = isServed
        ? this.#servedBefore(Number(place.served), filter, beginning, condition, bounds, limit + 1, search)
        : { rows: [], stoppedAt: null };
      return { ...merged(place, served, failed, limit), gone };
    })();
  }

  /** As ArrivalQueries. */
  arrivals(from: Ms, after: number): ArrivalPage {
    const first = Math.max(after, this.#sequenceAt(from - journalDisorderMs) - 1);
    const rows = this.#statements.arrivals.all(first, from, arrivalsAtOnce);
    return arrivalPage(rows, rows.length < arrivalsAtOnce ? null : rows.at(-1)!.sequence);
  }

  /** As RequestLogQueries. A second for a million lines. */
  report(asked: ReportAsked): ReportPart {
    const [first, last] = [asked.from - journalDisorderMs, asked.until + journalDisorderMs].map((at) =>
      this.#sequenceAt(at),
    );
    const lines = `AND sequence >= ${first} AND sequence < ${last}`;
    const text = reportText(asked, { parameter: (place) => `?${place}`, number: (sum) => sum, lines });
    const cut = cutDayText(asked);
    return this.#database.transaction(() => {
      using sums = this.#database.prepare<FoundSums, number[]>(text);
      using cutDay = cut === null ? null : this.#database.prepare(cut);
      const cutsFoldedDay = cutDay !== null && cutDay.get() !== null;
      return { rows: sums.all(...reportValues(asked)).map(reportRowOf), cutsFoldedDay };
    })();
  }

  close(): void {
    this.#database.close();
  }

  #failedBefore(before: number, condition: string, bounds: readonly Bound[], limit: number): Found[] {
    const found = this.#database.prepare<Found, Bound[]>(
      `SELECT ${logColumns} FROM failed_log AS log WHERE sequence < ? ${condition} ORDER BY sequence DESC LIMIT ?`,
    );
    try {
      return found.all(before, ...bounds, limit);
    } finally {
      found.finalize();
    }
  }

  #servedBefore(
    before: number,
    { from, to }: LogFilter,
    requestId: string | null,
    condition: string,
    bounds: readonly Bound[],
    limit: number,
    search: Search,
  ): ServedLines {
    const { last, isFailed } = this.#statements;
    // A plus keeps SQLite from an index: one that was named is found by its name.
    const range = requestId === null ? "sequence" : "+sequence";
    const found = this.#database.prepare<Found, Bound[]>(
      `SELECT ${logColumns} FROM served_log AS log WHERE ${range} < ? AND ${range} >= ? ${condition}
       ORDER BY sequence DESC LIMIT ?`,
    );
    try {
      const rows: Found[] = [];
      const first = from === null ? 0 : this.#sequenceAt(from - journalDisorderMs);
      const newest = (last.get()?.sequence ?? 0) + 1;
      let until = Math.min(before, to === null ? newest : this.#sequenceAt(to + journalDisorderMs));
      const giveUpAt = systemClock.monotonic() + search.ms;
      for (let lines = requestId === null ? search.lines : newest; until > first && rows.length < limit; lines *= 2) {
        const start = Math.max(first, until - lines);
        const wanted = limit - rows.length;
        const some = found.all(until, start, ...bounds, wanted);
        // What failed after a part of it was charged is the other file's.
        rows.push(...some.filter((row) => isFailed.get(row.requestId) === null));
        until = some.length < wanted ? start : some.at(-1)!.sequence;
        if (until > first && rows.length < limit && systemClock.monotonic() >= giveUpAt) {
          return { rows, stoppedAt: { sequence: until, at: this.#atOf(until) } };
        }
      }
      return { rows, stoppedAt: null };
    } finally {
      found.finalize();
    }
  }

  /** The first line at or after a time, as far as lines are in order. */
  #sequenceAt(at: Ms): number {
    const { last, first } = this.#statements;
    let low = first.get()?.sequence ?? 0;
    let high = (last.get()?.sequence ?? 0) + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.#atOf(middle) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Of the line, or of the next that there is. */
  #atOf(sequence: number): Ms {
    return this.#statements.atFrom.get(sequence)?.at ?? Number.MAX_SAFE_INTEGER;
  }
}

function conditionOf(filter: LogFilter, requestId: string | null): [condition: string, bounds: Bound[]] {
  const parts: string[] = [];
  const bounds: Bound[] = [];
  const also = (value: Bound | null, condition: string): void => {
    if (value === null) return;
    parts.push(`AND ${condition}`);
    bounds.push(value);
  };
  // A request id finds the row: other indexes would be slower.
  also(filter.account, requestId === null ? "account_id = ?" : "+account_id = ?");
  also(filter.key, "key_id = ?");
  also(filter.model, "model = ?");
  also(filter.node, "node = ?");
  also(filter.endpoint, "endpoint = ?");
  also(filter.status?.[0] ?? null, "status >= ?");
  also(filter.status?.[1] ?? null, "status <= ?");
  if (filter.reason === "failed") parts.push("AND reason IS NOT NULL");
  else if (filter.reason !== "served") also(filter.reason, "reason = ?");
  also(filter.from, "at >= ?");
  also(filter.to, "at < ?");
  also(filter.waitMinMs, "wait_ms >= ?");
  also(filter.firstTokenMinMs, "first_token_ms >= ?");
  also(filter.durationMinMs, "duration_ms >= ?");
  also(filter.tokensMin, "input + output >= ?");
  also(filter.billedMin, "billed_tokens >= ?");
  also(requestId, "request_id >= ?");
  also(requestId === null ? null : `${requestId}{`, "request_id < ?");
  return [parts.join(" "), bounds];
}

function valuesOf(row: FailedRow): (string | number | null)[] {
  const { requestId, at, account, key, endpoint, model, status, reason, cause, course, input, output, more } = row;
  const { node, waitMs, sentMs, firstTokenMs, durationMs } = course;
  const values = [requestId, at, account, key, endpoint, model, status, reason, node, waitMs, sentMs, firstTokenMs];
  return [...values, durationMs, input, output, more, cause];
}

function prepare(database: Database) {
  return {
    insert: database.prepare<unknown, (string | number | null)[]>(`
      INSERT INTO failed (request_id, at, account_id, key_id, endpoint, model, status, reason, node, wait_ms, sent_ms,
        first_token_ms, duration_ms, input, output, more, cause)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`),
    addMore: database.prepare<unknown, [number, string]>("UPDATE failed SET more = more + ? WHERE request_id = ?"),
    addGone: database.prepare<unknown, [number]>("UPDATE gone SET requests = requests + ?"),
    gone: database.prepare<{ requests: number }, []>("SELECT requests FROM gone"),
    ofAccountBeyond: database.prepare<{ sequence: number }, [number, number]>(
      "SELECT sequence FROM failed WHERE account_id = ? ORDER BY sequence DESC LIMIT 1 OFFSET ?",
    ),
    removeTo: database.prepare<{ more: number }, [number, number]>(
      "DELETE FROM failed WHERE account_id = ? AND sequence <= ? RETURNING more",
    ),
    // rows have no gaps but for what was removed: no need to count them while their numbers say that they are few
    beyond: database.prepare<{ sequence: number }, [number]>(`
      SELECT sequence FROM failed
      WHERE (SELECT max(sequence) - min(sequence) FROM failed) >= ?1 ORDER BY sequence DESC LIMIT 1 OFFSET ?1`),
    removeAllTo: database.prepare<{ more: number }, [number]>("DELETE FROM failed WHERE sequence <= ? RETURNING more"),
    prune: database.prepare<unknown, [number]>("DELETE FROM failed WHERE at < ?"),
    erase: database.prepare<unknown, [number]>("DELETE FROM failed WHERE account_id = ?"),
    isFailed: database.prepare<unknown, [string]>("SELECT 1 FROM failed WHERE request_id = ?"),
    arrivals: database.prepare<ArrivalRow & Readonly<{ sequence: number }>, [number, Ms, number]>(`
      SELECT sequence, at, account_id AS account, key_id AS key, end_user_id AS endUser, model, node, priority,
        input_fresh + input_cached AS input, input_cached AS cached, output,
        wait_ms AS waitMs, sent_ms AS sentMs, first_token_ms AS firstTokenMs, duration_ms AS durationMs
      FROM ledger.journal WHERE sequence > ? AND at >= ? AND kind IN ('charge', 'coder_usage') ORDER BY sequence LIMIT ?`),
    first: database.prepare<{ sequence: number }, []>("SELECT sequence FROM ledger.journal ORDER BY sequence LIMIT 1"),
    last: database.prepare<{ sequence: number }, []>(
      "SELECT sequence FROM ledger.journal ORDER BY sequence DESC LIMIT 1",
    ),
    atFrom: database.prepare<{ at: number }, [number]>(
      "SELECT at FROM ledger.journal WHERE sequence >= ? ORDER BY sequence LIMIT 1",
    ),
  };
}
