// Whether a request's output budget ends its answer (for some models it is only reserved), and how many answers have
// it.
import type { Answers, Ask } from "./types.ts";

/** A request for a plain completion always means its budget as the length. */
export const budgetLimitsAnswer = ({ model, plain }: Pick<Ask, "model" | "plain">): boolean =>
  plain !== undefined || model.budgetLimitsAnswer;

export type SeveralAsk = Ask & Readonly<{ answers: Answers }>;
export const asksForSeveral = (ask: Ask): ask is SeveralAsk => ask.answers !== undefined;

/** How many answers a request asks for, each with the request's budget. */
export const answersOf = ({ answers }: Pick<Ask, "answers">): number =>
  answers === undefined ? 1 : answers.prompts * answers.each;
