// Reads what the console keeps, in both stores: sessions, links that let somebody in, identities, machines that wait to be let in,
// requests for credit or another plan, payments, operators' tokens and the audit log.
import type {
  AccessLink,
  AccessLinkRecords,
  AuditEntry,
  AuditRecords,
  DeviceCode,
  DeviceCodeRecords,
  Identity,
  IdentityRecords,
  OperatorToken,
  OperatorTokenRecords,
  Payment,
  PurchaseRecords,
  PurchaseRequest,
  SessionRecord,
  SessionRecords,
} from "../account/records.ts";
import type { Soon } from "../core/soon.ts";
import type { AccountId } from "../core/types.ts";
import { type RecordOf, recordOf } from "./changes/record.ts";
import { type Question, statement, type Value } from "./questions.ts";
import { type Column, type ColumnsOf, columnTypes, type TableName, tables } from "./tables.ts";

/** Tables whose rows have numbers. */
export type Numbered = "accounts" | "sessions" | "purchase_requests" | "access_links" | "operator_tokens" | "audit_log";

/** What some columns of a row are; null: not set. */
type Is<Name extends TableName> = { readonly [Of in keyof ColumnsOf<Name>]?: Value };
type Which = Readonly<{ before?: number; order?: string; limit?: number; locked?: boolean }>;

/** A data folder knows at once, a database server later. */
type When = "now" | "later";
type Answer<At extends When, Value> = At extends "now" ? Value : Promise<Value>;
type Ask = <Row>(question: Question, ...values: readonly Value[]) => Soon<readonly Row[]>;

export abstract class ConsoleRecords<At extends When>
  implements
    SessionRecords,
    PurchaseRecords,
    AuditRecords,
    AccessLinkRecords,
    IdentityRecords,
    OperatorTokenRecords,
    DeviceCodeRecords
{
  readonly #ask: Ask;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** A number that no row of the table has, nor will be given. */
  protected abstract next(table: Numbered): Answer<At, number>;
  abstract nextAuditId(): number;

  session(tokenHash: string): Answer<At, SessionRecord | null> {
    return this.#one("sessions", { token_hash: tokenHash });
  }

  sessionsOf(account: AccountId): Answer<At, readonly SessionRecord[]> {
    return this.#all("sessions", { account_id: account }, { order: "sessions.id" });
  }

  nextSessionId(): Answer<At, number> {
    return this.next("sessions");
  }

  request(id: number): Answer<At, PurchaseRequest | null> {
    return this.#one("purchase_requests", { id });
  }

  nextRequestId(): Answer<At, number> {
    return this.next("purchase_requests");
  }

  requestsOf(account: AccountId, before: number, limit: number): Answer<At, readonly PurchaseRequest[]> {
    return this.#all("purchase_requests", { account_id: account }, { before, limit });
  }

  requestsIn(
    state: PurchaseRequest["state"] | null,
    before: number,
    limit: number,
    kind: PurchaseRequest["kind"] | null = null,
  ): Answer<At, readonly PurchaseRequest[]> {
    const is = { ...(state === null ? {} : { state }), ...(kind === null ? {} : { kind }) };
    return this.#all("purchase_requests", is, { before, limit });
  }

  lastDeletionRequest(account: AccountId): Answer<At, PurchaseRequest | null> {
    return this.#one("purchase_requests", { account_id: account, kind: "deletion" });
  }

  pendingRequests(account: AccountId | null): Answer<At, number> {
    return this.#count("purchase_requests", {
      ...(account === null ? {} : { account_id: account }),
      state: "pending",
    });
  }

  paymentsOf(account: AccountId, limit: number): Answer<At, readonly Payment[]> {
    return this.#all("payments", { account_id: account }, { order: "payments.paid_at DESC, payments.id DESC", limit });
  }

  link(tokenHash: string, locked = false): Answer<At, AccessLink | null> {
    return this.#one("access_links", { token_hash: tokenHash }, locked);
  }

  linkById(id: number, locked = false): Answer<At, AccessLink | null> {
    return this.#one("access_links", { id }, locked);
  }

  nextLinkId(): Answer<At, number> {
    return this.next("access_links");
  }

  openInvitations(limit: number): Answer<At, readonly AccessLink[]> {
    return this.#all("access_links", { kind: "invitation", used_at: null }, { limit });
  }

  operatorToken(tokenHash: string): Answer<At, OperatorToken | null> {
    return this.#one("operator_tokens", { token_hash: tokenHash });
  }

  operatorTokens(limit: number): Answer<At, readonly OperatorToken[]> {
    return this.#all("operator_tokens", {}, { limit });
  }

  nextOperatorTokenId(): Answer<At, number> {
    return this.next("operator_tokens");
  }

  accountOfIdentity(issuer: string, subject: string): Answer<At, AccountId | null> {
    const found = this.#all("identities", { issuer, subject }, { order: "identities.issuer" });
    return after(found, ([identity]) => identity?.account ?? null);
  }

  identitiesOf(account: AccountId): Answer<At, readonly Identity[]> {
    return this.#all("identities", { account_id: account }, { order: "identities.issuer" });
  }

  deviceCode(hash: "deviceHash" | "userCodeHash", is: string, locked = false): Answer<At, DeviceCode | null> {
    const which = hash === "deviceHash" ? { device_hash: is } : ({ user_code_hash: is } as const);
    return after(
      this.#all("device_codes", which, { order: "device_codes.expires_at", locked }),
      ([code = null]) => code,
    );
  }

  deviceCodes(): Answer<At, number> {
    return this.#count("device_codes", {});
  }

  audit(before: number, limit: number): Answer<At, readonly AuditEntry[]> {
    return this.#all("audit_log", {}, { before, limit });
  }

  /** The newest. */
  #one<Name extends Numbered>(table: Name, is: Is<Name>, locked = false): Answer<At, RecordOf<Name> | null> {
    return after(this.#all(table, is, { limit: 1, locked }), ([record = null]) => record);
  }

  #all<Name extends TableName>(
    table: Name,
    is: Is<Name>,
    { before, order = `${table}.id DESC`, limit, locked = false }: Which,
  ): Answer<At, readonly RecordOf<Name>[]> {
    const { conditions, values } = conditionsOf(table, is);
    const value = (given: number): string => `$${values.push(given)}::text::bigint`;
    if (before !== undefined) conditions.push(`${table}.id < ${value(before)}`);
    const most = limit === undefined ? "" : ` LIMIT ${value(limit)}`;
    const text = `${rowsOf[table]}${where(conditions)} ORDER BY ${order}${most}${locked ? " FOR UPDATE" : ""}`;
    type Row = Readonly<Record<string, unknown>>;
    const found = this.#ask<Row>(statement(`find ${table}`, text), ...values);
    return after(found, (rows) => rows.map((row) => recordOf(table, row)));
  }

  #count<Name extends TableName>(table: Name, is: Is<Name>): Answer<At, number> {
    const { conditions, values } = conditionsOf(table, is);
    const text = `SELECT count(*)::float8 AS count FROM ${table}${where(conditions)}`;
    return after(this.#ask<{ count: number }>(statement(`count ${table}`, text), ...values), ([row]) => row!.count);
  }
}

const after = <At extends When, Value, Result>(
  value: Soon<Value>,
  next: (value: Value) => Result,
): Answer<At, Result> => (value instanceof Promise ? value.then(next) : next(value)) as Answer<At, Result>;

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

function conditionsOf(table: TableName, is: object) {
  const columns: Readonly<Record<string, Column>> = tables[table].columns;
  const values: Value[] = [];
  const conditions = Object.entries<Value>({ ...is }).map(([name, value]) => {
    if (value === null) return `${name} IS NULL`;
    const { kind } = columns[name]!;
    if (kind !== "hash") return `${name} = $${values.push(value)}::text::${columnTypes[kind].postgres}`;
    return `${name} = decode($${values.push(Buffer.from(String(value), "base64").toString("hex"))}::text, 'hex')`;
  });
  return { conditions, values };
}
