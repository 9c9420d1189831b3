// The reply to a compaction: exactly one sealed item, whatever the model wrote; the compaction endpoint puts the user's
// messages before it. It is sent at the end; until then the stream only shows that it has begun.
import type { Piece, Refusal } from "../../core/types.ts";
import type { AnswerEnd, Encoder, ReplyForm, ReplyIdentity } from "../dialect.ts";
import { LiteralText } from "../reply/literal-text.ts";
import { compactionItem } from "./output-items.ts";
import { type ReplyContext, ResponseLifecycle } from "./lifecycle.ts";
import { stemOf, usageBody } from "./response-object.ts";
import type { ResponsesAsk } from "./body.ts";
import type { Sealer } from "../request/sealed-content.ts";

export class CompactionEncoder implements Encoder {
  readonly #ask: ResponsesAsk;
  readonly #identity: ReplyIdentity;
  readonly #sealer: Sealer;
  readonly #lifecycle: ResponseLifecycle;
  readonly #text = new LiteralText();
  readonly #reasoning = new LiteralText();

  constructor(ask: ResponsesAsk, identity: ReplyIdentity, { sealer, clock }: ReplyContext, form: ReplyForm) {
    this.#ask = ask;
    this.#identity = identity;
    this.#sealer = sealer;
    this.#lifecycle = new ResponseLifecycle(ask, identity, clock, form);
  }

  /** Must be sent when it is read: some are events, which are numbered. */
  keepAlive(): string {
    return this.#lifecycle.signOfLife(undefined);
  }

  piece(piece: Piece): string {
    if (piece.kind === "text" || piece.kind === "refusal") this.#text.push(piece.literal);
    else if (piece.kind === "reasoning") this.#reasoning.push(piece.literal);
    return this.#lifecycle.start();
  }

  /** Nothing of it is shown; the piece that begins the stream is no literal. */
  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number): boolean {
    if (this.#text.empty && this.#reasoning.empty) return false;
    (kind === "text" ? this.#text : this.#reasoning).pushBytes(bytes, start, end);
    return true;
  }

  /** A summary that the budget cut is still the best available, so this always completes. */
  end(end: AnswerEnd): string {
    const { numbers } = this.#lifecycle;
    const stem = stemOf(this.#identity);
    // A model that put everything into its thoughts has summed up there.
    const summary = JSON.parse((this.#text.empty ? this.#reasoning : this.#text).literal) as string;
    const item = compactionItem(stem, this.#sealer.seal("compaction", summary));
    const { compacts, input } = this.#ask;
    if (compacts === "alone") {
      const messages = (typeof input === "string" ? input : JSON.stringify(input)).slice(1, -1);
      const output = messages === "" ? item : `${messages},${item}`;
      return `{"id":"resp_${stem}","object":"response.compaction","created_at":${this.#identity.createdSeconds},"output":[${output}],"usage":${usageBody(end.usage)}}`;
    }
    const members = `"output_index":0,"item":${item}`;
    let events = this.#lifecycle.start();
    events += numbers.event("response.output_item.added", members);
    events += numbers.event("response.output_item.done", members);
    return events + this.#lifecycle.ended([item], '""', { ...end, reason: "stop" });
  }

  failure(refusal: Refusal): string {
    return this.#lifecycle.failed([], refusal);
  }
}
