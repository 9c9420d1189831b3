// What the office reads, in both stores: accounts and their keys, sessions, links that let somebody in, identities, machines that
// wait to be let in, requests for credit or another plan, payments, operators' tokens and the audit log.
import type {
  AccessLink,
  AccountRecord,
  AuditEntry,
  AuditFilter,
  DeviceCode,
  Identity,
  KeyRecord,
  Mail,
  MailCounts,
  NumberedTable,
  OfficeRecords,
  OperatorToken,
  Payment,
  PlanCount,
  PurchaseRequest,
  SessionRecord,
  SessionRecords,
  TeamMember,
} from "../account/records.ts";
import type { Soon } from "../core/soon.ts";
import { type JournalReply, type UsageRow, usageRowOf } from "../account/usage-row.ts";
import type { AccountId, KeyId, Ms } from "../core/types.ts";
import { keyRecordOf, type RecordOf, recordOf } from "./changes/record.ts";
import { type Question, statement, type Value } from "./questions.ts";
import { type Column, type ColumnsOf, columnTypes, type TableName, tables } from "./tables.ts";
import { isReply, replyColumns } from "./usage/usage-sum.ts";

/** Tables whose rows have numbers. */
export type Numbered = NumberedTable | "audit_log";

/** What some columns of a row are; null: not set. */
type Is<Name extends TableName> = { readonly [Of in keyof ColumnsOf<Name>]?: Value };
type Which = Readonly<{
  /** Ids. */
  after?: number;
  before?: number;
  /** A condition with `?` where the text belongs. */
  and?: readonly [condition: string, text: string];
  /** Times. */
  from?: number;
  to?: number;
  order?: string;
  limit?: number;
  offset?: number;
  locked?: boolean;
}>;

/** A data folder knows at once, a database server later. */
type When = "now" | "later";
type Answer<At extends When, Value> = At extends "now" ? Value : Promise<Value>;
type Ask = <Row>(question: Question, ...values: readonly Value[]) => Soon<readonly Row[]>;

export abstract class StoreRecords<At extends When> implements OfficeRecords, SessionRecords {
  readonly #ask: Ask;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  abstract byEmail(email: string): Answer<At, AccountRecord | null>;
  abstract byEmails(emails: readonly string[]): Answer<At, readonly AccountRecord[]>;
  /** A journal's lines, the newest first. */
  protected abstract readonly newestLines: string;
  /** A number that no row of the table has, nor will be given. */
  abstract next(table: Numbered): Answer<At, number>;
  abstract nextAuditId(): number;

  byId(account: AccountId): Answer<At, AccountRecord | null> {
    return this.one("accounts", { id: account });
  }

  keysOf(account: AccountId): Answer<At, readonly KeyRecord[]> {
    return after(this.all("api_keys", { account_id: account }, { order: "api_keys.id" }), (keys) =>
      keys.map(keyRecordOf),
    );
  }

  keyWith(hash: "keyHash" | "familyHash", is: string): Answer<At, KeyRecord | null> {
    const which = hash === "keyHash" ? { key_hash: is } : ({ family_hash: is } as const);
    return after(this.one("api_keys", which), (key) => (key === null ? null : keyRecordOf(key)));
  }

  membersOf(team: AccountId): Answer<At, readonly TeamMember[]> {
    return this.all("team_members", { team_id: team }, { order: "team_members.joined_at, team_members.account_id" });
  }

  teamsOf(account: AccountId): Answer<At, readonly TeamMember[]> {
    return this.all("team_members", { account_id: account }, { order: "team_members.team_id" });
  }

  teams(): Answer<At, readonly AccountRecord[]> {
    return this.all("accounts", { team: 1 }, { order: "accounts.id" });
  }

  endUsersNamed(account: AccountId, name: string): Answer<At, readonly Readonly<{ id: number; key: KeyId }>[]> {
    const found = this.all("end_users", { account_id: account, name }, { order: "end_users.key_id" });
    return after(found, (endUsers) => endUsers.map(({ id, key }) => ({ id, key })));
  }

  list(after: AccountId, limit: number): Answer<At, readonly AccountRecord[]> {
    return this.all("accounts", {}, { after, order: "accounts.id", limit });
  }

  byPlan(): Answer<At, readonly PlanCount[]> {
    return this.ask(planCounts);
  }

  operators(): Answer<At, readonly AccountId[]> {
    return after(this.ask<{ id: AccountId }>(operators), (rows) => rows.map(({ id }) => id));
  }

  ownerOfEntry(billingKey: string): Answer<At, AccountId | null> {
    return after(this.ask<{ account: AccountId }>(owner, billingKey), ([line]) => line?.account ?? null);
  }

  usage(account: AccountId, limit: number): Answer<At, readonly UsageRow[]> {
    const text = `${replies} ORDER BY ${this.newestLines} LIMIT $2::text::bigint`;
    return after(this.ask<JournalReply>(statement("usage", text), account, limit), (rows) => rows.map(usageRowOf));
  }

  session(tokenHash: string): Answer<At, SessionRecord | null> {
    return this.one("sessions", { token_hash: tokenHash });
  }

  sessionsOf(account: AccountId): Answer<At, readonly SessionRecord[]> {
    return this.all("sessions", { account_id: account }, { order: "sessions.id" });
  }

  request(id: number): Answer<At, PurchaseRequest | null> {
    return this.one("purchase_requests", { id });
  }

  requestsOf(account: AccountId, before: number, limit: number): Answer<At, readonly PurchaseRequest[]> {
    return this.all("purchase_requests", { account_id: account }, { before, limit });
  }

  requestsIn(
    state: PurchaseRequest["state"] | null,
    before: number,
    limit: number,
    kind: PurchaseRequest["kind"] | null = null,
  ): Answer<At, readonly PurchaseRequest[]> {
    const is = { ...(state === null ? {} : { state }), ...(kind === null ? {} : { kind }) };
    return this.all("purchase_requests", is, { before, limit });
  }

  lastDeletionRequest(account: AccountId): Answer<At, PurchaseRequest | null> {
    return this.one("purchase_requests", { account_id: account, kind: "deletion" });
  }

  pendingRequests(account: AccountId | null): Answer<At, number> {
    return this.#count("purchase_requests", {
      ...(account === null ? {} : { account_id: account }),
      state: "pending",
    });
  }

  paymentsOf(account: AccountId, limit: number): Answer<At, readonly Payment[]> {
    return this.all("payments", { account_id: account }, { order: "payments.paid_at DESC, payments.id DESC", limit });
  }

  link(tokenHash: string, locked = false): Answer<At, AccessLink | null> {
    return this.one("access_links", { token_hash: tokenHash }, { locked });
  }

  linkById(id: number, locked = false): Answer<At, AccessLink | null> {
    return this.one("access_links", { id }, { locked });
  }

  openInvitations(limit: number, team?: AccountId): Answer<At, readonly AccessLink[]> {
    const into = team === undefined ? {} : { team_id: team };
    return this.all("access_links", { kind: "invitation", used_at: null, ...into }, { limit });
  }

  operatorToken(tokenHash: string): Answer<At, OperatorToken | null> {
    return this.one("operator_tokens", { token_hash: tokenHash });
  }

  operatorTokens(limit: number): Answer<At, readonly OperatorToken[]> {
    return this.all("operator_tokens", {}, { limit });
  }

  accountOfIdentity(issuer: string, subject: string): Answer<At, AccountId | null> {
    const found = this.one("identities", { issuer, subject }, { order: "identities.issuer" });
    return after(found, (identity) => identity?.account ?? null);
  }

  identitiesOf(account: AccountId): Answer<At, readonly Identity[]> {
    return this.all("identities", { account_id: account }, { order: "identities.issuer" });
  }

  deviceCode(hash: "deviceHash" | "userCodeHash", is: string, locked = false): Answer<At, DeviceCode | null> {
    const which = hash === "deviceHash" ? { device_hash: is } : ({ user_code_hash: is } as const);
    return this.one("device_codes", which, { order: "device_codes.expires_at", locked });
  }

  deviceCodes(): Answer<At, number> {
    return this.#count("device_codes", {});
  }

  mail(once: string, locked = false): Answer<At, Mail | null> {
    return this.one("mails", { once }, { order: "mails.once", locked });
  }

  dueMails(by: Ms, limit: number, locked = false): Answer<At, readonly Mail[]> {
    const isDue = ["due_at <= ?::text::bigint", String(by)] as const;
    return this.all("mails", {}, { and: isDue, order: "mails.due_at", limit, locked });
  }

  mailsOfKind(kind: string): Answer<At, readonly Mail[]> {
    return this.all("mails", { kind }, { order: "mails.once" });
  }

  mailCounts(since: Ms): Answer<At, MailCounts> {
    return after(this.ask<MailCounts>(mailCounts, since), ([counts]) => counts!);
  }

  oldestDeviceCode(): Answer<At, DeviceCode | null> {
    return this.one("device_codes", {}, { order: "device_codes.expires_at" });
  }

  audit(filter: AuditFilter, limit: number, offset: number): Answer<At, readonly AuditEntry[]> {
    const order = `audit_log.id ${filter.oldestFirst === true ? "ASC" : "DESC"}`;
    return this.all("audit_log", auditedBy(filter), { ...filter, order, limit, offset });
  }

  auditCount(filter: AuditFilter): Answer<At, number> {
    return this.#count("audit_log", auditedBy(filter), filter);
  }

  /** The first in that order; without one, the newest. */
  protected one<Name extends TableName>(
    table: Name,
    is: Is<Name>,
    which: Which = {},
  ): Answer<At, RecordOf<Name> | null> {
    return after(this.all(table, is, { ...which, limit: 1 }), ([record = null]) => record);
  }

  protected all<Name extends TableName>(
    table: Name,
    is: Is<Name>,
    which: Which,
  ): Answer<At, readonly RecordOf<Name>[]> {
    const { order = `${table}.id DESC`, limit, offset = 0, locked = false } = which;
    const { conditions, values } = conditionsOf(table, is, which);
    const value = (given: number): string => `$${values.push(given)}::text::bigint`;
    const most = limit === undefined ? "" : ` LIMIT ${value(limit)}${offset === 0 ? "" : ` OFFSET ${value(offset)}`}`;
    const text = `${rowsOf[table]}${where(conditions)} ORDER BY ${order}${most}${locked ? " FOR UPDATE" : ""}`;
    type Row = Readonly<Record<string, unknown>>;
    const found = this.ask<Row>(statement(`find ${table}`, text), ...values);
    return after(found, (rows) => rows.map((row) => recordOf(table, row)));
  }

  #count<Name extends TableName>(table: Name, is: Is<Name>, which: Which = {}): Answer<At, number> {
    const { conditions, values } = conditionsOf(table, is, which);
    const text = `SELECT count(*)::float8 AS count FROM ${table}${where(conditions)}`;
    return after(this.ask<{ count: number }>(statement(`count ${table}`, text), ...values), ([row]) => row!.count);
  }

  protected ask<Row>(question: Question, ...values: readonly Value[]): Answer<At, readonly Row[]> {
    return this.#ask<Row>(question, ...values) as Answer<At, readonly Row[]>;
  }
}

const after = <At extends When, Value, Result>(
  value: Soon<Value>,
  next: (value: Value) => Result,
): Answer<At, Result> => (value instanceof Promise ? value.then(next) : next(value)) as Answer<At, Result>;

const planCounts = statement(
  "accounts by plan",
  "SELECT plan, count(*)::float8 AS accounts FROM accounts WHERE disabled_at IS NULL GROUP BY plan",
);
const operators = statement(
  "operators",
  "SELECT id::float8 AS id FROM accounts WHERE operator = TRUE AND disabled_at IS NULL",
);
const owner = statement(
  "owner of entry",
  "SELECT account_id::float8 AS account FROM journal WHERE billing_key = $1::text",
);
const mailCounts = statement(
  "count mails",
  `SELECT (SELECT count(*) FROM mails WHERE due_at IS NOT NULL)::float8 AS waiting,
     (SELECT count(*) FROM mails WHERE due_at IS NULL AND problem IS NOT NULL AND sent_at > $1::text::bigint)::float8 AS "givenUp",
     (SELECT max(problem) FROM mails WHERE due_at IS NOT NULL OR (problem IS NOT NULL AND sent_at > $1::text::bigint)) AS problem`,
);
const replies = `SELECT ${replyColumns("journal")} FROM journal WHERE account_id = $1::text::bigint AND ${isReply}`;

const where = (conditions: readonly string[]): string =>
  conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`;

/** What reads all columns of a table; ORDER BY its own ones, and not those that were cast. */
const rowsOf = Object.fromEntries(
  Object.entries(tables).map(([table, { columns }]) => {
    const read = Object.entries<Column>(columns).map(([name, { kind }]) =>
      kind === "whole" ? `${table}.${name}::float8 AS ${name}` : name,
    );
    return [table, `SELECT ${read.join(", ")} FROM ${table}`];
  }),
) as Readonly<Record<TableName, string>>;

function conditionsOf(table: TableName, is: object, { after, before, from, to, and }: Which) {
  const columns: Readonly<Record<string, Column>> = tables[table].columns;
  const values: Value[] = [];
  const conditions = Object.entries<Value>({ ...is }).map(([name, value]) => {
    if (value === null) return `${name} IS NULL`;
    const { kind } = columns[name]!;
    if (kind !== "hash") return `${name} = $${values.push(value)}::text::${columnTypes[kind].postgres}`;
    return `${name} = decode($${values.push(Buffer.from(String(value), "base64").toString("hex"))}::text, 'hex')`;
  });
  if (and !== undefined) conditions.push(and[0].replace("?", () => `$${values.push(and[1])}`));
  const bounds = { "id >": after, "id <": before, "at >=": from, "at <": to };
  for (const [bound, value] of Object.entries(bounds))
    if (value !== undefined) conditions.push(`${table}.${bound} $${values.push(value)}::text::bigint`);
  return { conditions, values };
}

const auditedBy = ({ operator, subject, action }: AuditFilter): Is<"audit_log"> => ({
  ...(operator === undefined ? {} : { operator_id: operator }),
  ...(subject === undefined ? {} : { subject_id: subject }),
  ...(action === undefined ? {} : { action }),
});
