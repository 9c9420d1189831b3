// The Worker that owns the usage index: however long a query or an update takes, no stream waits for it. It is stopped
// by a message, never terminated.
import type { UsageFilter, UsagePlace } from "../../account/usage-queries.ts";
import type { ActivitySplit } from "../../core/activity.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { answerCalls, endWorker } from "../../core/workers.ts";
import { messageOf } from "../folder/folder-faults.ts";
import { UsageIndex } from "./usage-index.ts";

/** Between two looks for new lines while no query comes. */
const usageIndexIntervalMs = 60_000;

/** What the Worker is called for; the result depends on it. Its news is why it could not follow the journal. */
export type UsageCall =
  | Readonly<{ order: "open"; file: string; journalFile: string }>
  | Readonly<{ order: "page"; account: AccountId; filter: UsageFilter; before: UsagePlace | null; limit: number }>
  | Readonly<{ order: "summary"; account: AccountId; fromDay: number }>
  | Readonly<{ order: "history"; from: Ms; until: Ms; stepMs: Ms; split: ActivitySplit }>
  | Readonly<{ order: "topAccounts"; fromDay: number; limit: number }>
  | Readonly<{ order: "close" }>;

declare const self: Worker;

let index: UsageIndex;
let next: Timer | null = null;

const { news } = answerCalls<UsageCall>(self, (order) => {
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
    case "history":
      catchUpNow();
      return index.history(order.from, order.until, order.stepMs, order.split);
    case "topAccounts":
      catchUpNow();
      return index.topAccounts(order.fromDay, order.limit);
    case "close":
      if (next !== null) clearTimeout(next);
      index?.close();
      endWorker(self);
      return null;
    default:
      return order satisfies never;
  }
});

/** A query must include everything on disk: clients look for the reply that they just got. */
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
      news(messageOf(thrown));
    }
    catchUpIn(more ? 0 : usageIndexIntervalMs);
  }, ms);
}
