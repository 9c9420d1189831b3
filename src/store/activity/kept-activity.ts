// Activity for the charts, as a running server keeps it.
import { join } from "node:path";
import type { ActivityQueries, ActivityRow } from "../../core/activity.ts";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { type Remote, remote } from "../../core/workers.ts";
import { besideWorker } from "../beside-worker.ts";
import { activityName } from "../folder/data-folder.ts";
import { Kept, type KeptOptions, notKept } from "../kept.ts";
import type { ActivityTables } from "./activity-tables.ts";

const activityIntervalMs = 10_000;
/** A file's Worker ends after this long without anything to count. */
const activityIdleMs = 60_000;
const subject = "activity for the charts";

type Keeper = Remote<ActivityTables>;

export class KeptActivity extends Kept<Keeper, ActivityRow> implements ActivityQueries {
  readonly read = this.asking("read");
  readonly totals = this.asking("totals");
  readonly reasons = this.asking("reasons");

  constructor(options: KeptOptions<Keeper>) {
    super(subject, activityIntervalMs, options);
  }

  /** In a file, which a Worker has that is there only while requests come or somebody looks. */
  static inFile(dataFolder: string, clock: Clock, log: Log): KeptActivity {
    const file = join(dataFolder, activityName);
    const worker = besideWorker(file, "store/activity/activity-worker.ts", () => [file], {
      idleMs: activityIdleMs,
      onFailure: (error) => log("error", notKept(subject), { reason: error.message }),
    });
    const keeper: Keeper = remote((call) => worker.call(call));
    return new KeptActivity({ keeper, end: () => worker.close(), clock, log });
  }

  /** Counts of a thread that has ended. */
  add(rows: readonly ActivityRow[]): Promise<void> {
    return this.put(rows);
  }

  protected async keepAll(rows: readonly ActivityRow[]): Promise<boolean> {
    if (rows.length > 0) await this.keeper.add(rows, this.clock.wall());
    return rows.length > 0;
  }
}
