// The activity in a file, which a Worker has that is there only while requests come or somebody looks.
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { startWorker, WorkerClient } from "../../core/workers.ts";
import { activityName } from "../folder/data-folder.ts";
import type { ActivityCall } from "./activity-worker.ts";
import { notKept } from "../kept.ts";
import { activitySubject, KeptActivity } from "./kept-activity.ts";

/** The Worker ends after this long without anything to count. */
const activityIdleMs = 60_000;

export class ActivityFile extends KeptActivity {
  constructor(dataFolder: string, clock: Clock, log: Log) {
    const file = join(dataFolder, activityName);
    const worker = new WorkerClient<ActivityCall>({
      start: () => {
        closeSync(openSync(file, "a", 0o600)); // readable by its owner alone, like the ledger
        return startWorker("store/activity/activity-worker.ts");
      },
      open: () => ({ order: "open", file }),
      close: { order: "close" },
      idleMs: activityIdleMs,
      onFailure: (error) => log("error", notKept(activitySubject), { reason: error.message }),
    });
    super(worker, clock, log);
  }
}
