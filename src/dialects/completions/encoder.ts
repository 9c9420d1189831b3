// What the plain-completions dialect writes: an answer's pieces as the events of a stream, or collected as one reply.
import type { ByteWriter } from "../../core/byte-writer.ts";
import type { Piece, Refusal } from "../../core/types.ts";
import type { AnswerEnd, Encoder, ReplyForm, ReplyIdentity } from "../dialect.ts";
import { DeltaFrame } from "../reply/delta-frame.ts";
import { errorBody } from "../reply/error-object.ts";
import { LiteralText } from "../reply/literal-text.ts";
import { usageBody } from "../reply/usage-object.ts";
import { CompletionLogprobs, joined } from "./logprobs.ts";
import type { CompletionAsk } from "./request.ts";

/** What stands around the literal of a text, in an event and in a whole reply, and the type of these. */
const textForm = {
  event: ['"text":', ',"logprobs":null'],
  whole: ['"text":', ""],
  objects: ["text_completion", "text_completion"],
} as const;
const chatForm = {
  event: ['"delta":{"content":', "}"],
  whole: ['"message":{"role":"assistant","content":', "}"],
  objects: ["chat.completion.chunk", "chat.completion"],
} as const;

export class CompletionEncoder implements Encoder {
  readonly #ask: CompletionAsk;
  /** The fields with which every event and the whole reply begin; the object is left open. */
  readonly #head: string;
  /** An event of text up to the literal: a token costs one concatenation. */
  readonly #begin: string;
  readonly #close: string;
  readonly #endOfText: string;
  readonly #logprobs = new CompletionLogprobs();
  /** Null in a stream. */
  readonly #whole: { text: LiteralText; logprobs: ReturnType<CompletionLogprobs["lists"]>[] } | null;
  #frame: DeltaFrame | null = null;

  constructor(ask: CompletionAsk, { requestId, createdSeconds }: ReplyIdentity, form: ReplyForm) {
    const id = `cmpl-${requestId.slice("req_".length)}`;
    this.#ask = ask;
    const { event, objects } = ask.asChat ? chatForm : textForm;
    const object = objects[form === "events" ? 0 : 1];
    this.#head = `{"id":"${id}","object":"${object}","created":${createdSeconds},"model":${JSON.stringify(ask.model.id)},"choices":[`;
    this.#begin = `data: ${this.#head}{"index":0,${event[0]}`;
    this.#close = event[1];
    this.#endOfText = `${event[1]},"finish_reason":null}]}\n\n`;
    this.#whole = form === "events" ? null : { text: new LiteralText(), logprobs: [] };
  }

  keepAlive(): string {
    return ": waiting\n\n";
  }

  piece(piece: Piece): string {
    if (piece.kind !== "text") return ""; // no tools and no thoughts were asked for
    const { literal, logprobs } = piece;
    const lists = logprobs === null ? null : this.#logprobs.lists(logprobs);
    if (this.#whole !== null) {
      this.#whole.text.push(literal);
      if (lists !== null) this.#whole.logprobs.push(lists);
      return "";
    }
    if (lists === null) return this.#begin + literal + this.#endOfText;
    return `${this.#begin}${literal},"logprobs":${JSON.stringify(lists)},"finish_reason":null}]}\n\n`;
  }

  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number, out: ByteWriter): boolean {
    if (kind !== "text") return false;
    if (this.#whole !== null) this.#whole.text.pushBytes(bytes, start, end);
    else (this.#frame ??= new DeltaFrame(this.#begin, this.#endOfText)).write(bytes, start, end, out);
    return true;
  }

  end({ reason, usage }: AnswerEnd): string {
    const told = `,"usage":${JSON.stringify(usageBody(this.#ask.model, usage))}}`;
    if (this.#whole !== null) {
      const { text, logprobs } = this.#whole;
      const [open, close] = this.#ask.asChat ? chatForm.whole : textForm.whole;
      const lists = logprobs.length === 0 ? "null" : JSON.stringify(joined(logprobs));
      const choice = `{"index":0,${open}${text.literal}${close}`;
      if (this.#ask.asChat) return `${this.#head}${choice},"finish_reason":"${reason}"}]${told}`;
      return `${this.#head}${choice},"logprobs":${lists},"finish_reason":"${reason}"}]${told}`;
    }
    const finish = `${this.#begin}""${this.#close},"finish_reason":"${reason}"}]`;
    const end = `${told}\n\ndata: [DONE]\n\n`;
    // Clients that did not ask for an event without choices read `choices[0]` of every event.
    return this.#ask.usageApart ? `${finish}}\n\ndata: ${this.#head}]${end}` : finish + end;
  }

  failure(refusal: Refusal): string {
    return `data: ${errorBody(refusal)}\n\n`;
  }
}
