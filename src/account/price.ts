// What a reply costs: model tokens times the catalog's cents, rounded once, in integers only.
import { assert } from "../core/assert.ts";
import { centsPerMillionBalanceTokens, partsPerCent } from "../core/limits.ts";
import type { CentParts, Price, Usage } from "../core/types.ts";

/** Cents per 1,000,000 model tokens of each kind; a flat price has three equal rates. `parts`: see Price. */
export type Rates = Readonly<{
  inputCents: number;
  cachedInputCents: number;
  outputCents: number;
  parts?: CentParts;
}>;

export function ratesOf(price: Price): Rates {
  if (price.kind === "split") return price;
  return { inputCents: price.cents, cachedInputCents: price.cents, outputCents: price.cents };
}

/** Whether nothing costs anything. */
export const isFreeOfCharge = ({ inputCents, cachedInputCents, outputCents, parts }: Rates): boolean =>
  inputCents + cachedInputCents + outputCents === 0 && parts === undefined;

/** Of one kind of token: to be shown, not to be counted with. */
export const centsShown = (cents: number, parts = 0): number => (cents * partsPerCent + parts) / partsPerCent;
export const dollarsShown = (cents: number, parts = 0): number => (cents * partsPerCent + parts) / (100 * partsPerCent);

/**
 * Balance tokens that a reply costs: floor((2 * sum(tokens * cents) + 500) / 1000), that is, half up, once per reply.
 * Rounding each kind of token apart would differ in a quarter of all replies, and `cents / 500` is no finite binary
 * fraction, so every step here is a whole number below 2^53.
 *
 * Parts of cents are summed apart, or a dear model's sum would not be below that. Their whole cents join the sum; of the
 * rest it only matters whether it is half a cent, because all else that is rounded is whole.
 */
export function billedTokens(rates: Rates, { inputFresh, inputCached, output }: Billed): number {
  assert(isCount(inputFresh) && isCount(inputCached) && isCount(output), "a usage is in whole tokens");
  let sum = inputFresh * rates.inputCents + inputCached * rates.cachedInputCents + output * rates.outputCents;
  let halfCents = 0;
  if (rates.parts !== undefined) {
    const { parts } = rates;
    const fine = inputFresh * parts.input + inputCached * parts.cachedInput + output * parts.output;
    assert(Number.isSafeInteger(fine), "a charge is below 2^53 parts of cents");
    const rest = fine % partsPerCent;
    sum += (fine - rest) / partsPerCent;
    if (2 * rest >= partsPerCent) halfCents = 1;
  }
  const numerator = 2 * sum + halfCents + centsPerMillionBalanceTokens;
  assert(Number.isSafeInteger(numerator), "a charge is below 2^52 token-cents");
  return (numerator - (numerator % (2 * centsPerMillionBalanceTokens))) / (2 * centsPerMillionBalanceTokens);
}

/** Of a usage, what costs. */
type Billed = Pick<Usage, "inputFresh" | "inputCached" | "output"> & Partial<Usage>;

const isCount = (tokens: number): boolean => Number.isSafeInteger(tokens) && tokens >= 0;

/** US dollars that balance tokens are worth. One division of whole numbers, so the nearest double. */
export function costUsd(balanceTokens: number): number {
  return (balanceTokens * centsPerMillionBalanceTokens) / 100_000_000;
}
