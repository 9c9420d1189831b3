// What a data folder has of an account, row by row on a connection of its own: however long the history, neither a running
// server nor this process's memory notices. A server has a Worker do it.
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { startWorker, WorkerClient } from "../../core/workers.ts";
import { filesDatabaseName, requestsName, responsesName } from "../folder/data-folder.ts";
import { openForReading } from "../open.ts";
import { SqliteQuestions } from "../questions.ts";
import {
  accountInPieces,
  accountLists,
  addressesOf,
  conversationsOf,
  endUserInPieces,
  endUserReplyColumns,
  endUsersIn,
  type ExportRow,
  filesOf,
  type LedgerExport,
  refusedColumns,
  responseOf,
  type ResponseRow,
  textOfRow,
} from "./exported.ts";

/** Throws what SQLite throws. */
export const exportOfFile = (databaseFile: string): LedgerExport => ({
  async account(email, withConversations = true) {
    using database = openForReading(databaseFile);
    const account = database
      .query(
        `SELECT id, email, plan, credit, operator, created_at, key_created_at, key_ending, key_used_at, disabled_at,
           mail_address, language, mail_kinds, password_hash IS NOT NULL AS has_password FROM accounts WHERE email = ?`,
      )
      .get(email) as (ExportRow & { id: number }) | null;
    return account === null ? null : accountInPieces(account, listsOf(databaseFile, account.id, withConversations));
  },
  async endUsers(account, limit) {
    using database = openForReading(databaseFile);
    return await endUsersIn(new SqliteQuestions(database), account, limit);
  },
  async *endUser(account, name) {
    using database = openForReading(databaseFile);
    database.run("BEGIN"); // one committed state
    const replies = database.query<ExportRow, [number, string]>(
      `SELECT ${endUserReplyColumns} FROM journal
       WHERE account_id = ?1 AND end_user_id IN (SELECT id FROM end_users WHERE account_id = ?1 AND name = ?2)
       ORDER BY sequence`,
    );
    yield* endUserInPieces(new SqliteQuestions(database), account, name, replies.iterate(account, name));
  },
});

/** Lists of the ledger are read in one transaction. What stands in other files has states of its own. */
function* listsOf(
  databaseFile: string,
  account: number,
  withConversations: boolean,
): Iterable<readonly [string, Iterable<string> | AsyncIterable<string>]> {
  {
    using database = openForReading(databaseFile);
    database.run("BEGIN");
    for (const [name, sql] of accountLists) {
      yield [name, textsOf(database.query<ExportRow, [number]>(sql).iterate(account), textOfRow)];
    }
  }
  const beside = (name: string): string => join(dirname(databaseFile), name);
  const refusedIn = (table: string) => `SELECT ${refusedColumns} FROM ${table} WHERE account_id = ? ORDER BY sequence`;
  yield ["refused_requests", rowsBeside(beside(requestsName), ["failed", "failed_requests"], refusedIn, account)];
  yield ["request_addresses", rowsBeside(beside(requestsName), ["request_addresses"], () => addressesOf, account)];
  yield ["files", rowsBeside(beside(filesDatabaseName), ["stored_files"], () => filesOf, account)];
  const responses = `SELECT id, previous_id, kept_at, input, output, settings FROM responses WHERE account_id = ? ORDER BY sequence`;
  yield [
    "stored_responses",
    rowsBeside<ResponseRow>(beside(responsesName), ["responses"], () => responses, account, responseOf),
  ];
  if (withConversations) yield ["conversations", conversationsBeside(beside(filesDatabaseName), account)];
}

async function* conversationsBeside(file: string, account: number): AsyncIterable<string> {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  using database = openForReading(file);
  const made = database.query("SELECT 1 FROM sqlite_schema WHERE name = 'conversation_records'").get() !== null;
  if (made) yield* conversationsOf(new SqliteQuestions(database), account);
}

/** Of its refused and failed requests, as far as they are written: the last second may be missing. */
function* rowsBeside<Row = ExportRow>(
  file: string,
  tables: readonly string[],
  sqlOf: (table: string) => string,
  account: number,
  textOf: (row: Row) => string = textOfRow as (row: Row) => string,
): Iterable<string> {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  using database = openForReading(file);
  // A server that was just started for the first time has the file before its tables; an older one named one otherwise.
  const table = database
    .query<{ name: string }, [string]>("SELECT name FROM sqlite_schema WHERE name IN (SELECT value FROM json_each(?))")
    .get(JSON.stringify(tables));
  if (table === null) return;
  yield* textsOf(database.query<Row, [number]>(sqlOf(table.name)).iterate(account), textOf);
}

function* textsOf<Row>(rows: Iterable<Row>, textOf: (row: Row) => string): Iterable<string> {
  for (const row of rows) yield textOf(row);
}

/** `write`: everything that is kept of an account goes to an open file of this process. */
export type ExportCall =
  | Readonly<{ order: "write"; databaseFile: string; email: string; descriptor: number; withConversations: boolean }>
  | Readonly<{ order: "close" }>;

/** Resolves when the file is whole. Rejects where it cannot be written, or there is no such account. */
export async function writeExport(
  databaseFile: string,
  email: string,
  descriptor: number,
  withConversations: boolean,
): Promise<void> {
  const worker = new WorkerClient<ExportCall>({
    start: () => startWorker("store/backup/account-export-writer.ts"),
    close: { order: "close" },
  });
  try {
    await worker.call({ order: "write", databaseFile, email, descriptor, withConversations });
  } finally {
    await worker.close();
  }
}
