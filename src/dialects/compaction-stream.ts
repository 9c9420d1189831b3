// The reply to a compaction: exactly one sealed item, whatever the model wrote. It goes out at the end; until then the
// stream shows only that it began.
import type { Piece, Refusal } from "../types.ts";
import type { AnswerEnd, Encoder, ReplyIdentity } from "./dialect.ts";
import { LiteralText } from "./literal-text.ts";
import { compactionItem, EventNumbers } from "./output-items.ts";
import { responseEnded, responseFailed, stemOf, usageBody } from "./response-object.ts";
import type { ResponsesAsk } from "./responses-request.ts";
import { type ReplyContext, secondsOf, startEvents } from "./responses-stream.ts";

export class CompactionEncoder implements Encoder {
  readonly keepAlive = ": waiting\n\n";
  readonly #ask: ResponsesAsk;
  readonly #identity: ReplyIdentity;
  readonly #context: ReplyContext;
  readonly #numbers = new EventNumbers();
  readonly #text = new LiteralText();
  readonly #reasoning = new LiteralText();
  #started = false;
  #response: string | null = null;
  #compaction: string | null = null;

  constructor(ask: ResponsesAsk, identity: ReplyIdentity, context: ReplyContext) {
    this.#ask = ask;
    this.#identity = identity;
    this.#context = context;
  }

  /** The finished response object as JSON text; null before the end. */
  get response(): string | null {
    return this.#response;
  }

  /** The reply of POST /v1/responses/compact as JSON text; null before the end. */
  get compaction(): string | null {
    return this.#compaction;
  }

  piece(piece: Piece): string {
    if (piece.kind === "text") this.#text.push(piece.literal);
    else if (piece.kind === "reasoning") this.#reasoning.push(piece.literal);
    return this.#start();
  }

  /** A summary that the budget cut is still the best there is, so this always completes. */
  end({ usage }: AnswerEnd): string {
    const started = this.#start();
    // A model that put everything into its thoughts has summed up there.
    const summary = JSON.parse((this.#text.empty ? this.#reasoning : this.#text).literal) as string;
    const item = compactionItem(stemOf(this.#identity), this.#context.sealer.seal("compaction", summary));
    const ended = { reason: "stop" as const, usage, nowSeconds: secondsOf(this.#context.clock) };
    this.#response = responseEnded(this.#ask, this.#identity, [item], '""', ended);
    this.#compaction = `{"id":"resp_${stemOf(this.#identity)}","object":"response.compaction","created_at":${this.#identity.createdSeconds},"output":[${item}],"usage":${usageBody(usage)}}`;
    const members = `"output_index":0,"item":${item}`;
    return [
      started,
      this.#numbers.event("response.output_item.added", members),
      this.#numbers.event("response.output_item.done", members),
      this.#numbers.event("response.completed", `"response":${this.#response}`),
      "data: [DONE]\n\n",
    ].join("");
  }

  failure(refusal: Refusal): string {
    const response = responseFailed(this.#ask, this.#identity, [], refusal);
    return this.#start() + this.#numbers.event("response.failed", `"response":${response}`);
  }

  #start(): string {
    if (this.#started) return "";
    this.#started = true;
    return startEvents(this.#numbers, this.#ask, this.#identity);
  }
}
