// Activity for the charts, as a running server keeps it.
import type {
  Activity,
  ActivityQueries,
  ActivityRange,
  ActivityRow,
  ActivitySplit,
  ActivityTotal,
  EarlierActivity,
} from "../../core/activity.ts";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { Ms } from "../../core/types.ts";
import { Kept, type Keeper } from "../kept.ts";
import type { ActivityCall } from "./activity-worker.ts";

const activityIntervalMs = 10_000;
export const activitySubject = "activity for the charts";

export class KeptActivity extends Kept<ActivityCall, ActivityRow> implements ActivityQueries {
  constructor(keeper: Keeper<ActivityCall>, clock: Clock, log: Log) {
    super(activitySubject, activityIntervalMs, keeper, clock, log);
  }

  async began(range: ActivityRange): Promise<Ms | null> {
    await this.write();
    return this.asked({ order: "began", range });
  }

  async read(range: ActivityRange, split: ActivitySplit, earlier: readonly EarlierActivity[] = []): Promise<Activity> {
    await this.write();
    return this.asked({ order: "read", range, split, now: this.clock.wall(), earlier });
  }

  async totals(split: ActivitySplit, from: Ms): Promise<readonly ActivityTotal[]> {
    await this.write();
    return this.asked({ order: "totals", split, from });
  }

  async reasons(from: Ms): Promise<readonly Readonly<{ reason: string; requests: number }>[]> {
    await this.write();
    return this.asked({ order: "reasons", from });
  }

  /** Counts of a thread that has ended. */
  add(rows: readonly ActivityRow[]): Promise<void> {
    return this.put(rows);
  }

  protected callsOf(rows: readonly ActivityRow[]): readonly ActivityCall[] {
    return rows.length === 0 ? [] : [{ order: "add", rows, now: this.clock.wall() }];
  }
}
