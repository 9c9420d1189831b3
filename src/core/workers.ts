// The one door to all Workers: where their files are, calls that each get one answer, and what happens to calls when a
// Worker dies. Two Workers do not use calls, because their messages answer none: the journal's writer
// (`store/ledger/worker-storage.ts`) and the relays (`threads/relays.ts`). They are started here too.
import type { Ms } from "./types.ts";

/**
 * Starts the Worker of a file, named by its path below src/. From source this module is in src/core/; a compiled binary
 * bundles it into the root of Bun's virtual folder, while Workers, as separate entry points, keep their paths.
 */
export function startWorker(file: `${string}.ts`, name?: string): Worker {
  const root = import.meta.url.includes("/$bunfs/") ? "./" : "../";
  return new Worker(new URL(root + file, import.meta.url).href, name === undefined ? {} : { name });
}

/** The Worker or its task failed; `error` is the name of the error there. */
export class WorkerFailed extends Error {
  override readonly name = "WorkerFailed";
  readonly error: string;
  /** The Worker ended unexpectedly, and all its calls failed with it. */
  readonly hasDied: boolean;

  constructor(message: string, error = "Error", hasDied = false) {
    super(message);
    this.error = error;
    this.hasDied = hasDied;
  }
}

/**
 * A call, which has no `number` of its own. Flat: an object of only texts and numbers costs two thirds of a nested one,
 * because Bun packs and unpacks those (300 KB of responses to store: 200 us instead of 320, both threads together).
 */
type NumberedCall<Call extends object> = Call & Readonly<{ number: number }>;
/** From a Worker: the one answer to a call, its progress, or unsolicited news. */
type Said =
  | Readonly<{ number: number; result: unknown }>
  | Readonly<{ number: number; failed: string; error: string }>
  | Readonly<{ number: number; progress: unknown }>
  | Readonly<{ news: unknown }>;

export type WorkerClientOptions<Call> = Readonly<{
  start(): Worker;
  /** The first call to each new Worker. If it fails, the calls after it fail by themselves. */
  open?: () => Call;
  /** The last call to each, after which it ends by itself. A Worker is never terminated. */
  close: Call;
  /** A Worker ends after this long without calls. Absent: it stays. */
  idleMs?: Ms;
  /** Unsolicited messages of a Worker. */
  onNews?(news: unknown): void;
  /** It ended unexpectedly; its `calls` are rejected. */
  onDeath?(reason: string, calls: number): void;
  /** A first or last call failed that no caller waits for. */
  onFailure?(error: WorkerFailed): void;
}>;

type Waiting = Readonly<{
  resolve(result: unknown): void;
  reject(error: WorkerFailed): void;
  progress(progress: unknown): void;
}>;
/** A running Worker, and its unanswered calls. */
type Thread = Readonly<{ worker: Worker; waiting: Map<number, Waiting>; ended: Promise<void> }>;

/** The calling end. The first call starts a Worker, and so does the first call after it died. */
export class WorkerClient<Call extends object> {
  readonly #options: WorkerClientOptions<Call>;
  #thread: Thread | null = null;
  /** Including those that are about to end. */
  readonly #threads = new Set<Thread>();
  #idle: Timer | null = null;
  #nextNumber = 1;

  constructor(options: WorkerClientOptions<Call>) {
    this.#options = options;
  }

  get isLoaded(): boolean {
    return this.#thread !== null;
  }

  get waiting(): number {
    return this.#thread?.waiting.size ?? 0;
  }

  /** Starts the Worker if there is none; resolves with the result of the opening call. Rejects with WorkerFailed. */
  start(): Promise<unknown> {
    this.#stayAwake();
    if (this.#thread !== null) return Promise.resolve();
    const thread = this.#listen(this.#options.start());
    this.#thread = thread;
    const { open } = this.#options;
    return open === undefined ? Promise.resolve() : this.#ask(thread, open(), []);
  }

  /** Rejects with WorkerFailed. Buffers in `moved` go to the Worker; this thread loses them. */
  call<Result>(
    call: Call,
    { moved = [], progress }: Readonly<{ moved?: ArrayBuffer[]; progress?: (progress: unknown) => void }> = {},
  ): Promise<Result> {
    if (this.#thread === null) {
      this.start().catch((error: WorkerFailed) => this.#options.onFailure?.(error));
    }
    this.#stayAwake();
    return this.#ask(this.#thread!, call, moved, progress) as Promise<Result>;
  }

  /** Ends the Worker after its open calls; the next call starts another. Rejects where the last call fails. */
  async end(): Promise<void> {
    this.#stayAwake();
    const thread = this.#thread;
    if (thread === null) return;
    this.#thread = null;
    await this.#ask(thread, this.#options.close, []);
  }

  /** The same; resolves when every Worker's thread has ended and released what it had open. */
  async close(): Promise<void> {
    await this.end().catch((error: WorkerFailed) => this.#options.onFailure?.(error));
    await Promise.all([...this.#threads].map(({ ended }) => ended));
  }

  #ask(thread: Thread, call: Call, moved: ArrayBuffer[], progress = (_: unknown): void => {}): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const number = this.#nextNumber++;
    thread.waiting.set(number, { resolve, reject, progress });
    thread.worker.postMessage({ ...call, number } satisfies NumberedCall<Call>, moved);
    return promise;
  }

  #listen(worker: Worker): Thread {
    const ended = Promise.withResolvers<void>();
    const thread: Thread = { worker, waiting: new Map(), ended: ended.promise };
    this.#threads.add(thread);
    let reason = "the Worker ended";
    worker.onmessage = ({ data }: MessageEvent<Said>) => this.#hear(thread, data);
    worker.onerror = ({ message }) => {
      reason = message;
    };
    worker.addEventListener("close", () => {
      this.#threads.delete(thread);
      const hasDied = this.#thread === thread;
      if (hasDied) {
        this.#stayAwake();
        this.#thread = null;
        this.#options.onDeath?.(reason, thread.waiting.size);
      }
      const failure = new WorkerFailed(reason, "Error", hasDied);
      for (const { reject } of thread.waiting.values()) reject(failure);
      ended.resolve();
    });
    return thread;
  }

  #hear(thread: Thread, said: Said): void {
    if ("news" in said) return this.#options.onNews?.(said.news);
    const waiting = thread.waiting.get(said.number);
    if (waiting === undefined) return; // no such call: it had its answer
    if ("progress" in said) return waiting.progress(said.progress);
    thread.waiting.delete(said.number);
    if ("failed" in said) waiting.reject(new WorkerFailed(said.failed, said.error));
    else waiting.resolve(said.result);
    if (thread.waiting.size === 0 && this.#thread === thread) this.#rest();
  }

  /** No call is open: if this lasts, the Worker ends. */
  #rest(): void {
    const { idleMs } = this.#options;
    if (idleMs === undefined || this.#idle !== null) return;
    this.#idle = setTimeout(
      () => void this.end().catch((error: WorkerFailed) => this.#options.onFailure?.(error)),
      idleMs,
    );
    this.#idle.unref();
  }

  #stayAwake(): void {
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = null;
  }
}

/** A method of what a Worker hosts, called from another thread. */
export type HostCall = Readonly<{ order: string; given: readonly unknown[] }>;
/** The methods of what a Worker hosts, as another thread calls them. */
export type Remote<Hosted> = {
  readonly [Name in keyof Hosted]: Hosted[Name] extends (...given: infer Given) => infer Result
    ? (...given: Given) => Promise<Awaited<Result>>
    : never;
};

/** What `host` hosts in the Worker that `call` reaches. */
export const remote = <Hosted extends object>(call: (call: HostCall) => Promise<unknown>): Remote<Hosted> =>
  new Proxy({} as Remote<Hosted>, {
    get:
      (_, order: string) =>
      (...given: readonly unknown[]) =>
        call({ order, given }),
  });

/** The Worker's end of it: `open` makes what is hosted of what the opening call gave; `before` comes before each call. */
export function host<Hosted extends Readonly<{ close(): void }>, Given extends readonly unknown[]>(
  self: Worker,
  open: (...given: Given) => Hosted,
  before = (_: Hosted): void => {},
): Readonly<{ news(news: unknown): void }> {
  let hosted: Hosted | null = null;
  let opened: Given;
  return answerCalls<HostCall>(self, ({ order, given }) => {
    if (order === "open") hosted = open(...(opened = given as Given));
    else if (order === "close") {
      hosted?.close();
      endWorker(self);
    } else {
      hosted ??= open(...opened); // it may have failed, on a full disk
      before(hosted);
      return (hosted as unknown as Record<string, (...given: unknown[]) => unknown>)[order]!(...given);
    }
    return null;
  });
}

/** A result whose buffers go back to the caller; the Worker loses them. */
export class Moved {
  readonly result: unknown;
  readonly buffers: ArrayBuffer[];

  constructor(result: unknown, buffers: ArrayBuffer[]) {
    this.result = result;
    this.buffers = buffers;
  }
}

/**
 * The Worker's end: executes calls and answers them. Calls begin in order; a call that takes several turns runs beside
 * the next. `obey` returns the result (or a Moved one); what it throws becomes the caller's WorkerFailed. Installed
 * before anything is awaited, because an earlier message would be lost.
 */
export function answerCalls<Call extends object>(
  self: Worker,
  obey: (call: Call, progress: (progress: unknown) => void) => unknown,
): Readonly<{ news(news: unknown): void }> {
  const say = (said: Said, moved: ArrayBuffer[] = []): void => self.postMessage(said, moved);
  const answer = (number: number, result: unknown): void =>
    result instanceof Moved ? say({ number, result: result.result }, result.buffers) : say({ number, result });
  const fail = (number: number, thrown: unknown): void => {
    const { message, name } = thrown instanceof Error ? thrown : new Error(String(thrown));
    say({ number, failed: message, error: name });
  };
  self.onmessage = ({ data: call }: MessageEvent<NumberedCall<Call>>) => {
    const { number } = call;
    try {
      const result = obey(call, (progress) => say({ number, progress }));
      if (result instanceof Promise)
        result.then((value) => answer(number, value)).catch((thrown) => fail(number, thrown));
      else answer(number, result);
    } catch (thrown) {
      fail(number, thrown);
    }
  };
  return { news: (news) => say({ news }) };
}

/** A Worker's last act: one that listens to nothing ends. (Bun 1.4.5 has no self.close.) */
export function endWorker(self: Worker): void {
  self.onmessage = null;
}
