// Cuts long texts into pieces that are read and drawn a few at a time: parsers and layout may take quadratic time.

/** Marked takes 50 ms for the worst text of this length, and four times as long for twice the length. */
export const pieceMaxLength = 3_000;
/** From this length on, a piece ends where a new block of Markdown begins. */
const pieceLength = 1_000;
/** Longer code is a piece of its own, even inside a list or quotation, which might have to be cut. */
const ownCodeLength = 1_500;
/** A piece that continues a table repeats its head, up to this length. */
const headMaxLength = 400;
const definitionsMax = 100;

/** Cuts at line ends if there are any; every piece but the last stays the same when the text grows. */
export function textPieces(text: string): readonly string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length;) {
    const end = cutIn(text, start);
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
}

/** Preferably behind a blank line: strings and comments in code seldom continue there. */
function cutIn(text: string, start: number): number {
  const part = text.slice(start, start + pieceMaxLength);
  if (start + part.length >= text.length) return text.length;
  const blank = part.lastIndexOf("\n\n");
  if (blank > pieceMaxLength / 2) return start + blank + 2;
  const lineEnd = part.lastIndexOf("\n");
  if (lineEnd !== -1) return start + lineEnd + 1;
  return start + part.length - (isHighSurrogate(part, part.length - 1) ? 1 : 0);
}

const isHighSurrogate = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xd800;

/** Self-contained Markdown, or a block of code. */
type MarkdownPiece = string | Readonly<{ code: string; language: string }>;

/** Cuts where a block ends. A cut list goes on, a cut table repeats its head, a piece gets its link definitions. */
export function markdownPieces(text: string): readonly MarkdownPiece[] {
  const cutter = new Cutter();
  for (let at = 0; at < text.length;) at = cutter.take(text, at);
  cutter.cut();
  return cutter.withDefinitions();
}

class Cutter {
  readonly #pieces: MarkdownPiece[] = [];
  readonly #definitions = new Map<string, string>();
  #piece = "";
  #before = "";
  /** The head of the table that the last lines belong to; empty: none. */
  #head = "";

  /** Takes a line, part of a very long one, or a block of code. Returns where to continue. */
  take(text: string, at: number): number {
    const lineEnd = text.indexOf("\n", at);
    const end = lineEnd === -1 ? text.length : lineEnd + 1;
    const line = text.slice(at, Math.min(end, at + pieceMaxLength));
    const code = fencedCode(text, at, line);
    if (code !== null && (!line.startsWith(" ") || code.end - at > ownCodeLength)) {
      this.cut();
      this.#pieces.push({ code: code.code, language: code.language });
      this.#before = "";
      return code.end;
    }
    const formula = code === null ? formulaEnd(text, at, line) : null;
    const goesTo = code?.end ?? formula ?? Math.min(end, cutIn(text, at));
    this.#add(text.slice(at, goesTo));
    return goesTo;
  }

  #add(part: string): void {
    const isBlank = part.trim() === "";
    const beginsAnew = isBlank ? false : this.#before.trim() === "" && !/^(?:\s|[-*+]\s|\d{1,9}[.)]\s)/.test(part);
    if (beginsAnew && this.#piece.length >= pieceLength) this.cut();
    const wantsCut = this.#piece.length + part.length > pieceMaxLength;
    const goesOnWithTable = wantsCut && this.#head !== "" && part.includes("|");
    if (wantsCut) this.cut();
    if (goesOnWithTable) this.#piece = this.#head;
    if (isBlank) this.#head = "";
    else if (isTableRule(part) && this.#before.includes("|")) {
      const head = this.#before + part;
      this.#head = head.length <= headMaxLength ? head : "";
    }
    this.#noteDefinition(part);
    this.#piece += part;
    this.#before = part;
  }

  cut(): void {
    if (this.#piece.trim() !== "") this.#pieces.push(this.#piece);
    this.#piece = "";
  }

  #noteDefinition(part: string): void {
    if (!part.startsWith("[") || this.#definitions.size >= definitionsMax) return;
    const found = /^\[([^\][\\]{1,100})\]:[ \t]{0,9}(\S{1,2000})/.exec(part);
    const [definition, label = ""] = found ?? [];
    if (definition !== undefined && !this.#definitions.has(label)) this.#definitions.set(label, definition);
  }

  withDefinitions(): readonly MarkdownPiece[] {
    if (this.#definitions.size === 0) return this.#pieces;
    return this.#pieces.map((piece) => {
      if (typeof piece !== "string") return piece;
      const named = [...this.#definitions].filter(
        ([label, definition]) => piece.includes(`[${label}]`) && !piece.includes(definition),
      );
      return named.length === 0 ? piece : `${named.map(([, definition]) => definition).join("\n")}\n\n${piece}`;
    });
  }
}

const isTableRule = (part: string): boolean =>
  part.length <= headMaxLength && part.includes("|") && part.includes("-") && /^[-:| \t]*$/.test(part.trimEnd());

/** The block of code that this line opens, up to its closing line or the end of the text. */
function fencedCode(text: string, at: number, line: string): { code: string; language: string; end: number } | null {
  const [, indent, fence, info] = /^( {0,12})(`{3,100}|~{3,100})([^\n]{0,200})\n?$/.exec(line) ?? [];
  if (indent === undefined || fence === undefined || info === undefined) return null;
  if (fence.startsWith("`") && info.includes("`")) return null;
  const start = at + line.length;
  const language = info.trim().split(/\s/, 1)[0] ?? "";
  for (let lineAt = start; lineAt < text.length;) {
    const found = text.indexOf(fence, lineAt);
    if (found === -1) break;
    const lineStart = text.lastIndexOf("\n", found - 1) + 1;
    const newline = text.indexOf("\n", found);
    const lineEnd = newline === -1 ? text.length : newline + 1;
    const closing = text.slice(lineStart, Math.min(lineEnd, lineStart + 200)).trim();
    if (lineStart >= start && closing.startsWith(fence) && closing === fence[0]!.repeat(closing.length)) {
      return { code: unindented(text.slice(start, lineStart), indent), language, end: lineEnd };
    }
    lineAt = lineEnd;
  }
  return { code: unindented(text.slice(start), indent), language, end: text.length };
}

function unindented(code: string, indent: string): string {
  const text = code.endsWith("\n") ? code.slice(0, -1) : code;
  if (indent === "") return text;
  return text
    .split("\n")
    .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line.trimStart()))
    .join("\n");
}

/** The end of a formula over several lines, which stays in one piece. */
function formulaEnd(text: string, at: number, line: string): number | null {
  const close = line.startsWith("$$") ? "$$" : line.startsWith("\\[") ? "\\]" : null;
  if (close === null) return null;
  const found = text.slice(at, at + pieceMaxLength).indexOf(close, 2);
  if (found === -1) return null;
  const lineEnd = text.indexOf("\n", at + found);
  const end = lineEnd === -1 ? text.length : lineEnd + 1;
  return end - at <= pieceMaxLength ? end : null;
}
