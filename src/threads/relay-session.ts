// The main thread's side of one relay: executes its operations on the one ledger, flood protection and slot queue, and
// tracks by number what the relay holds, so that a hold or place is known here as long as it exists.
//
// One relay's operations run in the order in which it sent them; those of different relays in the order of arrival.
// Decisions use the main thread's clock.
import { assert } from "../core/assert.ts";
import { type Clock, momentOf } from "../core/clock.ts";
import type { BookKeys, RequestBooks } from "../account/money/books.ts";
import type { StoredResponses } from "../dialects/stored-responses.ts";
import type { Log } from "../core/log.ts";
import type { Grant } from "../nodes/queue/pool.ts";
import { unpackBlocks } from "../nodes/queue/prompt-blocks.ts";
import type { Place, RefusalCause } from "../nodes/queue/slot-queue.ts";
import type { Forecast } from "../core/forecast.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import type { Soon } from "../core/soon.ts";
import {
  type AccountId,
  type Hold,
  type Model,
  OutcomeUnknown,
  type OutputHeld,
  type Refusal,
  StoreUnavailable,
} from "../core/types.ts";
import type { RelayOperation, ToRelay } from "./messages.ts";
import type { MessageBatcher } from "./message-batcher.ts";

export type RelaySessionParts = Readonly<{
  keys: Pick<BookKeys, "ofHash">;
  /** For all keys: the number changes when one becomes void. */
  keysVersion: () => number;
  admission: RequestBooks;
  models: () => ReadonlyMap<string, Model>;
  pool: {
    stand(place: Place): void;
    leave(place: Place): boolean;
    slotOn(nodeName: string, place: Place): Grant;
    forecastAt(place: Place): Forecast | null;
    refusalOf(cause: RefusalCause, modelId: string, forecast?: Forecast): Refusal;
  };
  storedResponses: Pick<StoredResponses, "keep"> | null;
  clock: Clock;
  log: Log;
}>;

/** A relay's request in line or on a node. */
type RelayPlace = Place & { grant: Grant | null };

const nothing = {};

/** A request that the relay has admitted. */
type OpenRequest = Readonly<{ account: AccountId; hold: Hold }>;

export class RelaySession {
  readonly #parts: RelaySessionParts;
  readonly #batcher: MessageBatcher<ToRelay>;
  readonly #open = new Map<number, OpenRequest>();
  readonly #places = new Map<number, RelayPlace>();
  #heldEnds = 0;

  constructor(parts: RelaySessionParts, batcher: MessageBatcher<ToRelay>) {
    this.#parts = parts;
    this.#batcher = batcher;
  }

  /** Executes the operations in a relay's message. */
  obey(json: string): void {
    for (const operation of JSON.parse(json) as readonly RelayOperation[]) this.#obey(operation);
    this.#batcher.flush();
  }

  get openRequests(): number {
    return this.#open.size;
  }

  openRequestsOf(account: AccountId): number {
    let open = 0;
    for (const request of this.#open.values()) if (request.account === account) open += 1;
    return open;
  }

  /** Answers whose end waits until their charge is on disk. */
  get heldEnds(): number {
    return this.#heldEnds;
  }

  /** Places that the relay waits for or has. */
  get places(): number {
    return this.#places.size;
  }

  #obey(operation: RelayOperation): void {
    try {
      this.#carryOut(operation);
    } catch (thrown) {
      if (!(thrown instanceof StoreUnavailable)) {
        this.#parts.log("error", "a relay's operation failed", { operation: operation.op, error: String(thrown) });
      }
      if ("id" in operation && operation.id !== undefined) this.#failed(operation.id, thrown);
    }
  }

  #carryOut(operation: RelayOperation): void {
    const { keys, keysVersion, storedResponses } = this.#parts;
    switch (operation.op) {
      case "principal": {
        const version = keysVersion();
        const { id } = operation;
        return this.#whenKnown(id, keys.ofHash(operation.keyHash), (principal) =>
          this.#batcher.put({ answer: "principal", id, principal, version }),
        );
      }
      case "count":
        return this.#count(operation);
      case "may ask": {
        const { id, asker, model } = operation;
        const { admission, models } = this.#parts;
        const known = models().get(model);
        const refusal = known === undefined ? refuse("unknown_model", { model }) : admission.refuseModel(asker, known);
        return this.#whenKnown(id, refusal, (refusal) => this.#batcher.put({ answer: "counted", id, refusal }));
      }
      case "admit":
        return this.#admit(operation);
      case "settle":
        return this.#settle(operation);
      case "grow": {
        const { id, hold: number, written } = operation;
        const { hold } = this.#requestOf(number);
        return this.#whenKnown(id, hold.grow!(written, this.#parts.clock.wall()), (held) =>
          this.#batcher.put({ answer: "grown", id, held }),
        );
      }
      case "release":
        return this.#close(operation.hold);
      case "enter":
        return this.#enter(operation);
      case "began":
        return this.#places.get(operation.place)?.grant?.began();
      case "forecast": {
        const place = this.#places.get(operation.place);
        const position = this.#open.get(operation.place)?.hold.position?.() ?? null;
        const ofHold = position === null ? null : { position, firstTokenMs: null };
        const forecast = place === undefined ? ofHold : this.#parts.pool.forecastAt(place);
        return this.#batcher.put({ answer: "forecast", id: operation.place, forecast });
      }
      case "leave":
        return this.#leave(operation.place);
      case "done":
        return this.#done(operation);
      case "keep":
        return this.#keep(operation, storedResponses?.keep(operation.account, operation.response));
    }
  }

  #keep({ id }: Extract<RelayOperation, { op: "keep" }>, kept: Soon<void>): void {
    if (id !== undefined) this.#whenKnown(id, kept, () => this.#batcher.put({ answer: "kept", id }));
  }

  #count({ id, account, kind, ifFull }: Extract<RelayOperation, { op: "count" }>): void {
    const { admission, clock } = this.#parts;
    const now = clock.monotonic();
    const counted = ifFull ? admission.refuseFlooded(account, now, kind) : admission.countRequest(account, now, kind);
    this.#whenKnown(id, counted, (refusal) => this.#batcher.put({ answer: "counted", id, refusal }));
  }

  #admit({ id, op: _, ask, ...request }: Extract<RelayOperation, { op: "admit" }>): void {
    const { admission, clock, models } = this.#parts;
    const model = models().get(ask.model);
    // The catalog was replaced while the request was on its way here.
    if (model === undefined) return this.#refuse(id, refuse("unknown_model", { model: ask.model }));
    const admitted = admission.admit({ ...request, ask: { ...ask, model } }, momentOf(clock));
    this.#whenKnown(id, admitted, (hold) => this.#admitted(id, request.account, hold));
  }

  #admitted(id: number, account: AccountId, hold: Hold | Refusal): void {
    if (isRefusal(hold)) return this.#refuse(id, hold);
    this.#open.set(id, { account, hold });
    const { ready, priority = "standard", rates = null } = hold;
    const urgency = priority === "standard" ? nothing : { priority };
    this.#batcher.put({
      answer: "admitted",
      id,
      waits: ready !== null,
      ...outputOf(hold),
      ...urgency,
      ...(rates && { rates }),
    });
    ready?.then(
      (refusal) => {
        if (refusal === null) this.#batcher.put({ answer: "ready", id, ...outputOf(hold) });
        else this.#refuse(id, refusal);
      },
      (thrown: unknown) => this.#failed(id, thrown),
    );
  }

  /** At once where it is already known. */
  #whenKnown<Value>(id: number, value: Soon<Value>, then: (value: Value) => void): void {
    if (value instanceof Promise) value.then(then).catch((thrown: unknown) => this.#failed(id, thrown));
    else then(value);
  }

  #settle({ id, hold: number, usage, estimated, course }: Extract<RelayOperation, { op: "settle" }>): void {
    const { hold } = this.#requestOf(number);
    this.#heldEnds += 1;
    Promise.try(() => hold.settle(usage, estimated, this.#parts.clock.wall(), course)).then(
      (charged) => {
        this.#settled(number);
        this.#batcher.put({ answer: "settled", id, ...(charged === usage ? nothing : { charged }) });
      },
      (thrown: unknown) => {
        this.#settled(number);
        this.#failed(id, thrown);
      },
    );
  }

  /** The charge is on disk, or there is none and the hold gives itself back. */
  #settled(number: number): void {
    this.#heldEnds -= 1;
    this.#close(number);
  }

  #close(number: number): void {
    this.#requestOf(number).hold[Symbol.dispose]();
    this.#open.delete(number);
  }

  #requestOf(number: number): OpenRequest {
    const request = this.#open.get(number);
    assert(request !== undefined, "a relay's hold is resolved once");
    return request;
  }

  #enter({ op: _, id, prompt, excluded, ...wanted }: Extract<RelayOperation, { op: "enter" }>): void {
    const { pool } = this.#parts;
    const place: RelayPlace = {
      ...wanted,
      prompt: unpackBlocks(prompt),
      excluded: new Set(excluded),
      grant: null,
      granted: (node) => {
        place.grant = pool.slotOn(node, place);
        this.#batcher.put({ answer: "granted", id, node, plan: place.grant.plan });
      },
      refused: (cause, forecast) => {
        this.#places.delete(id);
        this.#refuse(id, pool.refusalOf(cause, wanted.modelId, forecast));
      },
    };
    this.#places.set(id, place);
    pool.stand(place);
  }

  #leave(number: number): void {
    const place = this.#places.get(number);
    if (place === undefined) return; // it was refused in the meantime
    if (place.grant === null) this.#parts.pool.leave(place);
    this.#giveBack(number, place);
  }

  #done({ place: number, outcome }: Extract<RelayOperation, { op: "done" }>): void {
    const place = this.#places.get(number);
    assert(place !== undefined && place.grant !== null, "a relay's place is given back once");
    if (outcome !== null) place.grant.outcome(outcome);
    this.#giveBack(number, place);
  }

  #giveBack(number: number, place: RelayPlace): void {
    this.#places.delete(number);
    place.grant?.[Symbol.dispose]();
  }

  #refuse(id: number, refusal: Refusal): void {
    this.#batcher.put({ answer: "refused", id, refusal });
  }

  #failed(id: number, thrown: unknown): void {
    if (thrown instanceof StoreUnavailable) return this.#batcher.put({ answer: "unavailable", id });
    if (thrown instanceof OutcomeUnknown) return this.#batcher.put({ answer: "unknown", id });
    this.#batcher.put({ answer: "failed", id, reason: String(thrown) });
  }
}

const outputOf = ({ outputHeld }: Hold): { output?: OutputHeld } =>
  outputHeld === undefined || outputHeld === null ? {} : { output: outputHeld };
