// What a reply costs: model tokens times the catalog's cents, rounded once, in integers only.
import { assert } from "../core/assert.ts";
import { centsPerMillionBalanceTokens } from "../core/limits.ts";
import type { Price, Usage } from "../core/types.ts";

/** Cents per 1,000,000 model tokens of each kind; a flat price has three equal rates. */
export type Rates = Readonly<{ inputCents: number; cachedInputCents: number; outputCents: number }>;

export function ratesOf(price: Price): Rates {
  if (price.kind === "split") return price;
  return { inputCents: price.cents, cachedInputCents: price.cents, outputCents: price.cents };
}

/**
 * Balance tokens that a reply costs: floor((2 * sum(tokens * cents) + 500) / 1000), that is, half up, once per reply.
 * Rounding each kind of token apart would differ in a quarter of all replies, and `cents / 500` is no finite binary
 * fraction, so every step here is a whole number below 2^53.
 */
export function billedTokens(rates: Rates, { inputFresh, inputCached, output }: Usage): number {
  assert(isCount(inputFresh) && isCount(inputCached) && isCount(output), "a usage is in whole tokens");
  const sum = inputFresh * rates.inputCents + inputCached * rates.cachedInputCents + output * rates.outputCents;
  const numerator = 2 * sum + centsPerMillionBalanceTokens;
  assert(Number.isSafeInteger(numerator), "a charge is below 2^52 token-cents");
  return (numerator - (numerator % (2 * centsPerMillionBalanceTokens))) / (2 * centsPerMillionBalanceTokens);
}

const isCount = (tokens: number): boolean => Number.isSafeInteger(tokens) && tokens >= 0;

/** US dollars that balance tokens are worth. One division of whole numbers, so the nearest double. */
export function costUsd(balanceTokens: number): number {
  return (balanceTokens * centsPerMillionBalanceTokens) / 100_000_000;
}
