// What a client pays for where one answer takes several generations. Rounds add up, because each becomes part of the
// answer. For repeats the client pays for the prompt that it sent, as the first attempt read it, and for the answer
// that it gets.
import type { Ending, Usage } from "./types.ts";

export function sumOfUsage(one: Usage, other: Usage): Usage {
  const cacheWritten = (one.cacheWritten ?? 0) + (other.cacheWritten ?? 0);
  return {
    inputFresh: one.inputFresh + other.inputFresh,
    inputCached: one.inputCached + other.inputCached,
    output: one.output + other.output,
    reasoning: one.reasoning + other.reasoning,
    ...(cacheWritten > 0 ? { cacheWritten } : {}),
  };
}

type Used = Exclude<Ending, { kind: "failed" }>;

/** The ending of a repeat as the client sees and pays it; nothing of the `first` attempt went out. */
export function billedRepeat<Last extends Used>(first: Used, last: Last): Last {
  const { output, reasoning } = last.usage;
  return { ...last, usage: { ...first.usage, output, reasoning }, estimated: first.estimated || last.estimated };
}
