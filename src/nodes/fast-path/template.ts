// The fast way past JSON.parse. A node's token events differ from each other in one string, in their id and time, and with
// running usage in a few whole numbers. From one parsed event a Template learns the fixed text around them. A later event
// that consists of exactly that text, a valid JSON string and valid whole numbers then means the same with the new values,
// even in another answer. Events are compared as the bytes that were read: a token that never becomes a string costs a
// third less CPU time.
//
//   {"id":"chatcmpl-7","choices":[{"delta":{"content":"Hel"}}],"usage":{"completion_tokens":7}}
//   <fixed>^^^^^^^^^^^^<----------- fixed ----------->^^^^^<------------- fixed ------------->^<>
//          ignored text                               the literal                          a number
//
// Why this is correct: JSON is context-free, so replacing one string (or number) token with another does not change how the
// rest is read. Learning proves that the holes are such tokens, and are the ones that the reader wants or ignores: it parses
// the event again with other values in the holes and expects exactly those.

/** The numbers of a running usage that a template can follow; undefined where the event has none. */
export type RunningNumbers = { [Field in RunningField]?: number };
export type RunningField = "prompt" | "output" | "cached" | "reasoning";

/** What one event means where it means one string only, otherwise null; the reader provides it. */
export type Simple<Channel> = Readonly<{ channel: Channel; text: string; usage: RunningNumbers | null }>;

const quote = 0x22;
const backslash = 0x5c;
const letterU = 0x75;
/** After a backslash: " \\ / b f n r t */
const plainEscapes = [0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74];
/** Never appears in a node's event: the learner searches for it among the parsed values. */
const otherText = "\u0001other";
const otherLiteral = JSON.stringify(otherText);
const otherNumberFirst = 900_000_001;
/** No reader uses an event's id and time. Both differ from answer to answer, and with some engines from event to event. */
const idField = /"id":[\t ]?"[\x20\x21\x23-\x5b\x5d-\x7e]+"(?=[\t ]*[,}])/;
const createdField = /"created":[\t ]?(?:0|[1-9][0-9]{0,14})(?=[\t ]*[,}])/;
const numberAfterColon = /:[\t ]?(0|[1-9][0-9]{0,14})(?=[\t ]*[,}])/g;
/** How many positions are tried as the text's own. Each attempt parses the event again. */
const triesMax = 8;
/** More numbers than any engine's usage object has; keeps learning cheap. */
const numbersMax = 8;

/** A token of an event that may differ: the wanted text, an ignored text or (by position) a running number. */
const enum HoleKind {
  Literal,
  IgnoredText,
  IgnoredNumber,
  Number,
}
type Hole = Readonly<{ kind: HoleKind; start: number; end: number }>;

/** A learned event shape. Its fields hold the values of the last event that matched. */
export class Template<Channel> {
  readonly channel: Channel;
  /** Where the matched event's JSON string literal begins in the bytes, quotes included. */
  literalStart = 0;
  literalEnd = 0;
  /** Length of the string that the literal stands for, in UTF-16 units. */
  characters = 0;
  /** The index after the matched event. */
  end = 0;
  /** Fixed text before, between and after the holes. */
  readonly #fixed: readonly Uint8Array[];
  readonly #holes: readonly HoleKind[];
  /** For each hole of kind Number, its field; null if the field does not matter. */
  readonly #fields: readonly (RunningField | null)[];
  readonly #values: number[] = [];
  readonly #numbers: RunningNumbers | null;

  private constructor(
    channel: Channel,
    fixed: readonly string[],
    holes: readonly HoleKind[],
    fields: readonly (RunningField | null)[],
    numbers: RunningNumbers | null,
  ) {
    this.channel = channel;
    this.#fixed = fixed.map((text) => Buffer.from(text));
    this.#holes = holes;
    this.#fields = fields;
    this.#numbers = numbers;
  }

  /** Learns from `payload`, which means `simple`. `read` parses in full; null: not simple. Null: no hole was proven. */
  static learn<Channel>(
    payload: string,
    simple: Simple<Channel>,
    read: (payload: string) => Simple<Channel> | null,
  ): Template<Channel> | null {
    if (simple.text === otherText || payload.includes(otherLiteral)) return null;
    const ignored = ignoredHoles(payload);
    const numbers = simple.usage === null ? [] : numberHoles(payload);
    let tries = 0;
    for (let at = payload.indexOf('"'); at >= 0;) {
      const end = endOfString(payload, at);
      if (end < 0) return null;
      if (isText(payload.slice(at, end), simple.text)) {
        if (++tries > triesMax) return null;
        const wanted = [{ kind: HoleKind.Literal, start: at, end }, ...numbers];
        const template =
          Template.#prove(payload, [...wanted, ...ignored], simple, read) ??
          (ignored.length === 0 ? null : Template.#prove(payload, wanted, simple, read));
        if (template !== null) return template;
      }
      at = payload.indexOf('"', end);
    }
    return null;
  }

  static #prove<Channel>(
    payload: string,
    unsorted: readonly Hole[],
    simple: Simple<Channel>,
    read: (payload: string) => Simple<Channel> | null,
  ): Template<Channel> | null {
    const holes = unsorted.toSorted((one, other) => one.start - other.start);
    const fixed: string[] = [];
    let other = "";
    let from = 0;
    let numbers = 0;
    for (const { kind, start, end } of holes) {
      if (start < from) return null; // the wanted text lies within an ignored hole
      fixed.push(payload.slice(from, start));
      other += payload.slice(from, start);
      if (kind === HoleKind.Number) other += otherNumberFirst + numbers++;
      else other += kind === HoleKind.Literal ? otherLiteral : kind === HoleKind.IgnoredText ? '"other"' : "1";
      from = end;
    }
    fixed.push(payload.slice(from));
    const meaning = read(other + payload.slice(from));
    if (meaning === null || meaning.channel !== simple.channel || meaning.text !== otherText) return null;
    const fields = new Array<RunningField | null>(numbers).fill(null);
    for (const [field, value] of Object.entries(meaning.usage ?? {}) as [RunningField, number][])
      if (value >= otherNumberFirst && value < otherNumberFirst + numbers) fields[value - otherNumberFirst] = field;
    const kinds = holes.map(({ kind }) => kind);
    return new Template(simple.channel, fixed, kinds, fields, simple.usage);
  }

  /** If an event of this shape begins at `start`, the index after it, otherwise -1. The fields then hold its values. */
  match(bytes: Uint8Array, start: number, end: number): number {
    const fixed = this.#fixed;
    const holes = this.#holes;
    let at = start;
    let numbers = 0;
    for (let hole = 0; hole < holes.length; hole++) {
      const text = fixed[hole]!;
      if (!standsAt(text, bytes, at, end)) return -1;
      at += text.length;
      const kind = holes[hole]!;
      if (kind === HoleKind.Literal) {
        this.literalStart = at;
        at = this.#endOfLiteral(bytes, at, end);
        this.literalEnd = at;
      } else if (kind === HoleKind.IgnoredText) {
        at = endOfPlainLiteral(bytes, at, end);
      } else {
        const from = at;
        at = endOfNumber(bytes, at, end);
        if (kind === HoleKind.Number && at > 0) this.#values[numbers++] = numberIn(bytes, from, at);
      }
      if (at < 0) return -1;
    }
    const last = fixed[holes.length]!;
    if (!standsAt(last, bytes, at, end)) return -1;
    this.end = at + last.length;
    return this.end;
  }

  /** Writes the matched event's usage into `target`, all four fields; false: the shape has none. */
  writeNumbers(target: RunningNumbers): boolean {
    if (this.#numbers === null) return false;
    const { prompt, output, cached, reasoning } = this.#numbers;
    target.prompt = prompt;
    target.output = output;
    target.cached = cached;
    target.reasoning = reasoning;
    for (let hole = 0; hole < this.#fields.length; hole++) {
      const field = this.#fields[hole];
      if (field) target[field] = this.#values[hole];
    }
    return true;
  }

  /** Index after the JSON string at `start`, counting its characters; -1: none, not UTF-8, or an escaped surrogate. */
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

/** The first id and the first time, which by the events' field order are the event's own. */
function ignoredHoles(payload: string): Hole[] {
  const holes: Hole[] = [];
  const id = idField.exec(payload);
  if (id !== null) {
    const end = id.index + id[0].length;
    holes.push({ kind: HoleKind.IgnoredText, start: id.index + id[0].indexOf('"', '"id":'.length), end });
  }
  const created = createdField.exec(payload);
  if (created !== null) {
    const end = created.index + created[0].length;
    const digits = /[0-9]+$/.exec(created[0])![0].length;
    holes.push({ kind: HoleKind.IgnoredNumber, start: end - digits, end });
  }
  return holes;
}

/** Each whole number after the start of the usage object. */
function numberHoles(payload: string): Hole[] {
  const from = payload.indexOf('"usage"');
  const holes: Hole[] = [];
  for (const match of from < 0 ? [] : payload.slice(from).matchAll(numberAfterColon)) {
    if (holes.length === numbersMax) break;
    const end = from + match.index + match[0].length;
    holes.push({ kind: HoleKind.Number, start: end - match[1]!.length, end });
  }
  return holes;
}

/** Index after a JSON string literal of one or more printable ASCII characters without escapes, or -1. */
function endOfPlainLiteral(bytes: Uint8Array, start: number, end: number): number {
  if (bytes[start] !== quote) return -1;
  for (let at = start + 1; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === quote) return at > start + 1 ? at + 1 : -1;
    if (byte < 0x20 || byte > 0x7e || byte === backslash) return -1;
  }
  return -1;
}

/** Index after a whole number of at most 15 digits as JSON writes it, or -1. */
function endOfNumber(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at]! >= 0x30 && bytes[at]! <= 0x39) at++;
  const digits = at - start;
  return digits === 0 || digits > 15 || (digits > 1 && bytes[start] === 0x30) ? -1 : at;
}

function numberIn(bytes: Uint8Array, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at++) value = value * 10 + bytes[at]! - 0x30;
  return value;
}

function standsAt(text: Uint8Array, bytes: Uint8Array, at: number, end: number): boolean {
  if (at + text.length > end) return false;
  for (let index = 0; index < text.length; index++) if (bytes[at + index] !== text[index]) return false;
  return true;
}

/** Length of the escape whose backslash is at `at`, or 0 when it is not one, or half of a surrogate pair. */
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
