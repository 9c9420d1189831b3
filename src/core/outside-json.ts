// Scans JSON from outside before it is parsed: a parser needs a hundred times the size of a body made of brackets, and
// code that walks over its values has a limited stack. Linear in the text, without memory.
import { jsonDepthMax, jsonScanMinLength } from "./limits.ts";

/**
 * Brackets, commas and colons. The worst take 130 bytes of memory each, so a body takes at most 260 MB; 400,000
 * messages must be allowed.
 */
export const jsonTokensMax = 2_000_000;

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Most strings end within this; in longer ones the runtime searches for the end, many characters at a time. */
const nearLength = 12;

/**
 * Why the text must not be parsed, in words that complete a sentence about it; null where it may be. The parser decides
 * whether it is JSON. A short text is always harmless.
 */
export const jsonExcess = (text: string): string | null =>
  text.length < jsonScanMinLength ? null : new JsonScan().push(text);

/** The same for a text that comes in chunks. */
export class JsonScan {
  #depth = 0;
  #tokens = 0;
  #inString = false;
  /** The previous chunk ended with a backslash, which escapes what comes next. */
  #inEscape = false;

  /** Brackets, commas and colons outside of strings so far. */
  get tokens(): number {
    return this.#tokens;
  }

  push(text: string): string | null {
    const { length } = text;
    let depth = this.#depth;
    let tokens = this.#tokens;
    if (length === 0) return null;
    for (let at = this.#inString ? -1 : 0; at < length; at++) {
      const code = at < 0 ? quote : text.charCodeAt(at);
      if (code === quote) {
        const from = at + (this.#inEscape ? 2 : 1);
        at = jsonStringEnd(text, from);
        this.#inString = at < 0;
        this.#inEscape = at < 0 && backslashesAtEnd(text, from) % 2 === 1;
        if (at < 0) break;
      } else if (code === comma || code === colon) tokens++;
      else if (code === openBrace || code === openBracket) {
        tokens++;
        if (++depth > jsonDepthMax) return `nests too deep: more than ${jsonDepthMax} levels`;
      } else if (code === closeBrace || code === closeBracket) depth--;
    }
    this.#depth = depth;
    this.#tokens = tokens;
    return tokens > jsonTokensMax
      ? `has too many values: more than ${jsonTokensMax} brackets, commas and colons`
      : null;
  }
}

/** The index of the quote that ends the string whose text begins at `from`, or -1. */
export function jsonStringEnd(text: string, from: number): number {
  for (let at = from; ;) {
    const near = Math.min(at + nearLength, text.length);
    for (; at < near; at++) {
      const code = text.charCodeAt(at);
      if (code === quote) return at;
      if (code === backslash) at++;
    }
    const next = text.indexOf('"', at);
    if (next < 0) return -1;
    let escapes = next;
    while (escapes > at && text.charCodeAt(escapes - 1) === backslash) escapes--;
    if ((next - escapes) % 2 === 0) return next;
    at = next + 1;
  }
}

function backslashesAtEnd(text: string, from: number): number {
  let at = text.length;
  while (at > from && text.charCodeAt(at - 1) === backslash) at--;
  return text.length - at;
}

/** Throws a SyntaxError for anything that is not JSON, too deep or too large. */
export function parseOutsideJson(text: string): unknown {
  const excess = jsonExcess(text);
  if (excess !== null) throw new SyntaxError(`JSON ${excess}`);
  return JSON.parse(text);
}
