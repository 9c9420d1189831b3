// What happened on a server in a minute: counts and two histograms of durations, in total and for each model, node,
// account and key. The console's charts are made from it.
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

/** The charts' ranges and their steps: all are kept in minutes for a day and in hours for 90. */
export const activityRanges = {
  "1h": { stepMs: minuteMs, steps: 60 },
  "6h": { stepMs: 5 * minuteMs, steps: 72 },
  "24h": { stepMs: 15 * minuteMs, steps: 96 },
  "7d": { stepMs: hourMs, steps: 168 },
  "30d": { stepMs: dayMs, steps: 30 },
  "90d": { stepMs: dayMs, steps: 90 },
} as const;
export type ActivityRange = keyof typeof activityRanges;

/** When the first step of the range begins whose last step contains `now`. */
export function startOf(range: ActivityRange, now: Ms): Ms {
  const { stepMs, steps } = activityRanges[range];
  return (Math.floor(now / stepMs) + 1 - steps) * stepMs;
}

/** What the journal has for a time without counts: no refusals and no durations. */
export type EarlierActivity = Readonly<{
  /** When its step begins. */
  at: Ms;
  name: string;
  requests: number;
  input: number;
  cachedInput: number;
  output: number;
}>;

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
  /** When the first step begins. */
  from: Ms;
  all: ActivitySeries;
  /** The names with the most requests first; where there are more, the last one is the rest, with a null name. */
  series: readonly (ActivitySeries & Readonly<{ name: string | null }>)[];
}>;

/** `total` has one number of each kind. */
export type ActivityTotal = Readonly<{ name: string; total: ActivityFigures }>;

export interface ActivityQueries {
  /** The first moment with counts in the steps of a range; null: none. Rejects with StoreUnavailable. */
  began(range: ActivityRange): Promise<Ms | null>;
  /**
   * Includes everything that was counted before the call; `earlier` is what is known about steps without counts, or
   * with only a part. Rejects with StoreUnavailable.
   */
  read(range: ActivityRange, split: ActivitySplit, earlier: readonly EarlierActivity[]): Promise<Activity>;
  /** The sum for each name since an hour began; names beyond the kept ones are missing. */
  totals(split: ActivitySplit, from: Ms): Promise<readonly ActivityTotal[]>;
  /** How often each reason occurred since, most frequent first. */
  reasons(from: Ms): Promise<readonly Readonly<{ reason: string; requests: number }>[]>;
}
