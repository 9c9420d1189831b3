// The request log: refused and failed requests of all gateways in a table of their own, and served ones as lines of the journal.
// A page is a merge of the two, the newest first. What is asked for beside a time, an account or a request is looked for line
// by line, for a while: an index would cost every charge.
import { keyNameIn } from "../usage/usage-sum.ts";
import { type ArrivalPage } from "../../core/arrivals.ts";
import { systemClock } from "../../core/clock.ts";
import {
  type FailedBatch,
  type FailedRow,
  type LogFilter,
  type LogPage,
  type LogPlace,
  type MailQueries,
  type NearLimit,
  requestIdBeginning,
  type RequestLogQueries,
  type UsedPart,
} from "../../core/request-log.ts";
import { mintRequestId } from "../../core/request-id.ts";
import { refusals } from "../../core/refusals.ts";
import type { BoughtCredit } from "../../core/report.ts";
import type { AccountId, KeyId, Ms } from "../../core/types.ts";
import { type Condition, type Questions, rowsIn, rowsText, type Send, statement, type Value } from "../questions.ts";
import { credits, nearLimit, toTell, untold } from "../usage/report.ts";
import { type FailedFound, type FoundRow, merged, type Served, statusFits } from "./log-page.ts";

const pruneIntervalMs = 60_000;
/** Rows of an account; beyond it the oldest go. */
export const failedAccountRowsMax = 10_000;
/** Rows in all: 40 MB; beyond it the oldest go. */
const failedRowsMax = 200_000;
/** Requests whose address is known: 150 MB. */
const addressesMax = 1_000_000;

/** Served requests, as a store finds them among the journal's lines. */
export interface ServedLines {
  /** What fits among the next `lines` before a place, newest first. `last`: the last that was looked at; null: all were. */
  part(
    filter: LogFilter,
    named: string | null,
    before: LogPlace["served"] | null,
    lines: number,
    limit: number,
  ): Promise<Readonly<{ rows: readonly FoundRow[]; last: Served["stoppedAt"] }>>;
  /** As ArrivalQueries. */
  arrivals(from: Ms, after: ArrivalPage["next"]): Promise<ArrivalPage>;
  /** What gives `account_id` and what it `used` of the allowance of the day that is `$1`. */
  readonly allowances: string;
}

/** Journal lines that a search reads in its first step, and how long it goes on. */
export type Search = Readonly<{ lines: number; ms: Ms }>;
const usualSearch: Search = { lines: 20_000, ms: 400 };

export class RequestLogTables {
  readonly #tables: Questions;
  readonly #served: ServedLines;
  readonly #search: Search;
  #keepMs: Ms;
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor(tables: Questions, served: ServedLines, keepMs: Ms, search = usualSearch) {
    this.#tables = tables;
    this.#served = served;
    this.#keepMs = keepMs;
    this.#search = search;
  }

  async add(batch: FailedBatch, now: Ms): Promise<void> {
    if (this.#keepMs > 0) await this.#tables.change((send) => add(send, batch));
    if (now - this.#prunedAt >= pruneIntervalMs) await this.prune(now);
  }

  async prune(now: Ms): Promise<void> {
    this.#prunedAt = now;
    await this.#tables.change(async (send) => {
      await send(prune, now - this.#keepMs);
      await send(pruneAddresses, timeOfId(now - this.#keepMs));
      await send(pruneAddressesBeyond, addressesMax);
    });
  }

  /** Another `keepMs` from here on. */
  keep(keepMs: Ms, now: Ms): Promise<void> {
    this.#keepMs = keepMs;
    return this.prune(now);
  }

  async erase(account: AccountId): Promise<void> {
    await this.#tables.change(async (send) => {
      await send(erase, account);
      await send(eraseAddresses, account);
    });
  }

  async page(filter: LogFilter, before: LogPlace | null, limit: number, now: Ms): Promise<LogPage> {
    const { requestId, reason } = filter;
    const named = requestId === null ? null : requestIdBeginning(requestId);
    const [counted] = await this.#tables.ask<Readonly<{ requests: number }>>(readGone);
    const gone = counted?.requests ?? 0;
    if (requestId !== null && named === null) return { rows: [], next: null, searchedTo: null, gone };
    const isServed = [null, "served", "charged"].includes(reason) && statusFits(filter.status, 200);
    const place = before ?? { served: Number.MAX_SAFE_INTEGER, failed: Number.MAX_SAFE_INTEGER };
    const [failed, served] = await Promise.all([
      reason === "served" ? [] : this.#failedBefore(filter, named, place.failed, limit + 1, now - this.#keepMs),
      isServed ? this.#servedBefore(filter, named, before?.served ?? null, limit + 1) : nothingServed,
    ]);
    return { ...merged(place, served, failed, limit), gone };
  }

  arrivals(from: Ms, after: ArrivalPage["next"]): Promise<ArrivalPage> {
    return this.#served.arrivals(from, after);
  }

  /** As RequestLogQueries. */
  credits(account: AccountId, from: Ms, until: Ms, limit: number): Promise<readonly BoughtCredit[]> {
    return this.#tables.ask<BoughtCredit>(credits, account, from, until, limit);
  }

  /** Pairs, since no map comes out of a Worker. */
  async lastAddresses(account: AccountId, keys: readonly KeyId[]): Promise<readonly (readonly [KeyId, string])[]> {
    const given = rowsText(keys.map((key) => [key]));
    const rows = await this.#tables.ask<Readonly<{ key: KeyId; address: string | null }>>(
      lastAddresses,
      given,
      account,
    );
    return rows.flatMap(({ key, address }) => (address === null ? [] : [[key, address] as const]));
  }

  /** As RequestLogQueries. */
  nearLimit(...[day, limits, limit]: Parameters<RequestLogQueries["nearLimit"]>): Promise<readonly NearLimit[]> {
    return this.#tables.ask<NearLimit>(nearLimit(this.#served.allowances), day, rowsText(limits), limit);
  }

  /** As MailQueries. */
  toTell(...[day, month, limits]: Parameters<MailQueries["toTell"]>): Promise<readonly UsedPart[]> {
    return this.#tables.ask<UsedPart>(toTell(this.#served.allowances), day, month, rowsText(limits));
  }

  /** As MailQueries. */
  async untold(...asked: Parameters<MailQueries["untold"]>): Promise<readonly AccountId[]> {
    return (await this.#tables.ask<{ id: AccountId }>(untold, ...asked)).map(({ id }) => id);
  }

  #failedBefore(
    filter: LogFilter,
    named: string | null,
    before: number,
    limit: number,
    keptFrom: Ms,
  ): Promise<readonly FailedFound[]> {
    const { where, values } = conditionsOf(filter, named, 3);
    const question = statement(
      "failed requests",
      `SELECT log.sequence::float8 AS sequence, ${logColumns} FROM (${failedLog}) AS log
       WHERE log.sequence < $1::text::bigint AND log.at >= $2::text::bigint ${where}
       ORDER BY log.sequence DESC LIMIT $3::text::int`,
    );
    return this.#tables.ask<FailedFound>(question, before, keptFrom, limit, ...values);
  }

  async #servedBefore(
    filter: LogFilter,
    named: string | null,
    before: LogPlace["served"] | null,
    limit: number,
  ): Promise<Served> {
    const rows: FoundRow[] = [];
    const giveUpAt = systemClock.monotonic() + this.#search.ms;
    let place = before;
    for (let { lines } = this.#search; ; lines *= 2) {
      const { rows: some, last } = await this.#served.part(filter, named, place, lines, limit - rows.length);
      rows.push(...some);
      if (last === null || rows.length >= limit) return { rows, stoppedAt: null };
      place = last.sequence;
      if (systemClock.monotonic() >= giveUpAt) return { rows, stoppedAt: last };
    }
  }
}

const nothingServed: Served = { rows: [], stoppedAt: null };

type Counted = Readonly<{ more: number }>;

async function add(send: Send, { rows, more, lost, addresses = [] }: FailedBatch): Promise<void> {
  let gone = lost;
  if (addresses.length > 0) await send(insertAddresses, rowsText(addresses));
  if (rows.length > 0) {
    await send(makeSequence);
    const [last] = await send<Readonly<{ last: number }>>(takeSequence, rows.length);
    const first = last!.last - rows.length + 1;
    const sorted = rows.toSorted((one, other) => one.at - other.at);
    const valuesOf = Object.values(columnValues);
    await send(
      insert,
      rowsText(sorted.map((row, index) => [first + index, ...valuesOf.map((valueOf) => valueOf(row))])),
    );
    const accounts = rowsText([...new Set(rows.map(({ account }) => account))].map((account) => [account]));
    const removed = [
      ...(await send<Counted>(removeOfAccounts, accounts, failedAccountRowsMax)),
      ...(await send<Counted>(removeBeyond, failedRowsMax)),
    ];
    gone = removed.reduce((sum, each) => sum + 1 + each.more, gone);
  }
  if (more.length > 0) await send(addMore, rowsText(more));
  if (gone > 0) await send(countGone, gone);
}

const columnValues: Readonly<Record<string, (row: FailedRow) => string | number | null>> = {
  request_id: ({ requestId }) => requestId,
  at: ({ at }) => at,
  account_id: ({ account }) => account,
  key_id: ({ key }) => key,
  endpoint: ({ endpoint }) => endpoint,
  model: ({ model }) => model,
  asked_model: ({ course }) => course.askedModel ?? null,
  tags: ({ course }) => course.tags ?? null,
  priority: ({ course }) => course.priority ?? null,
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
const textColumns: ReadonlySet<string> = new Set([
  ...["request_id", "endpoint", "model", "asked_model", "tags", "priority", "reason", "cause", "node"],
]);
const typeOf = (column: string) => (textColumns.has(column) ? "text" : "bigint");

const columnNames = Object.keys(columnValues);
const insert = statement(
  "insert failed requests",
  `INSERT INTO failed_requests (sequence, ${columnNames.join(", ")})
   ${rowsIn(1, "bigint", ...columnNames.map(typeOf))} WHERE true ON CONFLICT DO NOTHING`,
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
  `WITH given (id, count) AS (${rowsIn(1, "text", "bigint")})
   UPDATE failed_requests SET more = more + u.count
   FROM (SELECT id, sum(count) AS count FROM given GROUP BY id) AS u WHERE request_id = u.id`,
);
const countGone = statement(
  "count gone",
  `INSERT INTO counters (name, value) VALUES ('failed_gone', $1::text::bigint)
   ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value`,
);
const readGone = statement("gone", "SELECT value::float8 AS requests FROM counters WHERE name = 'failed_gone'");
const removeOfAccounts = statement(
  "remove failed of accounts",
  `WITH given (id) AS (${rowsIn(1, "bigint")}),
   full_accounts AS (
     SELECT id, (SELECT sequence FROM failed_requests AS f WHERE f.account_id = id
       ORDER BY f.sequence DESC LIMIT 1 OFFSET $2::text::int) AS last FROM given)
   DELETE FROM failed_requests WHERE request_id IN (
     SELECT f.request_id FROM failed_requests AS f JOIN full_accounts ON f.account_id = id AND f.sequence <= last)
   RETURNING more::float8 AS more`,
);
// rows have no gaps but for what was removed: no need to count them while their numbers say that they are few
const removeBeyond = statement(
  "remove failed",
  `DELETE FROM failed_requests WHERE sequence <= (
     SELECT f.sequence FROM failed_requests AS f
     WHERE (SELECT max(sequence) - min(sequence) FROM failed_requests) >= $1::text::int
     ORDER BY f.sequence DESC LIMIT 1 OFFSET $1::text::int)
   RETURNING more::float8 AS more`,
);
const prune = statement("prune failed", "DELETE FROM failed_requests WHERE at < $1::text::bigint");
const erase = statement("erase failed", "DELETE FROM failed_requests WHERE account_id = $1::text::bigint");

const insertAddresses = statement(
  "insert addresses",
  `INSERT INTO request_addresses (request_id, account_id, key_id, address)
   ${rowsIn(1, "text", "bigint", "bigint", "text")} WHERE true ON CONFLICT DO NOTHING`,
);
/** Ids begin with their time. */
const timeOfId = (at: Ms): string => mintRequestId(at).slice(0, 12);
const pruneAddresses = statement("prune addresses", "DELETE FROM request_addresses WHERE request_id < $1::text");
const pruneAddressesBeyond = statement(
  "prune addresses beyond",
  `DELETE FROM request_addresses WHERE request_id <= (
     SELECT request_id FROM request_addresses ORDER BY request_id DESC LIMIT 1 OFFSET $1::text::int)`,
);
const eraseAddresses = statement(
  "erase addresses",
  "DELETE FROM request_addresses WHERE account_id = $1::text::bigint",
);
const lastAddresses = statement(
  "last addresses",
  `WITH given (key) AS (${rowsIn(1, "bigint")})
   SELECT key::float8 AS key, (SELECT address FROM request_addresses
     WHERE account_id = $2::text::bigint AND key_id = key ORDER BY request_id DESC LIMIT 1) AS address FROM given`,
);

/** The same columns of both, by which filters and readers know them. */
export const servedLog = (from: string, more = ""): string => `
  SELECT ${more} at, billing_key AS request_id, account_id, key_id, endpoint, model, asked_model, tags, priority, cost_center, end_user_id, 200 AS status, NULL::text AS reason, NULL::text AS cause, node,
    wait_ms, sent_ms, first_token_ms, duration_ms, input_fresh + input_cached AS input, input_cached AS cached_input,
    output, reasoning, billed_tokens, input_cents, cached_input_cents, output_cents, input_parts, cached_input_parts, output_parts, 0 AS more
  FROM ${from}`;
const failedLog = `
  SELECT sequence, at, request_id, account_id, key_id, endpoint, model, asked_model, tags, priority, NULL::text AS cost_center,
    (SELECT end_user_id FROM journal WHERE billing_key = failed_requests.request_id) AS end_user_id, status, reason, cause, node, wait_ms, sent_ms,
    first_token_ms, duration_ms, input, 0 AS cached_input, output, 0 AS reasoning, coalesce(
      (SELECT billed_tokens FROM journal WHERE billing_key = failed_requests.request_id), 0) AS billed_tokens,
    NULL::bigint AS input_cents, NULL::bigint AS cached_input_cents, NULL::bigint AS output_cents,
    NULL::int AS input_parts, NULL::int AS cached_input_parts, NULL::int AS output_parts, more
  FROM failed_requests`;
export const logColumns = `log.request_id AS "requestId", log.at::float8 AS at, log.account_id::float8 AS account,
  log.key_id AS key, log.endpoint, log.model, log.asked_model AS "askedModel", log.tags, log.cost_center AS "costCenter", log.priority,
  (SELECT address FROM request_addresses AS a WHERE a.request_id = log.request_id) AS address, log.status::int AS status, log.reason, log.cause, log.node, log.wait_ms AS "waitMs",
  log.sent_ms AS "sentMs", log.first_token_ms AS "firstTokenMs", log.duration_ms AS "durationMs",
  log.input::float8 AS input, log.cached_input::float8 AS "cachedInput", log.output::float8 AS output,
  log.reasoning::float8 AS reasoning, log.billed_tokens::float8 AS "billedTokens",
  log.input_cents::float8 AS "inputCents", log.cached_input_cents::float8 AS "cachedInputCents",
  log.output_cents::float8 AS "outputCents", log.input_parts AS "inputParts", log.cached_input_parts AS "cachedInputParts",
  log.output_parts AS "outputParts", log.more::float8 AS more,
  (SELECT ${keyNameIn("k")} FROM api_keys AS k WHERE k.account_id = log.account_id AND k.id = log.key_id) AS "keyName"`;

const reasonsWhere = (fits: (status: number) => boolean): readonly string[] =>
  Object.entries(refusals).flatMap(([name, { status }]) => (fits(status) ? [`'${name}'`] : []));
const refusedReasons = reasonsWhere((status) => status < 500);
const brokenReasons = reasonsWhere((status) => status >= 500);

/** With the values as parameters behind the first `taken`. */
export function conditionsOf(filter: LogFilter, named: string | null, taken: number): Condition {
  const parts: string[] = [];
  const values: Value[] = [];
  const also = (value: Value, condition: string, type: "text" | "bigint"): void => {
    if (value === null) return;
    values.push(value);
    parts.push(`AND log.${condition} $${taken + values.length}::text::${type}`);
  };
  // A request id finds the row: SQLite's other indexes would be slower.
  also(filter.account, named === null ? "account_id =" : "account_id + 0 =", "bigint");
  also(filter.key, "key_id =", "bigint");
  also(filter.model, "model =", "text");
  also(filter.node, "node =", "text");
  also(filter.endpoint, "endpoint =", "text");
  also(filter.status?.[0] ?? null, "status >=", "bigint");
  also(filter.status?.[1] ?? null, "status <=", "bigint");
  if (filter.reason === "failed") parts.push("AND log.reason IS NOT NULL");
  else if (filter.reason === "refused" || filter.reason === "broken") {
    parts.push(`AND log.reason IN (${(filter.reason === "broken" ? brokenReasons : refusedReasons).join(", ")})`);
  } else if (filter.reason === "charged") {
    parts.push("AND (log.reason IS NULL OR EXISTS (SELECT 1 FROM journal WHERE billing_key = log.request_id))");
  } else if (filter.reason !== "served") also(filter.reason, "reason =", "text");
  if (filter.priority === "standard") parts.push("AND log.priority IS NULL");
  else also(filter.priority, "priority =", "text");
  if (filter.address !== null) {
    values.push(filter.address);
    parts.push(
      `AND EXISTS (SELECT 1 FROM request_addresses AS a WHERE a.request_id = log.request_id AND a.address = $${taken + values.length}::text)`,
    );
  }
  if (filter.endUser !== null) {
    values.push(filter.endUser);
    parts.push(
      `AND EXISTS (SELECT 1 FROM end_users AS e WHERE e.account_id = log.account_id AND e.id = log.end_user_id AND e.name = $${taken + values.length}::text)`,
    );
  }
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
