// The request log of a running server: takes refused and failed requests once a second, has them written, and
// answers queries.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ArrivalQueries } from "../../core/arrivals.ts";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type {
  FailedBatch,
  LogFilter,
  LogPage,
  LogPlace,
  MailQueries,
  RequestLogQueries,
} from "../../core/request-log.ts";
import type { KeyId, Ms } from "../../core/types.ts";
import { hourMs } from "../../core/units.ts";
import { type Remote, remote } from "../../core/workers.ts";
import { besideWorker } from "../beside-worker.ts";
import { requestsName } from "../folder/data-folder.ts";
import { Kept, type KeptOptions, notKept } from "../kept.ts";
import type { RequestLogTables } from "./request-log-tables.ts";

const failedIntervalMs = 1_000;
/** A file's Worker ends after this long without anything to write. */
const failedIdleMs = 60_000;
const subject = "the request log";

type Keeper = Remote<RequestLogTables>;

export type RequestLogFileOptions = Readonly<{
  dataFolder: string;
  journalFile: string;
  /** How long what was refused or failed is kept; 0: not at all. */
  keepMs: Ms;
  clock: Clock;
  log: Log;
}>;

export class KeptRequestLog
  extends Kept<Keeper, FailedBatch>
  implements RequestLogQueries, ArrivalQueries, MailQueries
{
  readonly arrivals = this.asking("arrivals");
  readonly credits = this.asking("credits");
  readonly nearLimit = this.asking("nearLimit");
  readonly toTell = this.asking("toTell");
  readonly untold = this.asking("untold");
  /** Removes all that is kept of an account's refused and failed requests. Rejects with StoreUnavailable. */
  readonly erase = this.asking("erase");
  readonly #expiry: Timer;
  #keepMs: Ms;

  constructor({ keepMs, ...options }: KeptOptions<Keeper> & Readonly<{ keepMs: Ms }>) {
    super(subject, failedIntervalMs, options);
    this.#keepMs = keepMs;
    this.#expiry = setInterval(() => void this.#expire(), hourMs);
    this.#expiry.unref();
  }

  /** In a file beside the ledger's, owned by a Worker that ends when idle. */
  static inFile({ dataFolder, journalFile, keepMs, clock, log }: RequestLogFileOptions): KeptRequestLog {
    const file = join(dataFolder, requestsName);
    const worker = besideWorker(
      file,
      "store/requests/request-log-worker.ts",
      () => [file, journalFile, requestLog.#keepMs], // a restarted Worker gets the latest value
      { idleMs: failedIdleMs, onFailure: (error) => log("error", notKept(subject), { reason: error.message }) },
    );
    // A file that does not exist has nothing to remove.
    const removing: ReadonlySet<string> = new Set(["keep", "erase"]);
    const keeper: Keeper = remote(async (call) =>
      removing.has(call.order) && !existsSync(file) ? null : worker.call(call),
    );
    const requestLog = new KeptRequestLog({ keeper, end: () => worker.close(), keepMs, clock, log });
    return requestLog;
  }

  override follow(take: Parameters<Kept<Keeper, FailedBatch>["follow"]>[0]): void {
    super.follow(take);
    void this.#expire(); // expired while no server ran
  }

  page(filter: LogFilter, before: LogPlace | null, limit: number): Promise<LogPage> {
    return this.asked((keeper) => keeper.page(filter, before, limit, this.clock.wall()));
  }

  async lastAddresses(...asked: Parameters<RequestLogQueries["lastAddresses"]>): Promise<ReadonlyMap<KeyId, string>> {
    return new Map(await this.asked((keeper) => keeper.lastAddresses(...asked)));
  }

  /** Another `keepMs` from here on. */
  async keep(keepMs: Ms): Promise<void> {
    this.#keepMs = keepMs;
    await this.#expire();
  }

  /** Rows of a thread that has ended. */
  add(batch: FailedBatch): Promise<void> {
    return this.put([batch]);
  }

  override async close(): Promise<void> {
    clearInterval(this.#expiry);
    await super.close();
  }

  protected async keepAll(batches: readonly FailedBatch[]): Promise<boolean> {
    if (this.#keepMs === 0) return false;
    const kept = batches.filter(({ rows, more, lost, addresses }) => rows.length + more.length + lost > 0 || addresses);
    for (const batch of kept) await this.keeper.add(batch, this.clock.wall());
    return kept.length > 0;
  }

  async #expire(): Promise<void> {
    await this.keeper.keep(this.#keepMs, this.clock.wall()).then(
      () => this.outage.worked(),
      (error: Error) => this.outage.failed(error),
    );
  }
}
