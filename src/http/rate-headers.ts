// The headers that say what is left of a minute's requests and tokens, in the names that clients of each API read.
import type { RateLeft, RatesLeft } from "../core/rates-left.ts";
import type { Dialect } from "../dialects/dialect.ts";

/** Browsers may read these on pages of other sites. */
export const rateHeaderNames = ["requests", "tokens"].flatMap((unit) =>
  ["limit", "remaining", "reset"].map((what) => `x-ratelimit-${what}-${unit}`),
);

/** Of limited units alone. The dialect's own names come beside the usual ones. */
export function setRateHeaders(
  headers: Headers,
  rates: RatesLeft,
  { rateHeaders }: Pick<Dialect, "rateHeaders">,
): void {
  for (const unit of ["requests", "tokens"] as const) {
    const rate = rates[unit];
    if (rate === null) continue;
    const set = (what: string, value: string | number) => headers.set(`x-ratelimit-${what}-${unit}`, String(value));
    set("limit", rate.limit);
    set("remaining", rate.remaining);
    set("reset", `${secondsOf(rate)}s`);
    for (const [name, value] of rateHeaders?.(unit, rate, rates.at) ?? []) headers.set(name, value);
  }
}

const secondsOf = ({ resetMs }: RateLeft): number => Math.ceil(resetMs / 1000);
