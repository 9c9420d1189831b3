// Reads what the console keeps: sessions, links that let somebody in, identities, requests for credit or another plan, payments and the audit log.
import type { Database } from "bun:sqlite";
import { and, desc, eq, isNull, lt, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/bun-sqlite";
import type { AccessLink, AccessLinkRecords } from "../../account/access-links.ts";
import type { AuditAction, AuditEntry, AuditRecords } from "../../account/audit.ts";
import type { Identity, IdentityRecords } from "../../account/identities.ts";
import type { Payment, PurchaseRecords, PurchaseRequest } from "../../account/purchases.ts";
import type { SessionRecord, SessionRecords } from "../../account/sessions.ts";
import type { AccountId } from "../../core/types.ts";
import { read } from "../open.ts";
import { accessLinks, auditLog, identities, payments, purchaseRequests, sessions } from "./schema.ts";

export class ConsoleRecords
  implements SessionRecords, PurchaseRecords, AuditRecords, AccessLinkRecords, IdentityRecords
{
  readonly #queries: ReturnType<typeof prepare>;

  constructor(database: Database) {
    this.#queries = prepare(database);
  }

  session(tokenHash: string): SessionRecord | null {
    const row = read(() => this.#queries.session.get({ tokenHash: Buffer.from(tokenHash, "base64") }));
    return row === undefined ? null : sessionOf(row);
  }

  sessionsOf(account: AccountId): readonly SessionRecord[] {
    return read(() => this.#queries.sessionsOf.all({ account })).map(sessionOf);
  }

  lastSessionId(): number {
    return read(() => this.#queries.lastSessionId.get())?.id ?? 0;
  }

  request(id: number): PurchaseRequest | null {
    const row = read(() => this.#queries.request.get({ id }));
    return row === undefined ? null : requestOf(row);
  }

  lastRequestId(): number {
    return read(() => this.#queries.lastRequestId.get())?.id ?? 0;
  }

  requestsOf(account: AccountId, before: number, limit: number): readonly PurchaseRequest[] {
    return read(() => this.#queries.requestsOf.all({ account, before, limit })).map(requestOf);
  }

  requestsIn(state: PurchaseRequest["state"] | null, before: number, limit: number): readonly PurchaseRequest[] {
    const { requests, requestsIn } = this.#queries;
    const rows = read(() =>
      state === null ? requests.all({ before, limit }) : requestsIn.all({ state, before, limit }),
    );
    return rows.map(requestOf);
  }

  pendingRequests(account: AccountId | null): number {
    const { pending, pendingOf } = this.#queries;
    return read(() => (account === null ? pending.get() : pendingOf.get({ account })))?.count ?? 0;
  }

  paymentsOf(account: AccountId, limit: number): readonly Payment[] {
    return read(() => this.#queries.paymentsOf.all({ account, limit })).map(({ accountId, ...payment }): Payment => ({
      ...payment,
      account: accountId,
    }));
  }

  link(tokenHash: string): AccessLink | null {
    const row = read(() => this.#queries.link.get({ tokenHash: Buffer.from(tokenHash, "base64") }));
    return row === undefined ? null : linkOf(row);
  }

  linkById(id: number): AccessLink | null {
    const row = read(() => this.#queries.linkById.get({ id }));
    return row === undefined ? null : linkOf(row);
  }

  lastLinkId(): number {
    return read(() => this.#queries.lastLinkId.get())?.id ?? 0;
  }

  openInvitations(limit: number): readonly AccessLink[] {
    return read(() => this.#queries.openInvitations.all({ limit })).map(linkOf);
  }

  accountOfIdentity(issuer: string, subject: string): AccountId | null {
    return read(() => this.#queries.identity.get({ issuer, subject }))?.account ?? null;
  }

  identitiesOf(account: AccountId): readonly Identity[] {
    return read(() => this.#queries.identitiesOf.all({ account })).map(({ accountId, ...row }) => {
      return { ...row, account: accountId };
    });
  }

  lastAuditId(): number {
    return read(() => this.#queries.lastAuditId.get())?.id ?? 0;
  }

  audit(before: number, limit: number): readonly AuditEntry[] {
    return read(() => this.#queries.audit.all({ before, limit })).map(
      ({ operatorId, subjectId, action, ...entry }): AuditEntry => ({
        ...entry,
        operator: operatorId,
        subject: subjectId,
        action: action as AuditAction,
      }),
    );
  }
}

function prepare(database: Database) {
  const db = drizzle(database);
  const place = sql.placeholder;
  const count = { count: sql<number>`count(*)` };
  const isPending = eq(purchaseRequests.state, "pending");
  const newest = () =>
    db.select().from(purchaseRequests).orderBy(desc(purchaseRequests.id)).limit(place("limit")).$dynamic();
  const before = lt(purchaseRequests.id, place("before"));
  return {
    session: db
      .select()
      .from(sessions)
      .where(eq(sessions.tokenHash, place("tokenHash")))
      .prepare(),
    sessionsOf: db
      .select()
      .from(sessions)
      .where(eq(sessions.accountId, place("account")))
      .prepare(),
    lastSessionId: db.select({ id: sessions.id }).from(sessions).orderBy(desc(sessions.id)).limit(1).prepare(),
    request: db
      .select()
      .from(purchaseRequests)
      .where(eq(purchaseRequests.id, place("id")))
      .prepare(),
    lastRequestId: db
      .select({ id: purchaseRequests.id })
      .from(purchaseRequests)
      .orderBy(desc(purchaseRequests.id))
      .limit(1)
      .prepare(),
    requestsOf: newest()
      .where(and(eq(purchaseRequests.accountId, place("account")), before))
      .prepare(),
    requests: newest().where(before).prepare(),
    requestsIn: newest()
      .where(and(eq(purchaseRequests.state, place("state")), before))
      .prepare(),
    pending: db.select(count).from(purchaseRequests).where(isPending).prepare(),
    pendingOf: db
      .select(count)
      .from(purchaseRequests)
      .where(and(eq(purchaseRequests.accountId, place("account")), isPending))
      .prepare(),
    paymentsOf: db
      .select()
      .from(payments)
      .where(eq(payments.accountId, place("account")))
      .orderBy(desc(payments.paidAt))
      .limit(place("limit"))
      .prepare(),
    link: db
      .select()
      .from(accessLinks)
      .where(eq(accessLinks.tokenHash, place("tokenHash")))
      .prepare(),
    linkById: db
      .select()
      .from(accessLinks)
      .where(eq(accessLinks.id, place("id")))
      .prepare(),
    lastLinkId: db.select({ id: accessLinks.id }).from(accessLinks).orderBy(desc(accessLinks.id)).limit(1).prepare(),
    openInvitations: db
      .select()
      .from(accessLinks)
      .where(and(eq(accessLinks.kind, "invitation"), isNull(accessLinks.usedAt)))
      .orderBy(desc(accessLinks.id))
      .limit(place("limit"))
      .prepare(),
    identity: db
      .select({ account: identities.accountId })
      .from(identities)
      .where(and(eq(identities.issuer, place("issuer")), eq(identities.subject, place("subject"))))
      .prepare(),
    identitiesOf: db
      .select()
      .from(identities)
      .where(eq(identities.accountId, place("account")))
      .prepare(),
    lastAuditId: db.select({ id: auditLog.id }).from(auditLog).orderBy(desc(auditLog.id)).limit(1).prepare(),
    audit: db
      .select()
      .from(auditLog)
      .where(lt(auditLog.id, place("before")))
      .orderBy(desc(auditLog.id))
      .limit(place("limit"))
      .prepare(),
  };
}

function sessionOf({ tokenHash, accountId, ...row }: typeof sessions.$inferSelect): SessionRecord {
  return { ...row, account: accountId, tokenHash: Buffer.from(tokenHash).toString("base64") };
}

function linkOf({ tokenHash, accountId, ...row }: typeof accessLinks.$inferSelect): AccessLink {
  return { ...row, account: accountId, tokenHash: Buffer.from(tokenHash).toString("base64") };
}

function requestOf({ accountId, ...row }: typeof purchaseRequests.$inferSelect): PurchaseRequest {
  return { ...row, account: accountId };
}
