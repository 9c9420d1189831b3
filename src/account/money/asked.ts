// What admission reads of a request: a whole Ask may hold a conversation of megabytes.
import type { Ask, Model } from "../../core/types.ts";

/** `M`: the model, or its id. `outputTokensMax` is that of all answers together. */
export type Asked<M = Model> = Pick<
  Ask,
  "endpoint" | "coderBilling" | "outputTokensMax" | "openBudget" | "priority" | "answers" | "batch"
> &
  Readonly<{ model: M }>;

/** Only that, with the model as it is or as its id. */
export function askedOf<M>(ask: Asked<unknown>, model: M): Asked<M> {
  const { endpoint, coderBilling, outputTokensMax, openBudget, priority, answers, batch } = ask;
  const asked = { endpoint, coderBilling, model, outputTokensMax, ...(batch && { batch }) };
  if (openBudget === undefined && priority === undefined && answers === undefined) return asked;
  return { ...asked, ...(openBudget && { openBudget }), ...(priority && { priority }), ...(answers && { answers }) };
}
