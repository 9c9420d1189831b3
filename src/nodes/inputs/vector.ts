// Reads a vector from an item's JSON without parsing numbers, and converts it where the node used the other form.
import type { VectorFormat } from "../../core/types.ts";
import { parseNodeJson, record } from "../json.ts";

export type Vector = Readonly<{ index: number; dimensions: number; json: string }>;

/** Null where it is no vector. */
export function vectorOf(item: string, format: VectorFormat): Vector | null {
  const start = valueStart(item);
  if (start < 0) return null;
  const isText = item[start] === '"';
  const end = item.indexOf(isText ? '"' : "]", start + 1) + 1;
  if (end === 0) return null;
  const rest = record(parseNodeJson(`${item.slice(0, start)}0${item.slice(end)}`));
  const index = rest?.["index"];
  if (rest?.["embedding"] !== 0 || !Number.isSafeInteger(index)) return null;
  const written = item.slice(start, end);
  const dimensions = isText ? floatsInBase64(written) : numbersIn(written);
  if (dimensions === null) return null;
  const json = isText === (format === "base64") ? written : isText ? asNumbers(written) : asBase64(written);
  return { index: index as number, dimensions, json };
}

/** Where the value of "embedding" begins; -1: nowhere. The word may also be a value. */
function valueStart(item: string): number {
  const name = '"embedding"';
  for (let at = item.indexOf(name); at >= 0; at = item.indexOf(name, at)) {
    at = pastSpace(item, at + name.length);
    if (item[at] !== ":") continue;
    at = pastSpace(item, at + 1);
    return item[at] === "[" || item[at] === '"' ? at : -1;
  }
  return -1;
}

function pastSpace(text: string, from: number): number {
  let at = from;
  while (isSpace(text.charCodeAt(at))) at++;
  return at;
}

const isSpace = (code: number): boolean =>
  code === 0x20 || (code >= 0x09 && code <= 0x0d && code !== 0x0b && code !== 0x0c);

/** How many 32-bit floats a base64 JSON string holds; null: it is not base64, or holds a number that is not finite. */
function floatsInBase64(literal: string): number | null {
  if (!/^"[A-Za-z0-9+/]+={0,2}"$/.test(literal)) return null;
  const characters = literal.length - 2;
  const padding = literal.endsWith('=="') ? 2 : literal.endsWith('="') ? 1 : 0;
  const bytes = (characters / 4) * 3 - padding;
  return characters % 4 === 0 && bytes % 4 === 0 && areFinite(bytesIn(literal)) ? bytes / 4 : null;
}

const bytesIn = (literal: string): Buffer => Buffer.from(literal.slice(1, -1), "base64");

/** By the eight exponent bits in the last two bytes: all set means infinite or not a number. */
function areFinite(floats: Buffer): boolean {
  for (let at = 3; at < floats.length; at += 4) {
    if ((floats[at]! & 0x7f) === 0x7f && floats[at - 1]! >= 0x80) return false;
  }
  return true;
}

function asNumbers(literal: string): string {
  const bytes = bytesIn(literal);
  return JSON.stringify(Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4)));
}

function asBase64(list: string): string {
  const numbers = parseNodeJson(list) as readonly number[];
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [index, number] of numbers.entries()) bytes.writeFloatLE(number, index * 4);
  return `"${bytes.toString("base64")}"`;
}

// The states of a JSON number, and of the gap between two of them.
const value = 0;
const minus = 1;
const zero = 2;
const whole = 3;
const point = 4;
const fraction = 5;
const exponent = 6;
const exponentSign = 7;
const exponentDigits = 8;
const between = 9;

/** The largest 32-bit float has this many digits. */
const floatDigitsMax = 39;

/** How many numbers a JSON list has; null where it is empty, or holds anything but numbers that are finite in 32 bits. */
function numbersIn(list: string): number | null {
  let state = value;
  let numbers = 1;
  let from = 1;
  /** A number has many digits or a non-negative exponent: only then it may be too large. */
  let mayBeLarge = false;
  const last = list.length - 1;
  for (let at = 1; at < last; at++) {
    const code = list.charCodeAt(at);
    if (code >= 0x30 && code <= 0x39) {
      if (state === whole || state === fraction || state === exponentDigits) continue;
      if (state === value || state === minus) state = code === 0x30 ? zero : whole;
      else if (state === point) state = fraction;
      else if (state === exponent || state === exponentSign) {
        mayBeLarge ||= state === exponent;
        state = exponentDigits;
      } else return null;
    } else if (code === 0x2c) {
      if (!endsNumber(state)) return null;
      mayBeLarge ||= at - from >= floatDigitsMax;
      from = at + 1;
      numbers++;
      state = value;
    } else if (code === 0x2e) {
      if (state !== zero && state !== whole) return null;
      state = point;
    } else if (code === 0x2d) {
      if (state === value) state = minus;
      else if (state === exponent) state = exponentSign;
      else return null;
    } else if (code === 0x65 || code === 0x45) {
      if (state !== zero && state !== whole && state !== fraction) return null;
      state = exponent;
    } else if (code === 0x2b) {
      if (state !== exponent) return null;
      mayBeLarge = true;
      state = exponentSign;
    } else if (isSpace(code)) {
      if (state === value) continue;
      if (!endsNumber(state)) return null;
      state = between;
    } else return null;
  }
  if (!endsNumber(state)) return null;
  return (mayBeLarge || last - from >= floatDigitsMax) && !areAllFinite(list) ? null : numbers;
}

const areAllFinite = (list: string): boolean =>
  (parseNodeJson(list) as readonly number[]).every((number) => Number.isFinite(Math.fround(number)));

const endsNumber = (state: number): boolean =>
  state === zero || state === whole || state === fraction || state === exponentDigits || state === between;
