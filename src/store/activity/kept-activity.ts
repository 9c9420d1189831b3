// Takes the threads' counts every few seconds and hands them to the keeper. Queries see all counts so far.
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
import { Outage } from "../outage.ts";
import type { Log } from "../../core/log.ts";
import { type Ms, StoreUnavailable } from "../../core/types.ts";
import type { ActivityCall } from "./activity-worker.ts";

/** Between two writes: what a kill loses. */
const activityIntervalMs = 10_000;

export type ActivityKeeper = Readonly<{
  call<Result>(call: ActivityCall): Promise<Result>;
  close(): Promise<void>;
}>;

type Take = () => Promise<readonly ActivityRow[]> | readonly ActivityRow[];

export class KeptActivity implements ActivityQueries {
  readonly #clock: Clock;
  readonly #outage: Outage;
  readonly #keeper: ActivityKeeper;
  readonly #timer: Timer;
  #take: Take = () => [];
  /** One after the other: readers wait for the counts taken before. */
  #writing: Promise<void> = Promise.resolve();

  constructor(keeper: ActivityKeeper, clock: Clock, log: Log) {
    this.#keeper = keeper;
    this.#clock = clock;
    this.#outage = new Outage(log, notKept, "activity for the charts is written again");
    this.#timer = setInterval(() => void this.write(), activityIntervalMs);
    this.#timer.unref();
  }

  follow(take: Take): void {
    this.#take = take;
  }

  async began(range: ActivityRange): Promise<Ms | null> {
    await this.write();
    return this.#asked({ order: "began", range });
  }

  async read(range: ActivityRange, split: ActivitySplit, earlier: readonly EarlierActivity[] = []): Promise<Activity> {
    await this.write();
    return this.#asked({ order: "read", range, split, now: this.#clock.wall(), earlier });
  }

  async totals(split: ActivitySplit, from: Ms): Promise<readonly ActivityTotal[]> {
    await this.write();
    return this.#asked({ order: "totals", split, from });
  }

  async reasons(from: Ms): Promise<readonly Readonly<{ reason: string; requests: number }>[]> {
    await this.write();
    return this.#asked({ order: "reasons", from });
  }

  /** Resolves when everything that was counted before is kept, or could not be written: then that is in the log. */
  write(): Promise<void> {
    return this.#add(this.#take);
  }

  /** Counts of a thread that has ended. */
  add(rows: readonly ActivityRow[]): Promise<void> {
    return this.#add(() => rows);
  }

  #add(take: Take): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      try {
        const rows = await take();
        if (rows.length === 0) return;
        await this.#keeper.call({ order: "add", rows, now: this.#clock.wall() });
        this.#outage.worked();
      } catch (thrown) {
        this.#outage.failed(thrown as Error);
      }
    });
    return this.#writing;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.write();
    await this.#keeper.close();
  }

  async #asked<Result>(call: ActivityCall): Promise<Result> {
    try {
      return await this.#keeper.call<Result>(call);
    } catch (thrown) {
      throw new StoreUnavailable(`the activity cannot be read: ${(thrown as Error).message}`, { cause: thrown });
    }
  }
}

const notKept = "activity for the charts cannot be written";

export const activityFailed = (log: Log, error: Error): void => log("error", notKept, { reason: error.message });
