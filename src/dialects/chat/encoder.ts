// What chat-completions writes: ChatChoice decides once what to say about an answer; Chunks and Message write it.
import { tierOf } from "../request/service-tier.ts";
import type { ByteWriter } from "../../core/byte-writer.ts";
import type { FinishReason, Piece } from "../../core/types.ts";
import type { ReplyForm, ReplyIdentity } from "../dialect.ts";
import { argumentsObject } from "../reply/call-arguments.ts";
import { type Choice, type ChoicePiece, Choices } from "../reply/choices.ts";
import { DeltaFrame } from "../reply/delta-frame.ts";
import { LiteralText } from "../reply/literal-text.ts";
import { RoundBreaks, roundBreak } from "../reply/round-breaks.ts";
import type { ChatAsk } from "./request.ts";

type LiteralKind = "text" | "reasoning";
type CallPiece = Extract<Piece, { kind: "call" }>;

/** One way to write an answer. Each result is zero or more whole events; the message is in the result of its `end`. */
interface Written {
  text(literal: string, logprobs: string | null): string;
  reasoning(literal: string): string;
  refusal(literal: string, logprobs: string | null): string;
  /** A text or reasoning literal that directly continues the one before; `bytes` belong to the read. */
  literal(kind: LiteralKind, bytes: Uint8Array, start: number, end: number, out: ByteWriter): void;
  call(call: CallPiece): string;
  callArguments(index: number, literal: string): string;
  /** `annotations` are JSON texts. */
  end(reason: FinishReason, annotations: readonly string[]): string;
}

export function chatEncoder(ask: ChatAsk, reply: ReplyIdentity, form: ReplyForm): Choices {
  const head = replyHead(ask, reply, form === "events" ? "chat.completion.chunk" : "chat.completion");
  return new Choices({
    model: ask.model,
    form,
    head,
    usageApart: ask.usageApart,
    choice: (index) => new ChatChoice(form === "events" ? new Chunks(head, index) : new Message()),
    silent: (finish) => silentChoice(0, finish),
    best: null,
  });
}

class ChatChoice implements Choice {
  readonly #written: Written;
  readonly #annotations: string[] = [];
  readonly #breaks = new RoundBreaks();

  constructor(written: Written) {
    this.#written = written;
  }

  piece(piece: ChoicePiece): string {
    switch (piece.kind) {
      case "text": {
        const literal = this.#breaks.isDue("text") ? withBreak(piece.literal) : piece.literal;
        return this.#written.text(literal, piece.logprobs);
      }
      case "reasoning":
        return this.#written.reasoning(this.#breaks.isDue("reasoning") ? withBreak(piece.literal) : piece.literal);
      case "refusal":
        return this.#written.refusal(piece.literal, piece.logprobs);
      case "call":
        return this.#written.call(piece);
      case "call-arguments":
        return this.#written.callArguments(piece.index, piece.literal);
      case "citation":
        this.#annotations.push(annotationBody(piece, this.#breaks.shift));
        return "";
      case "owned-call":
      case "owned-result":
        this.#breaks.roundEnded(); // this dialect has no form for what a server does itself
        return "";
      default:
        return piece satisfies never;
    }
  }

  literal(kind: LiteralKind, bytes: Uint8Array, start: number, end: number, out: ByteWriter): boolean {
    // the first of its kind in a round begins the message, or needs a break
    if (!this.#breaks.goesOn(kind)) return false;
    this.#written.literal(kind, bytes, start, end, out);
    return true;
  }

  end(reason: FinishReason): string {
    return this.#written.end(reason, this.#annotations);
  }
}

// ---------------------------------------------------------------- Events
// The role comes in the first delta, a call's id and name once.

const endOfDelta = '},"finish_reason":null,"logprobs":null}]}\n\n';

class Chunks implements Written {
  /** An event up to its delta: a token costs one concatenation. */
  readonly #head: string;
  readonly #finish: (finish: string) => string;
  readonly #text: string;
  readonly #reasoning: string;
  readonly #frames: { text: DeltaFrame | null; reasoning: DeltaFrame | null } = { text: null, reasoning: null };
  #started = false;
  #hasText = false;
  /** Something else stands in the place of a text. */
  #hasOther = false;

  constructor(head: string, index: number) {
    this.#head = `data: ${head}{"index":${index},"delta":{`;
    this.#finish = (finish) => `data: ${head}${silentChoice(index, finish)}]}\n\n`;
    this.#text = `${this.#head}"content":`;
    this.#reasoning = `${this.#head}"reasoning_content":`;
  }

  text(literal: string, logprobs: string | null): string {
    this.#hasText = true;
    const started = this.#start('""');
    if (logprobs === null) return started + this.#text + literal + endOfDelta;
    return started + this.#delta(`"content":${literal}`, logprobs);
  }

  reasoning(literal: string): string {
    return this.#start("null") + this.#reasoning + literal + endOfDelta;
  }

  refusal(literal: string, logprobs: string | null): string {
    this.#hasOther = true;
    return this.#start("null") + this.#delta(`"refusal":${literal}`, logprobs ?? "null");
  }

  literal(kind: LiteralKind, bytes: Uint8Array, start: number, end: number, out: ByteWriter): void {
    const frame = (this.#frames[kind] ??= new DeltaFrame(kind === "text" ? this.#text : this.#reasoning, endOfDelta));
    frame.write(bytes, start, end, out);
  }

  call(call: CallPiece): string {
    this.#hasOther = true;
    return this.#start("null") + this.#delta(`"tool_calls":[{"index":${call.index},${callBody(call, '""')}}]`);
  }

  callArguments(index: number, literal: string): string {
    return this.#start("null") + this.#delta(`"tool_calls":[{"index":${index},"function":{"arguments":${literal}}}]`);
  }

  end(reason: FinishReason, annotations: readonly string[]): string {
    let last = this.#start('""');
    // Content is null until text comes, and stays null beside calls and refusals; an answer with none has an empty one.
    if (last === "" && !this.#hasOther && !this.#hasText) last = this.#delta('"content":""');
    // All in one delta: the official client's accumulator keeps only the last list.
    if (annotations.length > 0) last += this.#delta(`"annotations":[${annotations.join(",")}]`);
    return last + this.#finish(JSON.stringify(reason));
  }

  /** The first delta, before anything else. */
  #start(content: string): string {
    if (this.#started) return "";
    this.#started = true;
    return this.#delta(`"role":"assistant","content":${content}`);
  }

  #delta(delta: string, logprobs = "null"): string {
    return `${this.#head}${delta}},"finish_reason":null,"logprobs":${logprobs}}]}\n\n`;
  }
}

// ---------------------------------------------------------------- The message: the stream, collected

class Message implements Written {
  readonly #text = new LiteralText();
  readonly #reasoning = new LiteralText();
  readonly #refusal = new LiteralText();
  readonly #logprobs: string[] = [];
  readonly #calls: { readonly piece: CallPiece; readonly text: LiteralText }[] = [];

  text(literal: string, logprobs: string | null): string {
    this.#text.push(literal);
    if (logprobs !== null) this.#logprobs.push(logprobs);
    return "";
  }

  reasoning(literal: string): string {
    this.#reasoning.push(literal);
    return "";
  }

  refusal(literal: string, logprobs: string | null): string {
    this.#refusal.push(literal);
    if (logprobs !== null) this.#logprobs.push(logprobs);
    return "";
  }

  literal(kind: LiteralKind, bytes: Uint8Array, start: number, end: number): void {
    (kind === "text" ? this.#text : this.#reasoning).pushBytes(bytes, start, end);
  }

  call(piece: CallPiece): string {
    this.#calls[piece.index] = { piece, text: new LiteralText() };
    return "";
  }

  callArguments(index: number, literal: string): string {
    this.#calls[index]!.text.push(literal);
    return "";
  }

  end(reason: FinishReason, annotations: readonly string[]): string {
    const calls: string[] = [];
    for (const { piece, text } of this.#calls) {
      const { literal } = text;
      // A call that the budget cut in the middle is no call, and no client has seen it yet.
      if (reason !== "length" || argumentsObject(literal) !== null) calls.push(`{${callBody(piece, literal)}}`);
    }
    const annotationsField = annotations.length === 0 ? "" : `,"annotations":[${annotations.join(",")}]`;
    const reasoningField = this.#reasoning.empty ? "" : `,"reasoning_content":${this.#reasoning.literal}`;
    const callsField = calls.length === 0 ? "" : `,"tool_calls":[${calls.join(",")}]`;
    // Text beside tool calls is kept, because clients show it; without text the content of a call reply is null (spec).
    const refusal = this.#refusal.empty ? "null" : this.#refusal.literal;
    const content = this.#text.empty && (calls.length > 0 || !this.#refusal.empty) ? "null" : this.#text.literal;
    const message = `{"role":"assistant","content":${content},"refusal":${refusal}${annotationsField}${reasoningField}${callsField}}`;
    return `"message":${message},"logprobs":${logprobsBody(this.#logprobs)},"finish_reason":"${reason}"`;
  }
}

type Logprobs = Readonly<Partial<Record<"content" | "refusal", readonly unknown[] | null>>>;

/** Joins the pieces' logprobs objects, each `{content: [...]}`, into one. */
function logprobsBody(logprobs: readonly string[]): string {
  if (logprobs.length === 0) return "null";
  const given = logprobs.map((piece) => JSON.parse(piece) as Logprobs);
  const refusal = given.flatMap((piece) => piece.refusal ?? []);
  const content = given.flatMap((piece) => piece.content ?? []);
  return JSON.stringify({ content, refusal: refusal.length === 0 ? null : refusal });
}

// ---------------------------------------------------------------- What both are made of

const replyHead = (
  { model }: ChatAsk,
  { requestId, createdSeconds, priority }: ReplyIdentity,
  object: string,
): string =>
  `{"id":"chatcmpl-${requestId.slice("req_".length)}","object":"${object}","created":${createdSeconds},"model":${JSON.stringify(model.id)},${priority === undefined ? "" : `"service_tier":"${tierOf(priority)}",`}"choices":[`;

/** A choice of a chunk that adds nothing to its message; `finish` is JSON. */
const silentChoice = (index: number, finish: string): string =>
  `{"index":${index},"delta":{},"finish_reason":${finish},"logprobs":null}`;

/** The members of a call's object; `given` is a JSON string literal. */
const callBody = ({ id, name }: CallPiece, given: string): string =>
  `"id":${JSON.stringify(id)},"type":"function","function":{"name":${JSON.stringify(name)},"arguments":${given}}`;

const withBreak = (literal: string): string => `"${roundBreak}${literal.slice(1)}`;

/** Positions count UTF-16 units of the whole content, including breaks, and enclose the mark. */
function annotationBody(
  { source: { url, title }, start, end }: Extract<Piece, { kind: "citation" }>,
  shift: number,
): string {
  const url_citation = { start_index: start + shift, end_index: end + shift, url, title };
  return JSON.stringify({ type: "url_citation", url_citation });
}
