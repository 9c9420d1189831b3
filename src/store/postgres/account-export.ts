// What PostgreSQL has of an account, in the words of a data folder's export. The lists are of one committed state, but for replies,
// which are read page by page up to the last one of then, and stored responses.
import type { AccountId, Ms } from "../../core/types.ts";
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
  usageColumns,
} from "../backup/exported.ts";
import { type Question, type Send, statement, type Value } from "../questions.ts";
import { type Database, sendIn } from "./database.ts";
import { quotasInDatabase } from "./moved-tables.ts";

const listsLimitMs = 60_000;
const pageRows = 1_000;

type Json = Readonly<{ json: string }>;
type Place = Readonly<{ at: Ms; key: string }>;

/** Rows as JSON: numbers of 8 bytes are numbers there. */
const asJson = (name: string, sql: string): Question =>
  statement(name, `SELECT row_to_json(list)::text AS json FROM (${sql.replaceAll("?1", "$1::text::bigint")}) AS list`);
const rowOf = ({ json }: Json): ExportRow => JSON.parse(json) as ExportRow;
const textOf = (row: Json): string => textOfRow(rowOf(row));

const ofAccount = asJson(
  "export account",
  `SELECT id, email, plan, credit, operator::int AS operator, created_at, key_created_at, key_ending, key_used_at, disabled_at,
     mail_address, language, mail_kinds, CASE WHEN password_hash IS NULL THEN 0 ELSE 1 END AS has_password
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
const pageOf = (name: string, columns: string, which: string): Question =>
  statement(
    name,
    `SELECT row_to_json(list)::text AS json, list.at::float8 AS at, list.id AS key FROM (
       SELECT ${columns} FROM journal WHERE account_id = $1::text::bigint AND ${afterPlace} AND ${which}
       ORDER BY journal.at, billing_key LIMIT ${pageRows}) AS list`,
  );
const usage = pageOf("export usage", usageColumns, "at <= $4::text::bigint");
const endUserUsage = pageOf(
  "usage of end user",
  endUserReplyColumns,
  "end_user_id IN (SELECT id FROM end_users WHERE account_id = $1::text::bigint AND name = $4::text)",
);
const refused = asJson(
  "export refused",
  `SELECT ${refusedColumns} FROM failed_requests WHERE account_id = ?1 ORDER BY sequence`,
);
const addresses = asJson("export addresses", addressesOf);
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

/** Rejects with StoreUnavailable. */
export const exportOfDatabase = (database: Database): LedgerExport => ({
  async account(email, withConversations = true) {
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
    if (read === null) return null;
    const { id, account, rows, newest } = read;
    return accountInPieces(rowOf(account), [
      ...rows.map(([name, list]) => [name, list.map(textOf)] as const),
      ["usage", textsOf(paged(database.ask, usage, id, newest))],
      ["refused_requests", textsOf(rowsLater(database.ask, refused, id))],
      ["request_addresses", textsOf(rowsLater(database.ask, addresses, id))],
      ["files", textsOf(rowsLater(database.ask, files, id))],
      ["stored_responses", storedResponses(database.ask, id)],
      ...(withConversations ? [["conversations", conversationsOf(database, id)] as const] : []),
    ]);
  },
  endUsers: (account, limit) => endUsersIn(database, account, limit),
  endUser: (account, name) =>
    endUserInPieces(database, account, name, paged(database.ask, endUserUsage, account, name)),
});

async function* textsOf(rows: AsyncIterable<ExportRow>): AsyncIterable<string> {
  for await (const row of rows) yield textOfRow(row);
}

async function* rowsLater(ask: Send, question: Question, id: AccountId): AsyncIterable<ExportRow> {
  yield* (await ask<Json>(question, id)).map(rowOf);
}

async function* paged(ask: Send, question: Question, account: AccountId, value: Value): AsyncIterable<ExportRow> {
  for (let place: Place | null = { at: 0, key: "" }; place !== null;) {
    const page: readonly (Json & Place)[] = await ask(question, account, place.at, place.key, value);
    yield* page.map(rowOf);
    place = page.length < pageRows ? null : page.at(-1)!;
  }
}

async function* storedResponses(ask: Send, account: AccountId): AsyncIterable<string> {
  for (const { id } of await ask<Readonly<{ id: string }>>(responseIds, account)) {
    const [row] = await ask<ResponseRow>(response, account, id);
    if (row !== undefined) yield responseOf(row); // not deleted meanwhile
  }
}
