// The tables in PostgreSQL of who may come in and of what the console keeps: sessions, links, identities, requests for credit,
// payments, the audit log, and the people behind keys. As in SQLite; the rules for additions are those of `schema.ts`.
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
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { hash, whole } from "./columns.ts";
import type { AccessLink } from "../../account/access-links.ts";
import type { PurchaseRequest } from "../../account/purchases.ts";
import type { PlanId } from "../../core/types.ts";

/** For whom keys asked that may say so, by the names that their programs gave. */
export const endUsers = pgTable(
  "end_users",
  {
    accountId: whole("account_id").notNull(),
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
export const endUserUse = pgTable(
  "end_user_use",
  {
    accountId: whole("account_id").notNull(),
    endUserId: integer("end_user_id").notNull(),
    day: integer().notNull(),
    used: whole().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.endUserId, table.day] }),
    index("end_user_use_by_day").on(table.day),
  ],
);

/** Calls of the search service by day: not part of the ledger, but the operator's own bound. */
export const searchCalls = pgTable(
  "search_calls",
  {
    accountId: whole("account_id").notNull(),
    day: integer().notNull(),
    calls: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.day] })],
);

/** Browsers that are signed in to the console. */
export const sessions = pgTable(
  "sessions",
  {
    id: whole().primaryKey(),
    tokenHash: hash("token_hash").notNull(),
    accountId: whole("account_id").notNull(),
    createdAt: whole("created_at").notNull(),
    usedAt: whole("used_at").notNull(),
    address: text().notNull(),
    browser: text().notNull(),
  },
  (table) => [
    check("sessions_token_hash_is_sha256", sql`length(token_hash) = 32`),
    uniqueIndex("sessions_by_token").on(table.tokenHash),
    index("sessions_by_account").on(table.accountId),
  ],
);

export const purchaseRequests = pgTable(
  "purchase_requests",
  {
    id: whole().primaryKey(),
    accountId: whole("account_id").notNull(),
    kind: text().$type<PurchaseRequest["kind"]>().notNull(),
    /** Balance tokens of kind credit. */
    tokens: whole(),
    plan: text().$type<PlanId>(),
    note: text().notNull(),
    state: text().$type<PurchaseRequest["state"]>().notNull(),
    createdAt: whole("created_at").notNull(),
    decidedAt: whole("decided_at"),
    decisionNote: text("decision_note").notNull(),
  },
  (table) => [
    index("purchase_requests_by_account").on(table.accountId, table.id),
    index("purchase_requests_by_state").on(table.state, table.id),
  ],
);

/** What a payment provider was paid; the credit itself is a line of the journal, in the same commit. */
export const payments = pgTable(
  "payments",
  {
    /** The provider's name and its id of the payment. */
    id: text().primaryKey(),
    accountId: whole("account_id").notNull(),
    tokens: whole().notNull(),
    paidAt: whole("paid_at").notNull(),
  },
  (table) => [index("payments_by_account").on(table.accountId, table.paidAt)],
);

export const auditLog = pgTable("audit_log", {
  id: whole().primaryKey(),
  at: whole().notNull(),
  operatorId: whole("operator_id").notNull(),
  address: text().notNull(),
  action: text().notNull(),
  subjectId: whole("subject_id").notNull(),
  detail: text().notNull(),
});

/** Links that let somebody in once: invitations, and those by which a password is set. */
export const accessLinks = pgTable(
  "access_links",
  {
    id: whole().primaryKey(),
    tokenHash: hash("token_hash").notNull(),
    kind: text().$type<AccessLink["kind"]>().notNull(),
    /** Whose password; of an invitation, who used it. */
    accountId: whole("account_id"),
    /** The address that an invitation is for. */
    email: text(),
    plan: text().$type<PlanId>().notNull(),
    /** Balance tokens. */
    credit: whole().notNull(),
    createdAt: whole("created_at").notNull(),
    expiresAt: whole("expires_at").notNull(),
    usedAt: whole("used_at"),
  },
  (table) => [
    check("access_links_token_hash_is_sha256", sql`length(token_hash) = 32`),
    uniqueIndex("access_links_by_token").on(table.tokenHash),
    index("access_links_by_account").on(table.accountId),
  ],
);

/** Whom an identity provider calls so. */
export const identities = pgTable(
  "identities",
  {
    issuer: text().notNull(),
    subject: text().notNull(),
    accountId: whole("account_id").notNull(),
    connectedAt: whole("connected_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.issuer, table.subject] }),
    index("identities_by_account").on(table.accountId),
  ],
);

/** Of the last minutes, as hashes: each gateway counts with what the others saw. */
export const signInTries = pgTable(
  "sign_in_tries",
  {
    id: text().primaryKey(),
    /** The life of the gateway that saw it. */
    gateway: text().notNull(),
    at: whole().notNull(),
    what: text().notNull(),
    pair: text().notNull(),
    place: text().notNull(),
    neighbors: text().notNull(),
    name: text().notNull(),
    known: boolean().notNull(),
  },
  (table) => [index("sign_in_tries_by_time").on(table.at)],
);

export const consoleTables: readonly Readonly<{ table: PgTable; fillFactor?: number }>[] = [
  { table: endUsers, fillFactor: 80 },
  { table: endUserUse, fillFactor: 50 },
  { table: searchCalls, fillFactor: 50 },
  { table: sessions, fillFactor: 80 },
  { table: purchaseRequests },
  { table: payments },
  { table: auditLog },
  { table: accessLinks },
  { table: identities },
  { table: signInTries },
];
