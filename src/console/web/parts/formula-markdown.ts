// Finds formulas in a model's Markdown: \( \) and $ $ within a line, \[ \] and $$ $$ on their own lines. Without this,
// Markdown would consume the backslashes. Each search stops after a fixed number of characters, whatever the text.
import type { TokenizerExtension, Tokens } from "marked";

export type FormulaToken = Tokens.Generic & Readonly<{ tex: string; display: boolean }>;

/** No formula is longer, so that an unclosed mark costs a bounded search. */
const formulaMaxLength = 4_000;
/** A dollar sign further away is found by a later search. */
const lookAheadLength = 20_000;

const pairs = [
  { open: "\\(", close: "\\)", display: false },
  { open: "\\[", close: "\\]", display: true },
  { open: "$$", close: "$$", display: true },
] as const;

function delimited(source: string): FormulaToken | undefined {
  for (const { open, close, display } of pairs) {
    if (!source.startsWith(open)) continue;
    const text = source.slice(open.length, formulaMaxLength);
    const end = text.indexOf(close);
    if (end <= 0 || text.slice(0, end).trim() === "") return undefined;
    const raw = source.slice(0, open.length + end + close.length);
    return { type: "formula", raw, tex: text.slice(0, end).trim(), display };
  }
  return undefined;
}

/** `$x$`, but not the prices in "$5 and $10": no space inside its ends, no digit behind it, all on one line. */
function betweenDollars(source: string): FormulaToken | undefined {
  if (source[0] !== "$" || " \n\t$".includes(source[1] ?? " ")) return undefined;
  const text = source.slice(1, formulaMaxLength);
  const lineEnd = text.indexOf("\n");
  const line = lineEnd === -1 ? text : text.slice(0, lineEnd);
  const end = line.indexOf("$");
  if (end <= 0 || " \t\\".includes(line[end - 1]!) || /\d/.test(source[end + 2] ?? "")) return undefined;
  return { type: "formula", raw: source.slice(0, end + 2), tex: line.slice(0, end), display: false };
}

export const inlineFormula: TokenizerExtension = {
  name: "formula",
  level: "inline",
  // Markdown stops at every backslash anyway.
  start(source) {
    const found = source.slice(0, lookAheadLength).indexOf("$");
    return found === -1 ? undefined : found;
  },
  tokenizer: (source) => delimited(source) ?? betweenDollars(source),
};

export const blockFormula: TokenizerExtension = {
  name: "blockFormula",
  level: "block",
  start(source) {
    const near = source.slice(0, lookAheadLength);
    const found = [near.indexOf("\n\\["), near.indexOf("\n$$")].filter((index) => index !== -1);
    return found.length === 0 ? undefined : Math.min(...found);
  },
  tokenizer(source) {
    const token = source.startsWith("\\(") ? undefined : delimited(source);
    if (token === undefined) return undefined;
    const lineEnd = source.indexOf("\n", token.raw.length);
    const after = source.slice(token.raw.length, lineEnd === -1 ? token.raw.length + 200 : lineEnd);
    return after.trim() === "" ? { ...token, raw: token.raw + after } : undefined;
  },
};

/** Deeper nesting than people write takes the parser and the browser's layout seconds. */
const nestedMax = 40;
const cellsMax = 600;
/** Shorter with macros, since each use of a macro repeats its text. */
const lengthMaxWithMacros = 300;

/** Whether the parser gets it, so that its time is bounded. */
export function isModest(tex: string): boolean {
  let depth = 0;
  let cells = 0;
  for (let at = 0; at < tex.length; at++) {
    const letter = tex[at];
    if (letter === "}") depth--;
    else if (letter === "{" || tex.startsWith("\\left", at) || tex.startsWith("\\begin", at)) depth++;
    else if (tex.startsWith("\\right", at) || tex.startsWith("\\end", at)) depth--;
    else if (letter === "&" || (letter === "\\" && tex[at + 1] === "\\")) cells++;
    if (letter === "\\") at++; // skips the escaped letter
    if (depth > nestedMax || cells > cellsMax) return false;
  }
  return tex.length <= lengthMaxWithMacros || !definesMacro.test(tex);
}
const definesMacro = /\\(?:[gex]?def|let|futurelet|(?:new|renew|provide)command)/;
