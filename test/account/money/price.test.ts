// Prices against BigInt arithmetic that shares nothing with the program, and against the formulas that look right.
import { expect, test } from "bun:test";
import { billedTokens, costUsd, ratesOf, sumInWords } from "../../../src/account/money/price.ts";
import { randomOf } from "../../fixtures/random.ts";
import type { Price } from "../../../src/core/types.ts";

// spec, model table: every different rate in cents per 1,000,000 tokens
const cents = [390, 780, 585, 335, 800, 195, 73, 234, 383, 1912, 75, 330, 50, 200, 78, 367, 142, 607];
const totalsMax = 260_000;

const exact = (sum: bigint): bigint => (2n * sum + 500n) / 1000n;

test("18 rates x 0..260,000 tokens cost exactly what whole-number arithmetic says", () => {
  let differences = 0;
  const usage = { inputFresh: 0, inputCached: 0, output: 0, reasoning: 0 };
  for (const rate of cents) {
    const rates = ratesOf({ kind: "flat", cents: rate });
    const bigRate = BigInt(rate);
    for (let tokens = 0, sum = 0n; tokens <= totalsMax; tokens += 1, sum += bigRate) {
      usage.output = tokens;
      if (billedTokens(rates, usage) !== Number(exact(sum))) differences += 1;
    }
  }
  expect(differences).toBe(0);
});

// The control: if these did not differ, the test above could not tell a right formula from a wrong one.
const floats: Record<string, (tokens: number, cents: number) => number> = {
  "dollars a token, worth in balance": (tokens, rate) => Math.round(((tokens * (rate / 100)) / 1e6 / 5) * 1e6),
  "balance tokens a token": (tokens, rate) => Math.round(tokens * (rate / 100 / 5)),
  "balance tokens per million": (tokens, rate) => Math.round((tokens / 1e6) * (rate / 500) * 1e6),
  "dollars, cut to 6 digits": (tokens, rate) => Math.round(Number(((tokens * rate) / 1e8).toFixed(6)) * 200_000),
};
for (const [name, formula] of Object.entries(floats)) {
  test(`control: the float formula "${name}" is wrong somewhere`, () => {
    let differences = 0;
    for (const rate of cents) {
      for (let tokens = 0; tokens <= totalsMax; tokens += 1) {
        const numerator = 2 * tokens * rate + 500;
        if (formula(tokens, rate) !== (numerator - (numerator % 1000)) / 1000) differences += 1;
      }
    }
    expect(differences).toBeGreaterThan(0);
  });
}

test("a split price bills each kind of token at its rate and rounds once; rounding per part differs", () => {
  const hosted = [
    [195, 390],
    [73, 234],
    [383, 1912],
    [75, 330],
    [50, 200],
    [78, 367],
    [142, 607],
  ] as const;
  let replies = 0;
  let partsDiffer = 0;
  for (const [inputCents, outputCents] of hosted) {
    const cachedInputCents = Math.ceil(inputCents / 10);
    const price: Price = { kind: "split", inputCents, cachedInputCents, outputCents };
    for (let fresh = 0; fresh < 4_000; fresh += 97) {
      for (let cached = 0; cached < 4_000; cached += 131) {
        for (let output = 0; output < 2_000; output += 71) {
          const usage = { inputFresh: fresh, inputCached: cached, output, reasoning: Math.floor(output / 2) };
          const parts = [fresh * inputCents, cached * cachedInputCents, output * outputCents].map(BigInt);
          const billed = billedTokens(ratesOf(price), usage);
          if (billed !== Number(exact(parts.reduce((a, b) => a + b))))
            throw new Error(JSON.stringify({ price, usage }));
          if (billed !== Number(parts.map(exact).reduce((a, b) => a + b))) partsDiffer += 1;
          replies += 1;
        }
      }
    }
  }
  expect(replies).toBeGreaterThan(200_000);
  expect(partsDiffer / replies).toBeGreaterThan(0.1);
});

test("prices of parts of a cent are exact, too: half up, once, as if the unit were the part", () => {
  const random = randomOf(20_261_122);
  const whole = (below: number): number => Math.floor(random() * below);
  for (let round = 0; round < 200_000; round += 1) {
    const size = 10 ** (1 + whole(7));
    const usage = { inputFresh: whole(size), inputCached: whole(size), output: whole(size), reasoning: 0 };
    const cents = [whole(3), whole(3), whole(round % 2 === 0 ? 3 : 1_000_000)] as const;
    const parts = { input: whole(10_000), cachedInput: whole(10_000), output: round % 3 === 0 ? 5_000 : whole(10_000) };
    const rates = { inputCents: cents[0], cachedInputCents: cents[1], outputCents: cents[2], parts };
    const sum =
      BigInt(usage.inputFresh) * BigInt(cents[0] * 10_000 + parts.input) +
      BigInt(usage.inputCached) * BigInt(cents[1] * 10_000 + parts.cachedInput) +
      BigInt(usage.output) * BigInt(cents[2] * 10_000 + parts.output);
    const expected = Number((2n * sum + 5_000_000n) / 10_000_000n);
    if (billedTokens(rates, usage) !== expected) throw new Error(JSON.stringify({ rates, usage, expected }));
  }
});

test("a flat price bills input, cached input and output alike, reasoning within the output", () => {
  const rates = ratesOf({ kind: "flat", cents: 335 });
  const total = { inputFresh: 0, inputCached: 0, output: 1_330, reasoning: 0 };
  expect(billedTokens(rates, { inputFresh: 1_000, inputCached: 300, output: 30, reasoning: 30 })).toBe(
    billedTokens(rates, total),
  );
});

test("halves round up", () => {
  const rates = ratesOf({ kind: "flat", cents: 50 });
  const output = (tokens: number) => ({ inputFresh: 0, inputCached: 0, output: tokens, reasoning: 0 });
  expect([4, 5, 14, 15].map((tokens) => billedTokens(rates, output(tokens)))).toEqual([0, 1, 1, 2]);
});

test("a usage that is not whole, or negative, is a bug and never a charge", () => {
  const rates = ratesOf({ kind: "flat", cents: 335 });
  for (const output of [-1, 0.5, Number.NaN, Infinity, 1e19]) {
    expect(() => billedTokens(rates, { inputFresh: 0, inputCached: 0, output, reasoning: 0 })).toThrow();
  }
});

test("1,000,000 balance tokens are worth $5.00", () => {
  expect(costUsd(1_000_000)).toBe(5);
  expect([30_000, 80_000, 265_000, 665_000].map(costUsd)).toEqual([0.15, 0.4, 1.325, 3.325]);
  expect(JSON.stringify(costUsd(1))).toBe("0.000005");
});

test("the sum of a charge can be checked by hand", () => {
  const rates = { inputCents: 50, cachedInputCents: 5, outputCents: 200 };
  const usage = { inputFresh: 1_030, inputCached: 20, output: 7 };
  expect(sumInWords(rates, usage, billedTokens(rates, usage))).toBe(
    "1,030 input × $0.50 + 20 cached input × $0.05 + 7 output × $2.00 per 1,000,000 = $0.00053; at $0.000005 each, rounded: 106 balance tokens",
  );
  const fine = { ...rates, parts: { input: 1, cachedInput: 0, output: 2_500 } };
  expect(sumInWords(fine, { ...usage, inputCached: 0 }, 106)).toBe(
    "1,030 input × $0.500001 + 7 output × $2.0025 per 1,000,000 = $0.00052901853; at $0.000005 each, rounded: 106 balance tokens",
  );
  expect(sumInWords(rates, { inputFresh: 1, inputCached: 0, output: 1 }, 1)).toEndWith("rounded: 1 balance token");
  expect(sumInWords(rates, usage, 0)).toBeNull(); // calls of the coder tier cost calls
});
