// Reads a node's token usage from all the places where engines report it, and checks it before anyone is billed.
import { bytesRead, hasInputs, tokensOf, withinContext } from "../core/inputs.ts";
import { record } from "./json.ts";
import type { RunningNumbers } from "./fast-path/template.ts";
import type { Ask, Usage } from "../core/types.ts";

/** Characters (UTF-16 units of text, bytes of a request) per token, roughly; slightly high rather than low. */
const charactersPerToken = 4;
/** No tokenizer's tokens are longer on average: more text than this is several tokens, whatever the node says. */
export const charactersPerTokenMax = 32;
/** With more events than this per token, and too much text, a report is too low. */
const doubtfulDeltasPerToken = 2;
/** A report may lag behind the delivered text by this many tokens before it is absurd. */
const tokensBehindMax = 4;
/** What an image costs, roughly; the length of its base64 form says nothing. */
const imageTokens = 1_500;

/** The numbers of an event's usage object as the node gave them, unchecked; null when the event has none. */
export function reportedUsage(event: Record<string, unknown>): RunningNumbers | null {
  const usage = record(event["usage"]);
  if (usage === null) return null;
  return {
    prompt: number(usage["prompt_tokens"]),
    output: number(usage["completion_tokens"]),
    cached:
      number(record(usage["prompt_tokens_details"])?.["cached_tokens"]) ??
      number(usage["prompt_cache_hit_tokens"]) ?? // DeepSeek's own form
      number(usage["cached_tokens"]) ??
      number(record(event["timings"])?.["cache_n"]), // llama-server
    reasoning:
      number(record(usage["completion_tokens_details"])?.["reasoning_tokens"]) ?? number(usage["reasoning_tokens"]), // SGLang
  };
}

/** How many output tokens a node claims to have written; undefined where it reports nothing plausible. */
export function runningCount({ model }: Ask, output = -1, deltas: number, characters: number): number | undefined {
  return isCount(output) && output <= model.contextTokens && !saysTooLittle(output, deltas, characters)
    ? output
    : undefined;
}

const isCount = (tokens: number): boolean => Number.isSafeInteger(tokens) && tokens >= 0;

/** Tokens that the event says were written into the prompt cache; 0 where it says nothing. */
export function reportedCacheWrites(event: Record<string, unknown>): number {
  const details = record(record(event["usage"])?.["prompt_tokens_details"]);
  const tokens = details?.["created_cache_tokens"] ?? details?.["cache_write_tokens"]; // vLLM; OpenAI's own, by routers
  return typeof tokens === "number" && Number.isSafeInteger(tokens) && tokens > 0 ? tokens : 0;
}

/** Undefined where absent; NaN where present but not a number, so that it counts as absurd. */
function number(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === "number" ? value : Number.NaN;
}

/** What the reader saw of an answer: the basis of our own count. */
export type Seen = Readonly<{
  /** The node's report came with its finish reason or after it; otherwise it is the running one, which may lag. */
  reportedAtEnd: boolean;
  /** See reportedCacheWrites. */
  cacheWritten: number;
  /** Tokens that the answer could have, enforced by the reader. */
  outputMax: number;
  /** The tokens that the node was given: more than an open budget had held. */
  budget: number;
  deltas: number;
  characters: number;
  reasoningDeltas: number;
  reasoningCharacters: number;
}>;

/**
 * The usage to bill: the node's report if it is plausible, else our own count, flagged. Absurd reports are negative,
 * fractional, above the model's context, with more cached than read, with more reasoning than output, or too low for
 * what was seen. An answer that was cut short is charged for at least what was delivered. Output beyond the node's
 * budget is not charged.
 */
export function usageOf(ask: Ask, reported: RunningNumbers | null, seen: Seen): { usage: Usage; estimated: boolean } {
  if (reported === null || !makesSense(ask, reported, seen)) return { usage: estimate(ask, seen), estimated: true };
  const { prompt = 0, output: said = 0, cached = 0, reasoning = 0 } = reported;
  // vLLM writes a token anyway and keeps it.
  const output =
    ask.plain?.echoAlone === true
      ? 0
      : seen.reportedAtEnd
        ? Math.min(said, seen.budget)
        : Math.max(said, Math.min(seen.deltas, seen.outputMax));
  const cacheWritten = Math.min(seen.cacheWritten, prompt - cached);
  const usage: Usage = {
    inputFresh: prompt - cached,
    inputCached: cached,
    output,
    reasoning:
      reasoning > 0
        ? Math.min(reasoning, output)
        : Math.min(output, tokensIn(seen.reasoningDeltas, seen.reasoningCharacters)),
  };
  return { usage: cacheWritten > 0 ? { ...usage, cacheWritten } : usage, estimated: false };
}

function makesSense(ask: Ask, { prompt, output, cached = 0, reasoning = 0 }: RunningNumbers, seen: Seen): boolean {
  if (prompt === undefined || output === undefined) return false;
  return (
    [prompt, output, cached, reasoning].every(isCount) &&
    (prompt > 0 || isEmptyPrompt(ask)) && // every chat template adds tokens, also to an empty prompt
    (output > 0 || seen.deltas === 0 || ask.plain?.echoAlone === true) &&
    !saysTooLittle(output, seen.deltas, seen.characters) &&
    prompt + output <= ask.model.contextTokens &&
    cached <= prompt &&
    reasoning <= output
  );
}

const isEmptyPrompt = ({ turns: [turn] }: Ask): boolean =>
  turn?.role === "prompt" && turn.content === "" && turn.tokens === null;

/** Text and events must both say so: nodes bundle text, proxies split tokens, but none does both. */
const saysTooLittle = (output: number, deltas: number, characters: number): boolean =>
  deltas > doubtfulDeltasPerToken * (output + tokensBehindMax) &&
  characters > charactersPerTokenMax * (output + tokensBehindMax);

function estimate(ask: Ask, seen: Seen): Usage {
  // A node that got the budget kept to it, whatever our count says.
  const output = ask.plain?.echoAlone === true ? 0 : Math.min(tokensIn(seen.deltas, seen.characters), seen.outputMax);
  return {
    inputFresh: estimatedInput(ask),
    inputCached: 0,
    output,
    reasoning: Math.min(output, tokensIn(seen.reasoningDeltas, seen.reasoningCharacters)),
  };
}

/** Our own count of a request's input tokens, at most the model's context, or that of each input where there are several. */
export function estimatedInput(ask: Ask): number {
  if (hasInputs(ask)) return withinContext(ask, tokensOf(ask) ?? Math.ceil(bytesRead(ask) / charactersPerToken));
  let bytes = ask.bodyBytes - (ask.prepared?.imageBytes ?? 0);
  let images = ask.prepared?.images ?? 0;
  for (const turn of ask.turns) {
    if ((turn.role !== "user" && turn.role !== "tool") || typeof turn.content === "string") continue;
    for (const part of turn.content) {
      if (part.kind !== "image" && part.kind !== "audio") continue;
      bytes -= part.url.length;
      images++;
    }
  }
  const tokens = Math.ceil(Math.max(0, bytes) / charactersPerToken) + images * imageTokens;
  return Math.min(tokens, ask.model.contextTokens);
}

/** Engines send roughly one token per delta, but also whole calls or several tokens in one: the larger count is closer. */
export function tokensIn(deltas: number, characters: number): number {
  return Math.max(deltas, Math.ceil(characters / charactersPerToken));
}
