// What a model costs in a batch: its own price for that, or its price less the plan's discount.
import { partsPerCent } from "../core/limits.ts";
import { ratesOf } from "../account/money/price.ts";
import type { Model, Plan } from "../core/types.ts";

/** Rounded down to a part of a cent, of each kind of token. */
export function batchPriced(model: Model, { batchDiscount = 0 }: Pick<Plan, "batchDiscount">): Model {
  if (model.batchPrice !== undefined) return { ...model, price: model.batchPrice };
  if (batchDiscount === 0) return model;
  const { inputCents, cachedInputCents, outputCents, parts } = ratesOf(model.price);
  const cut = (cents: number, part = 0): number => Math.floor((cents * partsPerCent + part) * (1 - batchDiscount));
  const [input, cached, output] = [
    cut(inputCents, parts?.input),
    cut(cachedInputCents, parts?.cachedInput),
    cut(outputCents, parts?.output),
  ];
  const cents = (all: number): number => Math.floor(all / partsPerCent);
  const price = {
    kind: "split",
    inputCents: cents(input),
    cachedInputCents: cents(cached),
    outputCents: cents(output),
    parts: { input: input % partsPerCent, cachedInput: cached % partsPerCent, output: output % partsPerCent },
  } as const;
  return { ...model, price };
}
