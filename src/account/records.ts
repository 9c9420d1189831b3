// What accounts read from disk. Every call returns the committed state and throws StoreUnavailable when the disk cannot
// be read.
import type { AccountId, Ms, PlanId } from "../core/types.ts";
import type { Period, Quota } from "./quota.ts";
import type { UsageRow } from "./usage-row.ts";

export type AccountRecord = Readonly<{
  id: AccountId;
  email: string;
  plan: PlanId;
  /** Balance tokens; below 0 after a charge above the balance. */
  credit: number;
  /** SHA-256 of the API key, base64. */
  keyHash: string;
  passwordHash: string | null;
  operator: boolean;
  createdAt: Ms;
  keyCreatedAt: Ms;
  /** Null where the account may be used. */
  disabledAt: Ms | null;
}>;

export type PlanCount = Readonly<{ plan: PlanId; accounts: number }>;

export interface AccountRecords {
  byId(account: AccountId): AccountRecord | null;
  byEmail(email: string): AccountRecord | null;
  byKeyHash(keyHash: string): AccountRecord | null;
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
  /** Balance tokens billed since a moment. */
  billedSince(account: AccountId, since: Ms): number;
}
