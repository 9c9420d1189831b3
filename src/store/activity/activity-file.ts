// The main thread's end of the activity file. It takes what the threads counted every few seconds and hands it to a
// Worker, which is there only while requests come or somebody looks.
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
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
import { activityIdleMs, activityIntervalMs } from "../../core/limits.ts";
import type { Log } from "../../core/log.ts";
import { type Ms, StoreUnavailable } from "../../core/types.ts";
import { startWorker, WorkerClient } from "../../core/workers.ts";
import { activityName } from "../folder/data-folder.ts";
import type { ActivityCall } from "./activity-worker.ts";

/** Takes what was counted since it was last called. */
type Take = () => Promise<readonly ActivityRow[]> | readonly ActivityRow[];

export class ActivityFile implements ActivityQueries {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #worker: WorkerClient<ActivityCall>;
  readonly #timer: Timer;
  #take: Take = () => [];
  /** One after the other: whoever reads waits for what was taken before. */
  #writing: Promise<void> = Promise.resolve();

  constructor(dataFolder: string, clock: Clock, log: Log) {
    const file = join(dataFolder, activityName);
    this.#clock = clock;
    this.#log = log;
    this.#worker = new WorkerClient<ActivityCall>({
      start: () => {
        closeSync(openSync(file, "a", 0o600)); // readable by its owner alone, like the ledger
        return startWorker("store/activity/activity-worker.ts");
      },
      open: () => ({ order: "open", file }),
      close: { order: "close" },
      idleMs: activityIdleMs,
      onFailure: (error) => this.#failed(error),
    });
    this.#timer = setInterval(() => void this.write(), activityIntervalMs);
    this.#timer.unref();
  }

  /** From where it takes what was counted. */
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

  /** Resolves when everything that was counted before is in the file, or could not be written: then that is in the log. */
  write(): Promise<void> {
    return this.#add(this.#take);
  }

  /** What nobody takes anymore. */
  add(rows: readonly ActivityRow[]): Promise<void> {
    return this.#add(() => rows);
  }

  #add(take: Take): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      try {
        const rows = await take();
        if (rows.length > 0) await this.#worker.call({ order: "add", rows, now: this.#clock.wall() });
      } catch (thrown) {
        this.#failed(thrown as Error);
      }
    });
    return this.#writing;
  }

  /** Writes the last of it and lets go of the file. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.write();
    await this.#worker.close();
  }

  async #asked<Result>(call: ActivityCall): Promise<Result> {
    try {
      return await this.#worker.call<Result>(call);
    } catch (thrown) {
      throw new StoreUnavailable(`the activity cannot be read: ${(thrown as Error).message}`, { cause: thrown });
    }
  }

  #failed(error: Error): void {
    this.#log("error", "what the charts show cannot be kept", { reason: error.message });
  }
}
