// The tables as drizzle sees them, for reading. migrations.ts creates them; a test compares the two.
import { blob, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { EntryKind } from "../account/entry.ts";
import type { Quota } from "../account/quota.ts";
import type { PlanId } from "../types.ts";

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
