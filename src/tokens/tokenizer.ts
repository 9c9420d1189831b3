// Text to tokens exactly as tiktoken's `encode_ordinary` does it, in time linear in the text whatever it contains, in
// steps that can be interrupted, and in memory that does not grow with the text.
//
// A piece longer than a window is merged window by window. This is exact: merges happen only within the final tokens,
// and two neighboring stretches do not affect each other as long as nothing merges across their ends. So a row of
// tokens is the result of merging a piece if and only if each two neighbors, merged from their bytes alone, give these
// two again. A window begins with the last token of the previous one and must give it again, so the whole is such a
// row.
import { assert } from "../core/assert.ts";
import type { EncodingName } from "../core/types.ts";
import { Merger, mergedBytesMax } from "./merger.ts";
import { none } from "./pair-table.ts";
import { Splitter } from "./splitter.ts";
import { hashAppend, loadVocabulary, type Vocabulary } from "./vocabulary.ts";

/** The merger's arrays then fit a core's nearest cache, and a window takes a tenth of a millisecond. */
const windowBytesDefault = 2_048;
/**
 * A window leaves this fraction to the next one, as what follows could change its tokens: no further back than 293
 * bytes, because on such a way to the left each merge has a higher rank than the one before. A test computes it.
 */
const windowOverlap = 8;

/** The tables, which texts share. Only one text is read at a time. */
export class Tokenizer {
  readonly vocabulary: Vocabulary;
  readonly splitter: Splitter;
  readonly merger: Merger;
  readonly windowBytes: number;

  /** `windowBytes` is smaller in tests only. */
  constructor(encoding: EncodingName, windowBytes: number = windowBytesDefault) {
    assert(windowBytes % windowOverlap === 0 && windowBytes <= mergedBytesMax, "windows overlap");
    this.vocabulary = loadVocabulary(encoding);
    this.splitter = new Splitter(encoding);
    this.merger = new Merger(this.vocabulary);
    this.windowBytes = windowBytes;
  }

  /** Characters read, and steps of the merger, since it was created. */
  get steps(): number {
    return this.splitter.steps + this.merger.steps;
  }

  /** The tokens of a text; lone surrogates count as U+FFFD. */
  encode(text: string): Uint32Array {
    const reading = new TokenReading(this, new TextEncoder().encode(text), true);
    reading.advance(Infinity);
    return reading.tokens();
  }
}

/** A text on its way to tokens. */
export class TokenReading {
  readonly #tokenizer: Tokenizer;
  readonly #bytes: Uint8Array;
  readonly #kept: number[] | null;
  #count = 0;
  #at = 0;
  /** The long piece that is being read; null between pieces. */
  #long: LongPiece | null = null;

  /** `bytes` must be UTF-8. Where `keep` is false the tokens are only counted. */
  constructor(tokenizer: Tokenizer, bytes: Uint8Array, keep: boolean) {
    this.#tokenizer = tokenizer;
    this.#bytes = bytes;
    this.#kept = keep ? [] : null;
  }

  /** Tokens so far; may decrease while a long piece is read. */
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

  /** Continues for about `steps` steps (see `Tokenizer.steps`); true when the text is read. */
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
      this.#keep(0, merger.merge(this.#bytes, start, pieceEnd));
      this.#at = pieceEnd;
    } else {
      const countBefore = this.#count;
      this.#long = { pieceStart: start, end: pieceEnd, countBefore, windowBytes, start, lastToken: none };
    }
  }

  #readWindow(piece: LongPiece): void {
    const { merger } = this.#tokenizer;
    const { start, windowBytes, lastToken } = piece;
    const windowEnd = Math.min(start + windowBytes, piece.end);
    const count = merger.merge(this.#bytes, start, windowEnd);
    const first = lastToken === none ? 0 : 1;
    if (first === 1 && merger.tokens[0] !== lastToken) return this.#restart(piece);
    if (windowEnd === piece.end) {
      this.#keep(first, count);
      this.#at = windowEnd;
      this.#long = null;
      return;
    }
    const certainEnd = windowEnd - windowBytes / windowOverlap;
    let certain = count;
    while (certain > first && merger.ends[certain - 1]! > certainEnd) certain--;
    if (certain === first) return this.#restart(piece); // a token as long as the window
    this.#keep(first, certain);
    this.#at = merger.ends[certain - 1]!;
    piece.lastToken = merger.tokens[certain - 1]!;
    piece.start = this.#at - this.#tokenizer.vocabulary.lengthOf(piece.lastToken);
    if (piece.lastToken === lastToken) this.#repeat(piece, start, windowEnd, first, certain);
  }

  /**
   * A window with the same bytes as the previous one, which begins with the same token, has the same tokens:
   * repetition, such as a run of dashes, is read at the speed of comparing. `start` and `end`: of the previous window;
   * `first` and `certain`: its tokens that were kept.
   */
  #repeat(piece: LongPiece, start: number, end: number, first: number, certain: number): void {
    const period = piece.start - start;
    const window = this.#bytes.subarray(start, end);
    let windowEnd = end + period;
    while (
      windowEnd < piece.end &&
      Buffer.compare(window, this.#bytes.subarray(windowEnd - window.length, windowEnd)) === 0
    ) {
      this.#keep(first, certain);
      this.#at += period;
      piece.start += period;
      windowEnd += period;
    }
  }

  /** What follows a window changed its tokens further back than the overlap: starts over once, with windows twice as long. */
  #restart(piece: LongPiece): void {
    this.#at = piece.pieceStart;
    this.#count = piece.countBefore;
    if (this.#kept !== null) this.#kept.length = piece.countBefore;
    piece.start = piece.pieceStart;
    piece.windowBytes *= 2;
    piece.lastToken = none;
  }

  /** Keeps the merger's tokens from `first` to before `end`. */
  #keep(first: number, end: number): void {
    const { tokens } = this.#tokenizer.merger;
    this.#count += end - first;
    if (this.#kept !== null) for (let index = first; index < end; index++) this.#kept.push(tokens[index]!);
  }
}

/** A piece that is read window by window. */
type LongPiece = {
  readonly pieceStart: number;
  readonly end: number;
  readonly countBefore: number;
  windowBytes: number;
  /** The next window's start: where `lastToken` starts. */
  start: number;
  /** The last token that was kept; `none` in the first window. */
  lastToken: number;
};
