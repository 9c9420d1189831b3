// A client of one dialect and the outlet that the gateway writes to: it keeps what it receives, and reads slowly or
// leaves when the simulation says so. The events and documents are those of the real dialects.
import { Collected } from "../../src/dialects/reply/collected.ts";
import type { AnswerEnd, Dialect, Encoder, Reading } from "../../src/dialects/dialect.ts";
import type { Outlet } from "../../src/gateway.ts";
import { refuse } from "../../src/core/refusals.ts";
import type { Ask, Piece, Refusal } from "../../src/core/types.ts";

/** Whether what was delivered before it is charged: neither the gateway nor a node failed. */
export const isPaid = ({ refusal }: Refusal): boolean => refusal === "answer_misfit";

export class SimulatedClient implements Outlet {
  readonly #leave = new AbortController();
  readonly cancelSignal: AbortSignal = this.#leave.signal;
  readonly #encoder: Encoder | null;
  readonly #collected: Collected | null;
  readonly #ask: Ask;
  readonly #requestId: string;
  readonly #dialect: Dialect;
  #unsent = "";
  #over = false;
  #caughtUp: PromiseWithResolvers<void> | null = null;
  /** The reads of the node's socket that this client is behind; null: it keeps up. */
  slow = false;
  received = "";
  /** The status of its reply; null until the first byte. */
  status: number | null = null;
  left = false;
  get opened(): boolean {
    return this.status !== null;
  }
  /** The end was written: from this moment on, its charge must be on disk. */
  ended = false;
  failed: Refusal | null = null;
  /** Events of pieces went out. */
  delivered = false;
  /** Called in the moment in which the end goes out, or the error of an answer that is charged all the same. */
  onEnd: () => void = () => {};

  constructor({ ask, writer }: Reading, requestId: string, createdSeconds: number, dialect: Dialect) {
    this.#ask = ask;
    this.#requestId = requestId;
    this.#dialect = dialect;
    this.#encoder = ask.stream ? writer.encoder({ requestId, createdSeconds }, "events") : null;
    this.#collected = ask.stream ? null : new Collected(writer.encoder({ requestId, createdSeconds: 0 }, "whole"));
  }

  piece(piece: Piece): void {
    this.#collected?.piece(piece);
    if (this.#encoder !== null) this.#unsent += this.#encoder.piece(piece);
  }

  flush(): Promise<void> | null {
    if (this.#encoder === null || this.#over) return null;
    this.delivered ||= this.#unsent !== "";
    this.#send();
    if (!this.slow) return null;
    this.#caughtUp ??= Promise.withResolvers();
    return this.#caughtUp.promise;
  }

  end(end: AnswerEnd): void {
    if (this.#over) return;
    this.onEnd();
    this.ended = true;
    if (this.#collected !== null) {
      this.status = 200;
      this.received = this.#collected.end(end);
    } else {
      this.#unsent += this.#encoder!.end(end);
      this.#send();
    }
    this.#finish();
  }

  breakOff(): void {
    throw new Error("what becomes of a charge is always known on one machine");
  }

  fail(refusal: Refusal): void {
    if (this.#over) return;
    if (isPaid(refusal) && this.delivered) this.onEnd();
    this.failed = refusal;
    if (this.status === null) {
      this.status = this.#dialect.statusOf(refusal, this.#ask);
      this.received = this.#dialect.errorBody(refusal, this.#requestId);
    } else {
      this.#unsent += this.#encoder!.failure(refusal);
      this.#send();
    }
    this.#finish();
  }

  /** The gateway stops, and with it this reply. */
  cut(): void {
    if (!this.#over) this.#leave.abort(refuse("stopping"));
  }

  /** The client closes its connection. */
  depart(): void {
    if (this.#over) return;
    this.left = true;
    this.#finish();
    this.#leave.abort();
  }

  /** The client reads what was waiting. */
  read(): void {
    this.#caughtUp?.resolve();
    this.#caughtUp = null;
  }

  #send(): void {
    if (this.#unsent === "") return;
    this.status ??= 200;
    this.received += this.#unsent;
    this.#unsent = "";
  }

  #finish(): void {
    this.#over = true;
    this.read();
  }
}
