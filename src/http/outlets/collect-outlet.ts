// The outlet of a non-streaming reply: sends nothing until the answer is complete and its charge is on disk.
import { CancelSignal } from "../../core/cancel-signal.ts";
import { Collected } from "../../dialects/reply/collected.ts";
import type { AnswerEnd, Dialect, Encoder } from "../../dialects/dialect.ts";
import type { Outlet } from "../../gateway.ts";
import type { Ask, Piece, Refusal } from "../../core/types.ts";
import { brokenReply, jsonReply, refusalReply, typed } from "../reply.ts";

export type ReplyParts = Readonly<{
  ask: Ask;
  requestId: string;
  dialect: Dialect;
  encoder: Encoder;
  /** Called when the encoder has ended; a promise: the client hears of the end once the reply is stored. */
  keeping?(): void | Promise<void>;
}>;

export class CollectOutlet implements Outlet, EventListenerObject {
  readonly response: Promise<Response>;
  readonly cancelSignal = new CancelSignal();
  /** The whole reply is one write, so no client can leave halfway. */
  readonly opened = false;
  readonly delivered = false;
  readonly #collected: Collected;
  readonly #reply: ReplyParts;
  #respond!: (response: Response) => void;

  constructor(reply: ReplyParts, client: AbortSignal) {
    this.#reply = reply;
    this.#collected = new Collected(reply.encoder);
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

  end(end: AnswerEnd): void | Promise<void> {
    const { requestId, encoder } = this.#reply;
    const reply = this.replyOf(this.#collected, end, requestId);
    const response = encoder.contentType === undefined ? reply : typed(reply, encoder.contentType());
    const keeping = this.#reply.keeping?.();
    if (keeping === undefined) return this.#respond(response);
    return keeping.then(() => this.#respond(response));
  }

  protected replyOf(collected: Collected, end: AnswerEnd, requestId: string): Response {
    return jsonReply(collected.end(end), requestId);
  }

  fail(refusal: Refusal): void {
    const { dialect, requestId, ask } = this.#reply;
    this.#respond(refusalReply(dialect, refusal, requestId, ask));
  }

  breakOff(): void {
    this.#respond(brokenReply());
  }

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
