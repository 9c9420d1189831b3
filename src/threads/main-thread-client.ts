// A relay's client of the main thread: it requests keys, admission, holds and slots by message. The spine uses them
// like those of a single thread, except that they take a moment.
import type { PlanId } from "../core/plan-ids.ts";
import type { AnyCancelSignal } from "../core/cancel-signal.ts";
import { askedOf } from "../account/money/asked.ts";
import type { AdmissionRequest, Asker, BookKeys, RequestBooks } from "../account/money/books.ts";
import { keyHashOf } from "../account/people/keys.ts";
import type { Priority } from "../core/priority.ts";
import type { RatesLeft } from "../core/rates-left.ts";
import { assert } from "../core/assert.ts";
import type { StoredResponse } from "../dialects/stored-responses.ts";
import type { Outlook } from "../core/forecast.ts";
import type { Soon } from "../core/soon.ts";
import { keyCacheEntriesMax } from "../core/limits.ts";
import { busy } from "../nodes/failure/failure.ts";
import type { NodeOutcome } from "../nodes/node-endpoint.ts";
import { packBlocks } from "../nodes/queue/prompt-blocks.ts";
import {
  type AccountId,
  type Course,
  type Hold,
  type Model,
  type ModelKind,
  type Ms,
  OutcomeUnknown,
  type OutputHeld,
  type Principal,
  type Refusal,
  type Slot,
  StoreUnavailable,
  type Usage,
} from "../core/types.ts";
import type { MainThreadAnswer, RelayOperation, Wanted } from "./messages.ts";
import type { MessageBatcher } from "./message-batcher.ts";

type Question = { resolve: (answer: MainThreadAnswer) => void; reject: (error: Error) => void };

/**
 * Replaces an answered question's callback: an outgrown table of a Map may keep it (core/active-set.ts), and must not
 * keep the caller.
 */
const forget = (): void => {};

export class MainThreadClient implements RequestBooks, Pick<BookKeys, "principal"> {
  readonly #batcher: MessageBatcher<RelayOperation>;
  /** The main thread raises it in shared memory the moment a key becomes void. */
  readonly #keysVersion: () => number;
  readonly #questions = new Map<number, Question>();
  /** Places in line, by the promise of their slot. */
  readonly #places = new WeakMap<Promise<Slot | Refusal>, number>();
  /** The last forecast of each place that asked for one and still waits. */
  readonly #forecasts = new Map<number, Outlook | null>();
  /** Key owners by key hash, valid while the version is unchanged. */
  readonly #principals = new Map<string, Principal>();
  #cachedVersion = 0;
  #nextId = 1;
  #admitting = 0;
  #decided: PromiseWithResolvers<void> | null = null;

  constructor(batcher: MessageBatcher<RelayOperation>, keysVersion: () => number) {
    this.#batcher = batcher;
    this.#keysVersion = keysVersion;
  }

  /** Questions without an answer yet. */
  get asked(): number {
    return this.#questions.size;
  }

  answered(answer: MainThreadAnswer): void {
    if (answer.answer === "forecast") {
      if (this.#forecasts.has(answer.id)) this.#forecasts.set(answer.id, answer.forecast);
      return;
    }
    const question = this.#questions.get(answer.id);
    if (question === undefined) return; // the place was given up
    this.#questions.delete(answer.id);
    const { resolve, reject } = question;
    question.resolve = question.reject = forget;
    if (answer.answer === "unavailable") return reject(new StoreUnavailable("said by the main thread"));
    if (answer.answer === "unknown") return reject(new OutcomeUnknown("said by the main thread"));
    if (answer.answer === "failed") return reject(new Error(answer.reason));
    resolve(answer);
  }

  principal(key: string): Soon<Principal | null> {
    const keyHash = keyHashOf(key);
    if (keyHash === null) return null;
    this.#dropVoidKeys();
    return this.#principals.get(keyHash) ?? this.#principalOf(keyHash);
  }

  countRequest(account: AccountId, _now: number, kind: ModelKind): Promise<Refusal | null> {
    return this.#count(account, kind, false);
  }

  refuseFlooded(account: AccountId, _now: number, kind: ModelKind): Promise<Refusal | null> {
    return this.#count(account, kind, true);
  }

  async refuseModel(asker: Asker, { id: model }: Model): Promise<Refusal | null> {
    return this.#refusal({ op: "may ask", id: this.#nextId++, asker, model });
  }

  /** Rejects with StoreUnavailable. */
  admit({ ask, ...request }: AdmissionRequest): Promise<Hold | Refusal> {
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<Hold | Refusal>();
    this.#admitting += 1;
    this.#questions.set(id, {
      reject: (error) => {
        this.#oneDecided();
        reject(error);
      },
      resolve: (answer) => {
        this.#oneDecided();
        if (answer.answer === "refused") return resolve(answer.refusal);
        assert(answer.answer === "admitted", "an admission is granted or refused");
        // In this turn, so that the same message can say that it need not wait any longer.
        const hold: RelayHold = new RelayHold(this, id, answer.waits ? this.#ready(id, () => hold) : null);
        hold.outputHeld = answer.output ?? null;
        hold.priority = answer.priority ?? "standard";
        hold.rates = answer.rates ?? null;
        resolve(hold);
      },
    });
    this.#batcher.put({ op: "admit", id, ...request, ask: askedOf(ask, ask.model.id) });
    return promise;
  }

  /** Resolves when no request waits for its admission. */
  decided(): Promise<void> {
    if (this.#admitting === 0) return Promise.resolve();
    this.#decided ??= Promise.withResolvers();
    return this.#decided.promise;
  }

  #oneDecided(): void {
    this.#admitting -= 1;
    if (this.#admitting > 0 || this.#decided === null) return;
    // In the next turn, when the admitted requests have begun.
    setImmediate(() => {
      this.#decided?.resolve();
      this.#decided = null;
    });
  }

  /**
   * Stands in line for a slot. `granted` creates the slot in the turn of the grant, because a later message may replace
   * the node of that name. When `cancelSignal` aborts first, the place is given up: busy.
   */
  enter(
    { prompt, excluded, ...wanted }: Wanted,
    cancelSignal: AnyCancelSignal,
    granted: (place: number, node: string, plan: PlanId | undefined) => Slot,
  ): Promise<Slot | Refusal> {
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<Slot | Refusal>();
    const leave = (): void => {
      this.#questions.delete(id);
      this.#forecasts.delete(id);
      this.#batcher.put({ op: "leave", place: id });
      resolve(busy);
    };
    cancelSignal.addEventListener("abort", leave, { once: true });
    this.#places.set(promise, id);
    this.#questions.set(id, {
      resolve: (answer) => {
        cancelSignal.removeEventListener("abort", leave);
        this.#forecasts.delete(id);
        if (answer.answer === "granted") return resolve(granted(id, answer.node, answer.plan));
        assert(answer.answer === "refused", "a place is granted or refused");
        resolve(answer.refusal);
      },
      reject: (error) => {
        cancelSignal.removeEventListener("abort", leave);
        this.#forecasts.delete(id);
        reject(error);
      },
    });
    this.#batcher.put({ op: "enter", id, ...wanted, prompt: packBlocks(prompt), excluded: [...excluded] });
    return promise;
  }

  /** The last forecast of what `enter` returned, which is null at first; asks for the next one. */
  forecastOf(waiting: Promise<Slot | Refusal>): Outlook | null {
    const place = this.#places.get(waiting);
    return place === undefined ? null : this.forecastAt(place);
  }

  /** The same of a place or hold by its number. */
  forecastAt(place: number): Outlook | null {
    if (!this.#questions.has(place)) return null;
    const last = this.#forecasts.get(place) ?? null;
    this.#forecasts.set(place, last);
    this.#batcher.put({ op: "forecast", place });
    return last;
  }

  began(place: number): void {
    this.#batcher.put({ op: "began", place });
  }

  done(place: number, outcome: NodeOutcome | null): void {
    this.#batcher.put({ op: "done", place, outcome });
  }

  /** Sent before the end of the reply, because the client may ask for it at once, on any thread. */
  keep(account: AccountId, response: StoredResponse): void {
    this.#batcher.put({ op: "keep", account, response });
    this.#batcher.flush();
  }

  /** Resolves when it is kept, or could not be, because the client may ask for it at once, at any gateway. */
  async keepAwaited(account: AccountId, response: StoredResponse): Promise<void> {
    const answered = this.#ask({ op: "keep", id: this.#nextId++, account, response });
    this.#batcher.flush();
    try {
      await answered;
    } catch {
      // The main thread logs it.
    }
  }

  async settle(hold: number, usage: Usage, estimated: boolean, course?: Course): Promise<Usage> {
    const answer = await this.#ask({ op: "settle", id: this.#nextId++, hold, usage, estimated, course });
    assert(answer.answer === "settled", "a charge is settled");
    return answer.charged ?? usage;
  }

  async grow(hold: number, written: number): Promise<number> {
    const answer = await this.#ask({ op: "grow", id: this.#nextId++, hold, written });
    assert(answer.answer === "grown", "a growing hold says what it has");
    return answer.held;
  }

  /** Sent before its client hears of the failure and may ask again at once, on any thread. */
  release(hold: number): void {
    this.#batcher.put({ op: "release", hold });
    this.#batcher.flush();
  }

  #ask(operation: RelayOperation & { id: number }): Promise<MainThreadAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<MainThreadAnswer>();
    this.#questions.set(operation.id, { resolve, reject });
    this.#batcher.put(operation);
    return promise;
  }

  async #ready(number: number, hold: () => RelayHold): Promise<Refusal | null> {
    const { promise, resolve, reject } = Promise.withResolvers<MainThreadAnswer>();
    this.#questions.set(number, { resolve, reject });
    const answer = await promise;
    this.#forecasts.delete(number);
    if (answer.answer === "refused") return answer.refusal;
    assert(answer.answer === "ready", "a request begins or is refused");
    hold().outputHeld = answer.output ?? null;
    return null;
  }

  #count(account: AccountId, kind: ModelKind, ifFull: boolean): Promise<Refusal | null> {
    return this.#refusal({ op: "count", id: this.#nextId++, account, kind, ifFull });
  }

  async #refusal(operation: Extract<RelayOperation, { op: "count" | "may ask" }>): Promise<Refusal | null> {
    const answer = await this.#ask(operation);
    assert(answer.answer === "counted", "a request is counted or looked at");
    return answer.refusal;
  }

  async #principalOf(keyHash: string): Promise<Principal | null> {
    const answer = await this.#ask({ op: "principal", id: this.#nextId++, keyHash });
    assert(answer.answer === "principal", "a key lookup is answered");
    this.#dropVoidKeys();
    const { principal, version } = answer;
    // A key that was looked up before another became void may be that key.
    if (principal !== null && version === this.#cachedVersion) this.#remember(keyHash, principal);
    return principal;
  }

  #remember(keyHash: string, principal: Principal): void {
    if (this.#principals.size >= keyCacheEntriesMax) this.#principals.clear();
    this.#principals.set(keyHash, principal);
  }

  #dropVoidKeys(): void {
    const version = this.#keysVersion();
    if (version === this.#cachedVersion) return;
    this.#principals.clear();
    this.#cachedVersion = version;
  }
}

/** A hold that the main thread owns. */
class RelayHold implements Hold {
  readonly ready: Promise<Refusal | null> | null;
  outputHeld: OutputHeld | null = null;
  priority: Priority = "standard";
  rates: RatesLeft | null = null;
  readonly #mainThread: MainThreadClient;
  readonly #number: number;
  #open = true;

  constructor(mainThread: MainThreadClient, number: number, ready: Promise<Refusal | null> | null) {
    this.#mainThread = mainThread;
    this.#number = number;
    this.ready = ready;
  }

  position(): number | null {
    return this.#mainThread.forecastAt(this.#number)?.position ?? null;
  }

  grow(written: number): Promise<number> {
    return this.#mainThread.grow(this.#number, written);
  }

  settle(usage: Usage, estimated: boolean, _now: Ms, course?: Course): Promise<Usage> {
    assert(this.#open, "a hold is resolved exactly once");
    this.#open = false; // from here on the main thread resolves it, whatever happens to the charge
    return this.#mainThread.settle(this.#number, usage, estimated, course);
  }

  [Symbol.dispose](): void {
    if (!this.#open) return;
    this.#open = false;
    this.#mainThread.release(this.#number);
  }
}
