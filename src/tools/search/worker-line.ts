// A numbered exchange with a Worker: each order gets one answer, in any order, and may tell of its progress before.

export type Order<Request> = Readonly<{ number: number; request: Request }>;
export type Answer =
  | Readonly<{ number: number; result: unknown }>
  | Readonly<{ number: number; failed: string; error: string }>
  | Readonly<{ number: number; progress: unknown }>;

/** The Worker, or what it was asked to do, failed; `error` is the name of what was thrown there. */
export class WorkerFailed extends Error {
  override readonly name = "WorkerFailed";
  readonly error: string;

  constructor(message: string, error: string) {
    super(message);
    this.error = error;
  }
}

type Waiting = Readonly<{
  resolve(result: unknown): void;
  reject(error: Error): void;
  progress(progress: unknown): void;
}>;

/** The main thread's end. A Worker that died is followed by another with the next order. */
export class WorkerLine<Request> {
  readonly #start: () => Worker;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | null = null;
  #ended: Promise<void> = Promise.resolve();
  #nextNumber = 1;

  constructor(start: () => Worker) {
    this.#start = start;
  }

  /** Orders that wait for their answer. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Rejects with WorkerFailed. */
  ask<Result>(request: Request, progress: (progress: unknown) => void = () => {}): Promise<Result> {
    this.#worker ??= this.#listen(this.#start());
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const number = this.#nextNumber++;
    this.#waiting.set(number, { resolve, reject, progress });
    this.#worker.postMessage({ number, request } satisfies Order<Request>);
    return promise as Promise<Result>;
  }

  /** Sends a last order, after which the Worker ends by itself; resolves when it has. */
  async end(request: Request): Promise<void> {
    if (this.#worker !== null) await Promise.allSettled([this.ask(request)]);
    await this.#ended;
  }

  #listen(worker: Worker): Worker {
    const ended = Promise.withResolvers<void>();
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
      for (const { reject } of waiting) reject(new WorkerFailed(reason, "Error"));
      ended.resolve();
    });
    return worker;
  }

  #answered(answer: Answer): void {
    const waiting = this.#waiting.get(answer.number);
    if (waiting === undefined) return;
    if ("progress" in answer) return waiting.progress(answer.progress);
    this.#waiting.delete(answer.number);
    if ("failed" in answer) waiting.reject(new WorkerFailed(answer.failed, answer.error));
    else waiting.resolve(answer.result);
  }
}

/** The Worker's end: does what it is asked with `obey`, at the same time if that takes turns. */
export function serveLine<Request>(
  self: Worker,
  obey: (request: Request, progress: (progress: unknown) => void) => unknown,
): void {
  self.onmessage = async ({ data: { number, request } }: MessageEvent<Order<Request>>) => {
    const answer = (message: Answer) => self.postMessage(message);
    try {
      answer({ number, result: await obey(request, (progress) => answer({ number, progress })) });
    } catch (thrown) {
      const error = thrown as Error;
      answer({ number, failed: error.message, error: error.name });
    }
  };
}
