// The outlet of a non-streaming reply: sends nothing until the answer is complete and its charge is on disk.
import { CancelSignal } from "../../core/cancel-signal.ts";
import { Collected } from "../../dialects/reply/collected.ts";
import type { AnswerEnd, Dialect } from "../../dialects/dialect.ts";
import type { Outlet } from "../../gateway.ts";
import type { Ask, Piece, Refusal } from "../../core/types.ts";
import { jsonReply, refusalReply } from "../reply.ts";

export class CollectOutlet implements Outlet, EventListenerObject {
  readonly response: Promise<Response>;
  readonly cancelSignal = new CancelSignal();
  /** The whole reply is one write, after which nobody can leave. */
  readonly opened = false;
  readonly delivered = false;
  readonly #collected: Collected;
  readonly #ask: Ask;
  readonly #requestId: string;
  readonly #dialect: Dialect;
  #respond!: (response: Response) => void;

  constructor(ask: Ask, requestId: string, createdSeconds: number, dialect: Dialect, client: AbortSignal) {
    this.#ask = ask;
    this.#requestId = requestId;
    this.#dialect = dialect;
    this.#collected = new Collected(dialect.encoder(ask, { requestId, createdSeconds }, "whole"));
    this.response = new Promise((respond) => (this.#respond = respond));
    if (client.aborted) this.#depart();
    else client.addEventListener("abort", this);
  }

  piece(piece: Piece): void {
    this.#collected.piece(piece);
  }

  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number): void {
    this.#collected.literal(kind, bytes, start, end);
  }

  flush(): null {
    return null;
  }

  end(end: AnswerEnd): void {
    this.#respond(jsonReply(this.#collected.end(end), this.#requestId));
  }

  fail(refusal: Refusal): void {
    this.#respond(refusalReply(this.#dialect, refusal, this.#requestId, this.#ask));
  }

  /** Ends the reply from our side. */
  cut(refusal: Refusal): void {
    this.cancelSignal.abort(refusal);
  }

  /** The client's signal. */
  handleEvent(): void {
    this.#depart();
  }

  #depart(): void {
    this.cancelSignal.abort();
    this.#respond(new Response(null, { status: 499 }));
  }
}
