// The fast way past JSON.parse. A node's token events differ from each other in one string, and with running usage in a
// few whole numbers. From one parsed event a Template learns the fixed text around them; a later event that consists of
// exactly that text, a valid JSON string and valid whole numbers is then known to mean the same with the new values.
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

/** A learned event shape. `literal` and `numbers` hold the values of the last event that matched. */
export class Template<Channel> {
  readonly channel: Channel;
  /** The matched event's string, as JSON text with its quotes. */
  literal = "";
  /** The matched event's running usage, or null when the shape has none. */
  readonly numbers: RunningNumbers | null;
  readonly #prefix: string;
  /** Fixed text after the literal, and between and after the numbers. */
  readonly #fixed: readonly string[];
  readonly #fields: readonly (RunningField | null)[];
  readonly #values: number[] = [];

  private constructor(
    channel: Channel,
    prefix: string,
    fixed: readonly string[],
    fields: readonly (RunningField | null)[],
    numbers: RunningNumbers | null,
  ) {
    this.channel = channel;
    this.#prefix = detached(prefix);
    this.#fixed = fixed.map(detached);
    this.#fields = fields;
    this.numbers = numbers;
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
      const end = endOfLiteral(payload, at);
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

  /** Whether `payload` has this shape; if so, `literal` and `numbers` are its values. */
  match(payload: string): boolean {
    if (!payload.startsWith(this.#prefix)) return false;
    const start = this.#prefix.length;
    const end = endOfLiteral(payload, start);
    if (end < 0) return false;
    const fixed = this.#fixed;
    const first = fixed[0]!;
    if (!payload.startsWith(first, end)) return false;
    let at = end + first.length;
    for (let hole = 0; hole < this.#fields.length; hole++) {
      const from = at;
      let value = 0;
      for (let code = payload.charCodeAt(at); code >= 0x30 && code <= 0x39; code = payload.charCodeAt(++at))
        value = value * 10 + code - 0x30;
      const digits = at - from;
      if (digits === 0 || digits > 15 || (digits > 1 && payload.charCodeAt(from) === 0x30)) return false;
      const next = fixed[hole + 1]!;
      if (!payload.startsWith(next, at)) return false;
      at += next.length;
      this.#values[hole] = value;
    }
    if (at !== payload.length) return false;
    for (let hole = 0; hole < this.#fields.length; hole++) {
      const field = this.#fields[hole];
      if (field) this.numbers![field] = this.#values[hole];
    }
    this.literal = payload.slice(start, end);
    return true;
  }
}

/**
 * Index after the JSON string literal that starts at `start`, or -1 when there is none, or when it names a surrogate
 * by escape: those may stand alone, and what strict readers refuse must not be handed on as it is.
 */
export function endOfLiteral(text: string, start: number): number {
  if (text.charCodeAt(start) !== quote) return -1;
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) return at + 1;
    if (code < 0x20) return -1;
    if (code !== backslash) continue;
    at = endOfEscape(text, at + 1);
    if (at < 0) return -1;
  }
  return -1;
}

/** Index of the last character of the escape whose letter is at `at`, or -1. */
function endOfEscape(text: string, at: number): number {
  // by character codes: text[at] costs 0.7 us on a string that was just decoded
  const letter = text.charCodeAt(at);
  if (letter === letterU) return isUnpairedHex(text, at + 1) ? at + 4 : -1;
  return plainEscapes.includes(letter) ? at : -1;
}

/** Whether four hexadecimal digits stand at `at` that are no half of a surrogate pair. */
function isUnpairedHex(text: string, at: number): boolean {
  let value = 0;
  for (let digit = at; digit < at + 4; digit++) {
    const code = text.charCodeAt(digit);
    const lower = code | 0x20;
    if (code >= 0x30 && code <= 0x39) value = value * 16 + code - 0x30;
    else if (lower >= 0x61 && lower <= 0x66) value = value * 16 + lower - 0x57;
    else return false;
  }
  return value < 0xd800 || value > 0xdfff;
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

/** A copy that does not keep the whole read alive, as a substring does, for as long as the answer runs. */
function detached(text: string): string {
  return Buffer.from(text).toString();
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
