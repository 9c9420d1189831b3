// Reads what the console keeps: sessions, links that let somebody in, identities, requests for credit or another plan, payments and the audit log.
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
} from "../../account/records.ts";
import type { Database } from "bun:sqlite";
import type { AccountId } from "../../core/types.ts";
import { recordOf } from "../changes/record.ts";
import { Numbers } from "./numbers.ts";
import { read } from "../open.ts";
import type { RowOf } from "./schema.ts";

export class ConsoleRecords
  implements
    SessionRecords,
    PurchaseRecords,
    AuditRecords,
    AccessLinkRecords,
    IdentityRecords,
    OperatorTokenRecords,
    DeviceCodeRecords
{
  readonly #queries: ReturnType<typeof prepare>;
  readonly #sessions = new Numbers(() => this.#queries.lastSessionId.get());
  readonly #requests = new Numbers(() => this.#queries.lastRequestId.get());
  readonly #links = new Numbers(() => this.#queries.lastLinkId.get());
  readonly #tokens = new Numbers(() => this.#queries.lastTokenId.get());
  readonly #entries = new Numbers(() => this.#queries.lastAuditId.get());

  constructor(database: Database) {
    this.#queries = prepare(database);
  }

  session(tokenHash: string): SessionRecord | null {
    const row = read(() => this.#queries.session.get({ tokenHash: Buffer.from(tokenHash, "base64") }));
    return row === null ? null : recordOf("sessions", row);
  }

  sessionsOf(account: AccountId): readonly SessionRecord[] {
    return read(() => this.#queries.sessionsOf.all({ account })).map((row) => recordOf("sessions", row));
  }

  nextSessionId(): number {
    return this.#sessions.next();
  }

  request(id: number): PurchaseRequest | null {
    const row = read(() => this.#queries.request.get({ id }));
    return row === null ? null : recordOf("purchase_requests", row);
  }

  nextRequestId(): number {
    return this.#requests.next();
  }

  requestsOf(account: AccountId, before: number, limit: number): readonly PurchaseRequest[] {
    return read(() => this.#queries.requestsOf.all({ account, before, limit })).map((row) =>
      recordOf("purchase_requests", row),
    );
  }

  requestsIn(
    state: PurchaseRequest["state"] | null,
    before: number,
    limit: number,
    kind: PurchaseRequest["kind"] | null = null,
  ): readonly PurchaseRequest[] {
    const { requests, requestsIn } = this.#queries;
    const rows = read(() =>
      state === null ? requests.all({ before, limit, kind }) : requestsIn.all({ state, before, limit, kind }),
    );
    return rows.map((row) => recordOf("purchase_requests", row));
  }

  lastDeletionRequest(account: AccountId): PurchaseRequest | null {
    const row = read(() => this.#queries.deletions.get({ account, limit: 1 }));
    return row === null ? null : recordOf("purchase_requests", row);
  }

  pendingRequests(account: AccountId | null): number {
    const { pending, pendingOf } = this.#queries;
    return read(() => (account === null ? pending.get() : pendingOf.get({ account })))?.count ?? 0;
  }

  paymentsOf(account: AccountId, limit: number): readonly Payment[] {
    return read(() => this.#queries.paymentsOf.all({ account, limit })).map((row) => recordOf("payments", row));
  }

  link(tokenHash: string): AccessLink | null {
    const row = read(() => this.#queries.link.get({ tokenHash: Buffer.from(tokenHash, "base64") }));
    return row === null ? null : recordOf("access_links", row);
  }

  linkById(id: number): AccessLink | null {
    const row = read(() => this.#queries.linkById.get({ id }));
    return row === null ? null : recordOf("access_links", row);
  }

  nextLinkId(): number {
    return this.#links.next();
  }

  openInvitations(limit: number): readonly AccessLink[] {
    return read(() => this.#queries.openInvitations.all({ limit })).map((row) => recordOf("access_links", row));
  }

  operatorToken(tokenHash: string): OperatorToken | null {
    const row = read(() => this.#queries.operatorToken.get({ tokenHash: Buffer.from(tokenHash, "base64") }));
    return row === null ? null : recordOf("operator_tokens", row);
  }

  operatorTokens(limit: number): readonly OperatorToken[] {
    return read(() => this.#queries.operatorTokens.all({ limit })).map((row) => recordOf("operator_tokens", row));
  }

  nextOperatorTokenId(): number {
    return this.#tokens.next();
  }

  deviceCode(hash: "deviceHash" | "userCodeHash", is: string): DeviceCode | null {
    const query = this.#queries[hash === "deviceHash" ? "deviceCode" : "deviceCodeOfPerson"];
    const row = read(() => query.get({ hash: Buffer.from(is, "base64") }));
    return row === null ? null : recordOf("device_codes", row);
  }

  deviceCodes(): number {
    return read(() => this.#queries.deviceCodes.get())?.count ?? 0;
  }

  accountOfIdentity(issuer: string, subject: string): AccountId | null {
    return read(() => this.#queries.identity.get({ issuer, subject }))?.account ?? null;
  }

  identitiesOf(account: AccountId): readonly Identity[] {
    return read(() => this.#queries.identitiesOf.all({ account })).map((row) => recordOf("identities", row));
  }

  nextAuditId(): number {
    return this.#entries.next();
  }

  audit(before: number, limit: number): readonly AuditEntry[] {
    return read(() => this.#queries.audit.all({ before, limit })).map((row) => recordOf("audit_log", row));
  }
}

type SessionRow = RowOf<"sessions">;
type RequestRow = RowOf<"purchase_requests">;
type LinkRow = RowOf<"access_links">;
type OperatorTokenRow = RowOf<"operator_tokens">;
type DeviceCodeRow = RowOf<"device_codes">;
type IdentityRow = RowOf<"identities">;
type PaymentRow = RowOf<"payments">;
type AuditRow = RowOf<"audit_log">;
type Id = { id: number };
type Count = { count: number };
type Values = [] | [Readonly<Record<string, number | string | Uint8Array | null>>];

function prepare(database: Database) {
  const query = <Row>(text: string) => database.query<Row, Values>(text);
  const newest = (table: string, where: string) =>
    `SELECT * FROM ${table} WHERE ${where} ORDER BY id DESC LIMIT $limit`;
  const lastId = (table: string) => query<Id>(`SELECT id FROM ${table} ORDER BY id DESC LIMIT 1`);
  const ofKind = "($kind IS NULL OR kind = $kind)";
  const pending = "SELECT count(*) AS count FROM purchase_requests WHERE state = 'pending'";
  return {
    session: query<SessionRow>("SELECT * FROM sessions WHERE token_hash = $tokenHash"),
    sessionsOf: query<SessionRow>("SELECT * FROM sessions WHERE account_id = $account"),
    lastSessionId: lastId("sessions"),
    request: query<RequestRow>("SELECT * FROM purchase_requests WHERE id = $id"),
    lastRequestId: lastId("purchase_requests"),
    requestsOf: query<RequestRow>(newest("purchase_requests", "account_id = $account AND id < $before")),
    requests: query<RequestRow>(newest("purchase_requests", `id < $before AND ${ofKind}`)),
    requestsIn: query<RequestRow>(newest("purchase_requests", `state = $state AND id < $before AND ${ofKind}`)),
    deletions: query<RequestRow>(newest("purchase_requests", "account_id = $account AND kind = 'deletion'")),
    pending: query<Count>(pending),
    pendingOf: query<Count>(`${pending} AND account_id = $account`),
    paymentsOf: query<PaymentRow>(
      "SELECT * FROM payments WHERE account_id = $account ORDER BY paid_at DESC LIMIT $limit",
    ),
    link: query<LinkRow>("SELECT * FROM access_links WHERE token_hash = $tokenHash"),
    linkById: query<LinkRow>("SELECT * FROM access_links WHERE id = $id"),
    lastLinkId: lastId("access_links"),
    openInvitations: query<LinkRow>(newest("access_links", "kind = 'invitation' AND used_at IS NULL")),
    operatorToken: query<OperatorTokenRow>("SELECT * FROM operator_tokens WHERE token_hash = $tokenHash"),
    operatorTokens: query<OperatorTokenRow>(newest("operator_tokens", "true")),
    lastTokenId: lastId("operator_tokens"),
    deviceCode: query<DeviceCodeRow>("SELECT * FROM device_codes WHERE device_hash = $hash"),
    deviceCodeOfPerson: query<DeviceCodeRow>("SELECT * FROM device_codes WHERE user_code_hash = $hash"),
    deviceCodes: query<Count>("SELECT count(*) AS count FROM device_codes"),
    identity: query<{ account: AccountId }>(
      "SELECT account_id AS account FROM identities WHERE issuer = $issuer AND subject = $subject",
    ),
    identitiesOf: query<IdentityRow>("SELECT * FROM identities WHERE account_id = $account"),
    lastAuditId: lastId("audit_log"),
    audit: query<AuditRow>(newest("audit_log", "id < $before")),
  };
}
