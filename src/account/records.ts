// What accounts read from disk. Every call returns the committed state and throws StoreUnavailable when the disk cannot
// be read.
import type { AccountId, KeyId, KeyLimits, Ms, PlanId } from "../core/types.ts";
import type { Period, Quota } from "./quota.ts";
import type { DayUse } from "./spend-limit.ts";
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
  /** Absent where one process has all of the account's open requests, and knows. */
  open?: OpenUse;
}>;

/** What open requests of all gateways hold together, and what was used in the periods that the account is in. */
type OpenUse = Readonly<{
  held: number;
  holds: number;
  searchesHeld: number;
  uses: readonly Readonly<{ quota: Quota; period: Period; used: number }>[];
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
}>;

export interface AccountRecords {
  byId(account: AccountId): AccountRecord | null;
  byEmail(email: string): AccountRecord | null;
  byKeyHash(keyHash: string): AccountRecord | null;
  /** The named key of that hash, which is not void. */
  keyByHash(keyHash: string): KeyRecord | null;
  /** All named keys of an account, in the order of their numbers. */
  keysOf(account: AccountId): readonly KeyRecord[];
  /** Balance tokens that a named key was charged for on the days from `from` to before `before`. */
  keyUse(account: AccountId, key: KeyId, from: Period, before: Period): readonly DayUse[];
  /** Whether a line on disk names this end user of a key. */
  hasEndUser(account: AccountId, key: KeyId, name: string): boolean;
  /** By which keys they came that are called so. */
  endUsersNamed(account: AccountId, name: string): readonly Readonly<{ id: number; key: KeyId }>[];
  /** End users that the account had first on that day or later. */
  endUsersSince(account: AccountId, day: Period): number;
  /** As `keyUse`, of one end user; days that are over may be missing. */
  endUserUse(account: AccountId, key: KeyId, name: string, from: Period, before: Period): readonly DayUse[];
  /** Accounts with an id above `after`, in the order of their ids, at most `limit`. */
  list(after: AccountId, limit: number): readonly AccountRecord[];
  /** The same, of those whose e-mail contains a text, in any case of ASCII letters. */
  search(text: string, after: AccountId, limit: number): readonly AccountRecord[];
  /** The highest account id in use, 0 when there is no account. */
  lastId(): AccountId;
  /** How many accounts there are, without those that were erased. Looks at all of them. */
  count(): number;
  /** How many accounts there are of each plan, without those that are disabled. Looks at all of them. */
  byPlan(): readonly PlanCount[];
  /** Operators that are not disabled. */
  operators(): readonly AccountId[];
  used(account: AccountId, quota: Quota, period: Period): number;
  /** Calls of the search service on a day. */
  searchCalls(account: AccountId, day: Period): number;
  /** The account of the line that has a billing key; null if there is none. */
  ownerOfEntry(billingKey: string): AccountId | null;
  /** Replies, newest first. */
  usage(account: AccountId, limit: number): readonly UsageRow[];
}
