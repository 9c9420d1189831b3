// What a reply costs: model tokens times the catalog's cents, rounded once, in integers only.
import { assert } from "../../core/assert.ts";
import { centsPerMillionBalanceTokens, partsPerCent } from "../../core/limits.ts";
import { type CentParts, noUsage, type Price, type Usage } from "../../core/types.ts";

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

/** The largest usage within `tokens`: the input is cut first, since no client has seen it. */
export function usageWithin(rates: Rates, usage: Usage, balanceTokens: number): Usage {
  let within = usage;
  for (const kind of ["inputFresh", "inputCached", "output"] as const) {
    if (billedTokens(rates, within) <= balanceTokens) break;
    let [fits, beyond] = [0, within[kind]];
    while (beyond - fits > 1) {
      const middle = Math.floor((fits + beyond) / 2);
      if (billedTokens(rates, { ...within, [kind]: middle }) <= balanceTokens) fits = middle;
      else beyond = middle;
    }
    within = { ...within, [kind]: fits };
  }
  const { inputFresh, output, reasoning, cacheWritten } = within;
  const shown = { ...within, reasoning: Math.min(reasoning, output) };
  return cacheWritten === undefined ? shown : { ...shown, cacheWritten: Math.min(cacheWritten, inputFresh) };
}

/** The most output tokens, up to `max`, that fit into a number of balance tokens. */
export function outputWithin(rates: Rates, balanceTokens: number, max: number): number {
  const fits = (output: number): boolean => billedTokens(rates, { ...noUsage, output }) <= balanceTokens;
  if (balanceTokens < 1) return 0; // whatever it is rounded to, an answer costs one
  if (fits(max)) return max;
  let [most, over] = [0, max];
  while (over - most > 1) {
    const middle = Math.floor((most + over) / 2);
    if (fits(middle)) most = middle;
    else over = middle;
  }
  return most;
}

/** Of a usage, what costs. */
type Billed = Pick<Usage, "inputFresh" | "inputCached" | "output"> & Partial<Usage>;

const isCount = (tokens: number): boolean => Number.isSafeInteger(tokens) && tokens >= 0;

/** US dollars that balance tokens are worth. One division of whole numbers, so the nearest double. */
export function costUsd(balanceTokens: number): number {
  return (balanceTokens * centsPerMillionBalanceTokens) / 100_000_000;
}

/**
 * How balance tokens came about: the tokens of each kind at their price, added up exactly and then rounded to a balance
 * token. Null where nothing costs, as a call of the coder tier, or they are of another sum.
 */
export function sumInWords(rates: Rates, usage: Billed, billed: number, inputUnit = "tokens"): string | null {
  if (billedTokens(rates, usage) !== billed) return null;
  const { inputCents, cachedInputCents, outputCents, parts = noParts } = rates;
  const priced = [
    [inputUnit === "tokens" ? "input" : inputUnit, usage.inputFresh, inputCents * partsPerCent + parts.input],
    ["cached input", usage.inputCached, cachedInputCents * partsPerCent + parts.cachedInput],
    ["output", usage.output, outputCents * partsPerCent + parts.output],
  ] as const;
  const sum = priced.reduce((all, [, tokens, price]) => all + BigInt(tokens) * BigInt(price), 0n);
  if (sum === 0n) return null;
  const addends = priced
    .filter(([, tokens]) => tokens > 0)
    .map(([kind, tokens, price]) => `${grouped(tokens)} ${kind} × ${dollarsText(BigInt(price), partsDigits)}`);
  const cost = dollarsText(sum, partsDigits + perMillionDigits);
  const token = dollarsText(BigInt(centsPerMillionBalanceTokens), 2 + perMillionDigits);
  const unit = `balance token${billed === 1 ? "" : "s"}`;
  return `${addends.join(" + ")} per 1,000,000 = ${cost}; at ${token} each, rounded: ${grouped(billed)} ${unit}`;
}

const noParts: CentParts = { input: 0, cachedInput: 0, output: 0 };
/** Decimals of a dollar in parts of a cent, and of a million. */
const partsDigits = 6;
const perMillionDigits = 6;
const grouped = (value: number): string => value.toLocaleString("en-US");

/** A whole number of dollars' 10 ** -digits, exactly: `$0.00019095`, and `$3.35`. */
function dollarsText(amount: bigint, digits: number): string {
  const text = String(amount).padStart(digits + 1, "0");
  const [whole, rest] = [text.slice(0, -digits), text.slice(-digits)];
  return `$${BigInt(whole).toLocaleString("en-US")}.${rest.replace(/0+$/, "").padEnd(2, "0")}`;
}
