// What accounts need of a journal. How lines reach the disk is the store's business.
import type { AccountId, Ms, PlanId } from "../types.ts";
import type { Entry } from "./entry.ts";

/** A change of an account that moves no money. */
export type AccountChange =
  | Readonly<{
      change: "create";
      account: AccountId;
      email: string;
      plan: PlanId;
      keyHash: string;
      passwordHash: string | null;
      operator: boolean;
      at: Ms;
    }>
  | Readonly<{ change: "plan"; account: AccountId; plan: PlanId }>
  | Readonly<{ change: "key"; account: AccountId; keyHash: string; at: Ms }>
  | Readonly<{ change: "password"; account: AccountId; passwordHash: string | null }>;

export interface Journal {
  /** False while the disk takes no writes (busy or full): nothing new may be admitted. */
  readonly writable: boolean;
  /** Queues a line for the next commit and returns its sequence number within this process. */
  append(entry: Entry): number;
  /** Queues a change for the next commit; in one commit with the lines appended in the same turn of the event loop. */
  change(change: AccountChange): number;
  /** Resolves when the line is on disk; rejects with StoreUnavailable when it was given up and never will be. */
  durable(sequence: number): Promise<void>;
}

/** Told of every line exactly once, before its waiters. */
export interface JournalListener {
  committed(entry: Entry): void;
  /** The line was given up: whatever was done in memory for it must be undone. */
  lost(entry: Entry): void;
}
