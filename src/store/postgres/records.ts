// What the office reads, from PostgreSQL: the same questions as of SQLite (../ledger/sqlite-records.ts and
// ../ledger/console-records.ts), answered later.
import { and, asc, desc, eq, getTableColumns, gt, gte, inArray, isNull, lt, sql } from "drizzle-orm";
import type { BesideRecords } from "../../account/office.ts";
import {
  coderWindowOf,
  dayOf,
  firstDayOfMonth,
  firstDayOfNextMonth,
  type Period,
  type Quota,
} from "../../account/money/quota.ts";
import type {
  AccessLink,
  AccountRecord,
  AuditAction,
  AuditEntry,
  DeviceCode,
  Identity,
  KeyRecord,
  KeyUse,
  OfficeRecords,
  Payment,
  PlanCount,
  OperatorToken,
  PurchaseRequest,
  SessionRecord,
  SessionRecords,
  Standing,
  Standings,
} from "../../account/records.ts";
import type { DayUse } from "../../account/money/spend-limit.ts";
import { type UsageRow, usageRowOf } from "../../account/usage-row.ts";
import { keyRecordOf, recordOf } from "../changes/record.ts";
import { arrayOf } from "./connection.ts";
import type { Soon } from "../../core/soon.ts";
import type { AccountId, KeyId, Ms } from "../../core/types.ts";
import type { Session } from "./database.ts";
import { accounts, apiKeys, counters, journal, keyUse, quotaUse } from "./schema.ts";
import {
  accessLinks,
  auditLog,
  deviceCodes,
  endUsers,
  identities,
  operatorTokens,
  payments,
  purchaseRequests,
  sessions,
} from "./schema-console.ts";

/** Rows of `counters`, by the tables whose latest numbers they are. Who is about to give the next one locks it. */
export const counterOf = {
  lastId: "accounts",
  lastSessionId: "sessions",
  lastRequestId: "purchase_requests",
  lastLinkId: "access_links",
  lastTokenId: "operator_tokens",
  lastAuditId: "audit_log",
} as const;

export class PostgresRecords implements OfficeRecords, SessionRecords, BesideRecords, Standings {
  protected readonly transaction: Session;
  readonly #given = new Map<keyof typeof counterOf, number>();

  constructor(transaction: Session) {
    this.transaction = transaction;
  }

  byId(account: AccountId): Promise<AccountRecord | null> {
    return this.#account(eq(accounts.id, account));
  }

  byEmail(email: string): Promise<AccountRecord | null> {
    return this.#account(sql`lower(${accounts.email} COLLATE "C") = lower(${email} COLLATE "C")`);
  }

  async byEmails(emails: readonly string[]): Promise<readonly AccountRecord[]> {
    const lowered = sql`SELECT lower(email COLLATE "C") FROM unnest(${arrayOf(emails)}::text::text[]) AS email`;
    const rows = await this.#db
      .select()
      .from(accounts)
      .where(sql`lower(${accounts.email} COLLATE "C") IN (${lowered})`);
    return rows.map(accountOf);
  }

  async keysOf(account: AccountId): Promise<readonly KeyRecord[]> {
    const rows = await this.#db.select().from(apiKeys).where(eq(apiKeys.accountId, account)).orderBy(asc(apiKeys.id));
    return rows.map(keyOf);
  }

  async keyWith(hash: "keyHash" | "familyHash", is: string): Promise<KeyRecord | null> {
    const [row] = await this.#db
      .select()
      .from(apiKeys)
      .where(eq(apiKeys[hash], Uint8Array.fromBase64(is)));
    return row === undefined ? null : keyOf(row);
  }

  async ofKeys(account: AccountId, now: Ms): Promise<ReadonlyMap<KeyId, KeyUse>> {
    const rows = await this.#db
      .select({ key: keyUse.keyId, day: keyUse.day, used: keyUse.used })
      .from(keyUse)
      .where(
        and(
          eq(keyUse.accountId, account),
          gte(keyUse.day, firstDayOfMonth(now)),
          lt(keyUse.day, firstDayOfNextMonth(now)),
        ),
      );
    const sum = (uses: readonly DayUse[]) => uses.reduce((total, { used }) => total + used, 0);
    const useOf = (uses: readonly DayUse[]): KeyUse => ({
      usedAt: null, // the key's record says it
      day: sum(uses.filter(({ day }) => day === dayOf(now))),
      month: sum(uses),
    });
    return new Map([...Map.groupBy(rows, ({ key }) => key)].map(([key, uses]) => [key, useOf(uses)]));
  }

  endUsersNamed(account: AccountId, name: string): Promise<readonly Readonly<{ id: number; key: KeyId }>[]> {
    return this.#db
      .select({ id: endUsers.id, key: endUsers.keyId })
      .from(endUsers)
      .where(and(eq(endUsers.accountId, account), eq(endUsers.name, name)))
      .orderBy(asc(endUsers.keyId));
  }

  async list(after: AccountId, limit: number): Promise<readonly AccountRecord[]> {
    const rows = await this.#db
      .select()
      .from(accounts)
      .where(gt(accounts.id, after))
      .orderBy(asc(accounts.id))
      .limit(limit);
    return rows.map(accountOf);
  }

  async search(text: string, after: AccountId, limit: number): Promise<readonly AccountRecord[]> {
    // strpos, not LIKE: every character of the text stands for itself
    const contains = sql`strpos(lower(${accounts.email} COLLATE "C"), lower(${text} COLLATE "C")) > 0`;
    const rows = await this.#db
      .select()
      .from(accounts)
      .where(and(gt(accounts.id, after), contains))
      .orderBy(asc(accounts.id))
      .limit(limit);
    return rows.map(accountOf);
  }

  nextId(): Promise<AccountId> {
    return this.#next("lastId");
  }

  async count(): Promise<number> {
    const [row] = await this.#db
      .select(count)
      .from(accounts)
      .where(sql`NOT ${isErased}`);
    return row!.count;
  }

  byPlan(): Promise<readonly PlanCount[]> {
    return this.#db
      .select({ plan: accounts.plan, accounts: count.count })
      .from(accounts)
      .where(isNull(accounts.disabledAt))
      .groupBy(accounts.plan);
  }

  async operators(): Promise<readonly AccountId[]> {
    const rows = await this.#db
      .select({ id: accounts.id })
      .from(accounts)
      .where(and(eq(accounts.operator, true), isNull(accounts.disabledAt)));
    return rows.map(({ id }) => id);
  }

  async of({ id, keyUsedAt }: AccountRecord, now: Ms): Promise<Standing> {
    const [row] = await this.#db
      .select({
        credit: accounts.credit,
        held: accounts.held,
        holds: accounts.holds,
        allowance: { period: accounts.allowanceDay, used: accounts.allowanceUsed },
        coder_calls: { period: accounts.coderWindow, used: accounts.coderUsed },
        searches: { period: accounts.searchesDay, used: accounts.searchesUsed },
      })
      .from(accounts)
      .where(eq(accounts.id, id));
    const { credit, held, holds, ...latest } = row!;
    const used = (quota: Quota, period: Period): Soon<number> => {
      if (latest[quota].period === period) return latest[quota].used;
      return latest[quota].period < period ? 0 : this.#usedBefore(id, quota, period); // a clock was set back
    };
    return {
      credit,
      held,
      holds,
      keyUsedAt,
      used: {
        allowance: await used("allowance", dayOf(now)),
        coder_calls: await used("coder_calls", coderWindowOf(now)),
        searches: await used("searches", dayOf(now)),
      },
    };
  }

  async ownerOfEntry(billingKey: string): Promise<AccountId | null> {
    const [row] = await this.#db
      .select({ account: journal.accountId })
      .from(journal)
      .where(eq(journal.billingKey, billingKey));
    return row?.account ?? null;
  }

  async usage(account: AccountId, limit: number): Promise<readonly UsageRow[]> {
    const rows = await this.#db
      .select({ ...getTableColumns(journal), keyName: apiKeys.name, endUserName: endUsers.name })
      .from(journal)
      .leftJoin(apiKeys, and(eq(apiKeys.accountId, journal.accountId), eq(apiKeys.id, journal.keyId)))
      .leftJoin(endUsers, and(eq(endUsers.accountId, journal.accountId), eq(endUsers.id, journal.endUserId)))
      .where(and(eq(journal.accountId, account), inArray(journal.kind, ["charge", "coder_usage"])))
      .orderBy(desc(journal.at), desc(journal.billingKey))
      .limit(limit);
    return rows.map(usageRowOf);
  }

  async session(tokenHash: string): Promise<SessionRecord | null> {
    const [row] = await this.#db
      .select()
      .from(sessions)
      .where(eq(sessions.tokenHash, Uint8Array.fromBase64(tokenHash)));
    return row === undefined ? null : sessionOf(row);
  }

  async sessionsOf(account: AccountId): Promise<readonly SessionRecord[]> {
    const rows = await this.#db
      .select()
      .from(sessions)
      .where(eq(sessions.accountId, account))
      .orderBy(asc(sessions.id));
    return rows.map(sessionOf);
  }

  nextSessionId(): Promise<number> {
    return this.#next("lastSessionId");
  }

  // -------------------------------------------------------------- purchases

  async request(id: number): Promise<PurchaseRequest | null> {
    const [row] = await this.#db.select().from(purchaseRequests).where(eq(purchaseRequests.id, id));
    return row === undefined ? null : requestOf(row);
  }

  nextRequestId(): Promise<number> {
    return this.#next("lastRequestId");
  }

  async requestsOf(account: AccountId, before: number, limit: number): Promise<readonly PurchaseRequest[]> {
    const isBefore = and(eq(purchaseRequests.accountId, account), lt(purchaseRequests.id, before));
    return (await this.#newestRequests(limit).where(isBefore)).map(requestOf);
  }

  async requestsIn(
    state: PurchaseRequest["state"] | null,
    before: number,
    limit: number,
    kind: PurchaseRequest["kind"] | null = null,
  ): Promise<readonly PurchaseRequest[]> {
    const isWanted = and(
      lt(purchaseRequests.id, before),
      ...(state === null ? [] : [eq(purchaseRequests.state, state)]),
      ...(kind === null ? [] : [eq(purchaseRequests.kind, kind)]),
    );
    return (await this.#newestRequests(limit).where(isWanted)).map(requestOf);
  }

  async lastDeletionRequest(account: AccountId): Promise<PurchaseRequest | null> {
    const isOne = and(eq(purchaseRequests.accountId, account), eq(purchaseRequests.kind, "deletion"));
    const [row] = await this.#newestRequests(1).where(isOne);
    return row === undefined ? null : requestOf(row);
  }

  async pendingRequests(account: AccountId | null): Promise<number> {
    const isPending = eq(purchaseRequests.state, "pending");
    const isOf = account === null ? isPending : and(eq(purchaseRequests.accountId, account), isPending);
    const [row] = await this.#db.select(count).from(purchaseRequests).where(isOf);
    return row!.count;
  }

  async paymentsOf(account: AccountId, limit: number): Promise<readonly Payment[]> {
    const rows = await this.#db
      .select()
      .from(payments)
      .where(eq(payments.accountId, account))
      .orderBy(desc(payments.paidAt), desc(payments.id))
      .limit(limit);
    return rows.map(({ accountId, ...payment }): Payment => ({ ...payment, account: accountId }));
  }

  // -------------------------------------------------------------- links, identities, audit log

  link(tokenHash: string, isLocked = false): Promise<AccessLink | null> {
    return this.#link(eq(accessLinks.tokenHash, Uint8Array.fromBase64(tokenHash)), isLocked);
  }

  linkById(id: number, isLocked = false): Promise<AccessLink | null> {
    return this.#link(eq(accessLinks.id, id), isLocked);
  }

  nextLinkId(): Promise<number> {
    return this.#next("lastLinkId");
  }

  async openInvitations(limit: number): Promise<readonly AccessLink[]> {
    const rows = await this.#db
      .select()
      .from(accessLinks)
      .where(and(eq(accessLinks.kind, "invitation"), isNull(accessLinks.usedAt)))
      .orderBy(desc(accessLinks.id))
      .limit(limit);
    return rows.map(linkOf);
  }

  async operatorToken(tokenHash: string): Promise<OperatorToken | null> {
    const wanted = eq(operatorTokens.tokenHash, Uint8Array.fromBase64(tokenHash));
    const [row] = await this.#db.select().from(operatorTokens).where(wanted);
    return row === undefined ? null : { ...row, tokenHash: base64Of(row.tokenHash) };
  }

  async operatorTokens(limit: number): Promise<readonly OperatorToken[]> {
    const rows = await this.#db.select().from(operatorTokens).orderBy(desc(operatorTokens.id)).limit(limit);
    return rows.map((row): OperatorToken => ({ ...row, tokenHash: base64Of(row.tokenHash) }));
  }

  nextOperatorTokenId(): Promise<number> {
    return this.#next("lastTokenId");
  }

  async deviceCode(hash: "deviceHash" | "userCodeHash", is: string, isLocked = false): Promise<DeviceCode | null> {
    const asked = this.#db
      .select()
      .from(deviceCodes)
      .where(eq(deviceCodes[hash], Uint8Array.fromBase64(is)))
      .$dynamic();
    const [row] = await (isLocked ? asked.for("update") : asked);
    return row === undefined ? null : recordOf("device_codes", row, "camel");
  }

  async deviceCodes(): Promise<number> {
    const [row] = await this.#db.select(count).from(deviceCodes);
    return row!.count;
  }

  async accountOfIdentity(issuer: string, subject: string): Promise<AccountId | null> {
    const [row] = await this.#db
      .select({ account: identities.accountId })
      .from(identities)
      .where(and(eq(identities.issuer, issuer), eq(identities.subject, subject)));
    return row?.account ?? null;
  }

  async identitiesOf(account: AccountId): Promise<readonly Identity[]> {
    const rows = await this.#db.select().from(identities).where(eq(identities.accountId, account));
    return rows.map(({ accountId, ...row }): Identity => ({ ...row, account: accountId }));
  }

  /** Numbers are given with the entries, so that who writes one need not ask. */
  nextAuditId(): number {
    return 0;
  }

  async audit(before: number, limit: number): Promise<readonly AuditEntry[]> {
    const rows = await this.#db
      .select()
      .from(auditLog)
      .where(lt(auditLog.id, before))
      .orderBy(desc(auditLog.id))
      .limit(limit);
    return rows.map(({ operatorId, subjectId, action, ...entry }): AuditEntry => ({
      ...entry,
      operator: operatorId,
      subject: subjectId,
      action: action as AuditAction,
    }));
  }

  get #db(): Session["db"] {
    return this.transaction.db;
  }

  async #account(isWanted: ReturnType<typeof eq>): Promise<AccountRecord | null> {
    const [row] = await this.#db.select().from(accounts).where(isWanted);
    return row === undefined ? null : accountOf(row);
  }

  async #link(isWanted: ReturnType<typeof eq>, isLocked: boolean): Promise<AccessLink | null> {
    const asked = this.#db.select().from(accessLinks).where(isWanted).$dynamic();
    const [row] = await (isLocked ? asked.for("update") : asked);
    return row === undefined ? null : linkOf(row);
  }

  async #usedBefore(account: AccountId, quota: Quota, period: Period): Promise<number> {
    const [row] = await this.#db
      .select({ used: quotaUse.used })
      .from(quotaUse)
      .where(and(eq(quotaUse.accountId, account), eq(quotaUse.quota, quota), eq(quotaUse.period, period)));
    return row?.used ?? 0;
  }

  #newestRequests(limit: number) {
    return this.#db.select().from(purchaseRequests).orderBy(desc(purchaseRequests.id)).limit(limit).$dynamic();
  }

  /** A unit may take several numbers before any is written, and no other unit takes one meanwhile. */
  async #next(what: keyof typeof counterOf): Promise<number> {
    const next = (this.#given.get(what) ?? (await this.lastOf(what))) + 1;
    this.#given.set(what, next);
    return next;
  }

  /** The highest number that was ever given, also where what had it is gone, or came with a move. */
  protected async lastOf(what: keyof typeof counterOf): Promise<number> {
    const name = counterOf[what];
    const highest = sql<number>`greatest((SELECT value FROM ${counters} WHERE name = ${name}),
      (SELECT max(id) FROM ${sql.identifier(name)}), 0)`.mapWith(Number);
    const [row] = await this.#db.select({ highest }).from(sql`(SELECT 1) AS one`);
    return row!.highest;
  }
}

const count = { count: sql<number>`count(*)`.mapWith(Number) };

/** As `erasedName` and `isErased` of account/people/accounts.ts know them. */
const isErased = sql`(lower(${accounts.email} COLLATE "C") ~ '^deleted-[0-9-]+@invalid$'
  AND ${accounts.disabledAt} IS NOT NULL AND ${accounts.passwordHash} IS NULL)`;

const base64Of = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

function accountOf(row: typeof accounts.$inferSelect): AccountRecord {
  const { id, email, plan, credit, keyHash, passwordHash, operator, createdAt } = row;
  const { keyCreatedAt, keyUsedAt, keyEnding, disabledAt } = row;
  return {
    id,
    email,
    plan,
    credit,
    keyHash: base64Of(keyHash),
    passwordHash,
    operator,
    createdAt,
    keyCreatedAt,
    keyUsedAt,
    keyEnding,
    disabledAt,
  };
}

const keyOf = (row: typeof apiKeys.$inferSelect): KeyRecord => keyRecordOf(recordOf("api_keys", row, "camel"));

const sessionOf = ({ tokenHash, accountId, ...row }: typeof sessions.$inferSelect): SessionRecord => ({
  ...row,
  account: accountId,
  tokenHash: base64Of(tokenHash),
});

const linkOf = ({ tokenHash, accountId, ...row }: typeof accessLinks.$inferSelect): AccessLink => ({
  ...row,
  account: accountId,
  tokenHash: base64Of(tokenHash),
});

const requestOf = ({ accountId, ...row }: typeof purchaseRequests.$inferSelect): PurchaseRequest => ({
  ...row,
  account: accountId,
});
