// Sources of an answer and the references to them: results are numbered for the model, the model marks what it says
// with [n], and the marks become citations.
import type { Piece, Source } from "../types.ts";

/** The sources that a model was given in one request, numbered from 1; one address keeps its number. */
export class Sources {
  readonly #byNumber: Source[] = [];
  readonly #numbers = new Map<string, number>();

  /** The number under which the model knows the source. */
  add(source: Source): number {
    const known = this.#numbers.get(source.url);
    if (known !== undefined) return known;
    this.#numbers.set(source.url, this.#byNumber.push(source));
    return this.#byNumber.length;
  }

  get(number: number): Source | null {
    return this.#byNumber[number - 1] ?? null;
  }

  get any(): boolean {
    return this.#byNumber.length > 0;
  }
}

/** The longest mark: `[1, 2, 12]`, and what gpt-oss models write, `【1†L10-L24】`. */
const markMaxLength = 40;
const markPattern = /^\s*\d+(?:\s*[,;]\s*\d+)*\s*(?:†.*)?$/;

type TextPiece = Extract<Piece, { kind: "text" }>;

/** Reads one round's text as it streams and puts a citation after each mark; the marks stay in the text. */
export class CitationReader {
  readonly #sources: Sources;
  readonly #emit: (piece: Piece) => void;
  /** UTF-16 units of the answer's text so far. */
  #length: number;
  /** What follows an opened bracket; null outside of one. */
  #mark: string | null = null;

  /** `length`: UTF-16 units of the answer's text in the rounds before. */
  constructor(sources: Sources, length: number, emit: (piece: Piece) => void) {
    this.#sources = sources;
    this.#length = length;
    this.#emit = emit;
  }

  /** Hands the piece on, cut after each mark that ends in it. */
  text(piece: TextPiece): void {
    const text = JSON.parse(piece.literal) as string;
    let from = 0;
    let { logprobs } = piece;
    for (let at = 0; at < text.length; at++) {
      const cited = this.#read(text[at]!);
      if (cited === null) continue;
      const end = this.#length + at + 1;
      this.#emit({ kind: "text", literal: JSON.stringify(text.slice(from, at + 1)), logprobs });
      for (const source of cited.sources) this.#emit({ kind: "citation", source, start: end - cited.length, end });
      from = at + 1;
      logprobs = null; // they belong to the whole piece and go out once
    }
    if (from === 0) this.#emit(piece);
    else if (from < text.length) this.#emit({ kind: "text", literal: JSON.stringify(text.slice(from)), logprobs });
    this.#length += text.length;
  }

  /** Takes a character; returns what is cited where a mark ends with it. */
  #read(character: string): { sources: readonly Source[]; length: number } | null {
    if (character === "[" || character === "【") {
      this.#mark = "";
      return null;
    }
    if (this.#mark === null) return null;
    if (character !== "]" && character !== "】") {
      this.#mark = this.#mark.length < markMaxLength && character !== "\n" ? this.#mark + character : null;
      return null;
    }
    const inside = this.#mark;
    this.#mark = null;
    if (!markPattern.test(inside)) return null;
    const numbers = inside.replace(/†.*/, "").split(/[,;]/).map(Number);
    const sources = [...new Set(numbers)].flatMap((number) => this.#sources.get(number) ?? []);
    return sources.length === 0 ? null : { sources, length: inside.length + 2 };
  }
}
