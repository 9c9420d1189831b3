// The main thread's end of the usage index, which lives in a file and a Worker of its own. The index is made when usage
// is first asked for; where there is one, it follows the journal from the start on.
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import type { UsageFilter, UsagePage, UsagePlace, UsageQueries, UsageSummary } from "../../account/usage-queries.ts";
import { assert } from "../../core/assert.ts";
import type { Log } from "../../core/log.ts";
import { StoreUnavailable, type AccountId } from "../../core/types.ts";
import { usageName } from "../folder/data-folder.ts";
import type { Answer, Order, Request } from "./usage-worker.ts";

// A compiled binary keeps its Workers' paths below src/, as with the journal's writer.
const workerPath = import.meta.url.includes("/$bunfs/") ? "./store/usage/usage-worker.ts" : "./usage-worker.ts";

type Waiting = Readonly<{ resolve(result: unknown): void; reject(error: Error): void }>;

export class UsageFile implements UsageQueries {
  readonly #file: string;
  readonly #journalFile: string;
  readonly #log: Log;
  readonly #waiting = new Map<number, Waiting>();
  #nextNumber = 1;
  #worker: Worker | null = null;
  #ended: Promise<void> = Promise.resolve();

  /** `journalFile` is the database of a data folder that this process holds. */
  constructor(dataFolder: string, journalFile: string, log: Log) {
    this.#file = join(dataFolder, usageName);
    this.#journalFile = journalFile;
    this.#log = log;
    if (existsSync(this.#file)) this.#start();
  }

  page(account: AccountId, filter: UsageFilter, before: UsagePlace | null, limit: number): Promise<UsagePage> {
    return this.#asked({ order: "page", account, filter, before, limit });
  }

  summary(account: AccountId, fromDay: number): Promise<UsageSummary> {
    return this.#asked({ order: "summary", account, fromDay });
  }

  /** Lets go of the files. */
  async close(): Promise<void> {
    if (this.#worker !== null) await this.#ask({ order: "close" }).catch((error: Error) => this.#failed(error));
    await this.#ended;
  }

  async #asked<Result>(request: Request): Promise<Result> {
    try {
      if (this.#worker === null) this.#start();
      return (await this.#ask(request)) as Result;
    } catch (thrown) {
      throw new StoreUnavailable(`usage cannot be read: ${(thrown as Error).message}`, { cause: thrown });
    }
  }

  /** A Worker that died is followed by another with the next question. */
  #start(): void {
    closeSync(openSync(this.#file, "a", 0o600)); // readable by its owner alone, like the ledger
    const worker = new Worker(new URL(workerPath, import.meta.url).href);
    const ended = Promise.withResolvers<void>();
    this.#worker = worker;
    this.#ended = ended.promise;
    let reason = "the Worker ended";
    worker.onmessage = ({ data }: MessageEvent<Answer>) => this.#answered(data);
    worker.onerror = ({ message }) => {
      reason = message;
    };
    worker.addEventListener("close", () => {
      this.#worker = null;
      const waiting = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const { reject } of waiting) reject(new Error(reason));
      ended.resolve();
    });
    this.#ask({ order: "open", file: this.#file, journalFile: this.#journalFile }).catch((error: Error) =>
      this.#failed(error),
    );
  }

  #ask(request: Request): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const number = this.#nextNumber++;
    this.#waiting.set(number, { resolve, reject });
    this.#worker!.postMessage({ ...request, number } satisfies Order);
    return promise;
  }

  #answered(answer: Answer): void {
    if ("catchUpFailed" in answer) return this.#failed(new Error(answer.catchUpFailed));
    const waiting = this.#waiting.get(answer.number);
    assert(waiting !== undefined, "an answer belongs to an order");
    this.#waiting.delete(answer.number);
    if ("failed" in answer) waiting.reject(new Error(answer.failed));
    else waiting.resolve(answer.result);
  }

  #failed(error: Error): void {
    this.#log("error", "the usage index failed", { reason: error.message });
  }
}
