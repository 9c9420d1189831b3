// Whether a request's output budget ends its answer: that of some models says only what is reserved. And how many have it each.
import type { Ask } from "./types.ts";

/** Whoever has a plain completion written names how much of it. */
export const budgetLimitsAnswer = ({ model, plain }: Pick<Ask, "model" | "plain">): boolean =>
  plain !== undefined || model.budgetLimitsAnswer;

/** How many answers a request asks for, each with the budget that it names. */
export const answersOf = ({ answers }: Pick<Ask, "answers">): number =>
  answers === undefined ? 1 : answers.prompts * answers.each;
