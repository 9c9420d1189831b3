// Exports everything that is kept about one account, row by row on a connection of its own: however long the history,
// neither a running server nor this process's memory notices. A server has a Worker do it.
import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { AccountId } from "../../core/types.ts";
import { startWorker, WorkerClient } from "../../core/workers.ts";
import { isConversationId, responseText } from "../../dialects/stored-responses.ts";
import { filesDatabaseName, requestsName, responsesName } from "../folder/data-folder.ts";
import { openForReading } from "../open.ts";
import { type Column, type TableName, tables } from "../tables.ts";

export const usageColumns = `billing_key AS id, kind, at, used, credit_delta, endpoint, model, asked_model, key_id, end_user_id,
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
  journal: ["usage", `SELECT ${usageColumns} FROM journal WHERE account_id = ?1 ORDER BY sequence`],
};
export const accountLists = Object.values(lists);

export const refusedColumns = `request_id AS id, at, key_id, endpoint, model, asked_model, status, reason, wait_ms, first_token_ms,
  duration_ms, input, output, more`;

/** Their contents are files of their own, which their owner can download. */
export const filesOf = `SELECT id, filename, purpose, bytes, created_at, expires_at FROM stored_files
  WHERE account_id = ?1 ORDER BY id`;

/** Columns with wall-clock milliseconds, which are exported as ISO 8601. */
const isTime = (name: string): boolean => /(^|_)at$/.test(name);

/**
 * The pieces of one JSON object: the account, a list for each table that knows it, its files and stored responses. No hash of a
 * key, a password or a session is in it. Null: no account has the e-mail. Throws what SQLite throws.
 */
export function exportAccount(databaseFile: string, email: string): Iterable<string> | null {
  const database = openForReading(databaseFile);
  const account = database
    .query(
      `SELECT id, email, plan, credit, operator, created_at, key_created_at, key_ending, key_used_at, disabled_at,
         password_hash IS NOT NULL AS has_password FROM accounts WHERE email = ?`,
    )
    .get(email) as (ExportRow & { id: number }) | null;
  if (account !== null) return pieces(database, dirname(databaseFile), account);
  database.close();
  return null;
}

/** `write`: everything that is kept of an account goes to an open file of this process. */
export type ExportCall =
  Readonly<{ order: "write"; databaseFile: string; email: string; descriptor: number }> | Readonly<{ order: "close" }>;

/** Resolves when the file is whole. Rejects where it cannot be written, or there is no such account. */
export async function writeExport(databaseFile: string, email: string, descriptor: number): Promise<void> {
  const worker = new WorkerClient<ExportCall>({
    start: () => startWorker("store/backup/account-export-writer.ts"),
    close: { order: "close" },
  });
  try {
    await worker.call({ order: "write", databaseFile, email, descriptor });
  } finally {
    await worker.close();
  }
}

export type ExportRow = Readonly<Record<string, string | number | null>>;

/** One committed state: all lists are read in one transaction. Stored responses have a file and a state of their own. */
function* pieces(database: Database, folder: string, account: ExportRow & { id: number }): Iterable<string> {
  try {
    database.run("BEGIN");
    yield `{"account":${JSON.stringify(readable(account))}`;
    for (const [name, sql] of accountLists) {
      yield `,\n"${name}":[`;
      yield* listed(database.query(sql).iterate(account.id) as Iterable<ExportRow>, textOfRow);
      yield "]";
    }
  } finally {
    database.close();
  }
  yield ',\n"refused_requests":[';
  const refusedIn = (table: string) => `SELECT ${refusedColumns} FROM ${table} WHERE account_id = ? ORDER BY sequence`;
  yield* rowsBeside(join(folder, requestsName), refusedIn, account.id);
  yield '],\n"files":[';
  yield* rowsBeside(join(folder, filesDatabaseName), () => filesOf, account.id);
  yield "]";
  yield ',\n"stored_responses":[';
  yield* storedResponses(join(folder, responsesName), account.id);
  yield "]}\n";
}

/** Items of a JSON array, a line each. */
function* listed<Row>(rows: Iterable<Row>, textOf: (row: Row) => string): Iterable<string> {
  let before = "\n";
  for (const row of rows) {
    yield before + textOf(row);
    before = ",\n";
  }
}

const textOfRow = (row: ExportRow): string => JSON.stringify(readable(row));

/** Of its refused and failed requests, as far as they are written: the last second may be missing. */
function* rowsBeside(file: string, sqlOf: (table: string) => string, account: AccountId): Iterable<string> {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  const database = openForReading(file);
  try {
    // A server that was just started for the first time has the file before its tables; an older one named one otherwise.
    const table = database
      .query<{ name: string }, []>(
        "SELECT name FROM sqlite_schema WHERE name IN ('failed', 'failed_requests', 'stored_files')",
      )
      .get();
    if (table === null) return;
    const rows = database.query(sqlOf(table.name)).iterate(account);
    yield* listed(rows as Iterable<ExportRow>, textOfRow);
  } finally {
    database.close();
  }
}

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

/** The items of each request and the response as its client got it; the file's texts are JSON. */
function* storedResponses(file: string, account: AccountId): Iterable<string> {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  const database = openForReading(file);
  try {
    const rows = database.query(
      `SELECT id, previous_id, kept_at, input, output, settings FROM responses WHERE account_id = ? ORDER BY sequence`,
    );
    yield* listed(rows.iterate(account) as Iterable<ResponseRow>, responseOf);
  } finally {
    database.close();
  }
}

export const readable = (row: ExportRow): ExportRow =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      isTime(name) && typeof value === "number" ? new Date(value).toISOString() : value,
    ]),
  );
