// A `pattern` of a JSON schema in a form that engines can compile into a grammar, found in one walk that reads each
// character once. Patterns refused here make some engines refuse the whole request. llama.cpp's converter loops forever
// on a stray bracket and ends its process where a group begins with a quantifier, as which it reads "(?"
// (common/json-schema-to-grammar.cpp).
import { grammarRepeatsMax } from "./limits.ts";

/** A longer pattern is left out of what nodes compile into grammars; the answer is checked against it all the same. */
const grammarPatternMaxLength = 1_000;

export type GrammarPattern = Readonly<{
  /** For engines that read regular expressions. */
  regex: string;
  /** For llama.cpp, which knows groups, classes and greedy quantifiers and writes matches into JSON unchanged. */
  gbnf: string | null;
}>;

/** The characters that cannot stand unescaped in a JSON string. */
const notPlain = '"\\\\\\x00-\\x1F\\x7F';
const anyCharacter = `[^${notPlain}]`;
const digits = "0-9";
const wordCharacters = "A-Za-z0-9_";

/** Characters that mean themselves to llama.cpp in any position. */
const isPlain = (character: string): boolean => /^[A-Za-z0-9 _:,@/-]$/.test(character);
const isHex = (text: string, length: number): boolean => text.length === length && /^[0-9A-Fa-f]{2,4}$/.test(text);

/** An open group. The sizes count its atoms, and its last atom, with repeats written out. */
type Group = { size: number; atom: number; isEmpty: boolean };

/** Null where no engine's grammar should have the pattern: look-arounds, references, word boundaries, or invalid patterns. */
export function grammarPattern(pattern: string): GrammarPattern | null {
  if (pattern === "" || pattern.length > grammarPatternMaxLength) return null;
  const gbnf = new Scanner(pattern).scan();
  return gbnf === undefined ? null : { regex: pattern, gbnf };
}

class Scanner {
  readonly #pattern: string;
  readonly #from: number;
  readonly #to: number;
  readonly #open: Group[] = [{ size: 0, atom: 0, isEmpty: true }];
  #at: number;
  #gbnf = "";
  /** The pattern has a form for llama.cpp. */
  #fits = true;

  constructor(pattern: string) {
    this.#pattern = pattern;
    this.#from = pattern.startsWith("^") ? 1 : 0;
    this.#to = pattern.length - (endsAnchored(pattern) ? 1 : 0);
    this.#at = this.#from;
  }

  /** The pattern for llama.cpp, null where only other engines can have it, undefined where none can. */
  scan(): string | null | undefined {
    while (this.#at < this.#to) if (!this.#next()) return undefined;
    if (this.#open.length !== 1 || sizeOf(this.#open[0]!) > grammarRepeatsMax) return undefined;
    if (!this.#fits || this.#open[0]!.isEmpty) return null;
    const before = this.#from === 1 ? "" : `${anyCharacter}*`;
    const after = this.#to < this.#pattern.length ? "" : `${anyCharacter}*`;
    const body = before === "" && after === "" ? this.#gbnf : `(${this.#gbnf})`;
    return `^${before}${body}${after}$`;
  }

  #next(): boolean {
    const character = this.#take();
    switch (character) {
      case "(":
        return this.#group();
      case ")":
        return this.#endGroup();
      case "|":
        return this.#alternative();
      case "*":
      case "+":
      case "?":
        return this.#quantifier(character, 1);
      case "{":
        return this.#counted();
      case "[":
        return this.#class();
      case "\\":
        return this.#escape();
      case "^":
      case "$":
        return false;
      case ".":
        return this.#atom(anyCharacter);
      default:
        return this.#atom(this.#literal(character));
    }
  }

  /** A whole character, even one of two UTF-16 units. */
  #take(): string {
    const character = String.fromCodePoint(this.#pattern.codePointAt(this.#at)!);
    this.#at += character.length;
    return character;
  }

  #atom(gbnf: string | null, size = 1): true {
    const group = this.#open.at(-1)!;
    group.size += group.atom;
    group.atom = size;
    group.isEmpty = false;
    if (gbnf === null) this.#fits = false;
    else this.#gbnf += gbnf;
    return true;
  }

  /** Quotes and escapes would end the JSON string that the pattern describes. */
  #literal(character: string): string | null {
    if (character === '"' || character === "\\" || character < " " || character === "\x7f") return null;
    return isPlain(character) ? character : `[${inClass(character)}]`;
  }

  #group(): boolean {
    if (this.#pattern[this.#at] === "?") {
      const isNamed = this.#pattern[this.#at + 1] === "<" && !"=!".includes(this.#pattern[this.#at + 2] ?? "=");
      const end = isNamed ? this.#pattern.indexOf(">", this.#at) : this.#at + 1;
      if (end < 0 || (!isNamed && this.#pattern[end] !== ":")) return false;
      this.#at = end + 1;
    }
    this.#gbnf += "(";
    this.#open.push({ size: 0, atom: 0, isEmpty: true });
    return true;
  }

  #endGroup(): boolean {
    const group = this.#open.pop()!;
    if (this.#open.length === 0) return false;
    if (group.isEmpty) this.#fits = false;
    return this.#atom(")", sizeOf(group));
  }

  #alternative(): true {
    const group = this.#open.at(-1)!;
    if (group.isEmpty) this.#fits = false;
    Object.assign(group, { size: sizeOf(group), atom: 0, isEmpty: true });
    this.#gbnf += "|";
    return true;
  }

  #quantifier(gbnf: string, repeats: number): boolean {
    const group = this.#open.at(-1)!;
    if (group.atom === 0) return false;
    group.size += group.atom * repeats;
    group.atom = 0;
    this.#gbnf += gbnf;
    if (this.#pattern[this.#at] === "?" && this.#at < this.#to) this.#at++; // lazy or not, it matches the same texts
    return true;
  }

  #counted(): boolean {
    const end = this.#pattern.indexOf("}", this.#at);
    const counts =
      end < 0 ? null : /^(\d{1,6})(,?)(\d{0,6})$/.exec(this.#pattern.slice(this.#at, Math.min(end, this.#at + 20)));
    if (counts === null || end >= this.#to) return false;
    const [whole, least, comma, most] = counts;
    if (most !== "" && (comma === "" || Number(most) < Number(least))) return false;
    this.#at = end + 1;
    return this.#quantifier(`{${whole}}`, Math.max(1, Number(least), Number(most)));
  }

  #escape(): boolean {
    if (this.#at >= this.#pattern.length) return false;
    const letter = this.#take();
    switch (letter) {
      case "d":
        return this.#atom(`[${digits}]`);
      case "w":
        return this.#atom(`[${wordCharacters}]`);
      case "s":
        return this.#atom("[ ]"); // other white space stands in JSON as an escape
      case "D":
        return this.#atom(`[^${digits}${notPlain}]`);
      case "W":
        return this.#atom(`[^${wordCharacters}${notPlain}]`);
      case "S":
        return this.#atom(`[^ ${notPlain}]`);
      default: {
        const character = this.#escaped(letter);
        return character !== null && this.#atom(this.#literal(character));
      }
    }
  }

  /** The character that an escape stands for; null where engines disagree. */
  #escaped(letter: string): string | null {
    const control = { n: "\n", r: "\r", t: "\t", f: "\f", v: "\v" }[letter];
    if (control !== undefined) return control;
    if (letter === "x" || letter === "u") {
      const length = letter === "x" ? 2 : 4;
      const code = this.#pattern.slice(this.#at, this.#at + length);
      if (!isHex(code, length)) return null;
      this.#at += length;
      const unit = Number.parseInt(code, 16);
      return unit >= 0xd800 && unit <= 0xdfff ? null : String.fromCharCode(unit);
    }
    return /^[A-Za-z0-9]$/.test(letter) ? null : letter;
  }

  #class(): boolean {
    const isNegated = this.#pattern[this.#at] === "^";
    if (isNegated) this.#at++;
    let inside = "";
    let fits = true;
    for (let members = 0; ; members++) {
      if (this.#at >= this.#to) return false;
      const character = this.#take();
      if (character === "]") {
        if (members === 0) return false;
        break;
      }
      const member = this.#member(character);
      if (member === null) return false;
      if (member.length > 2) {
        inside += member;
        continue;
      }
      let last = member;
      const isRange = this.#pattern[this.#at] === "-" && this.#pattern[this.#at + 1] !== "]" && this.#at + 1 < this.#to;
      if (isRange) {
        this.#at++;
        const other = this.#member(this.#take());
        if (other === null || other.length > 2 || other.codePointAt(0)! < member.codePointAt(0)!) return false;
        last = other;
      }
      // A quote or backslash inside a range cannot be left out.
      if (!isNegated && member <= "\\" && last >= "\\") fits = false;
      if (!isNegated && member <= '"' && last >= '"') fits = false;
      if (!isNegated && member < " ") fits = false;
      inside += inClass(member) + (isRange ? `-${inClass(last)}` : "");
    }
    return this.#atom(fits ? `[${isNegated ? "^" : ""}${inside}${isNegated ? notPlain : ""}]` : null);
  }

  /** A character, or the inside of a llama.cpp class, which is longer; null where engines disagree. */
  #member(character: string): string | null {
    // Some engines read nested classes and intersections of classes.
    if (character === "[" || ("&~-".includes(character) && this.#pattern[this.#at] === character)) return null;
    if (character !== "\\") return character;
    if (this.#at >= this.#to) return null;
    const letter = this.#take();
    if (letter === "d") return digits;
    if (letter === "w") return wordCharacters;
    if (letter === "s") return "\\x20";
    if (letter === "b") return null;
    return this.#escaped(letter);
  }
}

/** The character as written in a class; as its number where it might have a meaning. */
function inClass(character: string): string {
  const code = character.codePointAt(0)!;
  if (isPlain(character) && character !== "-") return character;
  return code < 0x80 ? `\\x${code.toString(16).toUpperCase().padStart(2, "0")}` : character;
}

const sizeOf = ({ size, atom }: Group): number => size + atom;

function endsAnchored(pattern: string): boolean {
  if (!pattern.endsWith("$")) return false;
  let escapes = 0;
  while (pattern[pattern.length - 2 - escapes] === "\\") escapes++;
  return escapes % 2 === 0;
}
