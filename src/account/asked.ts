// What admission reads of a request: a whole Ask may hold a conversation of megabytes.
import type { Ask, Model } from "../core/types.ts";

/** `M`: the model, or its id. */
export type Asked<M = Model> = Pick<Ask, "endpoint" | "coderBilling" | "outputTokensMax" | "openBudget"> &
  Readonly<{ model: M }>;

/** Only that, with the model as it is or as its id. */
export function askedOf<M>(
  { endpoint, coderBilling, outputTokensMax, openBudget }: Asked<unknown>,
  model: M,
): Asked<M> {
  const asked = { endpoint, coderBilling, model, outputTokensMax };
  return openBudget === true ? { ...asked, openBudget } : asked;
}
