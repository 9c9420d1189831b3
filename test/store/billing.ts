// The price of a reply in balance tokens, computed apart from the program's own.

/** floor((2 * tokens * cents + 500) / 1000): half up, once. */
export const billedTokens = (tokens: number, cents: number): number =>
  Number((2n * BigInt(tokens) * BigInt(cents) + 500n) / 1000n);
