// The beginning of a prompt, used to find a node that may have it cached.
import type { Turn } from "../../core/types.ts";

/** This much of the prompt's start decides which node has it cached. */
export const promptStartCharacters = 1_024;

/** The texts up to the first of the user's, as far as they are looked at. */
export function promptStart(turns: readonly Turn[]): string {
  let start = "";
  for (const turn of turns) {
    if (start.length >= promptStartCharacters || turn.role === "assistant" || turn.role === "tool") break;
    start +=
      typeof turn.content === "string"
        ? turn.content
        : turn.content.map((part) => (part.kind === "text" ? part.text : "")).join("");
    if (turn.role === "user") break;
  }
  return start.slice(0, promptStartCharacters);
}
