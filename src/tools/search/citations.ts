// Sources of an answer and the references to them: results are numbered for the model, the model marks what it says
// with [n], and the marks become citations, counted anew by their first mark.
import type { Piece, Source } from "../../core/types.ts";

/** The sources that a model was given in one request, numbered from 1; one address keeps its number. */
export class Sources {
  readonly #byNumber: Source[] = [];
  readonly #numbers = new Map<string, number>();
  /** The numbers that clients see, by those that the model knows. */
  readonly #shown = new Map<number, number>();

  /** The number under which the model knows the source. */
  add(source: Source): number {
    const known = this.#numbers.get(source.url);
    if (known !== undefined) return known;
    this.#numbers.set(source.url, this.#byNumber.push(source));
    return this.#byNumber.length;
  }

  get any(): boolean {
    return this.#byNumber.length > 0;
  }

  /**
   * The source that the model calls so, and its number for clients: sources are counted as they are first cited, since
   * clients resolve [n] to the n-th of those that an answer's citations name. Null where there is none.
   */
  cited(number: number): Readonly<{ source: Source; shown: number }> | null {
    const source = this.#byNumber[number - 1];
    if (source === undefined) return null;
    const shown = this.#shown.get(number) ?? this.#shown.size + 1;
    this.#shown.set(number, shown);
    return { source, shown };
  }
}

/** The longest mark: `[1, 2, 12]`, and what gpt-oss models write, `【1†L10-L24】`. */
const markMaxLength = 40;
const markPattern = /^([[【])(\s*\d+(?:\s*[,;]\s*\d+)*\s*)((?:†.*)?)([\]】])$/;
const inMark = /[\s\d,;†]/;
/** Outside of marks and code, nothing else in a text needs to be looked at. */
const telling = /[[【`]/;

type TextPiece = Extract<Piece, { kind: "text" }>;

/**
 * Reads one round's text as it streams, gives its marks the numbers that clients see, and puts citations after each. What
 * may be the beginning of a mark is kept back until it is one or is none. In code, brackets are no marks.
 */
export class CitationReader {
  readonly #sources: Sources;
  readonly #emit: (piece: Piece) => void;
  readonly #code = new CodeSpans();
  /** UTF-16 units of the answer's text so far, as clients see it. */
  #length: number;
  /** A bracket that was opened and what follows it, kept back; empty outside of one. */
  #mark = "";

  /** `length`: UTF-16 units of the answer's text in the rounds before. */
  constructor(sources: Sources, length: number, emit: (piece: Piece) => void) {
    this.#sources = sources;
    this.#length = length;
    this.#emit = emit;
  }

  get length(): number {
    return this.#length;
  }

  /** Hands the text on, cut after each mark that ends in it. */
  text(piece: TextPiece): void {
    const text = JSON.parse(piece.literal) as string;
    if (this.#mark === "" && !this.#code.isOpen && !telling.test(text)) {
      this.#length += text.length;
      this.#emit(piece);
      return;
    }
    let { logprobs } = piece;
    let shown = "";
    const handOn = (): void => {
      if (shown !== "" || logprobs !== null) this.#emitText(shown, logprobs);
      logprobs = null; // they belong to the whole piece and go out once, if need be without a text
      shown = "";
    };
    for (const character of text) {
      const isCode = this.#code.takes(character);
      if (!isCode && (character === "[" || character === "【")) {
        shown += this.#mark;
        this.#mark = character;
      } else if (!isCode && this.#goesOn(character)) {
        this.#mark += character;
      } else {
        const whole = this.#mark + character;
        this.#mark = "";
        const cited = isCode ? null : this.#cited(whole);
        shown += cited?.mark ?? whole;
        if (cited === null) continue;
        handOn();
        const start = this.#length - cited.mark.length;
        for (const source of cited.sources) this.#emit({ kind: "citation", source, start, end: this.#length });
      }
    }
    handOn();
  }

  /** Hands on what is kept back: something else than text follows, or nothing. */
  flush(): void {
    const kept = this.#mark;
    this.#mark = "";
    if (kept !== "") this.#emitText(kept, null);
  }

  #emitText(text: string, logprobs: string | null): void {
    this.#length += text.length;
    this.#emit({ kind: "text", literal: JSON.stringify(text), logprobs });
  }

  /** Whether a mark that was begun may go on with the character. */
  #goesOn(character: string): boolean {
    if (this.#mark === "" || this.#mark.length > markMaxLength || character === "\n") return false;
    return this.#mark.includes("†") ? character !== "]" && character !== "】" : inMark.test(character);
  }

  /** What is shown in place of a mark, and its sources; null where it is none, or cites nothing that is known. */
  #cited(whole: string): Readonly<{ mark: string; sources: ReadonlySet<Source> }> | null {
    const [, open, numbers, lines, close] = markPattern.exec(whole) ?? [];
    if (numbers === undefined) return null;
    const sources = new Set<Source>();
    const shown = numbers.replace(/\d+/g, (digits) => {
      const cited = this.#sources.cited(Number(digits));
      if (cited === null) return digits;
      sources.add(cited.source);
      return String(cited.shown);
    });
    return sources.size === 0 ? null : { mark: `${open}${shown}${lines}${close}`, sources };
  }
}

/** Which characters of a Markdown text are code: what stands between two runs of as many backticks. */
class CodeSpans {
  /** Backticks of the run that is being read, and of the one that opened the code; 0 without. */
  #run = 0;
  #opened = 0;

  get isOpen(): boolean {
    return this.#run > 0 || this.#opened > 0;
  }

  /** Takes the next character, and says whether it is code. */
  takes(character: string): boolean {
    if (character === "`") {
      this.#run += 1;
      return true;
    }
    if (this.#run > 0) {
      if (this.#opened === 0) this.#opened = this.#run;
      else if (this.#run === this.#opened || (isFence(this.#opened) && isFence(this.#run))) this.#opened = 0;
      this.#run = 0;
    }
    // A lone backtick opens nothing, which is only known at the end of its paragraph: so long no citation would be read.
    if (character === "\n" && !isFence(this.#opened)) this.#opened = 0;
    return this.#opened > 0;
  }
}

const isFence = (backticks: number): boolean => backticks >= 3;
