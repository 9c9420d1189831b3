// Served requests in PostgreSQL's journal, in the order of time and billing key.
import { type ArrivalPage, arrivalPage, type ArrivalRow } from "../../core/arrivals.ts";
import type { LogFilter, LogPlace } from "../../core/request-log.ts";
import type { Ms } from "../../core/types.ts";
import { type Questions, statement } from "../questions.ts";
import type { FoundRow } from "../requests/log-page.ts";
import {
  conditionsOf,
  logColumns,
  RequestLogTables,
  type Search,
  type ServedLines,
  servedLog,
} from "../requests/request-log-tables.ts";
import { isReply } from "../usage/usage-sum.ts";

export const requestLogIn = (database: Questions, keepMs: Ms, search?: Search): RequestLogTables =>
  new RequestLogTables(database, new PostgresServedLines(database), keepMs, search);

class PostgresServedLines implements ServedLines {
  readonly #database: Questions;

  constructor(database: Questions) {
    this.#database = database;
  }

  readonly allowances =
    "SELECT id AS account_id, allowance_used AS used FROM accounts WHERE allowance_day = $1::text::int";

  async part(
    filter: LogFilter,
    named: string | null,
    before: LogPlace["served"] | null,
    lines: number,
    limit: number,
  ): ReturnType<ServedLines["part"]> {
    const { at, key } = placeOf(String(before ?? `${Number.MAX_SAFE_INTEGER}.`));
    const { where, values } = conditionsOf(filter, named, 9);
    const parts = [
      "at <= $1::text::bigint AND (at, billing_key) < ($1::text::bigint, $2::text)",
      "at >= $3::text::bigint AND at < $4::text::bigint",
      filter.account === null ? "$5::text IS NULL" : "account_id = $5::text::bigint",
      named === null ? "$6::text IS NULL AND $7::text IS NULL" : "billing_key >= $6::text AND billing_key < $7::text",
      isReply,
    ];
    const search = statement(
      "served requests",
      `WITH part AS (
         SELECT * FROM journal WHERE ${parts.join(" AND ")} ORDER BY at DESC, billing_key DESC LIMIT $8::text::bigint),
       last AS (SELECT at, billing_key FROM part ORDER BY at, billing_key LIMIT 1),
       found AS (
         SELECT log.at::text || '.' || log.request_id AS sequence, ${logColumns} FROM (${servedLog("part")}) AS log
         WHERE NOT EXISTS (SELECT 1 FROM failed_requests AS f WHERE f.request_id = log.request_id) ${where}
         ORDER BY log.at DESC, log.request_id DESC LIMIT $9::text::int)
       SELECT (SELECT count(*) FROM part)::float8 AS lines, (SELECT at FROM last)::float8 AS last_at,
         (SELECT billing_key FROM last) AS last_key, found.*
       FROM (SELECT 1) AS one LEFT JOIN found ON true`,
    );
    const names = [named, named === null ? null : `${named}{`];
    const given = [at, key, filter.from ?? 0, filter.to ?? Number.MAX_SAFE_INTEGER, filter.account];
    type Row = FoundRow & Readonly<{ lines: number; last_at: Ms; last_key: string }>;
    const rows = await this.#database.ask<Row>(search, ...given, ...names, lines, limit, ...values);
    const { lines: count, last_at, last_key } = rows[0]!;
    return {
      rows: rows.flatMap(({ lines: _, last_at: __, last_key: ___, ...row }) => (row.requestId === null ? [] : [row])),
      last: count < lines ? null : { sequence: `${last_at}.${last_key}`, at: last_at },
    };
  }

  async arrivals(from: Ms, after: ArrivalPage["next"]): Promise<ArrivalPage> {
    const { at, key } = after === null ? { at: from, key: "" } : placeOf(String(after));
    type Row = ArrivalRow & Readonly<{ id: string }>;
    const rows = await this.#database.ask<Row>(readArrivals, at, key, arrivalsAtOnce);
    const last = rows.at(-1);
    return arrivalPage(rows, rows.length < arrivalsAtOnce ? null : `${last!.at}.${last!.id}`);
  }
}

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

/** Of a place of another store nothing is known: it is the newest. */
function placeOf(served: string): Readonly<{ at: Ms; key: string }> {
  const [at = "", key = ""] = served.split(".");
  return { at: Number(at), key };
}
