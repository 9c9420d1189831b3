// Says in another language what the program said in English. A phrase of the catalog is a sentence as the code has it, with
// names where it puts values: "{email} is disabled". So the code is the only home of the English, API clients and the
// command line need no catalog, and lines of the audit log from long ago are understood, too. A value whose name begins with
// "said" is the program's own words, and looked up in turn; one that ends with "many" may be a list.

type Format<Text> = (text: Text, values: Readonly<Record<string, string | number>>) => string;
/** `pieces`: texts and, at each odd place, the name of the value between two of them. */
type Phrase<Text> = Readonly<{ pieces: readonly string[]; text: Text }>;

/** Between the parts of a list. */
const separator = /([,;] )/;
/** The program's words are in its words, but never deeper than this. */
const depthMax = 3;
/** What is longer has the words of strangers. */
const textMax = 2_000;

export class Phrases<Text> {
  readonly #phrases: readonly Phrase<Text>[];
  readonly #format: Format<Text>;

  constructor(catalog: Readonly<Record<string, Text>>, format: Format<Text>) {
    const length = ({ pieces }: Phrase<Text>): number =>
      pieces.reduce((sum, piece, at) => sum + (at % 2 === 0 ? piece.length : 0), 0);
    const phrases = Object.entries(catalog).map(([key, text]) => ({ pieces: key.split(/\{(\w{1,20})\}/), text }));
    this.#phrases = phrases.sort((one, other) => length(other) - length(one)); // the most exact first
    this.#format = format;
  }

  /** The text itself where the catalog has no phrase for it. */
  say(text: string): string {
    return this.#say(text, 0, () => true);
  }

  /** Of a list, each part that is known. */
  sayEach(text: string): string {
    const isOne = ([name, value]: readonly [string, string | number]): boolean =>
      name.endsWith("many") || String(value).startsWith('"') || !separator.test(String(value));
    const whole = this.#say(text, 0, isOne);
    if (whole !== text || text.length >= textMax) return whole;
    const parts: string[] = [""];
    for (const part of text.split(separator)) {
      const isQuoted = parts.at(-1)!.split('"').length % 2 === 0; // a name, which may have commas
      if (isQuoted) parts.push(parts.pop()! + part);
      else parts.push(part);
    }
    return parts.map((part) => (part === ", " || part === "; " ? part : this.say(part))).join("");
  }

  #say(text: string, depth: number, mayBe: (value: readonly [string, string | number]) => boolean): string {
    const isSentence = text.endsWith(".");
    if (depth >= depthMax || text.length >= textMax) return text;
    for (const { pieces, text: found } of this.#phrases) {
      const isWhole = pieces.at(-1)!.endsWith(".");
      const values = valuesIn(isSentence && !isWhole ? text.slice(0, -1) : text, pieces);
      if (values === null || !Object.entries(values).every(mayBe)) continue;
      for (const [name, value] of Object.entries(values))
        if (name.startsWith("said")) values[name] = this.#say(String(value), depth + 1, mayBe);
      const said = this.#format(found, values);
      if (isWhole || !isSentence) return said;
      return `${said.charAt(0).toUpperCase()}${said.slice(1)}${/\p{Script=Han}/u.test(said) ? "。" : "."}`;
    }
    return text;
  }
}

/** Null: the text is another. A sentence may begin with a capital where the phrase has none. */
function valuesIn(text: string, [first = "", ...rest]: readonly string[]): Record<string, string | number> | null {
  const begins = text.slice(0, first.length);
  if (begins.charAt(0).toLowerCase() + begins.slice(1) !== first.charAt(0).toLowerCase() + first.slice(1)) return null;
  const values: Record<string, string | number> = {};
  let at = first.length;
  for (let index = 0; index < rest.length; index += 2) {
    const literal = rest[index + 1]!;
    const end = index + 2 === rest.length ? text.length - literal.length : text.indexOf(literal, at);
    if (end < at || !text.startsWith(literal, end)) return null;
    const value = text.slice(at, end);
    values[rest[index]!] = /^\d{1,15}$/.test(value) ? Number(value) : value;
    at = end + literal.length;
  }
  return at === text.length ? values : null;
}
