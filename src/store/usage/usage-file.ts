// The main thread's end of the usage index, which lives in a file and a Worker of its own. The index is created when
// usage is first asked for; once it exists, it follows the journal from the start of the server.
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import type {
  AccountUsage,
  UsageFilter,
  UsagePage,
  UsagePlace,
  UsageQueries,
  UsageSummary,
} from "../../account/usage-queries.ts";
import type { ActivitySplit, EarlierActivity } from "../../core/activity.ts";
import type { Log } from "../../core/log.ts";
import { StoreUnavailable, type AccountId, type Ms } from "../../core/types.ts";
import { startWorker, WorkerClient } from "../../core/workers.ts";
import { usageName } from "../folder/data-folder.ts";
import type { UsageCall } from "./usage-worker.ts";

export class UsageFile implements UsageQueries {
  readonly #file: string;
  readonly #log: Log;
  readonly #worker: WorkerClient<UsageCall>;

  /** `journalFile` is the database of a data folder that this process holds. */
  constructor(dataFolder: string, journalFile: string, log: Log) {
    this.#file = join(dataFolder, usageName);
    this.#log = log;
    this.#worker = new WorkerClient<UsageCall>({
      start: () => this.#start(),
      open: () => ({ order: "open", file: this.#file, journalFile }),
      close: { order: "close" },
      onNews: (reason) => this.#failed(new Error(String(reason))),
      onFailure: (error) => this.#failed(error),
    });
    if (existsSync(this.#file)) this.#worker.start().catch((error: Error) => this.#failed(error));
  }

  page(account: AccountId, filter: UsageFilter, before: UsagePlace | null, limit: number): Promise<UsagePage> {
    return this.#asked({ order: "page", account, filter, before, limit });
  }

  summary(account: AccountId, fromDay: number): Promise<UsageSummary> {
    return this.#asked({ order: "summary", account, fromDay });
  }

  history(from: Ms, until: Ms, stepMs: Ms, split: ActivitySplit): Promise<readonly EarlierActivity[]> {
    return this.#asked({ order: "history", from, until, stepMs, split });
  }

  topAccounts(fromDay: number, limit: number): Promise<readonly AccountUsage[]> {
    return this.#asked({ order: "topAccounts", fromDay, limit });
  }

  close(): Promise<void> {
    return this.#worker.close();
  }

  async #asked<Result>(call: UsageCall): Promise<Result> {
    try {
      return await this.#worker.call<Result>(call);
    } catch (thrown) {
      throw new StoreUnavailable(`usage cannot be read: ${(thrown as Error).message}`, { cause: thrown });
    }
  }

  #start(): Worker {
    closeSync(openSync(this.#file, "a", 0o600)); // readable by its owner alone, like the ledger
    return startWorker("store/usage/usage-worker.ts");
  }

  #failed(error: Error): void {
    this.#log("error", "the usage index failed", { reason: error.message });
  }
}
