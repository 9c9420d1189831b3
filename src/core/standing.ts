// How a request stands in line.
import type { Priority } from "./priority.ts";
import type { AccountId, KeyId, Ms } from "./types.ts";

/** `member`: the person, end user or key within its account; they take turns. */
export type Standing = Readonly<{
  member: string;
  /** The key or end user within the member, where that is a person. */
  own?: string | undefined;
  /** Its share among those beside it. */
  weight: number;
  priority: Priority;
  /** It is refused where its first token is expected later than this, on the monotonic clock. Absent: it waits. */
  beginBy?: Ms | undefined;
}>;

export const usualStanding: Standing = { member: "", weight: 1, priority: "standard" };

/** Of a team's key the person whose it is, and within that as of others the end user or the key. */
export function standsAs(
  person: AccountId | null,
  endUser: string | null,
  key: KeyId,
): Pick<Standing, "member" | "own"> {
  const own = endUser === null ? `key ${key}` : `user ${endUser}`;
  return person === null ? { member: own } : { member: `${personPrefix}${person}`, own };
}
export const personPrefix = "person ";
