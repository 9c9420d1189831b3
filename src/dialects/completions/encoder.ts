// What the plain-completions dialect writes: an answer's pieces as the events of a stream, or collected as one reply.
import type { ByteWriter } from "../../core/byte-writer.ts";
import type { FinishReason } from "../../core/types.ts";
import type { ReplyForm, ReplyIdentity } from "../dialect.ts";
import { type Choice, type ChoicePiece, Choices } from "../reply/choices.ts";
import { DeltaFrame } from "../reply/delta-frame.ts";
import { LiteralText } from "../reply/literal-text.ts";
import { CompletionLogprobs, joined, meanLogprob } from "./logprobs.ts";
import type { CompletionAsk } from "./request.ts";

/** What surrounds a text literal in an event and in a whole reply, and the object types of both. */
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

export function completionEncoder(
  ask: CompletionAsk,
  { requestId, createdSeconds }: ReplyIdentity,
  form: ReplyForm,
): Choices {
  const { event, objects } = ask.asChat ? chatForm : textForm;
  const object = objects[form === "events" ? 0 : 1];
  const head = `{"id":"cmpl-${requestId.slice("req_".length)}","object":"${object}","created":${createdSeconds},"model":${JSON.stringify(ask.model.id)},"choices":[`;
  return new Choices({
    model: ask.model,
    form,
    head,
    usageApart: ask.usageApart,
    choice: (index) => (form === "events" ? new Events(ask, head, index) : new Text(ask)),
    silent: (finish) => `{"index":0,${event[0]}""${event[1]},"finish_reason":${finish}}`,
    best: ask.best,
  });
}

class Events implements Choice {
  /** The event of a text up to the literal: a token costs one concatenation. */
  readonly #begin: string;
  readonly #close: string;
  readonly #endOfText: string;
  readonly #logprobs = new CompletionLogprobs();
  #frame: DeltaFrame | null = null;

  constructor({ asChat }: CompletionAsk, head: string, index: number) {
    const [open, close] = (asChat ? chatForm : textForm).event;
    this.#begin = `data: ${head}{"index":${index},${open}`;
    this.#close = close;
    this.#endOfText = `${close},"finish_reason":null}]}\n\n`;
  }

  piece(piece: ChoicePiece): string {
    if (piece.kind !== "text") return ""; // the request has no tools and no thoughts
    const { literal, logprobs } = piece;
    if (logprobs === null) return this.#begin + literal + this.#endOfText;
    const lists = JSON.stringify(this.#logprobs.lists(logprobs));
    return `${this.#begin}${literal},"logprobs":${lists},"finish_reason":null}]}\n\n`;
  }

  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number, out: ByteWriter): boolean {
    if (kind === "text") (this.#frame ??= new DeltaFrame(this.#begin, this.#endOfText)).write(bytes, start, end, out);
    return kind === "text";
  }

  end(reason: FinishReason): string {
    return `${this.#begin}""${this.#close},"finish_reason":"${reason}"}]}\n\n`;
  }
}

class Text implements Choice {
  readonly #ask: CompletionAsk;
  readonly #text = new LiteralText();
  readonly #logprobs = new CompletionLogprobs();
  readonly #lists: ReturnType<CompletionLogprobs["lists"]>[] = [];

  constructor(ask: CompletionAsk) {
    this.#ask = ask;
  }

  get likelihood(): number {
    return meanLogprob(this.#lists);
  }

  piece(piece: ChoicePiece): string {
    if (piece.kind !== "text") return "";
    this.#text.push(piece.literal);
    if (piece.logprobs !== null) this.#lists.push(this.#logprobs.lists(piece.logprobs));
    return "";
  }

  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number): boolean {
    if (kind === "text") this.#text.pushBytes(bytes, start, end);
    return kind === "text";
  }

  end(reason: FinishReason): string {
    const { asChat, hidesLogprobs } = this.#ask;
    const [open, close] = (asChat ? chatForm : textForm).whole;
    const text = `${open}${this.#text.literal}${close}`;
    if (asChat) return `${text},"finish_reason":"${reason}"`;
    const lists = this.#lists.length === 0 || hidesLogprobs ? "null" : JSON.stringify(joined(this.#lists));
    return `${text},"logprobs":${lists},"finish_reason":"${reason}"`;
  }
}
