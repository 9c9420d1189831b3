// Sums of usage, as both stores read them from their rows.
import type { UsageSum } from "../../account/usage-queries.ts";

export type SumRow = Readonly<
  Record<"requests" | "input" | "cached_input" | "output" | "reasoning" | "billed_tokens", number>
>;

export const noUsage: UsageSum = { requests: 0, input: 0, cachedInput: 0, output: 0, reasoning: 0, billedTokens: 0 };

export const sumOf = ({ requests, input, cached_input, output, reasoning, billed_tokens }: SumRow): UsageSum => ({
  requests,
  input,
  cachedInput: cached_input,
  output,
  reasoning,
  billedTokens: billed_tokens,
});

export const plus = (one: UsageSum, other: UsageSum): UsageSum => ({
  requests: one.requests + other.requests,
  input: one.input + other.input,
  cachedInput: one.cachedInput + other.cachedInput,
  output: one.output + other.output,
  reasoning: one.reasoning + other.reasoning,
  billedTokens: one.billedTokens + other.billedTokens,
});
