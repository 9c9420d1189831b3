// Exports of an account, and of an end user of its keys, as both stores make them: which lists there are, what is in a row, and
// how all of it becomes one JSON text, piece by piece.
import { write as writeFile } from "node:fs";
import { promisify } from "node:util";
import { dayName } from "../../account/money/quota.ts";
import type { AccountId } from "../../core/types.ts";
import { isConversationId, responseText } from "../../dialects/stored-responses.ts";
import { type Questions, statement } from "../questions.ts";
import { ConversationTables } from "../files/conversation-tables.ts";
import { type Column, type TableName, tables } from "../tables.ts";

/** What a store has of its accounts, for who reads it beside a running server. */
export type LedgerExport = Readonly<{
  /**
   * The pieces of one JSON object: the account, a list for each table that knows it, its files, stored responses and
   * conversations. No hash of a key, a password or a session is in it. Null: no account has the e-mail.
   */
  account(email: string, withConversations?: boolean): Promise<AsyncIterable<string> | null>;
  /** Those who asked last first. */
  endUsers(account: AccountId, limit: number): Promise<readonly EndUserView[]>;
  /** The pieces of one JSON object: who it is, by which keys, and each reply. */
  endUser(account: AccountId, name: string): AsyncIterable<string>;
}>;

export const usageColumns = `billing_key AS id, kind, at, used, credit_delta, endpoint, model, asked_model, key_id, end_user_id, tags, cost_center,
  input_fresh + input_cached AS input, input_cached AS cached_input, output, reasoning, billed_tokens, estimated,
  wait_ms, first_token_ms, duration_ms`;

/** All that a table has of an account but hashes. */
function rowsOf(table: TableName, order: string, where = "account_id = ?1"): string {
  const columns = Object.entries<Column>(tables[table].columns)
    .filter(([name, { kind }]) => kind !== "hash" && name !== "account_id")
    .map(([name]) => name);
  return `SELECT ${columns.join(", ")} FROM ${table} WHERE ${where} ORDER BY ${order}`;
}

/**
 * Each list of the export, with the query of its rows, which SQLite and PostgreSQL both read; `?1` is the account. The rows of
 * `accounts` stand before them.
 */
const lists: Readonly<
  Record<Exclude<TableName, "accounts" | "operator_tokens" | "device_codes">, readonly [name: string, sql: string]>
> = {
  sessions: ["sessions", rowsOf("sessions", "id")],
  identities: ["identities", rowsOf("identities", "issuer")],
  mails: ["mails", rowsOf("mails", "created_at")],
  access_links: [
    "links",
    rowsOf(
      "access_links",
      "id",
      "account_id = ?1 OR lower(email) = lower((SELECT email FROM accounts WHERE accounts.id = ?1))",
    ),
  ],
  purchase_requests: ["purchase_requests", rowsOf("purchase_requests", "id")],
  payments: ["payments", rowsOf("payments", "paid_at")],
  api_keys: ["keys", rowsOf("api_keys", "id").replace("used_at", "used_at AS last_used_at")],
  team_members: [
    "teams",
    `SELECT t.email AS team, a.email AS member, role, tokens_per_day, tokens_per_month, joined_at FROM team_members AS m
     JOIN accounts AS t ON t.id = m.team_id JOIN accounts AS a ON a.id = m.account_id
     WHERE m.account_id = ?1 OR m.team_id = ?1 ORDER BY joined_at`,
  ],
  key_use: ["key_use", rowsOf("key_use", "key_id, day")],
  end_users: ["end_users", rowsOf("end_users", "id")],
  end_user_use: ["end_user_use", rowsOf("end_user_use", "end_user_id, day")],
  quota_use: ["quota_use", rowsOf("quota_use", "quota, period")],
  search_calls: ["search_calls", rowsOf("search_calls", "day")],
  audit_log: [
    "audit",
    `SELECT id, at, action, CASE WHEN operator_id = ?1 THEN address END AS address, detail,
       CASE WHEN operator_id = ?1 THEN 1 ELSE 0 END AS by_account
     FROM audit_log WHERE subject_id = ?1 OR operator_id = ?1 ORDER BY id`,
  ],
  journal_folds: [
    "usage_sums",
    `SELECT day * CAST(86400000 AS bigint) AS at, kind, model, endpoint, key_id, lines, used, credit_delta, input_fresh + input_cached AS input,
       input_cached AS cached_input, output, reasoning, billed_tokens
     FROM journal_folds WHERE account_id = ?1 ORDER BY day, kind, period, model, endpoint, key_id`,
  ],
  cost_center_folds: ["cost_center_sums", rowsOf("cost_center_folds", "day, model, endpoint, key_id, cost_center")],
  journal: ["usage", `SELECT ${usageColumns} FROM journal WHERE account_id = ?1 ORDER BY sequence`],
};
const nameOfTeam = "(SELECT email FROM accounts AS t WHERE t.id = account_id) AS team";
/** What a person's keys in teams are, and did. */
export const accountLists = [
  ...Object.values(lists),
  [
    "team_keys",
    `SELECT ${nameOfTeam}, id, name, created_at, revoked_at FROM api_keys WHERE member_id = ?1 ORDER BY account_id, id`,
  ],
  [
    "team_usage",
    `SELECT ${nameOfTeam}, ${usageColumns} FROM journal
     WHERE (account_id, key_id) IN (SELECT account_id, id FROM api_keys WHERE member_id = ?1) ORDER BY at, billing_key`,
  ],
] as const;

export const refusedColumns = `request_id AS id, at, key_id, endpoint, model, asked_model, tags, status, reason, wait_ms, first_token_ms,
  duration_ms, input, output, more`;

/** Whence its requests came. */
export const addressesOf = `SELECT request_id AS id, key_id, address FROM request_addresses WHERE account_id = ?1 ORDER BY request_id`;

/** Their contents are files of their own, which their owner can download. */
export const filesOf = `SELECT id, filename, purpose, bytes, created_at, expires_at FROM stored_files
  WHERE account_id = ?1 ORDER BY id`;

/** Columns with wall-clock milliseconds, which are exported as ISO 8601. */
const isTime = (name: string): boolean => /(^|_)at$/.test(name);

export type ExportRow = Readonly<Record<string, string | number | null>>;
type Some<Item> = Iterable<Item> | AsyncIterable<Item>;

/** The pieces of an account's export, of lists whose items are JSON texts. */
export async function* accountInPieces(
  account: ExportRow,
  lists: Iterable<readonly [name: string, items: Some<string>]>,
): AsyncIterable<string> {
  yield `{"account":${textOfRow(account)}`;
  for (const [name, items] of lists) {
    yield `,\n"${name}":[`;
    yield* listed(items);
    yield "]";
  }
  yield "}\n";
}

/** Items of a JSON array, a line each. */
async function* listed(items: Some<string>): AsyncIterable<string> {
  let before = "\n";
  for await (const item of items) {
    yield before + item;
    before = ",\n";
  }
}

export const textOfRow = (row: ExportRow): string => JSON.stringify(readable(row));

export type ResponseRow = Readonly<{
  id: string;
  previous_id: string | null;
  kept_at: number;
  input: string;
  output: string;
  settings: string;
}>;

export function responseOf({ id, previous_id, kept_at, input, output, settings }: ResponseRow): string {
  const head = JSON.stringify({ id, previous_id, kept_at: new Date(kept_at).toISOString() });
  if (isConversationId(id)) return `${head.slice(0, -1)},"input":${input},"conversation":${settings}}`;
  return `${head.slice(0, -1)},"input":${input},"response":${responseText({ settings, output })}}`;
}

/** Of the playground: each record, whose content is JSON unless somebody wrote something else. */
export async function* conversationsOf(questions: Questions, account: AccountId): AsyncIterable<string> {
  const tables = new ConversationTables(questions);
  for (const { conversation, id, content } of await tables.conversationHeads(account)) {
    if (id === "") yield recordOf(conversation, id, content);
  }
  for (const conversation of await tables.conversationsWith(account, "")) {
    for (let after = ""; ;) {
      const some = await tables.conversationRecords(account, conversation, after, conversationSliceBytes);
      const last = some.at(-1);
      if (last === undefined) break;
      for (const { id, content } of some) yield recordOf(conversation, id, content);
      after = last.id;
    }
  }
}
const conversationSliceBytes = 4 * 1024 * 1024;

function recordOf(conversation: string, id: string, content: string): string {
  const head = JSON.stringify({ conversation, id }).slice(0, -1);
  return `${head},"content":${isJson(content) ? content : JSON.stringify(content)}}`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const readable = (row: ExportRow): ExportRow =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      isTime(name) && typeof value === "number" ? new Date(value).toISOString() : value,
    ]),
  );

const chunkLength = 64 * 1024;
const write = promisify(writeFile);

/** Writes all pieces to an open file of this process. Rejects where there are none, or it cannot be written. */
export async function writePieces(pieces: AsyncIterable<string> | null, descriptor: number): Promise<void> {
  if (pieces === null) throw new Error("it was deleted meanwhile");
  let text = "";
  for await (const piece of pieces) {
    text += piece;
    if (text.length < chunkLength) continue;
    await append(descriptor, text);
    text = "";
  }
  await append(descriptor, text);
}

async function append(descriptor: number, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) at += (await write(descriptor, bytes, at, bytes.length - at, null)).bytesWritten;
}

// ---------------------------------------------------------------- end users

/** In the words of `tollgate end-users list --json`. */
export type EndUserView = Readonly<{
  /** Empty for requests that named no end user. */
  name: string;
  key: string;
  first_day: string;
  last_day: string;
  /** Balance tokens of the last day. */
  used_last_day: number;
}>;

export const endUserReplyColumns = `billing_key AS id, kind, at, used, credit_delta, endpoint, model, key_id,
  input_fresh + input_cached AS input, input_cached AS cached_input, output, reasoning, billed_tokens, estimated`;

type InDays = Readonly<{ first_day: number; last_day: number }>;

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

const withDays = <Of extends InDays>(row: Of) => ({
  ...row,
  first_day: dayName(row.first_day),
  last_day: dayName(row.last_day),
});

export const endUsersIn = async ({ ask }: Questions, account: AccountId, limit: number): Promise<EndUserView[]> =>
  (await ask<Omit<EndUserView, keyof InDays> & InDays>(endUsers, account, limit)).map(withDays);

export async function* endUserInPieces(
  { ask }: Questions,
  account: AccountId,
  name: string,
  replies: Some<ExportRow>,
): AsyncIterable<string> {
  const keys = (await ask<InDays & Readonly<{ key: string }>>(namedKeys, account, name)).map(withDays);
  yield `{"end_user":${JSON.stringify(name)},"keys":${JSON.stringify(keys)},\n"usage":[`;
  yield* listed(textsOf(replies));
  yield "]}\n";
}

/** The time stands last. */
async function* textsOf(replies: Some<ExportRow>): AsyncIterable<string> {
  for await (const { at, ...row } of replies) yield textOfRow({ ...row, at: at! });
}
