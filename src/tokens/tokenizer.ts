// Text to tokens exactly as tiktoken's `encode_ordinary` does it with o200k_base, in time that is linear in the text
// whatever it holds, in steps that can be interrupted, and in memory that does not grow with the text.
//
// A piece longer than a window is merged window by window. This is exact: merges happen within the final tokens only,
// and what two neighbouring stretches do depends on nothing else as long as nothing merges across their ends. So a row of
// tokens is the result of merging a piece if and only if each two neighbours, merged from their bytes alone, give these
// two again. A window is merged beside the last token of the window before it, so that the whole is such a row.
import { assert } from "../assert.ts";
import { Merger } from "./merger.ts";
import { Splitter } from "./splitter.ts";
import { hashAppend, loadVocabulary, type Vocabulary } from "./vocabulary.ts";

/** The merger's arrays then fit a core's cache, and a step takes about a millisecond at most. */
const windowBytesDefault = 4_096;
/** This part of a window is left to the next one, as what follows could change its tokens. */
const windowOverlap = 1 / 16;

/** The tables, which texts share. One text is read at a time. */
export class Tokenizer {
  readonly vocabulary: Vocabulary;
  readonly splitter = new Splitter();
  readonly merger: Merger;
  readonly windowBytes: number;

  /** `windowBytes` is smaller in tests only. */
  constructor(vocabulary: Vocabulary = loadVocabulary(), windowBytes: number = windowBytesDefault) {
    assert(windowBytes * windowOverlap >= 1, "windows overlap");
    this.vocabulary = vocabulary;
    this.merger = new Merger(vocabulary);
    this.windowBytes = windowBytes;
  }

  /** Characters looked at, and steps of the merger, since it was made. */
  get steps(): number {
    return this.splitter.steps + this.merger.steps;
  }

  /** The tokens of a text; lone surrogates count as U+FFFD. */
  encode(text: string): Uint32Array {
    const reading = new Reading(this, new TextEncoder().encode(text), true);
    reading.advance(Infinity);
    return reading.tokens();
  }
}

/** A text on its way to tokens. */
export class Reading {
  readonly #tokenizer: Tokenizer;
  readonly #bytes: Uint8Array;
  readonly #kept: number[] | null;
  #count = 0;
  #at = 0;
  /** The long piece that is being read; null between pieces. */
  #long: LongPiece | null = null;

  /** `bytes` must be UTF-8. Where `keep` is false the tokens are counted only. */
  constructor(tokenizer: Tokenizer, bytes: Uint8Array, keep: boolean) {
    this.#tokenizer = tokenizer;
    this.#bytes = bytes;
    this.#kept = keep ? [] : null;
  }

  /** Tokens so far; may go down while a long piece is read. */
  get count(): number {
    return this.#count;
  }

  /** Bytes that were turned into tokens. */
  get bytesRead(): number {
    return this.#at;
  }

  tokens(): Uint32Array {
    assert(this.#kept !== null, "the tokens were to be kept");
    return Uint32Array.from(this.#kept);
  }

  /** Reads on for about `steps` steps (see `Tokenizer.steps`); true when the text is read. */
  advance(steps: number): boolean {
    const tokenizer = this.#tokenizer;
    const end = this.#bytes.length;
    const last = tokenizer.steps + steps;
    tokenizer.splitter.open(this.#bytes, end);
    while (this.#at < end && tokenizer.steps < last) {
      if (this.#long !== null) this.#readWindow(this.#long);
      else this.#readPiece(tokenizer.splitter.pieceEnd(this.#at));
    }
    return this.#at === end;
  }

  #readPiece(pieceEnd: number): void {
    const { vocabulary, merger, windowBytes } = this.#tokenizer;
    const start = this.#at;
    if (pieceEnd - start <= vocabulary.longestBytes) {
      let hash = 0;
      for (let at = start; at < pieceEnd; at++) hash = hashAppend(hash, this.#bytes[at]!);
      const rank = vocabulary.find(this.#bytes, start, pieceEnd, hash);
      if (rank >= 0) {
        this.#at = pieceEnd;
        this.#count++;
        this.#kept?.push(rank);
        return;
      }
    }
    if (pieceEnd - start <= windowBytes) {
      const count = merger.merge(this.#bytes, start, pieceEnd);
      this.#keep(merger.tokens, count);
      this.#at = pieceEnd;
    } else {
      this.#long = { start, end: pieceEnd, countBefore: this.#count, windowBytes, lastToken: null };
    }
  }

  #readWindow(piece: LongPiece): void {
    const { merger } = this.#tokenizer;
    const start = this.#at;
    const windowEnd = Math.min(start + piece.windowBytes, piece.end);
    const count = merger.merge(this.#bytes, start, windowEnd, piece.lastToken);
    if (count === 0) return this.#restart(piece);
    if (windowEnd === piece.end) {
      this.#keep(merger.tokens, count);
      this.#at = windowEnd;
      this.#long = null;
      return;
    }
    const certainEnd = windowEnd - Math.ceil(piece.windowBytes * windowOverlap);
    let certain = count;
    while (certain > 0 && merger.ends[certain - 1]! > certainEnd) certain--;
    if (certain === 0) return this.#restart(piece); // a token as long as the window
    this.#keep(merger.tokens, certain);
    this.#at = merger.ends[certain - 1]!;
    const neighbour = piece.lastToken;
    piece.lastToken = merger.tokens[certain - 1]!;
    if (piece.lastToken === neighbour) this.#repeat(start, windowEnd, certain, piece.end);
  }

  /**
   * A window with the same bytes and the same token on its left as the one before has the same tokens: what repeats
   * itself, such as a run of dashes, is read at the speed of comparing. `tokens`: those of the merger that were kept.
   */
  #repeat(start: number, end: number, tokens: number, pieceEnd: number): void {
    const period = this.#at - start;
    const window = this.#bytes.subarray(start, end);
    let windowEnd = end + period;
    while (
      windowEnd < pieceEnd &&
      Buffer.compare(window, this.#bytes.subarray(windowEnd - window.length, windowEnd)) === 0
    ) {
      this.#keep(this.#tokenizer.merger.tokens, tokens);
      this.#at += period;
      windowEnd += period;
    }
  }

  /** What follows a window changed its tokens further back than the overlap: once more with windows twice as long. */
  #restart(piece: LongPiece): void {
    this.#at = piece.start;
    this.#count = piece.countBefore;
    if (this.#kept !== null) this.#kept.length = piece.countBefore;
    piece.windowBytes *= 2;
    piece.lastToken = null;
  }

  #keep(tokens: Int32Array, count: number): void {
    this.#count += count;
    if (this.#kept !== null) for (let index = 0; index < count; index++) this.#kept.push(tokens[index]!);
  }
}

type LongPiece = {
  readonly start: number;
  readonly end: number;
  readonly countBefore: number;
  windowBytes: number;
  /** The last token before the window; null in the first window. */
  lastToken: number | null;
};
