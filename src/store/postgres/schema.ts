// The ledger's tables in PostgreSQL: those that both stores have (../tables.ts) with what several gateways must know of each
// other: lanes, holds, and an account's sums of its holds. `migrations.ts` makes and extends them by it.
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
  text,
  timestamp,
} from "drizzle-orm/pg-core";
import { columnsOf, hash, rulesOf, whole } from "./columns.ts";
import { consoleTables } from "./schema-console.ts";
import { usageTables } from "./schema-usage.ts";

/** What open requests hold together: always the sums of the rows in `holds`. */
const heldSums = {
  held: whole().notNull().default(0),
  /** Of `held`: by requests that wait for others to settle. */
  waitingHeld: whole("waiting_held").notNull().default(0),
  /** Requests that have begun and cost something, and what they are expected to cost. */
  begun: integer().notNull().default(0),
  expected: whole().notNull().default(0),
};

/** What was used of the limits of a minute; null where nothing was. See MinuteWindow. */
const minute = () => text();

export const accounts = pgTable(
  "accounts",
  {
    ...columnsOf("accounts"),
    ...heldSums,
    minute: minute(),
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
  rulesOf("accounts"),
);

/** Keys beside the one that every account has. Writing their sums takes the account's lock. */
export const apiKeys = pgTable(
  "api_keys",
  { ...columnsOf("api_keys"), ...heldSums, minute: minute() },
  rulesOf("api_keys"),
);

export const keyUse = pgTable("key_use", columnsOf("key_use"), rulesOf("key_use"));

/** What end users used of the limits of a minute; a row goes an hour after it counts. */
export const endUserMinutes = pgTable(
  "end_user_minutes",
  {
    accountId: whole("account_id").notNull(),
    keyId: integer("key_id").notNull(),
    /** Not the name: nothing of it is left to erase. */
    nameHash: text("name_hash").notNull(),
    minute: minute().notNull(),
    latest: whole().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.keyId, table.nameHash] }),
    index("end_user_minutes_by_time").on(table.latest),
  ],
);

/** Periods that an account has left; the one that it is in is in its row. */
export const quotaUse = pgTable("quota_use", columnsOf("quota_use"), rulesOf("quota_use"));

/** It has no sequence: the times of an account's lines never step back. */
export const journal = pgTable("journal", columnsOf("journal"), (table) => [
  ...rulesOf("journal")(table),
  index("journal_by_account").on(table.accountId, table.at),
  index("journal_by_time").on(table.at),
]);

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
    index("holds_by_account").on(table.accountId),
    index("holds_by_end_user")
      .on(table.accountId, table.keyId, table.endUser)
      .where(sql`end_user IS NOT NULL`),
  ],
);

/** What each gateway has of a node's slots, and what it needs there. Changing them takes the lock of the row without a lane. */
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

/** Work that a gateway did for accounts lately; a row each second, kept for ten. */
export const servedWork = pgTable(
  "served_work",
  {
    lane: text().notNull(),
    number: integer().notNull(),
    at: timestamp({ withTimezone: true }).notNull(),
    /** JSON: a list of NodeWork. */
    work: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.lane, table.number] })],
);

/** Numbers of accounts, without a sequence: those lose numbers, and are no part of a commit. */
export const counters = pgTable("counters", { name: text().primaryKey(), value: whole().notNull() });

/** One row; changing the tables takes its lock. */
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

export const schemaVersion = 13;
/** Programs whose schema is older than this must not write: raised only where what they would write is wrong. */
export const oldestProgram = 1;

/** `fillFactor`: room in each page for further versions of a row, which then touch no index. */
export const postgresTables: readonly Readonly<{ table: PgTable; fillFactor?: number }>[] = [
  { table: accounts, fillFactor: 50 },
  { table: apiKeys, fillFactor: 50 },
  { table: keyUse, fillFactor: 50 },
  { table: quotaUse },
  { table: endUserMinutes, fillFactor: 50 },
  { table: journal },
  { table: lanes, fillFactor: 50 },
  { table: holds, fillFactor: 80 },
  { table: nodeShares, fillFactor: 50 },
  { table: servedWork },
  { table: counters, fillFactor: 50 },
  ...consoleTables,
  ...usageTables,
];
