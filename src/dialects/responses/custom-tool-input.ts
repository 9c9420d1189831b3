// Custom tools take free text, but nodes only know functions. So a custom tool is offered as a function with one string
// parameter, and its calls are unwrapped while they stream: {"input":"*** Begin Patch\n..."} -> *** Begin Patch...
import { parseOutsideJson } from "../../core/outside-json.ts";

/** The name of the one parameter of a custom tool that is offered as a function. */
export const inputParameter = "input";

const opening = /^\s*\{\s*"input"\s*:\s*"/;
/** More white space than any model writes there: the opening is scanned again with each fragment. */
const openingMaxLength = 200;
const openingWithoutSpaces = `{"${inputParameter}":"`;
const simpleEscapes: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Turns fragments of a call's arguments into fragments of the input. For models that ignore the wrapper: `finish`. */
export class CustomToolInput {
  /** opening: before the string; inside; after: the string is closed; other: not the expected wrapper. */
  #state: "opening" | "inside" | "after" | "other" = "opening";
  /** Unused so far: the opening, an unfinished escape, or everything in state "other". */
  #held = "";

  /** Takes the next fragment; returns the input that is now certain, often "". */
  push(fragment: string): string {
    if (this.#state === "after") return "";
    this.#held += fragment;
    if (this.#state === "opening") this.#open();
    return this.#state === "inside" ? this.#unescape() : "";
  }

  /** Nothing more will come; returns the rest of the input. */
  finish(): string {
    return this.#state === "opening" || this.#state === "other" ? unwrapped(this.#held) : "";
  }

  #open(): void {
    const match = opening.exec(this.#held);
    if (match !== null) {
      this.#state = "inside";
      this.#held = this.#held.slice(match[0].length);
      return;
    }
    const begun = this.#held.replace(/\s+/g, "");
    const mayBegin = begun.length < openingWithoutSpaces.length && openingWithoutSpaces.startsWith(begun);
    if (!mayBegin || this.#held.length > openingMaxLength) this.#state = "other";
  }

  #unescape(): string {
    const text = this.#held;
    let input = "";
    let at = 0;
    for (let plainFrom = 0; ; plainFrom = at) {
      while (at < text.length && text[at] !== '"' && text[at] !== "\\") at++;
      input += text.slice(plainFrom, at);
      if (at === text.length) break;
      if (text[at] === '"') {
        this.#state = "after";
        this.#held = "";
        return input;
      }
      const end = endOfEscape(text, at);
      if (end < 0) break;
      input += characterOf(text, at, end);
      at = end;
    }
    this.#held = text.slice(at);
    return input;
  }
}

/** Index after the escape that begins at `at`, or -1 while it is incomplete; a surrogate pair counts as one. */
function endOfEscape(text: string, at: number): number {
  const length = text[at + 1] === "u" ? 6 : 2;
  if (at + length > text.length) return -1;
  if (!/^\\ud[89ab]/i.test(text.slice(at, at + 4))) return at + length;
  const rest = text.slice(at + 6, at + 12);
  if (rest.length < 6 && "\\u".startsWith(rest.slice(0, 2))) return -1;
  return rest.startsWith("\\u") ? at + 12 : at + 6;
}

function characterOf(text: string, at: number, end: number): string {
  const letter = text[at + 1]!;
  if (letter !== "u") return simpleEscapes[letter] ?? letter;
  let characters = "";
  for (let from = at; from < end; from += 6) {
    characters += String.fromCharCode(Number.parseInt(text.slice(from + 2, from + 6), 16));
  }
  return characters.toWellFormed();
}

/** The input in arguments that are not `{"input": "..."}`: (1) `input` among others, (2) an only string, (3) everything. */
function unwrapped(json: string): string {
  let value: unknown;
  try {
    value = parseOutsideJson(json);
  } catch {
    return json; // the model wrote the text itself
  }
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return json;
  const named = (value as Record<string, unknown>)[inputParameter];
  if (typeof named === "string") return named;
  const fields = Object.values(value);
  return fields.length === 1 && typeof fields[0] === "string" ? fields[0] : json;
}
