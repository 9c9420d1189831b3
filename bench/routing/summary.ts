// What a run shows: times to the first token, and how much of the prompts was in the engines' caches.
import type { Ms } from "../../src/core/types.ts";
import { percentile } from "../statistics.ts";
import type { Session } from "./traces.ts";
import type { Row } from "./world.ts";

export type Summary = Readonly<{
  requests: number;
  meanMs: Ms;
  p50Ms: Ms;
  p99Ms: Ms;
  /** From 0 to 1. */
  cachedPart: number;
  failed: number;
}>;

/** Of those who are judged, from `fromMs` on. */
export function summaryOf(rows: readonly Row[], judged: ((session: Session) => boolean) | null, fromMs: Ms): Summary {
  const counted = rows.filter(({ at, session }) => at >= fromMs && (judged === null || judged(session)));
  const begun = counted.filter(({ firstMs }) => firstMs !== null);
  const firsts = begun.map(({ firstMs }) => firstMs!);
  const sum = (of: (row: Row) => number): number => begun.reduce((sum, row) => sum + of(row), 0);
  return {
    requests: counted.length,
    meanMs: sum(({ firstMs }) => firstMs!) / Math.max(1, firsts.length),
    p50Ms: firsts.length === 0 ? 0 : percentile(firsts, 0.5),
    p99Ms: firsts.length === 0 ? 0 : percentile(firsts, 0.99),
    cachedPart:
      sum(({ cachedTokens }) => cachedTokens) /
      Math.max(
        1,
        sum(({ inputTokens }) => inputTokens),
      ),
    failed: counted.filter(({ firstMs, failure }) => firstMs === null || failure !== null).length,
  };
}
