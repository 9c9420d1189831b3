// Cuts a text into the pieces that byte-pair merging works on: the regular expressions of the encodings as a scanner over
// UTF-8.
//
//   o200k_base
//   1  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//   2  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//   3  \p{N}{1,3}
//   4   ?[^\s\p{L}\p{N}]+[\r\n/]*
//   5  \s*[\r\n]+
//   6  \s+(?!\S)
//   7  \s+
//
//   cl100k_base                                   p50k_base, r50k_base
//   1  (?i:'s|'t|'re|'ve|'m|'ll|'d)               1  's|'t|'re|'ve|'m|'ll|'d
//   2  [^\r\n\p{L}\p{N}]?\p{L}+                   2   ?\p{L}+
//   3  \p{N}{1,3}                                 3   ?\p{N}+
//   4   ?[^\s\p{L}\p{N}]+[\r\n]*                 4   ?[^\s\p{L}\p{N}]+
//   5, 6, 7 as above                              6, 7 as above
//
// Where the expression would go back, the scanner remembers on its way what going back would find. A character is looked
// at no more than 5 times, however long the runs are, nothing is allocated, and no other Unicode version interferes.
import type { EncodingName } from "../core/types.ts";
import { CharacterClass, classifyCodePoints } from "./character-class.ts";

const { Upper, Lower, Caseless, Mark, Number: Numeral, Space, Newline, Other } = CharacterClass;
const letter = Upper | Lower | Caseless;
/** [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] */
const head = Upper | Caseless | Mark;
/** [\p{Ll}\p{Lm}\p{Lo}\p{M}] */
const tail = Lower | Caseless | Mark;
/** [^\r\n\p{L}\p{N}] */
const prefix = Mark | Space | Other;
/** [^\s\p{L}\p{N}] */
const symbol = Mark | Other;
const whiteSpace = Space | Newline;
/** After the last character: in no class. */
const nothing = 0;

const failed = -1;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const blank = 0x20;
const apostrophe = 0x27;
const slash = 0x2f;

const classes = classifyCodePoints();

export class Splitter {
  readonly #encoding: EncodingName;
  #bytes: Uint8Array = new Uint8Array();
  #end = 0;
  /** Bytes of the character that `#classAt` read last. */
  #width = 0;
  /** Where the run of `head` characters ended that `#lowerWord` saw last. */
  #headEnd = 0;
  /** Characters read since the splitter was created. */
  steps = 0;

  constructor(encoding: EncodingName) {
    this.#encoding = encoding;
  }

  /** `bytes` from 0 to `end` must be UTF-8. */
  open(bytes: Uint8Array, end: number): void {
    this.#bytes = bytes;
    this.#end = end;
  }

  /** Where the piece that starts at `start` ends; `start` is before the end and between two pieces. */
  pieceEnd(start: number): number {
    switch (this.#encoding) {
      case "o200k_base":
        return this.#o200kEnd(start);
      case "cl100k_base":
        return this.#cl100kEnd(start);
      case "p50k_base":
      case "r50k_base":
        return this.#r50kEnd(start);
      default:
        return this.#encoding satisfies never;
    }
  }

  #o200kEnd(start: number): number {
    const first = this.#classAt(start);
    const second = start + this.#width;
    if ((first & (letter | prefix)) !== 0) {
      const end = this.#word(start, first, second); // alternatives 1 and 2
      if (end !== failed) return this.#contractionEnd(end);
    }
    if ((first & Numeral) !== 0) return this.#numberEnd(second); // 3
    const symbols = this.#behindBlank(start);
    const symbolsEnd = this.#runEnd(symbols, symbol);
    if (symbolsEnd > symbols) return this.#lineEnds(symbolsEnd, slash); // 4
    return this.#whiteSpaceEnd(start, Newline); // 5, 6, 7
  }

  #cl100kEnd(start: number): number {
    const contraction = this.#contractionEnd(start);
    if (contraction > start) return contraction; // 1
    const first = this.#classAt(start);
    const second = start + this.#width;
    const letters = (first & prefix) === 0 ? start : second;
    const lettersEnd = this.#runEnd(letters, letter);
    if (lettersEnd > letters) return lettersEnd; // 2
    if ((first & Numeral) !== 0) return this.#numberEnd(second); // 3
    const symbols = this.#behindBlank(start);
    const symbolsEnd = this.#runEnd(symbols, symbol);
    if (symbolsEnd > symbols) return this.#lineEnds(symbolsEnd, lineFeed); // 4
    return this.#whiteSpaceEnd(start, Newline); // 5, 6, 7
  }

  #r50kEnd(start: number): number {
    const contraction = this.#contractionEnd(start);
    if (contraction > start && this.#isSmall(start + 1, contraction)) return contraction; // 1
    const run = this.#behindBlank(start);
    const found = this.#classAt(run);
    for (const classes of [letter, Numeral, symbol]) {
      if ((found & classes) !== 0) return this.#runEnd(run, classes); // 2, 3, 4
    }
    return this.#whiteSpaceEnd(start, nothing); // 6, 7
  }

  #behindBlank(start: number): number {
    return this.#bytes[start] === blank ? start + 1 : start;
  }

  #word(start: number, first: number, second: number): number {
    if ((first & letter) !== 0) {
      const end = this.#lowerWord(start);
      return end !== failed ? end : this.#headEnd;
    }
    const end = this.#lowerWord(second);
    if (end !== failed) return end; // 1 with a prefix
    if (first === Mark) return second; // 1 without: the mark itself is the last `tail` character before the others
    return this.#headEnd > second ? this.#headEnd : failed; // 2
  }

  /** End of `head* tail+` at `start`. The star gives back until a `tail` character follows: the last one of the run. */
  #lowerWord(start: number): number {
    let at = start;
    let lastTailEnd = failed;
    let found = this.#classAt(at);
    while ((found & head) !== 0) {
      at += this.#width;
      if ((found & tail) !== 0) lastTailEnd = at;
      found = this.#classAt(at);
    }
    this.#headEnd = at;
    return found === Lower ? this.#runEnd(at + this.#width, tail) : lastTailEnd;
  }

  /** Ignores case, which makes U+017F (long s) an s. */
  #contractionEnd(at: number): number {
    const bytes = this.#bytes;
    const left = this.#end - at;
    if (left < 2 || bytes[at] !== apostrophe) return at;
    const first = bytes[at + 1]! | 0x20;
    if (first === 0x73 || first === 0x74 || first === 0x6d || first === 0x64) return at + 2; // s t m d
    if (left < 3) return at;
    const second = bytes[at + 2]!;
    if (bytes[at + 1] === 0xc5 && second === 0xbf) return at + 3;
    const lower = second | 0x20;
    if ((first === 0x72 || first === 0x76) && lower === 0x65) return at + 3; // re ve
    return first === 0x6c && lower === 0x6c ? at + 3 : at; // ll
  }

  #isSmall(start: number, end: number): boolean {
    for (let at = start; at < end; at++) if (this.#bytes[at]! < 0x61 || this.#bytes[at]! > 0x7a) return false;
    return true;
  }

  #numberEnd(second: number): number {
    let at = second;
    for (let count = 1; count < 3 && (this.#classAt(at) & Numeral) !== 0; count++) at += this.#width;
    return at;
  }

  /** Where the line ends at `start` end, which may include `other`. */
  #lineEnds(start: number, other: number): number {
    let at = start;
    for (; at < this.#end; at++, this.steps++) {
      const byte = this.#bytes[at]!;
      if (byte !== lineFeed && byte !== carriageReturn && byte !== other) break;
    }
    return at;
  }

  /** `lineEnd`: the piece ends after the last character of this class, if there is one. */
  #whiteSpaceEnd(start: number, lineEnd: number): number {
    let at = start;
    let last = start;
    let newlineEnd = failed;
    for (;;) {
      const found = this.#classAt(at);
      if ((found & whiteSpace) === 0) break;
      last = at;
      at += this.#width;
      if (found === lineEnd) newlineEnd = at;
    }
    if (newlineEnd !== failed) return newlineEnd; // 5
    // 6 leaves the last one to the following word; 7 where there is only one
    return at === this.#end || last === start ? at : last;
  }

  #runEnd(start: number, classes: number): number {
    let at = start;
    while ((this.#classAt(at) & classes) !== 0) at += this.#width;
    return at;
  }

  #classAt(at: number): number {
    if (at >= this.#end) return nothing;
    this.steps++;
    const bytes = this.#bytes;
    const lead = bytes[at]!;
    if (lead < 0x80) {
      this.#width = 1;
      return classes[lead]!;
    }
    let codePoint: number;
    if (lead < 0xe0) {
      this.#width = 2;
      codePoint = ((lead & 0x1f) << 6) | (bytes[at + 1]! & 0x3f);
    } else if (lead < 0xf0) {
      this.#width = 3;
      codePoint = ((lead & 0x0f) << 12) | ((bytes[at + 1]! & 0x3f) << 6) | (bytes[at + 2]! & 0x3f);
    } else {
      this.#width = 4;
      codePoint =
        ((lead & 0x07) << 18) |
        ((bytes[at + 1]! & 0x3f) << 12) |
        ((bytes[at + 2]! & 0x3f) << 6) |
        (bytes[at + 3]! & 0x3f);
    }
    return classes[codePoint]!;
  }
}
