// How a request stands in line.
import type { Priority } from "./priority.ts";
import type { Ms } from "./types.ts";

/** `member`: the end user or key within its account; they take turns. */
export type Standing = Readonly<{
  member: string;
  /** Its member's share within the account. */
  weight: number;
  priority: Priority;
  /** It is refused where its first token is expected later than this, on the monotonic clock. Absent: it waits. */
  beginBy?: Ms | undefined;
}>;

export const usualStanding: Standing = { member: "", weight: 1, priority: "standard" };
