// The fast way past JSON.parse. A node's token events differ from each other in one string, and with running usage in a
// few whole numbers. From one parsed event a Template learns the fixed text around them; a later event that consists of
// exactly that text, a valid JSON string and valid whole numbers is then known to mean the same with the new values.
// Events are compared as the bytes that were read: a token of which no string is made costs a third less CPU time.
//
//   {"choices":[{"delta":{"content":"Hel"}}],"usage":{"completion_tokens":7}}
//   <-------- prefix -------------->^^^^^<--------- fixed[0] ------------->^<>  fixed[1]
//                                   the literal                         a number
//
// Why that is right: JSON is context-free, so a string (or number) token may be replaced by any other without changing
// how the rest is read. That the hole is such a token, and the one that the reader wants, is proven when learning, by
// parsing the event again with other values in the holes and finding exactly those.

/** The numbers of a running usage that a template can follow; undefined where the event has none. */
export type RunningNumbers = { [Field in RunningField]?: number };
export type RunningField = "prompt" | "output" | "cached" | "reasoning";

/** What one event means when it means one string only, else null; given by the reader. */
export type Simple<Channel> = Readonly<{ channel: Channel; text: string; usage: RunningNumbers | null }>;

const quote = 0x22;
const backslash = 0x5c;
const letterU = 0x75;
/** After a backslash: " \\ / b f n r t */
const plainEscapes = [0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74];
/** Never stands in a node's event: the learner looks for it among the parsed values. */
const otherText = "\u0001other";
const otherLiteral = JSON.stringify(otherText);
const otherNumberFirst = 900_000_001;
const numberAfterColon = /:[\t ]?(0|[1-9][0-9]{0,14})(?=[\t ]*[,}])/g;
/** More numbers than any engine's usage object has; keeps learning cheap. */
const numbersMax = 8;

/** A learned event shape. The fields hold the values of the last event that matched. */
export class Template<Channel> {
  readonly channel: Channel;
  /** Where in the bytes the matched event's JSON string literal stands, quotes included. */
  literalStart = 0;
  literalEnd = 0;
  /** Length of the string that the literal stands for, in UTF-16 units. */
  characters = 0;
  readonly #prefix: Uint8Array;
  /** Fixed text after the literal, and between and after the numbers. */
  readonly #fixed: readonly Uint8Array[];
  readonly #fields: readonly (RunningField | null)[];
  readonly #values: number[] = [];
  readonly #numbers: RunningNumbers | null;

  private constructor(
    channel: Channel,
    prefix: string,
    fixed: readonly string[],
    fields: readonly (RunningField | null)[],
    numbers: RunningNumbers | null,
  ) {
    this.channel = channel;
    this.#prefix = Buffer.from(prefix);
    this.#fixed = fixed.map((text) => Buffer.from(text));
    this.#fields = fields;
    this.#numbers = numbers;
  }

  /**
   * Learns from `payload`, whose meaning is `simple`. `read` gives an event's meaning by a full parse (null: not
   * simple, or not JSON). Null when no hole could be proven.
   */
  static learn<Channel>(
    payload: string,
    simple: Simple<Channel>,
    read: (payload: string) => Simple<Channel> | null,
  ): Template<Channel> | null {
    if (simple.text === otherText || payload.includes(otherLiteral)) return null;
    for (let at = payload.indexOf('"'); at >= 0;) {
      const end = endOfString(payload, at);
      if (end < 0) return null;
      if (isText(payload.slice(at, end), simple.text)) {
        const template = Template.#prove(payload, at, end, simple, read);
        if (template !== null) return template;
      }
      at = payload.indexOf('"', end);
    }
    return null;
  }

  static #prove<Channel>(
    payload: string,
    at: number,
    end: number,
    simple: Simple<Channel>,
    read: (payload: string) => Simple<Channel> | null,
  ): Template<Channel> | null {
    const prefix = payload.slice(0, at);
    const rest = payload.slice(end);
    const { fixed, count } = simple.usage === null ? { fixed: [rest], count: 0 } : splitNumbers(rest);
    let other = prefix + otherLiteral + fixed[0]!;
    for (let hole = 0; hole < count; hole++) other += `${otherNumberFirst + hole}${fixed[hole + 1]!}`;
    const meaning = read(other);
    if (meaning === null || meaning.channel !== simple.channel || meaning.text !== otherText) return null;
    const fields: (RunningField | null)[] = new Array<RunningField | null>(count).fill(null);
    for (const [field, value] of Object.entries(meaning.usage ?? {}) as [RunningField, number][])
      if (value >= otherNumberFirst && value < otherNumberFirst + count) fields[value - otherNumberFirst] = field;
    return new Template(simple.channel, prefix, fixed, fields, simple.usage === null ? null : { ...simple.usage });
  }

  /** If an event of this shape begins at `start`, the index after it, else -1. The values are then the event's. */
  match(bytes: Uint8Array, start: number, end: number): number {
    const literalStart = start + this.#prefix.length;
    if (literalStart >= end || !standsAt(this.#prefix, bytes, start, end)) return -1;
    const literalEnd = this.#endOfLiteral(bytes, literalStart, end);
    if (literalEnd < 0) return -1;
    const fixed = this.#fixed;
    if (!standsAt(fixed[0]!, bytes, literalEnd, end)) return -1;
    let at = literalEnd + fixed[0]!.length;
    for (let hole = 0; hole < this.#fields.length; hole++) {
      const from = at;
      let value = 0;
      for (let byte = bytes[at]!; at < end && byte >= 0x30 && byte <= 0x39; byte = bytes[++at]!)
        value = value * 10 + byte - 0x30;
      const digits = at - from;
      if (digits === 0 || digits > 15 || (digits > 1 && bytes[from] === 0x30)) return -1;
      const next = fixed[hole + 1]!;
      if (!standsAt(next, bytes, at, end)) return -1;
      at += next.length;
      this.#values[hole] = value;
    }
    this.literalStart = literalStart;
    this.literalEnd = literalEnd;
    return at;
  }

  /** The matched event's running usage, or null when the shape has none; the same object each time. */
  get numbers(): RunningNumbers | null {
    if (this.#numbers === null) return null;
    for (let hole = 0; hole < this.#fields.length; hole++) {
      const field = this.#fields[hole];
      if (field) this.#numbers[field] = this.#values[hole];
    }
    return this.#numbers;
  }

  /**
   * Index after the JSON string literal that starts at `start`, or -1 when there is none, or when it is not UTF-8 or
   * names a surrogate by escape: what strict readers refuse must not be handed on as it is. Counts its characters.
   */
  #endOfLiteral(bytes: Uint8Array, start: number, end: number): number {
    if (bytes[start] !== quote) return -1;
    let characters = 0;
    for (let at = start + 1; at < end;) {
      const byte = bytes[at]!;
      if (byte === quote) {
        this.characters = characters;
        return at + 1;
      }
      if (byte < 0x20) return -1;
      const length =
        byte === backslash ? escapeLength(bytes, at, end) : byte < 0x80 ? 1 : sequenceLength(bytes, at, end);
      if (length === 0) return -1;
      characters += byte >= 0xf0 ? 2 : 1;
      at += length;
    }
    return -1;
  }
}

/** Whether all of `text` stands at `at`. */
function standsAt(text: Uint8Array, bytes: Uint8Array, at: number, end: number): boolean {
  if (at + text.length > end) return false;
  for (let index = 0; index < text.length; index++) if (bytes[at + index] !== text[index]) return false;
  return true;
}

/** Length of the escape whose backslash is at `at`, or 0 when it is none or half of a surrogate pair. */
function escapeLength(bytes: Uint8Array, at: number, end: number): number {
  if (at + 1 >= end) return 0;
  if (bytes[at + 1] !== letterU) return plainEscapes.includes(bytes[at + 1]!) ? 2 : 0;
  if (at + 6 > end) return 0;
  let value = 0;
  for (let digit = at + 2; digit < at + 6; digit++) {
    const byte = bytes[digit]!;
    const lower = byte | 0x20;
    if (byte >= 0x30 && byte <= 0x39) value = value * 16 + byte - 0x30;
    else if (lower >= 0x61 && lower <= 0x66) value = value * 16 + lower - 0x57;
    else return 0;
  }
  return value < 0xd800 || value > 0xdfff ? 6 : 0;
}

/** Length of the UTF-8 sequence of two to four bytes at `at`, or 0 when it is not well formed (Unicode, table 3-7). */
function sequenceLength(bytes: Uint8Array, at: number, end: number): number {
  const first = bytes[at]!;
  const length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length === 0 || at + length > end) return 0;
  const second = bytes[at + 1]!;
  const least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  const most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > most) return 0;
  for (let next = at + 2; next < at + length; next++) if ((bytes[next]! & 0xc0) !== 0x80) return 0;
  return length;
}

/** Index after the closing quote of the JSON string literal at `start` in JSON text, or -1 when there is none. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) return at + 1;
    if (code === backslash) at++;
  }
  return -1;
}

/** Length of the string that a valid literal stands for, in UTF-16 units. */
export function decodedLength(literal: string): number {
  let length = literal.length - 2;
  for (let at = literal.indexOf("\\"); at >= 0;) {
    const extra = literal.charCodeAt(at + 1) === letterU ? 5 : 1;
    length -= extra;
    at = literal.indexOf("\\", at + extra + 1);
  }
  return length;
}

function isText(literal: string, text: string): boolean {
  return JSON.parse(literal) === text;
}

/** Cuts the fixed text at each whole number from the usage object on. */
function splitNumbers(rest: string): { fixed: string[]; count: number } {
  const from = rest.indexOf('"usage"');
  const fixed: string[] = [];
  let at = 0;
  for (const match of from < 0 ? [] : rest.slice(from).matchAll(numberAfterColon)) {
    if (fixed.length === numbersMax) break;
    const end = from + match.index + match[0].length;
    const start = end - match[1]!.length;
    fixed.push(rest.slice(at, start));
    at = end;
  }
  return { fixed: [...fixed, rest.slice(at)], count: fixed.length };
}
