// The ledger's tables in PostgreSQL, described once: `migrations.ts` makes and extends them by it. They are those of SQLite
// (../ledger/schema.ts) with what several gateways must know of each other: lanes, holds, and an account's sums of its holds.
//
// A new version may add tables, columns that may be null or have a default, and indexes; raise `schemaVersion` with it.
// Programs of two versions work on one database while gateways are replaced one by one, so that nothing else may change.
import { sql } from "drizzle-orm";
import {
  boolean,
  check,
  index,
  integer,
  pgTable,
  type PgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { hash, whole } from "./columns.ts";
import type { EntryKind } from "../../account/entry.ts";
import type { Quota } from "../../account/quota.ts";
import type { PlanId } from "../../core/types.ts";
import { consoleTables } from "./schema-console.ts";
import { exactText } from "./exact-text.ts";
import { usageTables } from "./schema-usage.ts";

/** Money, milliseconds and ids: whole numbers below 2^53. */

/** What open requests hold together: always the sums of the rows in `holds`. */
const heldSums = {
  held: whole().notNull().default(0),
  /** Of `held`: by requests that wait for others to settle. */
  waitingHeld: whole("waiting_held").notNull().default(0),
  /** Requests that have begun and cost something, and what they are expected to cost. */
  begun: integer().notNull().default(0),
  expected: whole().notNull().default(0),
};

export const accounts = pgTable(
  "accounts",
  {
    id: whole().primaryKey(),
    email: text().notNull(),
    plan: text().$type<PlanId>().notNull(),
    /** Balance tokens; always the sum of the account's journal lines. */
    credit: whole().notNull(),
    keyHash: hash("key_hash").notNull(),
    passwordHash: text("password_hash"),
    operator: boolean().notNull(),
    createdAt: whole("created_at").notNull(),
    keyCreatedAt: whole("key_created_at").notNull(),
    /** Null where the account may be used. */
    disabledAt: whole("disabled_at"),
    /** Of its first key, as the next. */
    keyUsedAt: whole("key_used_at"),
    /** Its last four characters; null where they were not kept yet. */
    keyEnding: text("key_ending"),
    ...heldSums,
    /** Requests in `holds`, also those that hold no tokens. */
    holds: integer().notNull().default(0),
    searchesHeld: integer("searches_held").notNull().default(0),
    // What was used in the latest period that was looked at; those that were left are in quota_use.
    allowanceDay: integer("allowance_day").notNull().default(-1),
    allowanceUsed: whole("allowance_used").notNull().default(0),
    coderWindow: integer("coder_window").notNull().default(-1),
    coderUsed: whole("coder_used").notNull().default(0),
    searchesDay: integer("searches_day").notNull().default(-1),
    searchesUsed: whole("searches_used").notNull().default(0),
    // Windows of requests for answers, and of those to models of embeddings and reranking. `latest`: of the last request.
    floodOpens: whole("flood_opens").notNull().default(0),
    floodLatest: whole("flood_latest").notNull().default(0),
    floodCount: integer("flood_count").notNull().default(0),
    inputsOpens: whole("inputs_opens").notNull().default(0),
    inputsLatest: whole("inputs_latest").notNull().default(0),
    inputsCount: integer("inputs_count").notNull().default(0),
  },
  (table) => [
    check("accounts_key_hash_is_sha256", sql`length(key_hash) = 32`),
    uniqueIndex("accounts_by_key").on(table.keyHash),
    // The same in upper and lower case of ASCII letters, whatever the database's own order of letters is.
    uniqueIndex("accounts_by_email").on(sql`lower(email COLLATE "C")`),
  ],
);

/** Keys beside the one that every account has. Whoever writes their sums holds the account's lock. */
export const apiKeys = pgTable(
  "api_keys",
  {
    accountId: whole("account_id").notNull(),
    /** Counted from 2 within the account. */
    id: integer().notNull(),
    name: text().notNull(),
    /** Null where it was revoked. */
    keyHash: hash("key_hash"),
    createdAt: whole("created_at").notNull(),
    usedAt: whole("used_at"),
    revokedAt: whole("revoked_at"),
    expiresAt: whole("expires_at"),
    tokensPerDay: whole("tokens_per_day"),
    tokensPerMonth: whole("tokens_per_month"),
    /** JSON, as the next: an array of texts. */
    models: text(),
    addresses: text(),
    /** 1 where it may say for whom it asks. */
    forwardsUsers: integer("forwards_users"),
    endUserTokensPerDay: whole("end_user_tokens_per_day"),
    keyEnding: text("key_ending"),
    ...heldSums,
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.id] }),
    check("api_keys_key_hash_is_sha256", sql`length(key_hash) = 32`),
    uniqueIndex("api_keys_by_key").on(table.keyHash),
  ],
);

/** What named keys were charged for by UTC day; always the sums of the journal lines. */
export const keyUse = pgTable(
  "key_use",
  {
    accountId: whole("account_id").notNull(),
    keyId: integer("key_id").notNull(),
    day: integer().notNull(),
    used: whole().notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.keyId, table.day] })],
);

/** Periods that an account has left; the one that it is in is in its row. */
export const quotaUse = pgTable(
  "quota_use",
  {
    accountId: whole("account_id").notNull(),
    quota: text().$type<Quota>().notNull(),
    period: integer().notNull(),
    used: whole().notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.quota, table.period] })],
);

/** A row for each charge, purchase and counted call. It has no sequence: the times of an account's lines never step back. */
export const journal = pgTable(
  "journal",
  {
    billingKey: exactText("billing_key").primaryKey(),
    kind: text().$type<EntryKind>().notNull(),
    accountId: whole("account_id").notNull(),
    at: whole().notNull(),
    period: integer().notNull(),
    used: whole().notNull(),
    creditDelta: whole("credit_delta").notNull(),
    endpoint: text(),
    model: text(),
    inputFresh: whole("input_fresh"),
    inputCached: whole("input_cached"),
    output: whole(),
    reasoning: whole(),
    inputCents: whole("input_cents"),
    cachedInputCents: whole("cached_input_cents"),
    outputCents: whole("output_cents"),
    billedTokens: whole("billed_tokens"),
    /** 1 where the node gave no usable usage. */
    estimated: smallint(),
    /** Ten-thousandths of a cent beside the whole cents; null where there are none. */
    inputParts: integer("input_parts"),
    cachedInputParts: integer("cached_input_parts"),
    outputParts: integer("output_parts"),
    /** By which it was asked for: 1 is the first key, 0 a signed-in browser. */
    keyId: integer("key_id").notNull().default(1),
    /** For whom; null where the key may not say so. */
    endUserId: integer("end_user_id"),
    /** How the request went, for the request log. */
    node: text(),
    waitMs: integer("wait_ms"),
    sentMs: integer("sent_ms"),
    firstTokenMs: integer("first_token_ms"),
    durationMs: integer("duration_ms"),
  },
  (table) => [index("journal_by_account").on(table.accountId, table.at), index("journal_by_time").on(table.at)],
);

/** One life of one gateway process: its heartbeat, its fence, and how far its batches came. */
export const lanes = pgTable("lanes", {
  id: text().primaryKey(),
  gateway: text().notNull(),
  /** The number of the latest batch: it is committed if and only if this says as much or more. */
  batch: whole().notNull(),
  seenAt: timestamp("seen_at", { withTimezone: true }).notNull(),
  /** Set by another gateway, which gave its holds back; nothing of this lane is committed from then on. */
  goneAt: timestamp("gone_at", { withTimezone: true }),
  version: text().notNull(),
  /** Of what all gateways should have alike: models, plans, limits, nodes. */
  configDigest: text("config_digest").notNull(),
});

/** Of open requests. No foreign keys: the lane's number is the fence. */
export const holds = pgTable(
  "holds",
  {
    requestId: text("request_id").primaryKey(),
    lane: text().notNull(),
    accountId: whole("account_id").notNull(),
    keyId: integer("key_id").notNull(),
    tokens: whole().notNull(),
    /** What it is expected to cost. */
    cost: whole().notNull(),
    /** It waits for others of its account to settle. */
    waits: boolean().notNull(),
    /** 1 of a search of the day that runs, which is no request; else 0. */
    searches: integer().notNull().default(0),
    /** For whom a key asks that may say so. */
    endUser: text("end_user"),
    madeAt: whole("made_at").notNull(),
  },
  (table) => [
    index("holds_by_lane").on(table.lane),
    index("holds_by_end_user")
      .on(table.accountId, table.keyId, table.endUser)
      .where(sql`end_user IS NOT NULL`),
  ],
);

/** What each gateway has of a node's slots, and what it needs there. The row without a lane is locked by whoever changes them. */
export const nodeShares = pgTable(
  "node_shares",
  {
    node: text().notNull(),
    lane: text().notNull(),
    granted: integer().notNull().default(0),
    busy: integer().notNull().default(0),
    waiting: integer().notNull().default(0),
    accounts: integer().notNull().default(0),
    /** How long its oldest has waited. */
    waitedMs: integer("waited_ms").notNull().default(0),
  },
  (table) => [primaryKey({ columns: [table.node, table.lane] })],
);

/** Numbers of accounts, without a sequence: those lose numbers, and are no part of a commit. */
export const counters = pgTable("counters", { name: text().primaryKey(), value: whole().notNull() });

/** One row, which is locked by whoever changes the tables. */
export const ledgerMeta = pgTable(
  "ledger_meta",
  {
    id: integer().primaryKey(),
    schema: integer().notNull(),
    /** The schema version of the oldest program that may work on these tables. */
    oldestProgram: integer("oldest_program").notNull(),
    sealingKey: hash("sealing_key"),
    /** The books were moved elsewhere: nothing is written anymore. */
    closed: boolean().notNull().default(false),
  },
  () => [check("ledger_meta_one_row", sql`id = 1`)],
);

export const schemaVersion = 2;
/** Programs whose schema is older than this must not write: raised only where what they would write is wrong. */
export const oldestProgram = 1;

/** `fillFactor`: room in each page for further versions of a row, which then touch no index. */
export const postgresTables: readonly Readonly<{ table: PgTable; fillFactor?: number }>[] = [
  { table: accounts, fillFactor: 50 },
  { table: apiKeys, fillFactor: 50 },
  { table: keyUse, fillFactor: 50 },
  { table: quotaUse },
  { table: journal },
  { table: lanes, fillFactor: 50 },
  { table: holds, fillFactor: 80 },
  { table: nodeShares, fillFactor: 50 },
  { table: counters, fillFactor: 50 },
  ...consoleTables,
  ...usageTables,
];
