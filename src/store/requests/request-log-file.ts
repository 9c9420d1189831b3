// The request log in a file beside the ledger's, owned by a Worker that ends when idle.
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { Ms } from "../../core/types.ts";
import { startWorker, WorkerClient } from "../../core/workers.ts";
import { requestsName } from "../folder/data-folder.ts";
import { notKept } from "../kept.ts";
import { KeptRequestLog, requestLogSubject } from "./kept-request-log.ts";
import type { RequestLogCall } from "./request-log-worker.ts";

/** The Worker ends after this long without anything to write. */
const failedIdleMs = 60_000;

export type RequestLogOptions = Readonly<{
  dataFolder: string;
  journalFile: string;
  /** How long what was refused or failed is kept; 0: not at all. */
  keepMs: Ms;
  clock: Clock;
  log: Log;
}>;

export class RequestLogFile extends KeptRequestLog {
  constructor({ dataFolder, journalFile, keepMs, clock, log }: RequestLogOptions) {
    const file = join(dataFolder, requestsName);
    // A restarted Worker gets the latest value.
    let kept = keepMs;
    const worker = new WorkerClient<RequestLogCall>({
      start: () => {
        closeSync(openSync(file, "a", 0o600)); // readable by its owner alone, like the ledger
        return startWorker("store/requests/request-log-worker.ts");
      },
      open: () => ({ order: "open", file, journalFile, keepMs: kept }),
      close: { order: "close" },
      idleMs: failedIdleMs,
      onFailure: (error) => log("error", notKept(requestLogSubject), { reason: error.message }),
    });
    const keeper = {
      call<Result>(call: RequestLogCall): Promise<Result> {
        if (call.order === "keep") kept = call.keepMs;
        // A file that does not exist has nothing to remove.
        const isIdle = (call.order === "keep" || call.order === "erase") && !existsSync(file);
        return isIdle ? Promise.resolve(null as Result) : worker.call<Result>(call);
      },
      close: () => worker.close(),
    };
    super(keeper, keepMs, clock, log);
  }
}
