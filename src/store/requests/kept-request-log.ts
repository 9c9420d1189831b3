// The request log of a running server: takes refused and failed requests once a second, has them written, and
// answers queries.
import type { ArrivalPage, ArrivalQueries } from "../../core/arrivals.ts";
import type { Clock } from "../../core/clock.ts";
import { hourMs } from "../../core/units.ts";
import type { Log } from "../../core/log.ts";
import { Outage } from "../outage.ts";
import type { FailedBatch, LogFilter, LogPage, LogPlace, RequestLogQueries } from "../../core/request-log.ts";
import { type AccountId, type Ms, StoreUnavailable } from "../../core/types.ts";
import type { RequestLogCall } from "./request-log-worker.ts";

/** Between two writes: what a kill loses. */
const failedIntervalMs = 1_000;

export type RequestLogKeeper = Readonly<{
  call<Result>(call: RequestLogCall): Promise<Result>;
  close(): Promise<void>;
}>;

type Take = () => Promise<readonly FailedBatch[]> | readonly FailedBatch[];

export class KeptRequestLog implements RequestLogQueries, ArrivalQueries {
  readonly #clock: Clock;
  readonly #outage: Outage;
  readonly #keeper: RequestLogKeeper;
  readonly #timers: readonly Timer[];
  #keepMs: Ms;
  #take: Take = () => [];
  /** One after the other: readers wait for what was taken before. */
  #writing: Promise<void> = Promise.resolve();

  constructor(keeper: RequestLogKeeper, keepMs: Ms, clock: Clock, log: Log) {
    this.#keeper = keeper;
    this.#keepMs = keepMs;
    this.#clock = clock;
    this.#outage = new Outage(log, notKept, "the request log is written again");
    this.#timers = [
      setInterval(() => void this.write(), failedIntervalMs),
      setInterval(() => void this.#expire(), hourMs),
    ];
    for (const timer of this.#timers) timer.unref();
  }

  follow(take: Take): void {
    this.#take = take;
    void this.#expire(); // expired while no server ran
  }

  async page(filter: LogFilter, before: LogPlace | null, limit: number): Promise<LogPage> {
    await this.write();
    return this.#asked({ order: "page", filter, before, limit, now: this.#clock.wall() });
  }

  arrivals(from: Ms, after: ArrivalPage["next"]): Promise<ArrivalPage> {
    return this.#asked({ order: "arrivals", from, after });
  }

  /** Another `keepMs` from here on. */
  async keep(keepMs: Ms): Promise<void> {
    this.#keepMs = keepMs;
    await this.#expire();
  }

  /** Removes all that is kept of an account's refused and failed requests. Rejects with StoreUnavailable. */
  async erase(account: AccountId): Promise<void> {
    await this.write();
    await this.#asked({ order: "erase", account });
  }

  /** Resolves when everything that came before is kept, or could not be written: then that is in the log. */
  write(): Promise<void> {
    return this.#add(this.#take);
  }

  /** Rows of a thread that has ended. */
  add(batch: FailedBatch): Promise<void> {
    return this.#add(() => [batch]);
  }

  #add(take: Take): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      try {
        for (const batch of await take()) {
          const { rows, more, lost } = batch;
          if (rows.length === 0 && more.length === 0 && lost === 0) continue;
          if (this.#keepMs === 0) continue;
          await this.#keeper.call({ order: "add", batch, now: this.#clock.wall() });
          this.#outage.worked();
        }
      } catch (thrown) {
        this.#outage.failed(thrown as Error);
      }
    });
    return this.#writing;
  }

  async #expire(): Promise<void> {
    await this.#keeper.call({ order: "keep", keepMs: this.#keepMs, now: this.#clock.wall() }).then(
      () => this.#outage.worked(),
      (error: Error) => this.#outage.failed(error),
    );
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.write();
    await this.#keeper.close();
  }

  async #asked<Result>(call: RequestLogCall): Promise<Result> {
    try {
      return await this.#keeper.call<Result>(call);
    } catch (thrown) {
      throw new StoreUnavailable(`the request log cannot be read: ${(thrown as Error).message}`, { cause: thrown });
    }
  }
}

const notKept = "the request log cannot be written";

export const requestLogFailed = (log: Log, error: Error): void => log("error", notKept, { reason: error.message });
