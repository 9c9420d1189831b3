// The ledger's tables, described once: `migrate.ts` makes and extends them by it. Readers and Workers take its types alone
// (`RowOf`): drizzle would cost a start 60 ms, and each Worker 8 MB and 70 ms.
//
// A new version may add tables, columns that may be null or have a default (last in their table) and indexes; raise
// `schemaVersion` with it (`schema-version.ts`). A table whose key or allowed values are others is made anew. Anything else needs a step of its own in `migrate.ts`.
import { sql } from "drizzle-orm";
import {
  blob,
  check,
  customType,
  index,
  integer,
  primaryKey,
  sqliteTable,
  type SQLiteTable,
  text,
} from "drizzle-orm/sqlite-core";
import type { AccessLink } from "../../account/access-links.ts";
import type { EntryKind } from "../../account/entry.ts";
import type { PurchaseRequest } from "../../account/purchases.ts";
import type { Quota } from "../../account/quota.ts";
import type { PlanId } from "../../core/types.ts";

const quotas = ["allowance", "coder_calls", "searches"] as const satisfies readonly Quota[];
/** Purchases are never folded: their references must be known forever. */
const foldedKinds = ["charge", "coder_call", "coder_usage", "search"] as const satisfies readonly EntryKind[];
const entryKinds = [...foldedKinds, "credit"] as const satisfies readonly EntryKind[];
const purchaseKinds = ["credit", "plan", "deletion"] as const satisfies readonly PurchaseRequest["kind"][];
const purchaseStates = [
  "pending",
  "approved",
  "declined",
  "withdrawn",
] as const satisfies readonly PurchaseRequest["state"][];

/** Text that is the same in upper and lower case. */
const caselessText = customType<{ data: string }>({ dataType: () => "text COLLATE NOCASE" });

export const accounts = sqliteTable(
  "accounts",
  {
    id: integer().primaryKey(),
    email: caselessText().notNull().unique(),
    plan: text().$type<PlanId>().notNull(),
    /** Balance tokens; always the sum of the account's journal lines. */
    credit: integer().notNull(),
    keyHash: blob("key_hash", { mode: "buffer" }).notNull().unique(),
    passwordHash: text("password_hash"),
    operator: integer({ mode: "boolean" }).notNull(),
    createdAt: integer("created_at").notNull(),
    keyCreatedAt: integer("key_created_at").notNull(),
    /** Null where the account may be used. */
    disabledAt: integer("disabled_at"),
    /** Of its first key; written now and then. */
    keyUsedAt: integer("key_used_at"),
    /** The first key's last four characters; null where they were not kept yet. */
    keyEnding: text("key_ending"),
  },
  () => [check("key_hash_is_sha256", sql`length(key_hash) = 32`)],
);

/** Keys beside the one that every account has. Those that were revoked stay, for the names of the lines that they made. */
export const apiKeys = sqliteTable(
  "api_keys",
  {
    accountId: integer("account_id").notNull(),
    /** Counted from 2 within the account. */
    id: integer().notNull(),
    name: text().notNull(),
    /** Null where it was revoked. */
    keyHash: blob("key_hash", { mode: "buffer" }).unique(),
    createdAt: integer("created_at").notNull(),
    usedAt: integer("used_at"),
    revokedAt: integer("revoked_at"),
    expiresAt: integer("expires_at"),
    tokensPerDay: integer("tokens_per_day"),
    tokensPerMonth: integer("tokens_per_month"),
    /** JSON, as the next: an array of texts. */
    models: text(),
    addresses: text(),
    /** 1 where it may say for whom it asks. */
    forwardsUsers: integer("forwards_users"),
    endUserTokensPerDay: integer("end_user_tokens_per_day"),
    keyEnding: text("key_ending"),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.id] }),
    check("key_hash_is_sha256", sql`length(key_hash) = 32`),
  ],
);

/** What named keys were charged for by UTC day; always the sums of the journal lines. */
export const keyUse = sqliteTable(
  "key_use",
  {
    accountId: integer("account_id").notNull(),
    keyId: integer("key_id").notNull(),
    day: integer().notNull(),
    used: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.keyId, table.day] })],
);

/** For whom keys asked that may say so, by the names that their programs gave. */
export const endUsers = sqliteTable(
  "end_users",
  {
    accountId: integer("account_id").notNull(),
    /** Counted from 1 within the account. */
    id: integer().notNull(),
    keyId: integer("key_id").notNull(),
    /** Null where it was erased; empty for requests that named nobody. */
    name: text(),
    /** UTC days of its first and its last line. */
    firstDay: integer("first_day").notNull(),
    lastDay: integer("last_day").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.id] }),
    index("end_users_by_name").on(table.accountId, table.name, table.keyId),
    index("end_users_by_first_day").on(table.accountId, table.firstDay),
    index("end_users_by_last_day").on(table.lastDay),
  ],
);

/** What they were charged for by UTC day; the sums of the journal lines of the last days. */
export const endUserUse = sqliteTable(
  "end_user_use",
  {
    accountId: integer("account_id").notNull(),
    endUserId: integer("end_user_id").notNull(),
    day: integer().notNull(),
    used: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.endUserId, table.day] }),
    index("end_user_use_by_day").on(table.day),
  ],
);

export const quotaUse = sqliteTable(
  "quota_use",
  {
    accountId: integer("account_id").notNull(),
    quota: text({ enum: quotas }).notNull(),
    /** UTC day or 4-hour window since 1970. */
    period: integer().notNull(),
    /** Tokens, searches or calls; always the sum of the journal lines of that period. */
    used: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.quota, table.period] })],
);

export const journal = sqliteTable(
  "journal",
  {
    sequence: integer().primaryKey(),
    billingKey: text("billing_key").notNull().unique(),
    kind: text({ enum: entryKinds }).notNull(),
    accountId: integer("account_id").notNull(),
    at: integer().notNull(),
    period: integer().notNull(),
    used: integer().notNull(),
    creditDelta: integer("credit_delta").notNull(),
    endpoint: text(),
    model: text(),
    inputFresh: integer("input_fresh"),
    inputCached: integer("input_cached"),
    output: integer(),
    reasoning: integer(),
    inputCents: integer("input_cents"),
    cachedInputCents: integer("cached_input_cents"),
    outputCents: integer("output_cents"),
    billedTokens: integer("billed_tokens"),
    estimated: integer({ mode: "boolean" }),
    /** Ten-thousandths of a cent beside the whole cents; null where there are none. */
    inputParts: integer("input_parts"),
    cachedInputParts: integer("cached_input_parts"),
    outputParts: integer("output_parts"),
    /** By which it was asked for: 1 is the first key, 0 a signed-in browser. */
    keyId: integer("key_id").notNull().default(1),
    /** For whom; null where the key may not say so. */
    endUserId: integer("end_user_id"),
    /** How the request went, for the request log; null in lines from before, as the next. */
    node: text(),
    waitMs: integer("wait_ms"),
    sentMs: integer("sent_ms"),
    firstTokenMs: integer("first_token_ms"),
    durationMs: integer("duration_ms"),
  },
  (table) => [index("journal_by_account").on(table.accountId, table.sequence)],
);

/**
 * One row. Raised at every start; the writer looks at it in every transaction, so that a second instance which got past
 * the lock (a deleted lock file, a network file system) stops the first one instead of mixing two ledgers.
 */
export const instance = sqliteTable("instance", { id: integer().primaryKey(), epoch: integer().notNull() }, () => [
  check("one_row", sql`id = 1`),
]);

/** Browsers that are signed in to the console. */
export const sessions = sqliteTable(
  "sessions",
  {
    id: integer().primaryKey(),
    tokenHash: blob("token_hash", { mode: "buffer" }).notNull().unique(),
    accountId: integer("account_id").notNull(),
    createdAt: integer("created_at").notNull(),
    usedAt: integer("used_at").notNull(),
    address: text().notNull(),
    browser: text().notNull(),
  },
  (table) => [
    check("token_hash_is_sha256", sql`length(token_hash) = 32`),
    index("sessions_by_account").on(table.accountId),
  ],
);

export const purchaseRequests = sqliteTable(
  "purchase_requests",
  {
    id: integer().primaryKey(),
    accountId: integer("account_id").notNull(),
    kind: text({ enum: purchaseKinds }).notNull(),
    /** Balance tokens of kind credit. */
    tokens: integer(),
    plan: text().$type<PlanId>(),
    note: text().notNull(),
    state: text({ enum: purchaseStates }).notNull(),
    createdAt: integer("created_at").notNull(),
    decidedAt: integer("decided_at"),
    decisionNote: text("decision_note").notNull().default(""),
  },
  (table) => [
    index("purchase_requests_by_account").on(table.accountId, table.id),
    index("purchase_requests_by_state").on(table.state, table.id),
  ],
);

/** What a payment provider was paid; the credit itself is a line of the journal, in the same commit. */
export const payments = sqliteTable(
  "payments",
  {
    /** The provider's name and its id of the payment. */
    id: text().primaryKey(),
    accountId: integer("account_id").notNull(),
    tokens: integer().notNull(),
    paidAt: integer("paid_at").notNull(),
  },
  (table) => [index("payments_by_account").on(table.accountId, table.paidAt)],
);

export const auditLog = sqliteTable("audit_log", {
  id: integer().primaryKey(),
  at: integer().notNull(),
  operatorId: integer("operator_id").notNull(),
  address: text().notNull(),
  action: text().notNull(),
  subjectId: integer("subject_id").notNull(),
  detail: text().notNull(),
});

/** Lines that are older than they are kept, summed up by day; balances are the sums of lines and of these. */
export const journalFolds = sqliteTable(
  "journal_folds",
  {
    accountId: integer("account_id").notNull(),
    day: integer().notNull(),
    kind: text({ enum: foldedKinds }).notNull(),
    period: integer().notNull(),
    /** Empty where the lines are about no reply, as is `endpoint`. */
    model: text().notNull(),
    endpoint: text().notNull(),
    lines: integer().notNull(),
    used: integer().notNull(),
    creditDelta: integer("credit_delta").notNull(),
    inputFresh: integer("input_fresh").notNull(),
    inputCached: integer("input_cached").notNull(),
    output: integer().notNull(),
    reasoning: integer().notNull(),
    billedTokens: integer("billed_tokens").notNull(),
    keyId: integer("key_id").notNull().default(1),
  },
  (table) => [
    primaryKey({
      columns: [table.accountId, table.day, table.kind, table.period, table.model, table.endpoint, table.keyId],
    }),
  ],
);

/** One row: all lines up to this one are folded, except purchases. At 0, nothing is folded. */
export const journalFolded = sqliteTable(
  "journal_folded",
  {
    id: integer().primaryKey(),
    sequence: integer().notNull(),
    billingKey: text("billing_key").notNull(),
    at: integer().notNull(),
  },
  () => [check("one_row", sql`id = 1`)],
);

/** Calls of the search service by day: not part of the ledger, but the operator's own bound. */
export const searchCalls = sqliteTable(
  "search_calls",
  {
    accountId: integer("account_id").notNull(),
    day: integer().notNull(),
    calls: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.day] })],
);

const linkKinds = ["invitation", "password"] as const satisfies readonly AccessLink["kind"][];

/** Links that let somebody in once: invitations, and those by which a password is set. */
export const accessLinks = sqliteTable(
  "access_links",
  {
    id: integer().primaryKey(),
    tokenHash: blob("token_hash", { mode: "buffer" }).notNull().unique(),
    kind: text({ enum: linkKinds }).notNull(),
    /** Whose password; of an invitation, who used it. */
    accountId: integer("account_id"),
    /** The address that an invitation is for. */
    email: caselessText(),
    plan: text().$type<PlanId>().notNull(),
    /** Balance tokens. */
    credit: integer().notNull(),
    createdAt: integer("created_at").notNull(),
    expiresAt: integer("expires_at").notNull(),
    usedAt: integer("used_at"),
  },
  (table) => [
    check("token_hash_is_sha256", sql`length(token_hash) = 32`),
    index("access_links_by_account").on(table.accountId),
  ],
);

/** Whom an identity provider calls so. */
export const identities = sqliteTable(
  "identities",
  {
    issuer: text().notNull(),
    subject: text().notNull(),
    accountId: integer("account_id").notNull(),
    connectedAt: integer("connected_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.issuer, table.subject] }),
    index("identities_by_account").on(table.accountId),
  ],
);

/** With the row that a table has from the start, where it has one. */
export const ledgerTables: readonly Readonly<{ table: SQLiteTable; firstRow?: Readonly<Record<string, unknown>> }>[] = [
  { table: accounts },
  { table: apiKeys },
  { table: keyUse },
  { table: endUsers },
  { table: endUserUse },
  { table: quotaUse },
  { table: journal },
  { table: instance, firstRow: { id: 1, epoch: 0 } },
  { table: sessions },
  { table: purchaseRequests },
  { table: payments },
  { table: auditLog },
  { table: journalFolds },
  { table: journalFolded, firstRow: { id: 1, sequence: 0, billingKey: "", at: 0 } },
  { table: searchCalls },
  { table: accessLinks },
  { table: identities },
];

/** A row as SQLite gives it: by the names of the columns, with numbers for booleans. */
export type RowOf<Table extends SQLiteTable> = {
  readonly [Key in keyof Table["_"]["columns"] as Table["_"]["columns"][Key]["_"]["name"]]: ValueOf<
    Table["_"]["columns"][Key]["_"]
  >;
};
type ValueOf<Column extends { data: unknown; notNull: boolean }> =
  (Column["data"] extends boolean ? 0 | 1 : Column["data"]) | (Column["notNull"] extends true ? never : null);
