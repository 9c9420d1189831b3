// Whether a request's output budget ends its answer: that of some models says only what is reserved.
import type { Ask } from "./types.ts";

/** Whoever has a plain completion written names how much of it. */
export const budgetLimitsAnswer = ({ model, plain }: Pick<Ask, "model" | "plain">): boolean =>
  plain !== undefined || model.budgetLimitsAnswer;
