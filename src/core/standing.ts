// How a request stands in line.
import type { Priority } from "./priority.ts";
import type { AccountId, KeyId, Ms } from "./types.ts";

/** `member`: the person, end user or key within its account; they take turns. */
export type Standing = Readonly<{
  member: string;
  /** Its member's share within the account. */
  weight: number;
  priority: Priority;
  /** It is refused where its first token is expected later than this, on the monotonic clock. Absent: it waits. */
  beginBy?: Ms | undefined;
}>;

export const usualStanding: Standing = { member: "", weight: 1, priority: "standard" };

/** Of a team's key the person whose it is, of others the end user or the key. */
export const standsAs = (person: AccountId | null, endUser: string | null, key: KeyId): string =>
  person === null ? (endUser === null ? `key ${key}` : `user ${endUser}`) : `${personPrefix}${person}`;
export const personPrefix = "person ";
