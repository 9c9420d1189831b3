// Reads a node's report of its token usage from all the places where engines put it, and checks it before anybody is
// billed.
import { bytesRead, hasInputs, tokensOf, withinContext } from "../core/inputs.ts";
import { record } from "./json.ts";
import type { RunningNumbers } from "./fast-path/template.ts";
import type { Ask, Usage } from "../core/types.ts";

/** Characters (UTF-16 units of text, bytes of a request) that make about one token; slightly high rather than low. */
const charactersPerToken = 4;
/** No tokens are longer on average: what is more is not one token, whatever the node says. */
export const charactersPerTokenMax = 32;
/** More events than this for each token, beside too much text, and a report says too little. */
const doubtfulDeltasPerToken = 2;
/** A report may be this many tokens behind what was delivered before it is absurd. */
const tokensBehindMax = 4;
/** What an image costs about; its base64 form in the body says nothing about its tokens. */
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

/** How many output tokens a node says that it has written; undefined where it says nothing that makes sense. */
export function runningCount({ model }: Ask, output = -1, deltas: number, characters: number): number | undefined {
  return isCount(output) && output <= model.contextTokens && !saysTooLittle(output, deltas, characters)
    ? output
    : undefined;
}

const isCount = (tokens: number): boolean => Number.isSafeInteger(tokens) && tokens >= 0;

/** What the event says that the prompt cache took in; 0 where it says nothing of it. */
export function reportedCacheWrites(event: Record<string, unknown>): number {
  const details = record(record(event["usage"])?.["prompt_tokens_details"]);
  const tokens = details?.["created_cache_tokens"] ?? details?.["cache_write_tokens"]; // vLLM; OpenAI's own, by routers
  return typeof tokens === "number" && Number.isSafeInteger(tokens) && tokens > 0 ? tokens : 0;
}

/** Undefined where absent, NaN where present but no number, so that it is seen as absurd. */
function number(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === "number" ? value : Number.NaN;
}

/** What the reader saw of an answer: the basis of our own count. */
export type Seen = Readonly<{
  /** The node's report came with its finish reason or after it; else it is the running one, which may be behind. */
  reportedAtEnd: boolean;
  /** See reportedCacheWrites. */
  cacheWritten: number;
  /** Tokens that the answer could have, as the reader sees to it. */
  outputMax: number;
  /** Those of which the node was told: more than were held of an open budget. */
  budget: number;
  deltas: number;
  characters: number;
  reasoningDeltas: number;
  reasoningCharacters: number;
}>;

/**
 * The usage to bill: the node's report if it makes sense, else our own count, flagged. Absurd is: negative, not whole,
 * above the model's context, more cached than read, more reasoning than output, or too little for what was seen. Of an
 * answer that did not come to its end never less than was delivered. More output than the node was told to write nobody
 * asked for.
 */
export function usageOf(ask: Ask, reported: RunningNumbers | null, seen: Seen): { usage: Usage; estimated: boolean } {
  if (reported === null || !makesSense(ask, reported, seen)) return { usage: estimate(ask, seen), estimated: true };
  const { prompt = 0, output: said = 0, cached = 0, reasoning = 0 } = reported;
  // vLLM writes a token all the same, and keeps it.
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

/**
 * Text and events must both say so: a node may put much text into one event, and a proxy may cut one token into many
 * events, but none does both. A report that the node has stands otherwise.
 */
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

/** Our own count of a request's input tokens, at most the model's context; of each input where there are several. */
export function estimatedInput(ask: Ask): number {
  if (hasInputs(ask)) return withinContext(ask, tokensOf(ask) ?? Math.ceil(bytesRead(ask) / charactersPerToken));
  let bytes = ask.bodyBytes - (ask.prepared?.imageBytes ?? 0);
  let images = ask.prepared?.images ?? 0;
  for (const turn of ask.turns) {
    if ((turn.role !== "user" && turn.role !== "tool") || typeof turn.content === "string") continue;
    for (const part of turn.content) {
      if (part.kind !== "image") continue;
      bytes -= part.url.length;
      images++;
    }
  }
  const tokens = Math.ceil(Math.max(0, bytes) / charactersPerToken) + images * imageTokens;
  return Math.min(tokens, ask.model.contextTokens);
}

/** Engines send about one token a delta, and whole calls or several tokens in one: the larger count is nearer. */
export function tokensIn(deltas: number, characters: number): number {
  return Math.max(deltas, Math.ceil(characters / charactersPerToken));
}
