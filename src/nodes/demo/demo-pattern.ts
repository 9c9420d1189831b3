// Writes a text that matches a regular expression without running it, because a client's pattern may take years. Takes the
// first alternative and the fewest repeats. Look-arounds and back references are skipped, so the text may not match.
import { type AST, RegExpParser } from "@eslint-community/regexpp";

const lengthMax = 10_000;
/** Longer patterns are not read: groups recurse, and the stack is finite. */
const patternLengthMax = 2_000;
const parser = new RegExpParser({ ecmaVersion: 2025 });

/** A short text that matches `pattern`; empty where the pattern cannot be read. */
export function textFitting(pattern: string): string {
  if (pattern.length > patternLengthMax) return "";
  for (const flags of ["u", ""] as const) {
    try {
      const parsed = parser.parsePattern(pattern, 0, pattern.length, { unicode: flags === "u" });
      return textOf(parsed.alternatives[0]!, flags);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  return "";
}

function textOf(node: AST.Alternative | AST.Element, flags: string): string {
  switch (node.type) {
    case "Alternative":
      return node.elements.reduce((text, each) => (text + textOf(each, flags)).slice(0, lengthMax), "");
    case "Group":
    case "CapturingGroup":
      return textOf(node.alternatives[0]!, flags);
    case "Quantifier": {
      const text = textOf(node.element, flags);
      const times = node.min === 0 && node.max > 1 ? 1 : node.min;
      return text.repeat(Math.min(times, Math.ceil(lengthMax / Math.max(1, text.length))));
    }
    case "Character":
      return String.fromCodePoint(node.value);
    case "CharacterClass":
    case "CharacterSet":
      return characterOf(new RegExp(`^${node.raw}$`, flags));
    default:
      return "";
  }
}

const printable = Array.from({ length: 0x7f - 0x20 }, (_, index) => String.fromCharCode(0x20 + index));
const candidates = [..."a0A_ -", ...printable, "\t", "\n", "é"];

const characterOf = (one: RegExp): string => candidates.find((each) => one.test(each)) ?? "";
