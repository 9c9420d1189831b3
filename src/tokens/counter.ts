// The main thread's end of counting: bounds what waits, hands texts to the Worker, starts it when there is something to
// count, ends it when there was nothing for a while, and starts another when it died.
import {
  busyRetrySeconds,
  countingAccountBytesMax,
  countingAccountPlacesMax,
  countingBytesMax,
  countingIdleMs,
  countingPlacesMax,
} from "../limits.ts";
import type { Log } from "../log.ts";
import { refuse } from "../refusals.ts";
import type { AccountId, EncodingName, Ms, Refusal } from "../types.ts";
import { CountingRoom, type RoomLimits } from "./counting-room.ts";
import type { Answer, Order } from "./counting-worker.ts";

// A compiled binary bundles this module into its entry point at the root of Bun's virtual folder, while the Worker,
// an entry point of its own, keeps its path below src/.
const workerPath = import.meta.url.includes("/$bunfs/") ? "./tokens/counting-worker.ts" : "./counting-worker.ts";

const roomDefault: RoomLimits = {
  places: countingPlacesMax,
  bytes: countingBytesMax,
  accountPlaces: countingAccountPlacesMax,
  accountBytes: countingAccountBytesMax,
};

export type CounterOptions = Readonly<{
  log: Log;
  idleMs?: Ms;
  room?: RoomLimits;
  /** For tests: makes another Worker than the one that counts. */
  startWorker?: () => Worker;
}>;

type Waiting = Readonly<{ answered(answer: Answer | Refusal): void }>;

/** Counts tokens off the main thread. */
export class Counter {
  readonly #log: Log;
  readonly #idleMs: Ms;
  readonly #room: CountingRoom;
  readonly #startWorker: () => Worker;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 0;
  #worker: Worker | null = null;
  #idle: Timer | null = null;
  /** Workers that were told to close and have not ended yet. */
  readonly #closing = new Set<Promise<void>>();

  constructor({ log, idleMs = countingIdleMs, room = roomDefault, startWorker }: CounterOptions) {
    this.#log = log;
    this.#idleMs = idleMs;
    this.#room = new CountingRoom(room);
    this.#startWorker = startWorker ?? (() => new Worker(new URL(workerPath, import.meta.url).href));
  }

  /** Whether the Worker, and with it the tables, is in memory. */
  get isLoaded(): boolean {
    return this.#worker !== null;
  }

  /** Requests and bytes that wait or are being counted. */
  get waiting(): Readonly<{ places: number; bytes: number }> {
    return { places: this.#room.places, bytes: this.#room.bytes };
  }

  /**
   * The sum of the texts' tokens; lone surrogates count as U+FFFD. Refused as busy when too much waits, and when `gone`
   * aborts (nobody is left to read it); as internal when the Worker died over it. Never rejects.
   */
  async count(
    encoding: EncodingName,
    texts: readonly string[],
    account: AccountId,
    gone: AbortSignal,
  ): Promise<number | Refusal> {
    const answer = await this.#ask(encoding, texts, account, gone, false);
    return "refusal" in answer ? answer : answer.count;
  }

  /** The tokens of one text; refused like `count`. */
  async encode(
    encoding: EncodingName,
    text: string,
    account: AccountId,
    gone: AbortSignal,
  ): Promise<Uint32Array | Refusal> {
    const answer = await this.#ask(encoding, [text], account, gone, true);
    return "refusal" in answer ? answer : answer.tokens[0]!;
  }

  /** Ends the Worker; what is still being counted is refused. Resolves when the Worker's thread has ended. */
  async close(): Promise<void> {
    this.#refuseAll(refuse("busy", { seconds: busyRetrySeconds }));
    this.#end();
    await Promise.all(this.#closing);
  }

  #ask(
    encoding: EncodingName,
    texts: readonly string[],
    account: AccountId,
    gone: AbortSignal,
    keep: boolean,
  ): Promise<Answer | Refusal> {
    const busy = refuse("busy", { seconds: busyRetrySeconds });
    let byteLength = 0;
    for (const text of texts) byteLength += Buffer.byteLength(text);
    if (gone.aborted || !this.#room.enter(account, byteLength)) return Promise.resolve(busy);
    const id = this.#nextId++;
    const { promise, resolve } = Promise.withResolvers<Answer | Refusal>();
    const abandon = () => {
      this.#send({ order: "forget", id });
      this.#waiting.get(id)?.answered(busy);
    };
    this.#waiting.set(id, {
      answered: (answer) => {
        this.#waiting.delete(id);
        this.#room.leave(account, byteLength);
        gone.removeEventListener("abort", abandon);
        if (this.#waiting.size === 0) this.#rest();
        resolve(answer);
      },
    });
    gone.addEventListener("abort", abandon);
    this.#send({ order: "count", id, account, encoding, ...encodeTexts(texts, byteLength), keep });
    return promise;
  }

  /** The bytes of a text are moved to the Worker, not copied. */
  #send(order: Order): void {
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = null;
    this.#worker ??= this.#start();
    this.#worker.postMessage(order, order.order === "count" ? [order.bytes.buffer as ArrayBuffer] : []);
  }

  #start(): Worker {
    const worker = this.#startWorker();
    const ended = Promise.withResolvers<void>();
    this.#closing.add(ended.promise);
    let reason = "it ended";
    worker.onmessage = ({ data }: MessageEvent<Answer>) => this.#waiting.get(data.id)?.answered(data);
    worker.onerror = ({ message }) => {
      reason = message;
    };
    worker.addEventListener("close", () => {
      this.#closing.delete(ended.promise);
      ended.resolve();
      if (this.#worker !== worker) return; // it was told to
      this.#worker = null;
      this.#log("error", "the token counter died", { reason, counts: this.#waiting.size });
      this.#refuseAll(refuse("internal"));
    });
    return worker;
  }

  #refuseAll(refusal: Refusal): void {
    for (const waiting of [...this.#waiting.values()]) waiting.answered(refusal);
  }

  /** Nothing waits: if this lasts, the Worker and its tables go. */
  #rest(): void {
    if (this.#worker === null || this.#idle !== null) return;
    this.#idle = setTimeout(() => this.#end(), this.#idleMs);
    this.#idle.unref();
  }

  #end(): void {
    if (this.#worker === null) return;
    const worker = this.#worker;
    this.#send({ order: "close" });
    this.#worker = null;
    worker.unref();
  }
}

function encodeTexts(texts: readonly string[], byteLength: number): { bytes: Uint8Array; ends: Uint32Array } {
  const bytes = new Uint8Array(byteLength);
  const ends = new Uint32Array(texts.length);
  const encoder = new TextEncoder();
  let end = 0;
  for (const [index, text] of texts.entries()) {
    end += encoder.encodeInto(text, bytes.subarray(end)).written;
    ends[index] = end;
  }
  return { bytes, ends };
}
