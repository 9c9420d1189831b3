// The tables in PostgreSQL of who may come in and of what the console keeps: sessions, links, identities, requests for credit,
// payments, the audit log, and the people behind keys. As in SQLite; the rules for additions are those of `schema.ts`.
import { boolean, index, pgTable, type PgTable, text } from "drizzle-orm/pg-core";
import { columnsOf, rulesOf, whole } from "./columns.ts";

export const endUsers = pgTable("end_users", columnsOf("end_users"), rulesOf("end_users"));
export const endUserUse = pgTable("end_user_use", columnsOf("end_user_use"), rulesOf("end_user_use"));
export const searchCalls = pgTable("search_calls", columnsOf("search_calls"), rulesOf("search_calls"));
export const teamMembers = pgTable("team_members", columnsOf("team_members"), rulesOf("team_members"));
export const sessions = pgTable("sessions", columnsOf("sessions"), rulesOf("sessions"));
export const purchaseRequests = pgTable(
  "purchase_requests",
  columnsOf("purchase_requests"),
  rulesOf("purchase_requests"),
);
export const payments = pgTable("payments", columnsOf("payments"), rulesOf("payments"));
export const auditLog = pgTable("audit_log", columnsOf("audit_log"), rulesOf("audit_log"));
export const accessLinks = pgTable("access_links", columnsOf("access_links"), rulesOf("access_links"));
export const operatorTokens = pgTable("operator_tokens", columnsOf("operator_tokens"), rulesOf("operator_tokens"));
export const deviceCodes = pgTable("device_codes", columnsOf("device_codes"), rulesOf("device_codes"));
export const identities = pgTable("identities", columnsOf("identities"), rulesOf("identities"));
export const mails = pgTable("mails", columnsOf("mails"), rulesOf("mails"));

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
  { table: teamMembers },
  { table: sessions, fillFactor: 80 },
  { table: purchaseRequests },
  { table: payments },
  { table: auditLog },
  { table: accessLinks },
  { table: operatorTokens },
  { table: deviceCodes },
  { table: identities },
  { table: mails, fillFactor: 50 },
  { table: signInTries },
];
