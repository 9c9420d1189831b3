// Splits the JSON of a list into its objects as it comes: 2,048 vectors have 45 to 184 MB, too much to keep.
import { jsonDepthMax } from "../../core/limits.ts";

/** What is read of a node's answer for one input: 8,192 numbers of 20 characters, and the names around them. */
export const inputAnswerMaxBytes = 192 * 1024;
/** Everything around the list of an answer. */
export const inputsAnswerFrameMaxLength = 64 * 1024;

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const space = 0x20;

/** Names of the list in the engines' answers. */
const listBegins = /"(?:data|results)"\s{0,99}:\s{0,99}$/;
/** How far back the name is searched. */
const listBeginsWithin = 256;

/** Bytes without a meaning: nearly all of an answer is digits or base64 and is skipped at 1 ns a byte. */
const none = new Uint8Array(256);
const ofStrings = new Uint8Array(256).fill(1);
const ofValues = new Uint8Array(256).fill(1);
for (const code of [quote, backslash]) ofStrings[code] = 0;
for (const code of [quote, openBracket, closeBracket, openBrace, closeBrace]) ofValues[code] = 0;

export class ListScanner {
  /** Takes the JSON of one object of the list; false: stop. */
  readonly #item: (json: string) => boolean;
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** The depth of the list's objects; null: outside of it. */
  #listDepth: number | null = null;
  #wasList = false;
  /** The beginning of an object that earlier reads brought; null: none is open. */
  #begun: Buffer[] | null = null;
  #begunBytes = 0;
  #frame = "";
  fault: string | null = null;

  constructor(item: (json: string) => boolean) {
    this.#item = item;
  }

  /** Everything around the list, which appears empty here. */
  get frame(): string {
    return this.#frame;
  }

  push(bytes: Buffer, start: number, end: number): void {
    if (this.fault !== null) return;
    /** Bytes from here on belong to the frame, or to the open object. */
    let from = start;
    for (let at = start; at < end; at++) {
      const passes = this.#escaped || this.#depth === this.#listDepth ? none : this.#inString ? ofStrings : ofValues;
      while (at < end && passes[bytes[at]!] === 1) at++;
      if (at === end) break;
      const code = bytes[at]!;
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (code === backslash) this.#escaped = true;
        else if (code === quote) this.#inString = false;
        continue;
      }
      const betweenItems = this.#depth === this.#listDepth;
      switch (code) {
        case quote:
          if (betweenItems) return this.#fail("a list with something else than objects");
          this.#inString = true;
          break;
        case openBracket:
        case openBrace:
          if (betweenItems) {
            if (code !== openBrace) return this.#fail("a list with something else than objects");
            this.#begun = [];
            this.#begunBytes = 0;
            from = at;
          } else if (code === openBracket && this.#begun === null && this.#isList(bytes, from, at)) {
            this.#addToFrame(bytes, from, at + 1);
            this.#listDepth = this.#depth + 1;
            this.#wasList = true;
          }
          if (++this.#depth > jsonDepthMax) return this.#fail("an answer that nests too deep");
          break;
        case closeBracket:
        case closeBrace:
          this.#depth--;
          if (betweenItems) {
            this.#listDepth = null;
            from = at;
          } else if (this.#begun !== null && this.#depth === this.#listDepth) {
            this.#keep(bytes, from, at + 1);
            if (this.fault !== null) return;
            const [first, ...rest] = this.#begun as [Buffer, ...Buffer[]];
            this.#begun = null;
            const json = (rest.length === 0 ? first : Buffer.concat([first, ...rest])).toString("utf8");
            if (!this.#item(json)) return this.#fail("an item that is none");
          }
          break;
        default:
          if (betweenItems && code !== comma && code > space)
            return this.#fail("a list with something else than objects");
      }
    }
    if (this.#begun !== null) this.#keep(bytes, from, end);
    else if (this.#listDepth === null) this.#addToFrame(bytes, from, end);
  }

  #isList(bytes: Buffer, from: number, at: number): boolean {
    if (this.#wasList) return false;
    if (this.#depth === 0) return true;
    if (this.#depth !== 1) return false;
    const before =
      this.#frame.slice(-listBeginsWithin) + bytes.toString("latin1", Math.max(from, at - listBeginsWithin), at);
    return listBegins.test(before);
  }

  /** Copied, because the read's buffer is reused. */
  #keep(bytes: Buffer, from: number, to: number): void {
    this.#begunBytes += to - from;
    if (this.#begunBytes > inputAnswerMaxBytes) return this.#fail("an item that is too long");
    this.#begun!.push(Buffer.from(bytes.subarray(from, to)));
  }

  #addToFrame(bytes: Buffer, from: number, to: number): void {
    if (this.#frame.length + to - from > inputsAnswerFrameMaxLength) return this.#fail("too much beside its list");
    this.#frame += bytes.toString("latin1", from, to);
  }

  #fail(what: string): void {
    this.fault = what;
    this.#begun = null;
  }
}
