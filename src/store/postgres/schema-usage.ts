// The tables in PostgreSQL of what is shown and kept beside the ledger: sums of folded lines and of days, charts, the request
// log's failures, stored responses, and who does the work that one gateway does for all. What SQLite keeps in files of their
// own is here in one database; the rules for additions are those of `schema.ts`.
import { index, integer, pgTable, type PgTable, primaryKey, smallint, text } from "drizzle-orm/pg-core";
import { columnsOf, exactText, rulesOf, whole } from "./columns.ts";

export const journalFolds = pgTable("journal_folds", columnsOf("journal_folds"), rulesOf("journal_folds"));
const costCenterFolds = pgTable("cost_center_folds", columnsOf("cost_center_folds"), rulesOf("cost_center_folds"));

const sumColumns = () => ({
  accountId: whole("account_id").notNull(),
  day: integer().notNull(),
  model: text().notNull(),
  endpoint: text().notNull(),
  keyId: integer("key_id").notNull(),
  endUserId: integer("end_user_id").notNull(),
  costCenter: text("cost_center").notNull(),
  requests: whole().notNull(),
  input: whole().notNull(),
  cachedInput: whole("cached_input").notNull(),
  output: whole().notNull(),
  reasoning: whole().notNull(),
  billedTokens: whole("billed_tokens").notNull(),
});

/**
 * Replies of days that are over; a mark in `counters` says up to which day. Account 0 is all accounts together, end user 0 none.
 * Nothing is decided by them. They took the place of `usage_days`, whose key had no cost center.
 */
const served = (name: string) =>
  pgTable(name, sumColumns(), (table) => [
    primaryKey({
      columns: [
        ...[table.accountId, table.day, table.model, table.endpoint, table.keyId, table.endUserId, table.costCenter],
      ] as [typeof table.accountId],
    }),
    index(`${name}_by_day`).on(table.day),
  ]);
/** Of all that have tags once more, and of no account 0. A row's tags are longer than a key may be. */
const taggedDays = pgTable("tagged_days", { ...sumColumns(), tags: text().notNull() }, (table) => [
  index("tagged_days_by_account").on(table.accountId, table.day),
  index("tagged_days_by_day").on(table.day),
]);

/** What the operators' charts are made of, of all gateways together, in steps of a minute, an hour and a day. */
export const activity = pgTable(
  "activity",
  {
    stepMs: whole("step_ms").notNull(),
    kind: text().notNull(),
    at: whole().notNull(),
    name: text().notNull(),
    requests: whole().notNull(),
    answered: whole().notNull(),
    refused: whole().notNull(),
    failed: whole().notNull(),
    /** Their clients left; LEFT is a word of SQL. */
    departed: whole().notNull(),
    input: whole().notNull(),
    cachedInput: whole("cached_input").notNull(),
    output: whole().notNull(),
    /** JSON: pairs of a bucket and how many fell into it. */
    wait: text().notNull(),
    firstToken: text("first_token").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.stepMs, table.kind, table.at, table.name] }),
    index("activity_by_age").on(table.stepMs, table.at),
  ],
);

export const failedRequests = pgTable(
  "failed_requests",
  {
    requestId: exactText("request_id").primaryKey(),
    /** From `counters`: in the order in which they were written. */
    sequence: whole().notNull(),
    at: whole().notNull(),
    /** 0: none. */
    accountId: whole("account_id").notNull(),
    keyId: integer("key_id").notNull(),
    endpoint: text().notNull(),
    model: text().notNull(),
    askedModel: text("asked_model"),
    tags: text(),
    priority: text(),
    status: smallint().notNull(),
    reason: text().notNull(),
    /** What its node said; for operators alone. */
    cause: text(),
    node: text(),
    waitMs: integer("wait_ms"),
    sentMs: integer("sent_ms"),
    firstTokenMs: integer("first_token_ms"),
    durationMs: integer("duration_ms"),
    input: whole().notNull(),
    output: whole().notNull(),
    more: whole().notNull(),
  },
  (table) => [
    index("failed_requests_by_sequence").on(table.sequence),
    index("failed_requests_by_account").on(table.accountId, table.sequence),
    index("failed_requests_by_age").on(table.at),
  ],
);

export const requestAddresses = pgTable(
  "request_addresses",
  {
    requestId: exactText("request_id").primaryKey(),
    accountId: whole("account_id").notNull(),
    keyId: integer("key_id").notNull(),
    address: text().notNull(),
  },
  (table) => [index("addresses_by_key").on(table.accountId, table.keyId, table.requestId)],
);

export const storedResponses = pgTable(
  "stored_responses",
  {
    id: exactText().primaryKey(),
    accountId: whole("account_id").notNull(),
    previousId: text("previous_id"),
    keptAt: whole("kept_at").notNull(),
    /** Of the three texts below. */
    bytes: whole().notNull(),
    /** JSON: the items of the request, the items of the output, and the response object without its output. */
    input: text().notNull(),
    output: text().notNull(),
    settings: text().notNull(),
  },
  (table) => [
    index("stored_responses_by_account").on(table.accountId, table.keptAt, table.id),
    index("stored_responses_by_age").on(table.keptAt),
  ],
);

/** Always the sum over the account's responses. */
export const storedResponsesUse = pgTable("stored_responses_use", {
  accountId: whole("account_id").primaryKey(),
  responses: whole().notNull(),
  bytes: whole().notNull(),
  /** 1 where the account was erased: nothing is kept for it anymore. */
  erased: smallint().notNull().default(0),
});

/** Files, whose contents are in a folder that all gateways share. */
export const storedFiles = pgTable(
  "stored_files",
  {
    id: exactText().primaryKey(),
    accountId: whole("account_id").notNull(),
    filename: text().notNull(),
    purpose: text().notNull(),
    bytes: whole().notNull(),
    createdAt: whole("created_at").notNull(),
    /** Null: it stays. */
    expiresAt: whole("expires_at"),
    /** 0 while a batch writes it. */
    finished: smallint().notNull(),
  },
  (table) => [
    index("stored_files_by_account").on(table.accountId, table.id),
    index("stored_files_by_expiry").on(table.expiresAt),
  ],
);

/** Accounts that keep conversations of the playground here, and always the sums over their records. */
export const conversationShares = pgTable("conversation_shares", {
  accountId: whole("account_id").primaryKey(),
  version: whole().notNull(),
  conversations: whole().notNull(),
  bytes: whole().notNull(),
});

export const conversationRecords = pgTable(
  "conversation_records",
  {
    accountId: whole("account_id").notNull(),
    conversation: exactText().notNull(),
    id: exactText().notNull(),
    bytes: whole().notNull(),
    words: text().notNull(),
    content: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.conversation, table.id] })],
);

/** What a data folder has in the database of its files. */
export const besideFiles = [storedFiles, conversationShares, conversationRecords] as const;

/** Work that one gateway does for all; who has its row does it, until then. */
export const jobs = pgTable("jobs", {
  name: text().primaryKey(),
  /** Whose it is: a name of one life of a gateway's process. */
  holder: text().notNull(),
  /** By the server's clock, ms. */
  until: whole().notNull(),
});

export const usageTables: readonly Readonly<{ table: PgTable; fillFactor?: number }>[] = [
  { table: journalFolds },
  { table: costCenterFolds },
  { table: served("served_days") },
  /** By the first day of each month. */
  { table: served("served_months"), fillFactor: 80 },
  { table: taggedDays },
  { table: activity, fillFactor: 80 },
  { table: failedRequests },
  { table: requestAddresses },
  { table: storedResponses },
  { table: storedResponsesUse, fillFactor: 80 },
  { table: storedFiles },
  { table: conversationShares, fillFactor: 80 },
  { table: conversationRecords },
  { table: jobs, fillFactor: 50 },
];
