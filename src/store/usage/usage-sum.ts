// Sums of usage, as both stores read them from their rows.
import type { UsageSum } from "../../account/usage-queries.ts";

export type SumRow = Readonly<
  Record<"requests" | "input" | "cached_input" | "output" | "reasoning" | "billed_tokens", number>
>;

export const sumOf = ({ requests, input, cached_input, output, reasoning, billed_tokens }: SumRow): UsageSum => ({
  requests,
  input,
  cachedInput: cached_input,
  output,
  reasoning,
  billedTokens: billed_tokens,
});
