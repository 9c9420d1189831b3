// What happened on a server in a minute: counts and two histograms of durations, of everything and of each model, node,
// account and key. The charts of the console are made of it.
import { dayMs, hourMs } from "./units.ts";
import type { Ms } from "./types.ts";

/** By what the charts can be split. */
export const activitySplits = ["model", "node", "account", "key"] as const;
export type ActivitySplit = (typeof activitySplits)[number];
/** `reason`: why requests were refused or failed. */
export type ActivityKind = "all" | ActivitySplit | "reason";

/** Places of `ActivityRow.counts`. A request was answered, refused (4xx) or has failed (5xx), or its client left. */
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

/** Pairs of a bucket and how many fell into it, in any order. */
export type SparseDurations = readonly number[];

/** A part of a minute; parts of one are added. */
export type ActivityRow = Readonly<{
  /** When its minute begins. */
  at: Ms;
  kind: ActivityKind;
  /** Of a key the numbers of its account and its own: "3 2". Empty: those that have no name, and those beyond the most that are kept. */
  name: string;
  counts: readonly number[];
  wait: SparseDurations;
  firstToken: SparseDurations;
}>;

// Buckets are 19 % wide, so that a percentile is at most 9 % off: 1 ms to 20 minutes in 81 of them.
const bucketsPerDoubling = 4;
export const durationBuckets = 20 * bucketsPerDoubling + 1;

export function durationBucket(ms: Ms): number {
  const bucket = Math.floor(Math.log2(Math.max(1, ms)) * bucketsPerDoubling);
  return bucket < durationBuckets ? bucket : durationBuckets - 1;
}

/** Of durations counted by bucket; null where there are none. The middle of the bucket, in whole milliseconds. */
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

/** How far back the charts go, and in which steps: all are kept in minutes for a day and in hours for 90. */
export const activityRanges = {
  "1h": { stepMs: minuteMs, steps: 60 },
  "6h": { stepMs: 5 * minuteMs, steps: 72 },
  "24h": { stepMs: 15 * minuteMs, steps: 96 },
  "7d": { stepMs: hourMs, steps: 168 },
  "30d": { stepMs: dayMs, steps: 30 },
  "90d": { stepMs: dayMs, steps: 90 },
} as const;
export type ActivityRange = keyof typeof activityRanges;

/** When the first step of a range begins whose last one `now` is in. */
export function startOf(range: ActivityRange, now: Ms): Ms {
  const { stepMs, steps } = activityRanges[range];
  return (Math.floor(now / stepMs) + 1 - steps) * stepMs;
}

/** What the journal says of a time in which nothing was counted: no refusals and no durations. */
export type EarlierActivity = Readonly<{
  /** When its step begins. */
  at: Ms;
  /** As in `ActivityRow`. */
  name: string;
  requests: number;
  input: number;
  cachedInput: number;
  output: number;
}>;

/** Numbers of each step, the oldest first. */
export type ActivityFigures = Readonly<Record<ActivityCount, readonly number[]>> &
  Readonly<{
    waitP50: readonly (Ms | null)[];
    waitP95: readonly (Ms | null)[];
    firstTokenP50: readonly (Ms | null)[];
    firstTokenP95: readonly (Ms | null)[];
  }>;

/** `steps` have one number for each step, `total` has one for all of them together. */
export type ActivitySeries = Readonly<{ steps: ActivityFigures; total: ActivityFigures }>;

export type Activity = Readonly<{
  /** When the first step begins. */
  from: Ms;
  all: ActivitySeries;
  /** Those with most requests first; of more than fit, the last one is the rest, and its name is null. */
  series: readonly (ActivitySeries & Readonly<{ name: string | null }>)[];
}>;

/** `total` has one number of each kind. */
export type ActivityTotal = Readonly<{ name: string; total: ActivityFigures }>;

export interface ActivityQueries {
  /** The first moment of which there are counts in the steps of a range; null: none. Rejects with StoreUnavailable. */
  began(range: ActivityRange): Promise<Ms | null>;
  /**
   * Everything that was counted before it is asked counts; `earlier` is what is known of the steps before, or of which a
   * part was counted. Rejects with StoreUnavailable.
   */
  read(range: ActivityRange, split: ActivitySplit, earlier: readonly EarlierActivity[]): Promise<Activity>;
  /** Of each name, all together since an hour began; those beyond the most that are kept are not among them. */
  totals(split: ActivitySplit, from: Ms): Promise<readonly ActivityTotal[]>;
  /** How often each reason occurred since, the most frequent first. */
  reasons(from: Ms): Promise<readonly Readonly<{ reason: string; requests: number }>[]>;
}
