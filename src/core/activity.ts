// What happened on a server in a minute: counts and two histograms of durations, in total and for each model, node,
// account and key. The console's charts are made from it.
import type { RangeName } from "./over-time.ts";
import { dayMs, hourMs } from "./units.ts";
import type { Ms } from "./types.ts";

export const activitySplits = ["model", "node", "account", "key"] as const;
export type ActivitySplit = (typeof activitySplits)[number];
/** `reason`: why requests were refused or failed. */
export type ActivityKind = "all" | ActivitySplit | "reason";

/** Indexes of `ActivityRow.counts`. A request was answered, refused (4xx) or failed (5xx), or its client left. */
export const activityCounts = [
  "requests",
  "answered",
  "refused",
  "failed",
  "left",
  "input",
  "cachedInput",
  "output",
] as const;
type ActivityCount = (typeof activityCounts)[number];

/** Pairs of a bucket and its count, in any order. */
export type SparseDurations = readonly number[];

/** A part of a minute; the parts of one are added. */
export type ActivityRow = Readonly<{
  /** When its minute begins. */
  at: Ms;
  kind: ActivityKind;
  /** For a key, the numbers of its account and its own: "3 2". Empty: without a name, or beyond the kept names. */
  name: string;
  counts: readonly number[];
  wait: SparseDurations;
  firstToken: SparseDurations;
}>;

// Buckets are 19 % wide, so a percentile is at most 9 % off: 1 ms to 20 minutes in 81 of them.
const bucketsPerDoubling = 4;
export const durationBuckets = 20 * bucketsPerDoubling + 1;

export function durationBucket(ms: Ms): number {
  const bucket = Math.floor(Math.log2(Math.max(1, ms)) * bucketsPerDoubling);
  return bucket < durationBuckets ? bucket : durationBuckets - 1;
}

/** A percentile of durations counted by bucket; null where there are none. The middle of the bucket, in whole milliseconds. */
export function percentile(buckets: ArrayLike<number>, part: number): Ms | null {
  let total = 0;
  for (let bucket = 0; bucket < buckets.length; bucket += 1) total += buckets[bucket]!;
  if (total === 0) return null;
  let left = Math.ceil(total * part);
  let bucket = 0;
  while ((left -= buckets[bucket]!) > 0) bucket += 1;
  return Math.round(2 ** ((bucket + 0.5) / bucketsPerDoubling));
}

export const minuteMs = 60_000;

/** A time, and the steps that a chart has of it. */
export type Span = Readonly<{ from: Ms; until: Ms; stepMs: Ms }>;

/** The charts' ranges. All are kept in minutes for a day and in hours and days for 91. */
const activityRanges = {
  "1h": hourMs,
  "24h": dayMs,
  "7d": 7 * dayMs,
  "30d": 30 * dayMs,
  "90d": 90 * dayMs,
  "1y": 52 * 7 * dayMs,
} as const satisfies Readonly<Record<RangeName, Ms>>;

/** No more than a hundred steps of a length that people know. */
const stepOf = (ms: Ms): Ms =>
  [minuteMs, 5 * minuteMs, hourMs, dayMs].find((stepMs) => ms <= 100 * stepMs) ??
  7 * dayMs * Math.ceil(ms / (100 * 7 * dayMs));

/** As long as the range, up to the end of the step that `now` is in; days are those of UTC. */
export function spanOf(range: RangeName, now: Ms): Span {
  const ms = activityRanges[range];
  const stepMs = stepOf(ms);
  const end = Math.min(stepMs, dayMs); // of weeks the last one ends today
  const until = (Math.floor(now / end) + 1) * end;
  return { from: until - ms, until, stepMs };
}

/** The steps that touch a time. */
export function spanBetween(from: Ms, until: Ms): Span {
  const stepMs = stepOf(until - from);
  const whole = Math.min(stepMs, dayMs);
  return { from: Math.floor(from / whole) * whole, until: Math.ceil(until / whole) * whole, stepMs };
}

export const stepsOf = ({ from, until, stepMs }: Span): number => Math.ceil((until - from) / stepMs);

/** The numbers of each step, oldest first. */
export type ActivityFigures = Readonly<Record<ActivityCount, readonly number[]>> &
  Readonly<{
    waitP50: readonly (Ms | null)[];
    waitP95: readonly (Ms | null)[];
    firstTokenP50: readonly (Ms | null)[];
    firstTokenP95: readonly (Ms | null)[];
  }>;

/** `steps` has one number for each step, `total` one for all of them together. */
export type ActivitySeries = Readonly<{ steps: ActivityFigures; total: ActivityFigures }>;

export type Activity = Readonly<{
  all: ActivitySeries;
  /** The names with the most requests first; where there are more, the last one is the rest, with a null name. */
  series: readonly (ActivitySeries & Readonly<{ name: string | null }>)[];
}>;

/** `total` has one number of each kind. */
export type ActivityTotal = Readonly<{ name: string; total: ActivityFigures }>;

export interface ActivityQueries {
  /**
   * Includes everything that was counted before the call. `name`: `all` is of that one of the split alone, and there are no
   * series. Rejects with StoreUnavailable.
   */
  read(span: Span, split: ActivitySplit, name: string | null): Promise<Activity>;
  /** The sum for each name since an hour began; names beyond the kept ones are missing. */
  totals(split: ActivitySplit, from: Ms): Promise<readonly ActivityTotal[]>;
  /** How often each reason occurred in a time, most frequent first. */
  reasons(from: Ms, until: Ms): Promise<readonly Readonly<{ reason: string; requests: number }>[]>;
}
