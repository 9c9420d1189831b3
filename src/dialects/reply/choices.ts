// The replies of the two dialects whose answers are choices: a Choice writes one, and what applies to all is here.
import type { ByteWriter } from "../../core/byte-writer.ts";
import type { FinishReason, Model, Piece, Refusal, Usage } from "../../core/types.ts";
import type { AnswerEnd, Encoder, ReplyForm } from "../dialect.ts";
import { errorBody } from "./error-object.ts";
import { usageBody } from "./usage-object.ts";

export type ChoicePiece = Exclude<Piece, { kind: "answer" | "answer-end" | "input" | "voice" }>;

export interface Choice {
  piece(piece: ChoicePiece): string;
  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number, out: ByteWriter): boolean;
  /** Its last events; in a whole reply, the members of its object after the index. */
  end(reason: FinishReason): string;
  /** How likely the model rated its text; read where the best of several are wanted. */
  readonly likelihood?: number;
}

export type ChoicesOptions = Readonly<{
  model: Model;
  form: ReplyForm;
  /** The fields with which every event and the whole reply begin, and the beginning of the list of choices. */
  head: string;
  /** The client wants the stream's usage in a separate chunk without choices. */
  usageApart: boolean;
  choice: (index: number) => Choice;
  /** A choice in an event without content; `finish` is JSON. */
  silent: (finish: string) => string;
  /** How many answers to show, the best, of each group of `of`; null: all. */
  best: Readonly<{ of: number; shown: number }> | null;
}>;

type Whole = Readonly<{ body: string; likelihood: number }>;

export class Choices implements Encoder {
  readonly #options: ChoicesOptions;
  readonly #choices: Choice[] = [];
  #current: Choice;
  #index = 0;
  /** How the first one ended. */
  #firstReason: FinishReason | null = null;
  readonly #whole: Whole[] = [];

  constructor(options: ChoicesOptions) {
    this.#options = options;
    this.#current = this.#choices[0] = options.choice(0);
  }

  keepAlive(): string {
    return ": waiting\n\n";
  }

  piece(piece: Piece): string {
    switch (piece.kind) {
      case "answer":
        this.#index = piece.index;
        this.#current = this.#choices[piece.index] ??= this.#options.choice(piece.index);
        return "";
      case "answer-end":
        return this.#ended(piece.reason);
      case "input":
      case "voice":
        return ""; // from requests that hold no conversation
      default:
        return this.#current.piece(piece);
    }
  }

  literal(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number, out: ByteWriter): boolean {
    return this.#current.literal(kind, bytes, start, end, out);
  }

  end({ reason, usage }: AnswerEnd): string {
    const { form, head, usageApart, silent } = this.#options;
    const last = this.#firstReason === null ? this.#ended(reason) : "";
    if (form === "whole") return `${head}${this.#shown().join(",")}],${this.#usage(usage)}}`;
    // Clients that did not ask for a chunk without choices read `choices[0]` of every chunk. The usage follows the
    // chunk with the finish reason, where openai-java expects it. LangChain joins the finish reasons of all
    // `choices[0]`, so this one has none; openai-go keeps the last of each index, so it is repeated there.
    const choices = usageApart ? "" : `${silent("null")},${silent(JSON.stringify(this.#firstReason))}`;
    return `${last}data: ${head}${choices}],${this.#usage(usage)}}\n\ndata: [DONE]\n\n`;
  }

  failure(refusal: Refusal): string {
    return `data: ${errorBody(refusal)}\n\n`;
  }

  #ended(reason: FinishReason): string {
    if (this.#index === 0) this.#firstReason = reason;
    const body = this.#current.end(reason);
    if (this.#options.form === "events") return body;
    this.#whole[this.#index] = { body, likelihood: this.#current.likelihood ?? 0 };
    return "";
  }

  #shown(): string[] {
    const { best } = this.#options;
    let shown: readonly Whole[] = this.#whole;
    if (best !== null) {
      shown = [];
      for (let from = 0; from < this.#whole.length; from += best.of) {
        const candidates = this.#whole.slice(from, from + best.of);
        candidates.sort((one, other) => other.likelihood - one.likelihood);
        shown = [...shown, ...candidates.slice(0, best.shown)];
      }
    }
    return shown.map(({ body }, index) => `{"index":${index},${body}}`);
  }

  #usage(usage: Usage): string {
    return `"usage":${JSON.stringify(usageBody(this.#options.model, usage))}`;
  }
}
