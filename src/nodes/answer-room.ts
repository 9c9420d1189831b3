// How long an answer to ask a node for: the client's budget, as far as the context leaves room beside the prompt.
import { budgetLimitsAnswer } from "../core/answer-budget.ts";
import type { Ask } from "../core/types.ts";
import { type Engine, factsOf } from "./engine.ts";
import type { Overflow } from "./failure/overflow.ts";
import { estimatedInput } from "./usage.ts";

/** A tokenizer may make this many times the tokens of our own estimate. */
const estimateMargin = 1.25;
/** No text that people write has more than this many times the estimate. */
const mostTimesEstimate = 2;
/** Requested where the prompt may fill the context: if it does, the node says so and gives its numbers. */
const leastAnswerTokens = 16;

/** The model's context as the engine reports it; null where it reports none. The demo node reports the catalog's own. */
export function reportedContext(engine: Engine, nodeModel: string): number | null {
  return engine.kind === "demo" ? null : (factsOf(engine, nodeModel)?.contextTokens ?? null);
}

/** Whether prompt and answer fit, however the tokenizer counts the prompt. */
export const surelyFits = (ask: Ask, contextTokens: number, answerTokens: number): boolean =>
  mostTimesEstimate * estimatedInput(ask) + answerTokens <= contextTokens;

/** `promptTokens`: null where they were not counted. */
export function answerRoom(ask: Ask, contextTokens: number, promptTokens: number | null): number {
  const prompt = promptTokens ?? Math.ceil(estimatedInput(ask) * estimateMargin);
  const room = contextTokens - prompt;
  return promptTokens === null ? Math.max(room, leastAnswerTokens) : room;
}

/** The same request with a budget of at most `room`; null where its budget is no larger than that. */
export const askWithin = (ask: Ask, room: number): Ask | null =>
  room >= 1 && room < ask.outputTokensMax && budgetLimitsAnswer(ask) ? { ...ask, outputTokensMax: room } : null;

/** Whether the prompt alone is longer than the node's context, so that no smaller budget helps. */
export const isPromptTooLong = ({ promptTokens, promptTokensMin, contextTokens }: Overflow): boolean =>
  promptTokensMin !== null || (promptTokens !== null && contextTokens !== null && promptTokens >= contextTokens);
