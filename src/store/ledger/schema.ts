// The tables as drizzle sees them, for reading. migrations.ts creates them; a test compares the two.
import { blob, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { EntryKind } from "../../account/entry.ts";
import type { PurchaseRequest } from "../../account/purchases.ts";
import type { Quota } from "../../account/quota.ts";
import type { PlanId } from "../../core/types.ts";

export const accounts = sqliteTable("accounts", {
  id: integer().primaryKey(),
  email: text().notNull(),
  plan: text().$type<PlanId>().notNull(),
  /** Balance tokens; always the sum of the account's journal lines. */
  credit: integer().notNull(),
  keyHash: blob("key_hash", { mode: "buffer" }).notNull(),
  passwordHash: text("password_hash"),
  operator: integer({ mode: "boolean" }).notNull(),
  createdAt: integer("created_at").notNull(),
  keyCreatedAt: integer("key_created_at").notNull(),
  /** Null where the account may be used. */
  disabledAt: integer("disabled_at"),
});

export const quotaUse = sqliteTable(
  "quota_use",
  {
    accountId: integer("account_id").notNull(),
    quota: text().$type<Quota>().notNull(),
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
    billingKey: text("billing_key").notNull(),
    kind: text().$type<EntryKind>().notNull(),
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
  },
  (table) => [index("journal_by_account").on(table.accountId, table.sequence)],
);

/** Lines that are older than they are kept, summed up by day. */
export const journalFolds = sqliteTable(
  "journal_folds",
  {
    accountId: integer("account_id").notNull(),
    day: integer().notNull(),
    kind: text().$type<EntryKind>().notNull(),
    period: integer().notNull(),
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
  },
  (table) => [
    primaryKey({
      columns: [table.accountId, table.day, table.kind, table.period, table.model, table.endpoint],
    }),
  ],
);

/** Calls of the search service by day: not of the ledger, the operator's own bound. */
export const searchCalls = sqliteTable(
  "search_calls",
  {
    accountId: integer("account_id").notNull(),
    day: integer().notNull(),
    calls: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.day] })],
);

/** Browsers that are signed in to the console. */
export const sessions = sqliteTable(
  "sessions",
  {
    id: integer().primaryKey(),
    tokenHash: blob("token_hash", { mode: "buffer" }).notNull(),
    accountId: integer("account_id").notNull(),
    createdAt: integer("created_at").notNull(),
    usedAt: integer("used_at").notNull(),
    address: text().notNull(),
    browser: text().notNull(),
  },
  (table) => [index("sessions_by_account").on(table.accountId)],
);

export const purchaseRequests = sqliteTable(
  "purchase_requests",
  {
    id: integer().primaryKey(),
    accountId: integer("account_id").notNull(),
    kind: text().$type<PurchaseRequest["kind"]>().notNull(),
    /** Balance tokens of kind credit. */
    tokens: integer(),
    plan: text().$type<PlanId>(),
    note: text().notNull(),
    state: text().$type<PurchaseRequest["state"]>().notNull(),
    createdAt: integer("created_at").notNull(),
    decidedAt: integer("decided_at"),
    decisionNote: text("decision_note").notNull(),
  },
  (table) => [
    index("purchase_requests_by_account").on(table.accountId, table.id),
    index("purchase_requests_by_state").on(table.state, table.id),
  ],
);

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
