// The Worker that owns the activity file: neither its writes nor its queries are in the way of a stream or the journal.
import type { ActivityRange, ActivityRow, ActivitySplit, EarlierActivity } from "../../core/activity.ts";
import type { Ms } from "../../core/types.ts";
import { answerCalls, endWorker } from "../../core/workers.ts";
import { ActivityStore } from "./activity-store.ts";

export type ActivityCall =
  | Readonly<{ order: "open"; file: string }>
  | Readonly<{ order: "add"; rows: readonly ActivityRow[]; now: Ms }>
  | Readonly<{ order: "began"; range: ActivityRange }>
  | Readonly<{
      order: "read";
      range: ActivityRange;
      split: ActivitySplit;
      now: Ms;
      earlier: readonly EarlierActivity[];
    }>
  | Readonly<{ order: "totals"; split: ActivitySplit; from: Ms }>
  | Readonly<{ order: "reasons"; from: Ms }>
  | Readonly<{ order: "close" }>;

declare const self: Worker;

let store: ActivityStore;

answerCalls<ActivityCall>(self, (order) => {
  switch (order.order) {
    case "open":
      store = ActivityStore.open(order.file);
      return null;
    case "add":
      store.add(order.rows, order.now);
      return null;
    case "began":
      return store.began(order.range);
    case "read":
      return store.read(order.range, order.split, order.now, order.earlier);
    case "totals":
      return store.totals(order.split, order.from);
    case "reasons":
      return store.reasons(order.from);
    case "close":
      store?.close();
      endWorker(self);
      return null;
    default:
      return order satisfies never;
  }
});
