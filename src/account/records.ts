// What is kept of accounts and of the console, and how it is read. Every call gives the committed state and throws StoreUnavailable where the disk cannot be read.
import type { AuditAction } from "../core/audit-actions.ts";
import type { AccountId, KeyId, KeyLimits, Ms, PlanId } from "../core/types.ts";
import type { Soon } from "../core/soon.ts";
import type { Period, Quota } from "./money/quota.ts";
import type { DayUse } from "./money/spend-limit.ts";
import type { UsageRow } from "./usage-row.ts";

export type AccountRecord = Readonly<{
  id: AccountId;
  email: string;
  plan: PlanId;
  /** Balance tokens; below 0 after a charge above the balance. */
  credit: number;
  /** SHA-256 of the API key, base64. */
  keyHash: string;
  /** The key's last four characters; null where they were not kept yet. */
  keyEnding: string | null;
  passwordHash: string | null;
  operator: boolean;
  createdAt: Ms;
  keyCreatedAt: Ms;
  /** When its first key was last used, or a little earlier; null where it never was. */
  keyUsedAt: Ms | null;
  /** Null where the account may be used. */
  disabledAt: Ms | null;
  /** Whom its use is booked to from now on. */
  costCenter: string | null;
  /** A team's, whose name is its e-mail; nobody signs in to it. */
  team: boolean;
  /** Where its mail goes: confirmed by its owner, or an operator's word; null: nowhere. */
  mailAddress: string | null;
  /** Of its person, as BCP 47 has it; null: unknown. */
  language: string | null;
  /** Which mail it wants of that which is not essential; null: the usual. */
  mailKinds: readonly string[] | null;
}>;

/** A person in a team. */
export type TeamMember = Readonly<{
  team: AccountId;
  account: AccountId;
  /** Admins invite others, and limit and remove them. */
  role: "admin" | "member";
  /** Balance tokens of a UTC day and month, of all keys that the person has there; null: as many as the team has. */
  tokensPerDay: number | null;
  tokensPerMonth: number | null;
  joinedAt: Ms;
}>;

export type PlanCount = Readonly<{ plan: PlanId; accounts: number }>;
/** A named key of an account; those that were revoked are known by their names as long as the account is. */
export type KeyRecord = Readonly<{
  account: AccountId;
  id: KeyId;
  name: string;
  /** SHA-256 of the key, base64; null where it was revoked. */
  keyHash: string | null;
  /** Its last four characters; null where they were not kept yet. */
  keyEnding: string | null;
  limits: KeyLimits | null;
  createdAt: Ms;
  /** When it was last used, or a little earlier; null where it never was. */
  usedAt: Ms | null;
  revokedAt: Ms | null;
  /** Of a machine that signed in, as hashes: what all its refresh tokens begin with; else null. */
  familyHash: string | null;
  /** The refresh token that works; null until the machine fetched it. */
  refreshHash: string | null;
}>;

/** What is asked on the way of requests. */
export interface AccountRecords {
  byId(account: AccountId): AccountRecord | null;
  byKeyHash(keyHash: string): AccountRecord | null;
  /** The named key of that hash, which is not void. */
  keyByHash(keyHash: string): KeyRecord | null;
  keysOf(account: AccountId): readonly KeyRecord[];
  /** Balance tokens that a named key was charged for on the days from `from` to before `before`. */
  keyUse(account: AccountId, key: KeyId, from: Period, before: Period): readonly DayUse[];
  member(team: AccountId, account: AccountId): TeamMember | null;
  /** The same of all keys that a member has, or had, in a team. */
  memberUse(team: AccountId, member: AccountId, from: Period, before: Period): readonly DayUse[];
  /** Whether a line on disk names this end user of a key. */
  hasEndUser(account: AccountId, key: KeyId, name: string): boolean;
  /** End users that the account had first on that day or later. */
  endUsersSince(account: AccountId, day: Period): number;
  /** As `keyUse`, of one end user; days that are over may be missing. */
  endUserUse(account: AccountId, key: KeyId, name: string, from: Period, before: Period): readonly DayUse[];
  used(account: AccountId, quota: Quota, period: Period): number;
  searchCalls(account: AccountId, day: Period): number;
}

export type Standing = Readonly<{
  /** Balance tokens. */
  credit: number;
  /** Balance tokens reserved for open requests, and how many of those there are. */
  held: number;
  holds: number;
  /** In the periods of `now`. */
  used: Readonly<Record<Quota, number>>;
  keyUsedAt: Ms | null;
}>;

/** Balance tokens of a UTC day and month. */
export type KeyUse = Readonly<{ usedAt: Ms | null; day: number; month: number }>;

/** What changes with every request: the ledger in memory knows it, or a database server. */
export interface Standings {
  of(record: AccountRecord, now: Ms): Soon<Standing>;
  ofKeys(account: AccountId, now: Ms): Soon<ReadonlyMap<KeyId, KeyUse>>;
  /** Of members of a team, in their order. */
  ofMembers(team: AccountId, members: readonly AccountId[], now: Ms): Soon<readonly Omit<KeyUse, "usedAt">[]>;
  /** How many accounts there are, without those that were erased. */
  count(): Soon<number>;
}

export type SessionRecord = Readonly<{
  id: number;
  /** SHA-256 of the token, base64. */
  tokenHash: string;
  account: AccountId;
  createdAt: Ms;
  /** To within sessionUseIntervalMs. */
  usedAt: Ms;
  address: string;
  browser: string;
}>;

export interface SessionRecords {
  session(tokenHash: string): Soon<SessionRecord | null>;
  sessionsOf(account: AccountId): Soon<readonly SessionRecord[]>;
  next(table: "sessions"): Soon<number>;
}

export type AccessLink = Readonly<{
  id: number;
  /** SHA-256 of the token, base64. */
  tokenHash: string;
  kind: "invitation" | "password";
  /** Whose password; of an invitation, who used it. */
  account: AccountId | null;
  /** The address that an invitation is for; null: its user chooses one. */
  email: string | null;
  /** Of an invitation, as the next. */
  plan: PlanId;
  credit: number;
  createdAt: Ms;
  expiresAt: Ms;
  /** Null while it may be used. */
  usedAt: Ms | null;
  /** Which team it leads into; null: none. */
  team: AccountId | null;
  tokensPerDay: number | null;
  tokensPerMonth: number | null;
}>;

export type NewAccessLink = Omit<AccessLink, "id" | "tokenHash" | "createdAt" | "usedAt">;

/** What an operator's token allows: to look, to change what belongs to people, or everything. */
export const tokenScopes = ["read", "people", "all"] as const;
export type TokenScope = (typeof tokenScopes)[number];

/** A token of the operators' API. It belongs to no account. */
export type OperatorToken = Readonly<{
  id: number;
  /** Says whose it is, in the audit log, too; of all that are not revoked, no other has it. */
  name: string;
  /** SHA-256 of the token, base64. */
  tokenHash: string;
  scope: TokenScope;
  createdAt: Ms;
  /** Null: never. */
  expiresAt: Ms | null;
  revokedAt: Ms | null;
}>;

export type Identity = Readonly<{ issuer: string; subject: string; account: AccountId; connectedAt: Ms }>;

export type PurchaseRequest = Readonly<{
  id: number;
  account: AccountId;
  /** One of kind deletion is approved by the erasure of its account alone. */
  kind: "credit" | "plan" | "deletion";
  /** Balance tokens of kind credit. */
  tokens: number | null;
  plan: PlanId | null;
  note: string;
  state: "pending" | "approved" | "declined" | "withdrawn";
  createdAt: Ms;
  decidedAt: Ms | null;
  decisionNote: string;
}>;

export type Payment = Readonly<{
  /** The provider's name and its id of the payment, such as stripe:pi_123: the credit's billing key. */
  id: string;
  account: AccountId;
  tokens: number;
  paidAt: Ms;
}>;

/** A mail that is to be sent, or was: see Mails. */
export type Mail = Readonly<{
  /** What it tells of, and of whom: there is no second one. */
  once: string;
  kind: string;
  /** Whose mail address it goes to; null: to `address`. */
  account: AccountId | null;
  address: string | null;
  /** JSON: what its template says. */
  details: string;
  createdAt: Ms;
  /** When it is tried next; null: it was sent, or given up. */
  dueAt: Ms | null;
  tries: number;
  /** Or given up. */
  sentAt: Ms | null;
  /** Why the last try failed. */
  problem: string | null;
  keptUntil: Ms;
}>;

/** Mails that wait, those that were given up since a time, and why one of them failed. */
export type MailCounts = Readonly<{ waiting: number; givenUp: number; problem: string | null }>;

/** A machine that wants to sign in; a person decides in the console. What it says of itself may be wrong. */
export type DeviceCode = Readonly<{
  /** SHA-256 of what the machine knows it by, base64; and of what the person types. */
  deviceHash: string;
  userCodeHash: string;
  program: string;
  machine: string;
  /** From which it asked. */
  address: string;
  expiresAt: Ms;
  deniedAt: Ms | null;
}>;

export type AuditEntry = Readonly<{
  id: number;
  at: Ms;
  operator: AccountId;
  /** From which the operator's browser came; of a command, whose it was. */
  address: string;
  action: AuditAction;
  /** The account that was acted on, or `theServer`. */
  subject: AccountId;
  /** A sentence without secrets. */
  detail: string;
}>;

/** What is absent may be anything. */
export type AuditFilter = Readonly<{
  operator?: AccountId;
  subject?: AccountId;
  action?: AuditAction;
  from?: Ms;
  to?: Ms;
  oldestFirst?: boolean;
}>;

/** Tables whose rows are numbered by who makes them. */
export type NumberedTable = "accounts" | "sessions" | "purchase_requests" | "access_links" | "operator_tokens";

/** What is asked of accounts and of what the console keeps beside them; sessions are asked apart. */
export interface OfficeRecords {
  byId(account: AccountId): Soon<AccountRecord | null>;
  byEmail(email: string): Soon<AccountRecord | null>;
  /** Those that have one of these, in one look. */
  byEmails(emails: readonly string[]): Soon<readonly AccountRecord[]>;
  keysOf(account: AccountId): Soon<readonly KeyRecord[]>;
  membersOf(team: AccountId): Soon<readonly TeamMember[]>;
  /** As what the account is in which teams. */
  teamsOf(account: AccountId): Soon<readonly TeamMember[]>;
  /** All of them, in the order of their ids. */
  teams(): Soon<readonly AccountRecord[]>;
  /** The named key that has a hash, which is not void. */
  keyWith(hash: "keyHash" | "familyHash", is: string): Soon<KeyRecord | null>;
  /** By which keys they came that are called so. */
  endUsersNamed(account: AccountId, name: string): Soon<readonly Readonly<{ id: number; key: KeyId }>[]>;
  /** Accounts with an id above `after`, in the order of their ids, at most `limit`. */
  list(after: AccountId, limit: number): Soon<readonly AccountRecord[]>;
  /** A number for a new row: none comes twice. */
  next(table: NumberedTable): Soon<number>;
  /** How many accounts there are of each plan, without those that are disabled. Looks at all of them. */
  byPlan(): Soon<readonly PlanCount[]>;
  operators(): Soon<readonly AccountId[]>;
  /** The account of the line that has a billing key; null if there is none. */
  ownerOfEntry(billingKey: string): Soon<AccountId | null>;
  usage(account: AccountId, limit: number): Soon<readonly UsageRow[]>;

  link(tokenHash: string): Soon<AccessLink | null>;
  linkById(id: number): Soon<AccessLink | null>;
  /** Invitations that were not used, the newest first; expired ones too. `team`: into that alone. */
  openInvitations(limit: number, team?: AccountId): Soon<readonly AccessLink[]>;

  operatorToken(tokenHash: string): Soon<OperatorToken | null>;
  /** Newest first, those that are revoked or expired, too. */
  operatorTokens(limit: number): Soon<readonly OperatorToken[]>;

  accountOfIdentity(issuer: string, subject: string): Soon<AccountId | null>;
  identitiesOf(account: AccountId): Soon<readonly Identity[]>;

  request(id: number): Soon<PurchaseRequest | null>;
  /** Newest first, those with an id below `before`. */
  requestsOf(account: AccountId, before: number, limit: number): Soon<readonly PurchaseRequest[]>;
  requestsIn(
    state: PurchaseRequest["state"] | null,
    before: number,
    limit: number,
    kind?: PurchaseRequest["kind"] | null,
  ): Soon<readonly PurchaseRequest[]>;
  /** The newest of kind deletion: no older one is pending. */
  lastDeletionRequest(account: AccountId): Soon<PurchaseRequest | null>;
  pendingRequests(account: AccountId | null): Soon<number>;
  /** Newest first. */
  paymentsOf(account: AccountId, limit: number): Soon<readonly Payment[]>;

  mail(once: string): Soon<Mail | null>;
  /** Those that are to be sent by then, the longest due first. */
  dueMails(by: Ms, limit: number): Soon<readonly Mail[]>;
  mailsOfKind(kind: string): Soon<readonly Mail[]>;
  mailCounts(since: Ms): Soon<MailCounts>;

  deviceCode(hash: "deviceHash" | "userCodeHash", is: string): Soon<DeviceCode | null>;
  /** How many there are, with expired ones that were not removed yet. */
  deviceCodes(): Soon<number>;
  oldestDeviceCode(): Soon<DeviceCode | null>;

  /** 0 where the entries are numbered when they are written. */
  nextAuditId(): number;
  audit(filter: AuditFilter, limit: number, offset: number): Soon<readonly AuditEntry[]>;
  auditCount(filter: AuditFilter): Soon<number>;
}
