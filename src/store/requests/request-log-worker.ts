// The Worker that owns the request log: neither its writes nor its searches are in the way of a stream or the journal.
import type { ReportAsked } from "../../core/report.ts";
import type { FailedBatch, LogFilter, LogPlace } from "../../core/request-log.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { answerCalls, endWorker, Moved } from "../../core/workers.ts";
import { RequestLogStore } from "./request-log-store.ts";

export type RequestLogCall =
  | Readonly<{ order: "open"; file: string; journalFile: string; keepMs: Ms }>
  | Readonly<{ order: "add"; batch: FailedBatch; now: Ms }>
  | Readonly<{ order: "page"; filter: LogFilter; before: LogPlace | null; limit: number; now: Ms }>
  | Readonly<{ order: "arrivals"; from: Ms; after: number | string | null }>
  | Readonly<{ order: "report"; asked: ReportAsked }>
  | Readonly<{ order: "keep"; keepMs: Ms; now: Ms }>
  | Readonly<{ order: "erase"; account: AccountId }>
  | Readonly<{ order: "close" }>;

declare const self: Worker;

let store: RequestLogStore;

answerCalls<RequestLogCall>(self, (order) => {
  switch (order.order) {
    case "open":
      store = RequestLogStore.open(order.file, order.journalFile, order.keepMs);
      return null;
    case "add":
      store.add(order.batch, order.now);
      return null;
    case "page":
      return store.page(order.filter, order.before, order.limit, order.now);
    case "arrivals": {
      const page = store.arrivals(order.from, Number(order.after ?? 0));
      return new Moved(page, [page.numbers.buffer]);
    }
    case "report":
      return store.report(order.asked);
    case "keep":
      store.keep(order.keepMs, order.now);
      return null;
    case "erase":
      store.erase(order.account);
      return null;
    case "close":
      store?.close();
      endWorker(self);
      return null;
    default:
      return order satisfies never;
  }
});
