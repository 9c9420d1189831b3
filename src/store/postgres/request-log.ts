// The request log in PostgreSQL: refused and failed requests of all gateways in a table, and served ones as lines of the
// journal. What is asked for beside a time, an account or a request is looked for line by line, for a while.
import { type ArrivalPage, arrivalPage, type ArrivalRow } from "../../core/arrivals.ts";
import { systemClock } from "../../core/clock.ts";
import { failedAccountRowsMax, failedRowsMax, logSearchLines, logSearchMs } from "../limits.ts";
import {
  type FailedBatch,
  type FailedRow,
  type LogFilter,
  type LogPage,
  type LogPlace,
  requestIdBeginning,
} from "../../core/request-log.ts";
import type { ReportAsked, ReportPart } from "../../core/report.ts";
import type { Ms } from "../../core/types.ts";
import type { Keeper } from "../kept.ts";
import { type FailedFound, type FoundRow, merged, type Served, statusFits } from "../requests/log-page.ts";
import { cutDayText, type FoundSums, reportRowOf, reportText, reportValues } from "../requests/report.ts";
import type { RequestLogCall } from "../requests/request-log-worker.ts";
import { ask, change, type Send, statement, type Value } from "./asking.ts";
import { arrayOf, type Statement } from "./connection.ts";
import type { Database } from "./database.ts";
import { isReply } from "./usage-days.ts";

const pruneIntervalMs = 60_000;
const beginning: LogPlace = { served: `${Number.MAX_SAFE_INTEGER}.`, failed: Number.MAX_SAFE_INTEGER };

/** Lines of its first step, and how long it goes on. */
type Search = Readonly<{ lines: number; ms: Ms }>;
const usualSearch: Search = { lines: logSearchLines, ms: logSearchMs };

export class PostgresRequestLog implements Keeper<RequestLogCall> {
  readonly #database: Database;
  readonly #search: Search;
  #keepMs: Ms;
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor(database: Database, keepMs: Ms, search = usualSearch) {
    this.#database = database;
    this.#keepMs = keepMs;
    this.#search = search;
  }

  call<Result>(call: RequestLogCall): Promise<Result> {
    return this.#answer(call) as Promise<Result>;
  }

  async close(): Promise<void> {}

  async #answer(call: RequestLogCall): Promise<unknown> {
    switch (call.order) {
      case "add":
        if (this.#keepMs > 0) await change(this.#database, (send) => add(send, call.batch));
        if (call.now - this.#prunedAt >= pruneIntervalMs) await this.#prune(call.now);
        return null;
      case "keep":
        this.#keepMs = call.keepMs;
        return this.#prune(call.now);
      case "erase":
        return change(this.#database, (send) => send(erase, call.account));
      case "page":
        return this.#page(call.filter, call.before ?? beginning, call.limit, call.now);
      case "arrivals":
        return this.#arrivals(call.from, call.after);
      case "report":
        return this.#report(call.asked);
      case "open":
      case "close":
        return null;
      default:
        return call satisfies never;
    }
  }

  async #prune(now: Ms): Promise<void> {
    this.#prunedAt = now;
    await change(this.#database, async (send) => {
      await send(prune, now - this.#keepMs);
      await addGone(send, sumOf(await send<Counted>(removeBeyond, failedRowsMax)));
    });
  }

  async #page(filter: LogFilter, before: LogPlace, limit: number, now: Ms): Promise<LogPage> {
    const { requestId, reason } = filter;
    const named = requestId === null ? null : requestIdBeginning(requestId);
    const gone = (await ask<Counted>(this.#database, readGone))[0]?.requests ?? 0;
    if (requestId !== null && named === null) return { rows: [], next: null, searchedTo: null, gone };
    const isServed = (reason === null || reason === "served") && statusFits(filter.status, 200);
    const [failed, served] = await Promise.all([
      reason === "served" ? [] : this.#failedBefore(filter, named, before.failed, limit + 1, now - this.#keepMs),
      isServed ? this.#servedBefore(filter, named, String(before.served), limit + 1) : nothingServed,
    ]);
    return { ...merged(before, served, failed, limit), gone };
  }

  async #arrivals(from: Ms, after: ArrivalPage["next"]): Promise<ArrivalPage> {
    const place = after === null ? { at: from, key: "" } : placeOf(String(after));
    const rows = await ask<ArrivalRow & Readonly<{ id: string }>>(
      this.#database,
      readArrivals,
      place.at,
      place.key,
      arrivalsAtOnce,
    );
    const last = rows.at(-1);
    return arrivalPage(rows, rows.length < arrivalsAtOnce ? null : `${last!.at}.${last!.id}`);
  }

  async #report(asked: ReportAsked): Promise<ReportPart> {
    const parameter = (place: number) => `$${place}::text::bigint`;
    const text = reportText(asked, { parameter, number: (sum) => `(${sum})::float8`, lines: "" });
    const cut = cutDayText(asked);
    const [rows, cutDay] = await Promise.all([
      ask<FoundSums>(this.#database, { name: "report", text }, ...reportValues(asked)),
      cut === null ? [] : ask(this.#database, { name: "cut days", text: cut }),
    ]);
    return { rows: rows.map(reportRowOf), cutsFoldedDay: cutDay.length > 0 };
  }

  #failedBefore(
    filter: LogFilter,
    named: string | null,
    before: number,
    limit: number,
    keptFrom: Ms,
  ): Promise<readonly FailedFound[]> {
    const { where, values } = conditionsOf(filter, named, 3);
    const text = `SELECT log.sequence::float8 AS sequence, ${logColumns} FROM (${failedLog}) AS log
      WHERE log.sequence < $1::text::bigint AND log.at >= $2::text::bigint ${where}
      ORDER BY log.sequence DESC LIMIT $3::text::int`;
    return ask<FailedFound>(this.#database, { name: "failed requests", text }, before, keptFrom, limit, ...values);
  }

  async #servedBefore(filter: LogFilter, named: string | null, before: string, limit: number): Promise<Served> {
    const rows: FoundRow[] = [];
    const giveUpAt = systemClock.monotonic() + this.#search.ms;
    let place = placeOf(before);
    for (let lines = this.#search.lines; ; lines *= 2) {
      const part = await this.#searched(filter, named, place, lines, limit - rows.length);
      rows.push(...part.rows);
      if (part.last === null || rows.length >= limit) return { rows, stoppedAt: null };
      place = part.last;
      if (systemClock.monotonic() < giveUpAt) continue;
      return { rows, stoppedAt: { sequence: `${place.at}.${place.key}`, at: place.at } };
    }
  }

  /** What fits among the next lines. `last`: the last of them; null where there are no more. */
  async #searched(filter: LogFilter, named: string | null, place: LinePlace, lines: number, limit: number) {
    const { where, values } = conditionsOf(filter, named, 9);
    const parts = [
      "at <= $1::text::bigint AND (at, billing_key) < ($1::text::bigint, $2::text)",
      "at >= $3::text::bigint AND at < $4::text::bigint",
      filter.account === null ? "$5::text IS NULL" : "account_id = $5::text::bigint",
      named === null ? "$6::text IS NULL AND $7::text IS NULL" : "billing_key >= $6::text AND billing_key < $7::text",
      isReply,
    ];
    const text = `WITH part AS (
        SELECT * FROM journal WHERE ${parts.join(" AND ")} ORDER BY at DESC, billing_key DESC LIMIT $8::text::bigint),
      last AS (SELECT at, billing_key FROM part ORDER BY at, billing_key LIMIT 1),
      found AS (
        SELECT log.at::text || '.' || log.request_id AS sequence, ${logColumns} FROM (${servedLog}) AS log
        WHERE NOT EXISTS (SELECT 1 FROM failed_requests AS f WHERE f.request_id = log.request_id) ${where}
        ORDER BY log.at DESC, log.request_id DESC LIMIT $9::text::int)
      SELECT (SELECT count(*) FROM part)::float8 AS lines, (SELECT at FROM last)::float8 AS last_at,
        (SELECT billing_key FROM last) AS last_key, found.*
      FROM (SELECT 1) AS one LEFT JOIN found ON true`;
    const names = [named, named === null ? null : `${named}{`];
    const given = [place.at, place.key, filter.from ?? 0, filter.to ?? Number.MAX_SAFE_INTEGER, filter.account];
    type Row = FoundRow & Readonly<{ lines: number; last_at: Ms; last_key: string }>;
    const search: Statement = { name: "served requests", text };
    const rows = await ask<Row>(this.#database, search, ...given, ...names, lines, limit, ...values);
    const { lines: count, last_at: at, last_key: key } = rows[0]!;
    return {
      rows: rows.flatMap(({ lines: _, last_at: __, last_key: ___, ...row }) => (row.requestId === null ? [] : [row])),
      last: count < lines ? null : { at, key },
    };
  }
}

type LinePlace = Readonly<{ at: Ms; key: string }>;
type Counted = Readonly<{ requests: number }>;

/** What a page of arrivals has: it is read in the turns of the event loop that requests leave. */
const arrivalsAtOnce = 2_000;
const readArrivals = statement(
  "arrivals",
  `SELECT billing_key AS id, at::float8 AS at, account_id::float8 AS account, key_id AS key, end_user_id AS "endUser", model, node,
     priority, (input_fresh + input_cached)::float8 AS input, input_cached::float8 AS cached, output::float8 AS output,
     wait_ms AS "waitMs", sent_ms AS "sentMs", first_token_ms AS "firstTokenMs", duration_ms AS "durationMs"
   FROM journal WHERE at >= $1::text::bigint AND (at, billing_key) > ($1::text::bigint, $2::text) AND ${isReply}
   ORDER BY at, billing_key LIMIT $3::text::int`,
);

const nothingServed: Served = { rows: [], stoppedAt: null };

/** Of a place of another store nothing is known: it is the newest. */
function placeOf(served: string): LinePlace {
  const [at = "", key = ""] = served.split(".");
  return { at: Number(at), key };
}

async function add(send: Send, { rows, more, lost }: FailedBatch): Promise<void> {
  if (rows.length > 0) {
    await send(makeSequence);
    const [last] = await send<Readonly<{ last: number }>>(takeSequence, rows.length);
    const first = last!.last - rows.length + 1;
    const sorted = rows.toSorted((one, other) => one.at - other.at);
    const columns = Object.values(columnValues).map((valueOf) => arrayOf(sorted.map((row) => valueOf(row))));
    await send(insert, arrayOf(sorted.map((_, index) => first + index)), ...columns);
    const accounts = arrayOf([...new Set(rows.map((row) => row.account))]);
    await addGone(send, sumOf(await send<Counted>(removeOfAccounts, accounts, failedAccountRowsMax)));
  }
  if (more.length > 0) {
    await send(addMore, arrayOf(more.map(([requestId]) => requestId)), arrayOf(more.map(([, count]) => count)));
  }
  await addGone(send, lost);
}

async function addGone(send: Send, requests: number): Promise<void> {
  if (requests > 0) await send(countGone, requests);
}

const sumOf = (removed: readonly Counted[]): number => removed.reduce((sum, { requests }) => sum + requests, 0);

const columnValues: Readonly<Record<string, (row: FailedRow) => string | number | null>> = {
  request_id: ({ requestId }) => requestId,
  at: ({ at }) => at,
  account_id: ({ account }) => account,
  key_id: ({ key }) => key,
  endpoint: ({ endpoint }) => endpoint,
  model: ({ model }) => model,
  status: ({ status }) => status,
  reason: ({ reason }) => reason,
  cause: ({ cause }) => cause,
  node: ({ course }) => course.node,
  wait_ms: ({ course }) => wholeOf(course.waitMs),
  sent_ms: ({ course }) => wholeOf(course.sentMs),
  first_token_ms: ({ course }) => wholeOf(course.firstTokenMs),
  duration_ms: ({ course }) => wholeOf(course.durationMs),
  input: ({ input }) => input,
  output: ({ output }) => output,
  more: ({ more }) => more,
};
const wholeOf = (ms: Ms | null): Ms | null => (ms === null ? null : Math.round(ms));
const textColumns: ReadonlySet<string> = new Set(["request_id", "endpoint", "model", "reason", "cause", "node"]);
const typeOf = (column: string): string => (textColumns.has(column) ? "text" : "bigint");

const columnNames = Object.keys(columnValues);
const insert = statement(
  "insert failed requests",
  `INSERT INTO failed_requests (sequence, ${columnNames.join(", ")})
   SELECT * FROM unnest($1::text::bigint[],
     ${columnNames.map((column, index) => `$${index + 2}::text::${typeOf(column)}[]`).join(", ")})
   ON CONFLICT DO NOTHING`,
);
const makeSequence = statement(
  "make failed sequence",
  "INSERT INTO counters (name, value) VALUES ('failed_requests', 0) ON CONFLICT DO NOTHING",
);
/** Who takes numbers is alone until its commit, so that rows come in the order of their numbers. */
const takeSequence = statement(
  "take failed sequence",
  "UPDATE counters SET value = value + $1::text::bigint WHERE name = 'failed_requests' RETURNING value::float8 AS last",
);
const addMore = statement(
  "add more",
  `UPDATE failed_requests SET more = more + u.count
   FROM (SELECT id, sum(count) AS count FROM unnest($1::text::text[], $2::text::bigint[]) AS given (id, count) GROUP BY id) AS u
   WHERE request_id = u.id`,
);
const countGone = statement(
  "count gone",
  `INSERT INTO counters (name, value) VALUES ('failed_gone', $1::text::bigint)
   ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value`,
);
const readGone = statement("gone", "SELECT value::float8 AS requests FROM counters WHERE name = 'failed_gone'");
const removeOfAccounts = statement(
  "remove failed of accounts",
  `WITH full_accounts AS (
     SELECT id, (SELECT sequence FROM failed_requests AS f WHERE f.account_id = id
       ORDER BY f.sequence DESC LIMIT 1 OFFSET $2::text::int) AS last FROM unnest($1::text::bigint[]) AS given (id)),
   removed AS (
     DELETE FROM failed_requests WHERE request_id IN (
       SELECT f.request_id FROM failed_requests AS f JOIN full_accounts ON f.account_id = id AND f.sequence <= last)
     RETURNING more)
   SELECT coalesce(sum(more + 1), 0)::float8 AS requests FROM removed`,
);
// rows have no gaps but for what was removed: no need to count them while their numbers say that they are few
const removeBeyond = statement(
  "remove failed",
  `WITH removed AS (
     DELETE FROM failed_requests WHERE sequence <= (
       SELECT f.sequence FROM failed_requests AS f
       WHERE (SELECT max(sequence) - min(sequence) FROM failed_requests) >= $1::text::int
       ORDER BY f.sequence DESC LIMIT 1 OFFSET $1::text::int)
     RETURNING more)
   SELECT coalesce(sum(more + 1), 0)::float8 AS requests FROM removed`,
);
const prune = statement("prune failed", "DELETE FROM failed_requests WHERE at < $1::text::bigint");
const erase = statement("erase failed", "DELETE FROM failed_requests WHERE account_id = $1::text::bigint");

/** The same columns of both, by which filters and readers know them. */
const servedLog = `
  SELECT at, billing_key AS request_id, account_id, key_id, endpoint, model, 200 AS status, NULL::text AS reason, NULL::text AS cause, node,
    wait_ms, sent_ms, first_token_ms, duration_ms, input_fresh + input_cached AS input, input_cached AS cached_input,
    output, reasoning, billed_tokens, input_cents, cached_input_cents, output_cents, input_parts, cached_input_parts, output_parts, 0 AS more
  FROM part`;
const failedLog = `
  SELECT sequence, at, request_id, account_id, key_id, endpoint, model, status, reason, cause, node, wait_ms, sent_ms,
    first_token_ms, duration_ms, input, 0 AS cached_input, output, 0 AS reasoning, coalesce(
      (SELECT billed_tokens FROM journal WHERE billing_key = failed_requests.request_id), 0) AS billed_tokens,
    NULL::bigint AS input_cents, NULL::bigint AS cached_input_cents, NULL::bigint AS output_cents,
    NULL::int AS input_parts, NULL::int AS cached_input_parts, NULL::int AS output_parts, more
  FROM failed_requests`;
const logColumns = `log.request_id AS "requestId", log.at::float8 AS at, log.account_id::float8 AS account,
  log.key_id AS key, log.endpoint, log.model, log.status::int AS status, log.reason, log.cause, log.node, log.wait_ms AS "waitMs",
  log.sent_ms AS "sentMs", log.first_token_ms AS "firstTokenMs", log.duration_ms AS "durationMs",
  log.input::float8 AS input, log.cached_input::float8 AS "cachedInput", log.output::float8 AS output,
  log.reasoning::float8 AS reasoning, log.billed_tokens::float8 AS "billedTokens",
  log.input_cents::float8 AS "inputCents", log.cached_input_cents::float8 AS "cachedInputCents",
  log.output_cents::float8 AS "outputCents", log.input_parts AS "inputParts", log.cached_input_parts AS "cachedInputParts",
  log.output_parts AS "outputParts", log.more::float8 AS more,
  (SELECT name FROM api_keys AS k WHERE k.account_id = log.account_id AND k.id = log.key_id) AS "keyName"`;

/** With the values as parameters behind the first `taken`. */
function conditionsOf(filter: LogFilter, named: string | null, taken: number) {
  const parts: string[] = [];
  const values: Value[] = [];
  const also = (value: Value, condition: string, type: "text" | "bigint"): void => {
    if (value === null) return;
    values.push(value);
    parts.push(`AND log.${condition} $${taken + values.length}::text::${type}`);
  };
  also(filter.account, "account_id =", "bigint");
  also(filter.key, "key_id =", "bigint");
  also(filter.model, "model =", "text");
  also(filter.node, "node =", "text");
  also(filter.endpoint, "endpoint =", "text");
  also(filter.status?.[0] ?? null, "status >=", "bigint");
  also(filter.status?.[1] ?? null, "status <=", "bigint");
  if (filter.reason === "failed") parts.push("AND log.reason IS NOT NULL");
  else if (filter.reason !== "served") also(filter.reason, "reason =", "text");
  also(filter.from, "at >=", "bigint");
  also(filter.to, "at <", "bigint");
  also(filter.waitMinMs, "wait_ms >=", "bigint");
  also(filter.firstTokenMinMs, "first_token_ms >=", "bigint");
  also(filter.durationMinMs, "duration_ms >=", "bigint");
  also(filter.tokensMin, "input + log.output >=", "bigint");
  also(filter.billedMin, "billed_tokens >=", "bigint");
  also(named, "request_id >=", "text");
  also(named === null ? null : `${named}{`, "request_id <", "text");
  return { where: parts.join(" "), values };
}
