// Cleans a node's words for the operator's log: short, without addresses, paths and parts of the prompt.
import { nodeErrorTextMaxLength } from "../limits.ts";
import type { Ask, Turn } from "../../core/types.ts";
import { visible } from "../../core/visible.ts";
import { parseNodeJson, record } from "../json.ts";

/** What the log gets of a node's own words, in UTF-16 units. */
const nodeWordsMaxLength = 300;

/** The part of an error body that says why, or the whole body if it is not JSON. Bounded, so that nothing longer is logged. */
export function messageOfError(body: string): string {
  const text = body.slice(0, nodeErrorTextMaxLength);
  const event = record(parseNodeJson(text));
  const error = record(event?.["error"]) ?? event;
  const said = [error?.["message"], event?.["error"], event?.["detail"]].find((each) => typeof each === "string");
  if (typeof said === "string") return said;
  return event?.["detail"] === undefined ? text : JSON.stringify(event["detail"]);
}

/** The message in a form that may be logged; null where nothing is left. */
export function loggableWords(message: string, ask: Ask): string | null {
  // Validators repeat the request after this word.
  const said = message.slice(0, nodeErrorTextMaxLength).split(/['"]?input['"]?:/, 1)[0]!;
  const words = said.split(/\s/).filter((word) => word !== "");
  const isOfPrompt = promptOf(ask);
  const kept: string[] = [];
  let length = 0;
  for (const [at, word] of words.entries()) {
    const shown = isAddress(word) ? "[address]" : isOfPrompt(words, at) ? "[prompt]" : word;
    if ((length += shown.length + 1) > nodeWordsMaxLength) break;
    if (shown === word || kept.at(-1) !== shown) kept.push(shown);
  }
  return kept.some((word) => !word.startsWith("[")) ? visible(kept.join(" ")) : null;
}

/** URLs, addresses, host names, file paths and keys: a word that may be one is dropped whole. */
function isAddress(word: string): boolean {
  if (word.length > wordMaxLength) return true;
  if (/[/\\]/.test(word)) return !/^[a-z('"]+\/[a-z)'".,;:]+$/i.test(word); // user/assistant may stay
  if (/\w\.\w+\D/.test(word) || /\w\.\w+\.\w/.test(word)) return true; // app.py, a.b.c, 10.0.0.7
  return /\w:\w|::/.test(word); // gpu-box:8000, ::1
}

/** Longer words are not natural language. */
const wordMaxLength = 40;
/** Larger prompts are not searched: then only words that the table of client faults knows could be recognized. */
const promptMaxLength = 256 * 1024;

/** Whether the word at an index is from the request: in a row of three words of it, quoted, or not plain. */
function promptOf(ask: Ask): (words: readonly string[], at: number) => boolean {
  const prompt = ask.prepared === undefined ? textsOf(ask) : null;
  if (prompt === null) return () => true; // it cannot be recognized
  const isOfPrompt = (text: string): boolean => prompt.some((each) => each.includes(text));
  const bare = (word: string): string => word.replace(/^\W+|\W+$/g, "");
  return (words, at) => {
    const word = bare(words[at]!);
    const isTelling = /^['"`]/.test(words[at]!) || !/^[A-Za-z]?[a-z]+$/.test(word);
    if (word.length >= 4 && isTelling && isOfPrompt(word)) return true;
    for (let from = Math.max(0, at - 2); from <= at && from + 3 <= words.length; from++) {
      if (isOfPrompt(words.slice(from, from + 3).join(" "))) return true;
    }
    return false;
  };
}

function textsOf({ turns, tools, format, stop, plain }: Ask): readonly string[] | null {
  const texts = [...stop, plain?.suffix ?? "", ...turns.flatMap(textsOfTurn)];
  if (texts.reduce((sum, { length }) => sum + length, 0) > promptMaxLength) return null;
  const settings = JSON.stringify([tools, format]);
  return settings.length > promptMaxLength ? null : [...texts, settings];
}

function textsOfTurn(turn: Turn): readonly string[] {
  const own = typeof turn.content === "string" ? [turn.content] : (turn.content ?? []).flatMap(textOfPart);
  if (turn.role !== "assistant") return own;
  return [...own, turn.reasoning ?? "", ...turn.calls.map((call) => call.arguments)];
}

const textOfPart = (part: { kind: string; text?: string }): string[] => (part.text === undefined ? [] : [part.text]);
