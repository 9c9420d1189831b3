// Reads large bodies in a Worker, one at a time; accounts take turns.
import type { Log } from "../core/log.ts";
import { refuse } from "../core/refusals.ts";
import { startWorker as startWorkerOf, WorkerClient, type WorkerFailed } from "../core/workers.ts";
import { FairQueue } from "../core/fair-queue.ts";
import type { AccountId, Ms, Refusal } from "../core/types.ts";
import type { PrepareOrder } from "./prepare.ts";
import type { BodyCall, Read } from "./preparing-worker.ts";

/** The Worker ends after this long without a large body. */
const largeBodyIdleMs = 2 * 60_000;

export type BodyReaderOptions = Readonly<{
  log: Log;
  /** The key for the sealed parts of responses. */
  sealingKey: Uint8Array;
  storesResponses: boolean;
  idleMs?: Ms;
  /** Creates another Worker; for tests. */
  startWorker?: () => Worker;
}>;

type Job = Readonly<{ account: AccountId; order: PrepareOrder; answered(read: Read | Refusal): void }>;

export class BodyReader {
  readonly #log: Log;
  readonly #queue = new FairQueue<Job>();
  readonly #worker: WorkerClient<BodyCall>;
  /** What the Worker is reading; its client may have left. */
  #running: Job | null = null;

  constructor({ log, sealingKey, storesResponses, idleMs = largeBodyIdleMs, startWorker }: BodyReaderOptions) {
    this.#log = log;
    this.#worker = new WorkerClient<BodyCall>({
      start: startWorker ?? (() => startWorkerOf("bodies/preparing-worker.ts")),
      open: () => ({ order: "open", sealingKey, storesResponses }),
      close: { order: "close" },
      idleMs,
      onDeath: (reason) => log("error", "the reader of large bodies died", { reason }),
    });
  }

  get isLoaded(): boolean {
    return this.#worker.isLoaded;
  }

  /**
   * Reads a body, whose bytes move to the Worker and back. Refused as unreadable when `cancelSignal` aborts (the client
   * has left), as internal when the Worker failed or died. Never rejects.
   */
  read(order: PrepareOrder, account: AccountId, cancelSignal: AbortSignal): Promise<Read | Refusal> {
    if (cancelSignal.aborted) return Promise.resolve(left);
    const { promise, resolve } = Promise.withResolvers<Read | Refusal>();
    const leave = (): void => {
      // The running read finishes: a Worker cannot stop in the middle of JSON.parse.
      if (this.#running !== job) this.#queue.leave(job);
      resolve(left);
    };
    const job: Job = {
      account,
      order,
      answered(read) {
        cancelSignal.removeEventListener("abort", leave);
        resolve(read);
      },
    };
    cancelSignal.addEventListener("abort", leave, { once: true });
    this.#queue.enter(job);
    this.#advance();
    return promise;
  }

  /** Ends the Worker; waiting bodies are refused. Resolves when the Worker's thread has ended. */
  async close(): Promise<void> {
    for (let job = this.#queue.next(); job !== null; job = this.#queue.next()) this.#end(job, refuse("internal"));
    await this.#worker.close();
  }

  #advance(): void {
    if (this.#running !== null) return;
    const job = this.#queue.next();
    if (job === null) return;
    this.#running = job;
    const { order } = job;
    void this.#worker
      .call<Read>({ order: "prepare", ...order }, { moved: [order.body.buffer as ArrayBuffer] })
      .catch(({ hasDied, message }: WorkerFailed) => {
        if (!hasDied) this.#log("error", "a large body could not be read", { reason: message });
        return refuse("internal");
      })
      .then((read) => {
        if (this.#running === job) this.#end(job, read); // otherwise it was refused when the reader closed
        this.#advance();
      });
  }

  #end(job: Job, read: Read | Refusal): void {
    this.#queue.leave(job);
    if (this.#running === job) this.#running = null;
    job.answered(read);
  }
}

const left = refuse("unreadable", { reason: "The client left" });
