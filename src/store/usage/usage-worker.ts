// The Worker that has the usage index: however long a look or a catch-up takes, no stream waits for it. It is stopped by
// message, never terminated.
import type { UsageFilter, UsagePlace } from "../../account/usage-queries.ts";
import { usageIndexIntervalMs } from "../../core/limits.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { messageOf } from "../folder/data-folder.ts";
import { UsageIndex } from "./usage-index.ts";

/** What the Worker is asked; the answer's result depends on it. */
export type Request =
  | Readonly<{ order: "open"; file: string; journalFile: string }>
  | Readonly<{ order: "page"; account: AccountId; filter: UsageFilter; before: UsagePlace | null; limit: number }>
  | Readonly<{ order: "summary"; account: AccountId; fromDay: number }>
  | Readonly<{ order: "close" }>;
export type Order = Request & Readonly<{ number: number }>;

/** One for each order, in their order; and what nobody ordered. */
export type Answer =
  | Readonly<{ number: number; result: unknown }>
  | Readonly<{ number: number; failed: string }>
  | Readonly<{ catchUpFailed: string }>;

declare const self: Worker;

let index: UsageIndex;
let next: Timer | null = null;

// Installed before anything is awaited: a message that comes earlier would be lost.
self.onmessage = ({ data }: MessageEvent<Order>) => {
  try {
    answer({ number: data.number, result: obey(data) });
  } catch (thrown) {
    answer({ number: data.number, failed: messageOf(thrown) });
  }
};

function obey(order: Order): unknown {
  switch (order.order) {
    case "open":
      index = UsageIndex.open(order.file, order.journalFile);
      catchUpIn(0);
      return null;
    case "page":
      catchUpNow();
      return index.page(order.account, order.filter, order.before, order.limit);
    case "summary":
      catchUpNow();
      return index.summary(order.account, order.fromDay);
    case "close":
      if (next !== null) clearTimeout(next);
      index?.close();
      self.onmessage = null; // A Worker that listens to nothing ends. (Bun 1.4.5 has no self.close.)
      return null;
    default:
      return order satisfies never;
  }
}

/** What is asked for must know all that is on disk: whoever got a reply looks for it. */
function catchUpNow(): void {
  while (index.catchUp());
}

/** A slice at a time, so that a question that comes meanwhile is answered soon; then again after a while. */
function catchUpIn(ms: Ms): void {
  next = setTimeout(() => {
    let more = false;
    try {
      more = index.catchUp() || index.prune();
    } catch (thrown) {
      answer({ catchUpFailed: messageOf(thrown) });
    }
    catchUpIn(more ? 0 : usageIndexIntervalMs);
  }, ms);
}

function answer(message: Answer): void {
  self.postMessage(message);
}
