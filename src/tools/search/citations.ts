// Numbered sources of an answer, and the marks [n] that become citations, renumbered by their first use.
import type { Piece, Source } from "../../core/types.ts";

/** The sources that a model got in one request, numbered from 1; an address keeps its number. */
export class Sources {
  readonly #byNumber: Source[] = [];
  readonly #numbers = new Map<string, number>();
  /** The numbers that clients see, by the model's numbers. */
  readonly #shown = new Map<number, number>();

  add(source: Source): number {
    const known = this.#numbers.get(source.url);
    if (known !== undefined) return known;
    this.#numbers.set(source.url, this.#byNumber.push(source));
    return this.#byNumber.length;
  }

  /** The numbers from `first` to `last` as a list; null where one of them is no source, or where there are too many. */
  listed(first: number, last: number): string | null {
    const count = last - first + 1;
    if (first < 1 || count < 1 || count > rangeMaxLength || last > this.#byNumber.length) return null;
    return Array.from({ length: count }, (_, place) => first + place).join(", ");
  }

  get any(): boolean {
    return this.#byNumber.length > 0;
  }

  /**
   * The source with the model's number, and its number for clients. Sources are numbered in the order of their first
   * citation, because clients resolve [n] to the n-th source that an answer's citations name. Null without such a
   * source.
   */
  cited(number: number): Readonly<{ source: Source; shown: number }> | null {
    const source = this.#byNumber[number - 1];
    if (source === undefined) return null;
    const shown = this.#shown.get(number) ?? this.#shown.size + 1;
    this.#shown.set(number, shown);
    return { source, shown };
  }
}

/** The longest mark: `[1, 2, 12]`, `[1-3]`, and the form of gpt-oss models, `【1†L10-L24】`. */
const markMaxLength = 40;
const markPattern = /^([[【])(\s*\d+(?:\s*[,;–-]\s*\d+)*\s*)((?:†.*)?)([\]】])$/;
const inMark = /[\s\d,;†–-]/;
const rangePattern = /(\d+)\s*[–-]\s*(\d+)/g;
const rangeMaxLength = 20;
/** Outside of marks and code, only these characters matter. */
const telling = /[[【`~]/;
/** How much of the text before a bracket or a tilde decides its meaning. */
const beforeMaxLength = 32;
/** A name as in code, `a` or `my_list`, whose brackets are subscripts; other words are ambiguous. */
const subscripted = /(?:(?<![\p{L}\p{N}_'’])[a-z]|[A-Za-z0-9]_[A-Za-z0-9]+)(?:\[\w*\])*$/u;
const lineBegins = /(?:^|\n) *~*$/;

type TextPiece = Extract<Piece, { kind: "text" }>;

/**
 * Reads one round's text as it streams, renumbers its marks for clients, and puts citations after each. A possible
 * beginning of a mark is held back until it is decided. In code, brackets are no marks.
 */
export class CitationReader {
  readonly #sources: Sources;
  readonly #emit: (piece: Piece) => void;
  readonly #code = new CodeSpans();
  /** UTF-16 units of the answer's text so far, as clients see it. */
  #length: number;
  /** An opened bracket and what follows it, held back; empty outside of one. */
  #mark = "";
  /** The end of the model's text so far. */
  #before = "";

  /** `length`: UTF-16 units of the answer's text in earlier rounds. */
  constructor(sources: Sources, length: number, emit: (piece: Piece) => void) {
    this.#sources = sources;
    this.#length = length;
    this.#emit = emit;
  }

  get length(): number {
    return this.#length;
  }

  /** Passes the text on, cut after each mark that ends in it. */
  text(piece: TextPiece): void {
    const text = JSON.parse(piece.literal) as string;
    if (this.#mark === "" && !this.#code.isOpen && !telling.test(text)) {
      this.#length += text.length;
      this.#before = (this.#before + text).slice(-beforeMaxLength);
      this.#emit(piece);
      return;
    }
    let at = 0;
    const before = (): string =>
      (this.#before + text.slice(Math.max(0, at - beforeMaxLength), at)).slice(-beforeMaxLength);
    let { logprobs } = piece;
    let shown = "";
    const handOn = (): void => {
      if (shown !== "" || logprobs !== null) this.#emitText(shown, logprobs);
      logprobs = null; // they belong to the whole piece and go out once, if need be without text
      shown = "";
    };
    for (const character of text) {
      const isCode = this.#code.takes(character, before);
      if (!isCode && (character === "【" || (character === "[" && !subscripted.test(before())))) {
        shown += this.#mark;
        this.#mark = character;
      } else if (!isCode && this.#goesOn(character)) {
        this.#mark += character;
      } else {
        const whole = this.#mark + character;
        this.#mark = "";
        const cited = isCode ? null : this.#cited(whole);
        shown += cited?.mark ?? whole;
        if (cited !== null) {
          handOn();
          const start = this.#length - cited.mark.length;
          for (const source of cited.sources) this.#emit({ kind: "citation", source, start, end: this.#length });
        }
      }
      at += character.length;
    }
    this.#before = before();
    handOn();
  }

  /** Passes on what is held back, because no more text follows directly. */
  flush(): void {
    const kept = this.#mark;
    this.#mark = "";
    if (kept !== "") this.#emitText(kept, null);
  }

  #emitText(text: string, logprobs: string | null): void {
    this.#length += text.length;
    this.#emit({ kind: "text", literal: JSON.stringify(text), logprobs });
  }

  #goesOn(character: string): boolean {
    if (this.#mark === "" || this.#mark.length > markMaxLength || character === "\n") return false;
    return this.#mark.includes("†") ? character !== "]" && character !== "】" : inMark.test(character);
  }

  /** What to show in place of a mark, and its sources; null if it is no mark, or cites nothing known. */
  #cited(whole: string): Readonly<{ mark: string; sources: ReadonlySet<Source> }> | null {
    const [, open, numbers, lines, close] = markPattern.exec(whole) ?? [];
    if (numbers === undefined) return null;
    // A range is shown as a list: renumbered, its sources are seldom consecutive.
    const list = numbers.replace(
      rangePattern,
      (range, first, last) => this.#sources.listed(Number(first), Number(last)) ?? range,
    );
    if (/[–-]/.test(list)) return null;
    const sources = new Set<Source>();
    const shown = list.replace(/\d+/g, (digits) => {
      const cited = this.#sources.cited(Number(digits));
      if (cited === null) return digits;
      sources.add(cited.source);
      return String(cited.shown);
    });
    return sources.size === 0 ? null : { mark: `${open}${shown}${lines}${close}`, sources };
  }
}

/** Which characters of a Markdown text are code: those between two equal runs of backticks, or between two fences of tildes. */
class CodeSpans {
  /** Backticks or tildes in the current run, and in the one that opened the code; 0 without. */
  #run = 0;
  #opened = 0;
  #runOf = "";
  #openedBy = "";

  get isOpen(): boolean {
    return this.#run > 0 || this.#opened > 0;
  }

  /** Takes the next character and says whether it is code; `before` returns the end of the text before it. */
  takes(character: string, before: () => string): boolean {
    if (character !== this.#runOf) this.#endRun();
    if (character === "`" || (character === "~" && lineBegins.test(before()))) {
      this.#runOf = character;
      this.#run += 1;
      return true;
    }
    this.#endRun();
    // A lone backtick opens nothing, which only the end of its paragraph shows: until then no citation would be read.
    if (character === "\n" && !isFence(this.#opened)) this.#opened = 0;
    return this.#opened > 0;
  }

  #endRun(): void {
    const run = this.#run;
    if (run === 0) return;
    this.#run = 0;
    if (this.#opened === 0) {
      if (this.#runOf === "~" && !isFence(run)) return;
      this.#opened = run;
      this.#openedBy = this.#runOf;
    } else if (this.#runOf === this.#openedBy) {
      if (run === this.#opened || (isFence(this.#opened) && isFence(run))) this.#opened = 0;
    }
  }
}

const isFence = (run: number): boolean => run >= 3;
