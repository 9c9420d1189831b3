// A Worker that is there only while there is work: its first order starts it, it is ended when nothing was ordered for a
// while, and the next order starts another when it died.
import type { Ms } from "./types.ts";

export type RestingWorkerOptions<Order, Answer> = Readonly<{
  start(): Worker;
  /** What a Worker is told first, if anything, and last. */
  open?: Order;
  close: Order;
  /** It ends when it rested for so long. */
  idleMs: Ms;
  answered(answer: Answer): void;
  /** It ended without having been told to: what it had to do has no answer. */
  died(reason: string): void;
}>;

export class RestingWorker<Order, Answer> {
  readonly #options: RestingWorkerOptions<Order, Answer>;
  #worker: Worker | null = null;
  #idle: Timer | null = null;
  /** One for each thread that is there, also of those that were told to end. */
  readonly #threads = new Set<Promise<void>>();

  constructor(options: RestingWorkerOptions<Order, Answer>) {
    this.#options = options;
  }

  /** Whether it is in memory. */
  get isLoaded(): boolean {
    return this.#worker !== null;
  }

  /** The bytes of `moved` go to the Worker; this thread has them no more. */
  order(order: Order, moved?: Uint8Array): void {
    this.#stayAwake();
    this.#worker ??= this.#start();
    post(this.#worker, order, moved);
  }

  /** Nothing is to be done: if this lasts, the Worker goes. */
  rest(): void {
    if (this.#worker === null || this.#idle !== null) return;
    this.#idle = setTimeout(() => this.#end(), this.#options.idleMs);
    this.#idle.unref();
  }

  /** Ends it; resolves when its thread has ended. */
  async close(): Promise<void> {
    this.#end();
    await Promise.all(this.#threads);
  }

  #start(): Worker {
    const { start, open, answered, died } = this.#options;
    const worker = start();
    const ended = Promise.withResolvers<void>();
    this.#threads.add(ended.promise);
    let reason = "it ended";
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      // Of one that was told to end, nobody waits for an answer.
      if (this.#worker === worker) answered(data);
    };
    worker.onerror = ({ message }) => {
      reason = message;
    };
    worker.addEventListener("close", () => {
      this.#threads.delete(ended.promise);
      ended.resolve();
      if (this.#worker !== worker) return; // it was told to
      this.#stayAwake();
      this.#worker = null;
      died(reason);
    });
    if (open !== undefined) post(worker, open);
    return worker;
  }

  #stayAwake(): void {
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = null;
  }

  #end(): void {
    this.#stayAwake();
    const worker = this.#worker;
    if (worker === null) return;
    this.#worker = null;
    post(worker, this.#options.close);
    worker.unref();
  }
}

function post(worker: Worker, order: unknown, moved?: Uint8Array): void {
  worker.postMessage(order, moved === undefined ? [] : [moved.buffer as ArrayBuffer]);
}
