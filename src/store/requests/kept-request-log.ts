// The request log of a running server: takes refused and failed requests once a second, has them written, and
// answers queries.
import type { ArrivalPage, ArrivalQueries } from "../../core/arrivals.ts";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { FailedBatch, LogFilter, LogPage, LogPlace, RequestLogQueries } from "../../core/request-log.ts";
import type { ReportAsked, ReportPart } from "../../core/report.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { hourMs } from "../../core/units.ts";
import { Kept, type Keeper } from "../kept.ts";
import type { RequestLogCall } from "./request-log-worker.ts";

const failedIntervalMs = 1_000;
export const requestLogSubject = "the request log";

export class KeptRequestLog extends Kept<RequestLogCall, FailedBatch> implements RequestLogQueries, ArrivalQueries {
  readonly #expiry: Timer;
  #keepMs: Ms;

  constructor(keeper: Keeper<RequestLogCall>, keepMs: Ms, clock: Clock, log: Log) {
    super(requestLogSubject, failedIntervalMs, keeper, clock, log);
    this.#keepMs = keepMs;
    this.#expiry = setInterval(() => void this.#expire(), hourMs);
    this.#expiry.unref();
  }

  override follow(take: Parameters<Kept<RequestLogCall, FailedBatch>["follow"]>[0]): void {
    super.follow(take);
    void this.#expire(); // expired while no server ran
  }

  async page(filter: LogFilter, before: LogPlace | null, limit: number): Promise<LogPage> {
    await this.write();
    return this.asked({ order: "page", filter, before, limit, now: this.clock.wall() });
  }

  arrivals(from: Ms, after: ArrivalPage["next"]): Promise<ArrivalPage> {
    return this.asked({ order: "arrivals", from, after });
  }

  report(asked: ReportAsked): Promise<ReportPart> {
    return this.asked({ order: "report", asked });
  }

  /** Another `keepMs` from here on. */
  async keep(keepMs: Ms): Promise<void> {
    this.#keepMs = keepMs;
    await this.#expire();
  }

  /** Removes all that is kept of an account's refused and failed requests. Rejects with StoreUnavailable. */
  async erase(account: AccountId): Promise<void> {
    await this.write();
    await this.asked({ order: "erase", account });
  }

  /** Rows of a thread that has ended. */
  add(batch: FailedBatch): Promise<void> {
    return this.put([batch]);
  }

  override async close(): Promise<void> {
    clearInterval(this.#expiry);
    await super.close();
  }

  protected callsOf(batches: readonly FailedBatch[]): readonly RequestLogCall[] {
    if (this.#keepMs === 0) return [];
    return batches
      .filter(({ rows, more, lost }) => rows.length > 0 || more.length > 0 || lost > 0)
      .map((batch) => ({ order: "add", batch, now: this.clock.wall() }));
  }

  async #expire(): Promise<void> {
    await this.keeper.call({ order: "keep", keepMs: this.#keepMs, now: this.clock.wall() }).then(
      () => this.outage.worked(),
      (error: Error) => this.outage.failed(error),
    );
  }
}
