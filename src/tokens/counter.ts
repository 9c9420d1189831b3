// The main thread's end of counting: limits what waits and passes texts to the Worker.
import {
  bodyMaxBytes,
  busyRetrySeconds,
  countingAccountPlacesMax,
  countingPlacesMax,
  tokenizeTextMaxBytes,
} from "../core/limits.ts";
import { assert } from "../core/assert.ts";
import type { AnyCancelSignal } from "../core/cancel-signal.ts";
import type { Log } from "../core/log.ts";
import { refuse } from "../core/refusals.ts";
import { startWorker as startWorkerOf, WorkerClient, type WorkerFailed } from "../core/workers.ts";
import type { AccountId, EncodedTexts, EncodingName, Ms, Refusal } from "../core/types.ts";
import { ByteBudget, type ByteBudgetLimits } from "../core/byte-budget.ts";
import type { Count, CountingCall } from "./counting-worker.ts";
import { bytesOf, encodeTexts } from "./encoded-texts.ts";

/** Texts that wait to be counted: counts are free and not limited per minute. */
const countingBytesMax = 256 * 1024 * 1024;
/** Enough for 20 texts of the largest size. */
const countingAccountBytesMax = 96 * 1024 * 1024;
/** The counter's tables are released after this long without a count. */
const countingIdleMs = 5 * 60_000;

assert(20 * tokenizeTextMaxBytes <= countingAccountBytesMax, "20 of the largest texts fit in an account's share");
assert(bodyMaxBytes <= countingAccountBytesMax, "every allowed body can be counted");
assert(countingAccountBytesMax < countingBytesMax, "an account leaves room to others: texts to count");

const roomDefault: ByteBudgetLimits = {
  places: countingPlacesMax,
  bytes: countingBytesMax,
  accountPlaces: countingAccountPlacesMax,
  accountBytes: countingAccountBytesMax,
};

export type CounterOptions = Readonly<{
  log: Log;
  idleMs?: Ms;
  room?: ByteBudgetLimits;
  /** Creates another Worker; for tests. */
  startWorker?: () => Worker;
}>;

export class TokenCounter {
  readonly #log: Log;
  readonly #room: ByteBudget;
  readonly #worker: WorkerClient<CountingCall>;
  /** Ends each waiting count. */
  readonly #waiting = new Set<(answer: Refusal) => void>();
  #nextId = 0;

  constructor({ log, idleMs = countingIdleMs, room = roomDefault, startWorker }: CounterOptions) {
    this.#log = log;
    this.#room = new ByteBudget(room);
    this.#worker = new WorkerClient<CountingCall>({
      start: startWorker ?? (() => startWorkerOf("tokens/counting-worker.ts")),
      close: { order: "close" },
      idleMs,
      onDeath: (reason) => log("error", "the token counter died", { reason, counts: this.#waiting.size }),
    });
  }

  /** Whether the Worker, and with it the tables, is in memory. */
  get isLoaded(): boolean {
    return this.#worker.isLoaded;
  }

  /** Requests and bytes that wait or are being counted. */
  get waiting(): Readonly<{ places: number; bytes: number }> {
    return { places: this.#room.places, bytes: this.#room.bytes };
  }

  /**
   * The sum of the texts' tokens; lone surrogates count as U+FFFD. Refused as busy when too much waits, and when
   * `cancelSignal` aborts (the client has left); as internal when the Worker died. Never rejects.
   */
  async count(
    encoding: EncodingName,
    texts: readonly string[],
    account: AccountId,
    cancelSignal: AnyCancelSignal,
  ): Promise<number | Refusal> {
    const answer = await this.#ask(encoding, bytesOf(texts), () => encodeTexts(texts), account, cancelSignal, false);
    return "refusal" in answer ? answer : answer.count;
  }

  /** The same for texts in UTF-8, whose bytes are transferred. */
  async countEncoded(
    encoding: EncodingName,
    texts: EncodedTexts,
    account: AccountId,
    cancelSignal: AnyCancelSignal,
  ): Promise<number | Refusal> {
    const answer = await this.#ask(encoding, texts.bytes.length, () => texts, account, cancelSignal, false);
    return "refusal" in answer ? answer : answer.count;
  }

  /** The tokens of one text; refused like `count`. */
  async encode(
    encoding: EncodingName,
    text: string,
    account: AccountId,
    cancelSignal: AnyCancelSignal,
  ): Promise<Uint32Array | Refusal> {
    const answer = await this.#ask(encoding, bytesOf([text]), () => encodeTexts([text]), account, cancelSignal, true);
    return "refusal" in answer ? answer : answer.tokens[0]!;
  }

  /** Ends the Worker; running counts are refused. Resolves when the Worker's thread has ended. */
  async close(): Promise<void> {
    for (const end of [...this.#waiting]) end(refuse("busy", { seconds: busyRetrySeconds }));
    await this.#worker.close();
  }

  #ask(
    encoding: EncodingName,
    byteLength: number,
    encoded: () => EncodedTexts,
    account: AccountId,
    cancelSignal: AnyCancelSignal,
    keep: boolean,
  ): Promise<Count | Refusal> {
    const busy = refuse("busy", { seconds: busyRetrySeconds });
    if (cancelSignal.aborted || !this.#room.enter(account, byteLength)) return Promise.resolve(busy);
    const id = this.#nextId++;
    const { promise, resolve } = Promise.withResolvers<Count | Refusal>();
    const end = (answer: Count | Refusal): void => {
      if (!this.#waiting.delete(end)) return;
      this.#room.leave(account, byteLength);
      cancelSignal.removeEventListener("abort", abandon);
      resolve(answer);
    };
    const abandon = (): void => {
      this.#worker.call({ order: "forget", id }).catch(noted);
      end(busy);
    };
    this.#waiting.add(end);
    cancelSignal.addEventListener("abort", abandon);
    const texts = encoded();
    this.#worker
      .call<Count | null>(
        { order: "count", id, account, encoding, ...texts, keep },
        { moved: [texts.bytes.buffer as ArrayBuffer] },
      )
      .then((count) => end(count ?? busy))
      .catch(({ hasDied, message }: WorkerFailed) => {
        if (!hasDied) this.#log("error", "a text could not be counted", { reason: message });
        end(refuse("internal"));
      });
    return promise;
  }
}

/** The log has the Worker's death, and waiting counts are refused. */
const noted = (): void => {};
