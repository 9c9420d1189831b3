// Exports everything that PostgreSQL keeps about one account, in the words of the export from SQLite. The lists are of one
// committed state, but for replies, which are read page by page up to the last one of then, and stored responses.
import { write as writeFile } from "node:fs";
import { promisify } from "node:util";
import { dayName } from "../../account/money/quota.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import {
  accountLists,
  filesOf,
  readable,
  refusedColumns,
  responseOf,
  type ResponseRow,
  type ExportRow,
  usageColumns,
} from "../backup/account-export.ts";
import type { EndUserView } from "../backup/end-users.ts";
import { statement } from "../questions.ts";
import { sendIn } from "./database.ts";
import type { Database } from "./database.ts";
import type { Statement } from "./connection.ts";
import { quotasInDatabase } from "./moved-tables.ts";

const listsLimitMs = 60_000;
const pageRows = 1_000;
const chunkLength = 64 * 1024;

type Json = Readonly<{ json: string }>;
type Place = Readonly<{ at: Ms; key: string }>;

/** Rows as JSON: numbers of 8 bytes are numbers there. */
const asJson = (name: string, sql: string): Statement =>
  statement(name, `SELECT row_to_json(list)::text AS json FROM (${sql.replaceAll("?1", "$1::text::bigint")}) AS list`);
const rowOf = ({ json }: Json): string => JSON.stringify(readable(JSON.parse(json) as ExportRow));

const ofAccount = asJson(
  "export account",
  `SELECT id, email, plan, credit, operator::int AS operator, created_at, key_created_at, key_ending, key_used_at, disabled_at,
     CASE WHEN password_hash IS NULL THEN 0 ELSE 1 END AS has_password
   FROM accounts WHERE lower(email COLLATE "C") = lower($1::text COLLATE "C")`,
);
/** The periods that an account is in are in its row. */
const quotaUse = `SELECT quota, period, used FROM (${quotasInDatabase}) AS uses WHERE account_id = ?1 ORDER BY quota, period`;
const lists = accountLists
  .filter(([name]) => name !== "usage")
  .map(([name, sql]) => [name, asJson(`export ${name}`, name === "quota_use" ? quotaUse : sql)] as const);
const newestLine = statement(
  "newest line",
  "SELECT max(at)::float8 AS at FROM journal WHERE account_id = $1::text::bigint",
);
const afterPlace = `at >= $2::text::bigint AND (at, billing_key) > ($2::text::bigint, $3::text)`;
const usage = statement(
  "export usage",
  `SELECT row_to_json(list)::text AS json, list.at::float8 AS at, list.id AS key FROM (
     SELECT ${usageColumns} FROM journal WHERE account_id = $1::text::bigint AND ${afterPlace} AND at <= $4::text::bigint
     ORDER BY journal.at, billing_key LIMIT ${pageRows}) AS list`,
);
const refused = asJson(
  "export refused",
  `SELECT ${refusedColumns} FROM failed_requests WHERE account_id = ?1 ORDER BY sequence`,
);
const files = asJson("export files", filesOf);
const responseIds = statement(
  "export response ids",
  "SELECT id FROM stored_responses WHERE account_id = $1::text::bigint ORDER BY kept_at, id",
);
const response = statement(
  "export response",
  `SELECT id, previous_id, kept_at::float8 AS kept_at, input, output, settings FROM stored_responses
   WHERE account_id = $1::text::bigint AND id = $2::text`,
);

/** The pieces of one JSON object; null: no account has the e-mail. Rejects with StoreUnavailable. */
export async function exportAccountOf(database: Database, email: string): Promise<AsyncIterable<string> | null> {
  const read = await database.transaction(
    async (session) => {
      const send = sendIn(session);
      const [account] = await send<Json>(ofAccount, email);
      if (account === undefined) return null;
      const { id } = JSON.parse(account.json) as Readonly<{ id: AccountId }>;
      const rows: (readonly [string, readonly Json[]])[] = [];
      for (const [name, list] of lists) rows.push([name, await send<Json>(list, id)]);
      const [newest] = await send<Readonly<{ at: Ms | null }>>(newestLine, id);
      return { id, account, rows, newest: newest!.at ?? 0 };
    },
    { access: "snapshot", limitMs: listsLimitMs },
  );
  return read === null ? null : pieces(database, read);
}

type Read = Readonly<{
  id: AccountId;
  account: Json;
  rows: readonly (readonly [name: string, rows: readonly Json[]])[];
  newest: Ms;
}>;

async function* pieces(database: Database, { id, account, rows, newest }: Read): AsyncIterable<string> {
  yield `{"account":${rowOf(account)}`;
  for (const [name, list] of rows) {
    yield `,\n"${name}":[`;
    yield list.map((row) => `\n${rowOf(row)}`).join(",");
    yield "]";
  }
  yield ',\n"usage":[';
  let separator = "\n";
  for (let place: Place | null = { at: 0, key: "" }; place !== null;) {
    const page: readonly (Json & Place)[] = await database.ask(usage, id, place.at, place.key, newest);
    for (const row of page) {
      yield separator + rowOf(row);
      separator = ",\n";
    }
    place = page.length < pageRows ? null : page.at(-1)!;
  }
  yield '],\n"refused_requests":[';
  yield (await database.ask<Json>(refused, id)).map((row) => `\n${rowOf(row)}`).join(",");
  yield '],\n"files":[';
  yield (await database.ask<Json>(files, id)).map((row) => `\n${rowOf(row)}`).join(",");
  yield '],\n"stored_responses":[';
  separator = "\n";
  for (const { id: responseId } of await database.ask<Readonly<{ id: string }>>(responseIds, id)) {
    const [row] = await database.ask<ResponseRow>(response, id, responseId);
    if (row === undefined) continue; // deleted meanwhile
    yield separator + responseOf(row);
    separator = ",\n";
  }
  yield "]}\n";
}

/** Resolves when the file is whole. Rejects where it cannot be written, or there is no such account. */
export async function writeExportOf(database: Database, email: string, descriptor: number): Promise<void> {
  const all = await exportAccountOf(database, email);
  if (all === null) throw new Error("it was deleted meanwhile");
  let text = "";
  for await (const piece of all) {
    text += piece;
    if (text.length < chunkLength) continue;
    await append(descriptor, text);
    text = "";
  }
  await append(descriptor, text);
}

const write = promisify(writeFile);

async function append(descriptor: number, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) at += (await write(descriptor, bytes, at, bytes.length - at, null)).bytesWritten;
}

// ---------------------------------------------------------------- end users

type Found = Omit<EndUserView, "first_day" | "last_day"> & Readonly<{ first_day: number; last_day: number }>;

const endUsers = statement(
  "end users",
  `SELECT e.name, k.name AS key, first_day, last_day, coalesce(used, 0)::float8 AS used_last_day FROM end_users AS e
   JOIN api_keys AS k ON k.account_id = e.account_id AND k.id = e.key_id
   LEFT JOIN end_user_use AS u ON u.account_id = e.account_id AND u.end_user_id = e.id AND day = last_day
   WHERE e.account_id = $1::text::bigint AND e.name IS NOT NULL ORDER BY last_day DESC, e.id DESC LIMIT $2::text::int`,
);
const namedKeys = statement(
  "keys of end user",
  `SELECT k.name AS key, first_day, last_day FROM end_users AS e
   JOIN api_keys AS k ON k.account_id = e.account_id AND k.id = e.key_id
   WHERE e.account_id = $1::text::bigint AND e.name = $2::text ORDER BY e.id`,
);
const endUserUsage = statement(
  "usage of end user",
  `SELECT row_to_json(list)::text AS json, list.at::float8 AS at, list.id AS key FROM (
     SELECT billing_key AS id, kind, at, used, credit_delta, endpoint, model, key_id, input_fresh + input_cached AS input,
       input_cached AS cached_input, output, reasoning, billed_tokens, estimated
     FROM journal WHERE account_id = $1::text::bigint AND ${afterPlace} AND end_user_id IN (
       SELECT id FROM end_users WHERE account_id = $1::text::bigint AND name = $4::text)
     ORDER BY journal.at, billing_key LIMIT ${pageRows}) AS list`,
);

const inDays = <Of extends Readonly<{ first_day: number; last_day: number }>>(row: Of) => ({
  ...row,
  first_day: dayName(row.first_day),
  last_day: dayName(row.last_day),
});

export const endUsersIn = async (database: Database, account: AccountId, limit: number): Promise<EndUserView[]> =>
  (await database.ask<Found>(endUsers, account, limit)).map((row) => inDays(row));

/** The pieces of one JSON object: who it is, by which keys, and each reply. */
export async function* exportEndUserOf(database: Database, account: AccountId, name: string): AsyncIterable<string> {
  type Key = Readonly<{ key: string; first_day: number; last_day: number }>;
  const keys = (await database.ask<Key>(namedKeys, account, name)).map((row) => inDays(row));
  yield `{"end_user":${JSON.stringify(name)},"keys":${JSON.stringify(keys)},\n"usage":[`;
  let separator = "\n";
  for (let place: Place | null = { at: 0, key: "" }; place !== null;) {
    const page: readonly (Json & Place)[] = await database.ask(endUserUsage, account, place.at, place.key, name);
    for (const { json } of page) {
      const { at, ...row } = JSON.parse(json) as ExportRow;
      yield separator + JSON.stringify({ ...row, at: new Date(Number(at)).toISOString() });
      separator = ",\n";
    }
    place = page.length < pageRows ? null : page.at(-1)!;
  }
  yield "]}\n";
}
