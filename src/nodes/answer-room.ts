// How long an answer a node is asked for: the client's budget, as far as the node's context leaves room beside the prompt.
import { budgetLimitsAnswer } from "../core/answer-budget.ts";
import type { Ask } from "../core/types.ts";
import { type Engine, factsOf } from "./engine.ts";
import type { Overflow } from "./failure/overflow.ts";
import { estimatedInput } from "./usage.ts";

/** Our own estimate may be so far below what a tokenizer makes of the same text. */
const estimateMargin = 1.25;
/** No text that people write has more tokens than twice the estimate. */
const mostTimesEstimate = 2;
/** Asked for where the prompt may fill the context: if it does, the node says so, with its numbers. */
const leastAnswerTokens = 16;

/** The context of the model as the engine tells it; null where it tells none. The demo node tells the catalog's own. */
export function contextTold(engine: Engine, nodeModel: string): number | null {
  return engine.kind === "demo" ? null : (factsOf(engine, nodeModel)?.contextTokens ?? null);
}

/** Whether prompt and answer fit, whatever the tokenizer makes of the prompt. */
export const surelyFits = (ask: Ask, contextTokens: number, answerTokens: number): boolean =>
  mostTimesEstimate * estimatedInput(ask) + answerTokens <= contextTokens;

/** `promptTokens` null: nobody counted them. */
export function answerRoom(ask: Ask, contextTokens: number, promptTokens: number | null): number {
  const prompt = promptTokens ?? Math.ceil(estimatedInput(ask) * estimateMargin);
  const room = contextTokens - prompt;
  return promptTokens === null ? Math.max(room, leastAnswerTokens) : room;
}

/** The same request with a budget of at most `room`; null where it has no larger one. */
export const askWithin = (ask: Ask, room: number): Ask | null =>
  room >= 1 && room < ask.outputTokensMax && budgetLimitsAnswer(ask) ? { ...ask, outputTokensMax: room } : null;

/** Whether the prompt alone is longer than the node's context, so that no smaller budget helps. */
export const isPromptTooLong = ({ promptTokens, promptTokensMin, contextTokens }: Overflow): boolean =>
  promptTokensMin !== null || (promptTokens !== null && contextTokens !== null && promptTokens >= contextTokens);
