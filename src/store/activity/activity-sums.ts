// The sums that the operators' charts are made of: rows of a step are added, and a range is read from them.
import {
  type Activity,
  activityCounts,
  type ActivityFigures,
  type ActivityKind,
  type ActivityRange,
  activityRanges,
  type ActivityRow,
  type ActivitySeries,
  type ActivitySplit,
  type ActivityTotal,
  durationBuckets,
  type EarlierActivity,
  minuteMs,
  percentile,
  startOf,
} from "../../core/activity.ts";
import { dayMs, hourMs } from "../../core/units.ts";
import type { Ms } from "../../core/types.ts";

/** Series in a chart, the rest included. */
export const activitySeriesMax = 6;

/** Each is kept longer than the longest range that it is read for, since ranges begin at a whole step. */
export const activityLevels = [
  { stepMs: minuteMs, keptMs: dayMs + hourMs },
  { stepMs: hourMs, keptMs: 91 * dayMs },
  { stepMs: dayMs, keptMs: 91 * dayMs },
] as const;

/** `name`, the counts in their order, `wait`, `first_token`. */
export type Values = readonly [name: string, ...rest: (string | number)[]];
/** One place and its numbers, together. */
export type Sum = { readonly counts: number[]; readonly wait: Uint32Array; readonly firstToken: Uint32Array };

/** Rows of a range's steps, and how many requests each name of the split has in it. */
export type RangeRows = Readonly<{
  range: ActivityRange;
  split: ActivitySplit;
  now: Ms;
  earlier: readonly EarlierActivity[];
  ranked: readonly Readonly<{ name: string; requests: number }>[];
  rows(kind: ActivityKind): Iterable<readonly [at: Ms, ...values: Values]>;
}>;

/** As ActivityQueries.read; the last step is the one that `now` is in. */
export function activityOf({ range, split, now, earlier, ranked, rows }: RangeRows): Activity {
  const { stepMs, steps } = activityRanges[range];
  const { from, until } = boundsOf(range, now);
  const before = earlier.filter(({ at }) => at >= from && at < until);
  const collect = (kind: ActivityKind, placeOf: (name: string) => number, places: number): ActivitySeries[] => {
    const empty = () => Array.from({ length: places }, () => Array.from({ length: steps }, emptySum));
    const [sums, known] = [empty(), empty()];
    const at = (of: Sum[][], name: string, time: Ms): Sum => of[placeOf(name)]![Math.floor((time - from) / stepMs)]!;
    for (const [time, ...values] of rows(kind)) addValues(at(sums, values[0], time), values);
    for (const row of before) addEarlier(at(known, row.name, row.at), row);
    return sums.map((each, place) => {
      // Of a step that was counted in part the journal knows more; what it does not know it has as 0.
      for (const [step, sum] of each.entries()) takeGreater(sum, known[place]![step]!);
      return { steps: figuresOf(each), total: figuresOf([each.reduce(plus, emptySum())]) };
    });
  };
  const requests = new Map(ranked.map((each) => [each.name, each.requests]));
  for (const row of before) requests.set(row.name, (requests.get(row.name) ?? 0) + row.requests);
  const names: (string | null)[] = [...requests]
    .sort(([a, many], [b, more]) => Number(a === "") - Number(b === "") || more - many || (a < b ? -1 : 1))
    .map(([name]) => name);
  if (names.length > activitySeriesMax) names.splice(activitySeriesMax - 1, names.length, null);
  const [all] = collect("all", () => 0, 1);
  const series = collect(
    split,
    (name) => (names.includes(name) ? names.indexOf(name) : names.length - 1),
    names.length,
  );
  return { from, all: all!, series: series.map((each, place) => ({ ...each, name: names[place]! })) };
}

export function totalsOf(rows: Iterable<readonly [at: Ms, ...values: Values]>): ActivityTotal[] {
  const sums = new Map<string, Sum>();
  for (const [, ...values] of rows) {
    const [name] = values;
    if (name === "") continue;
    let sum = sums.get(name);
    if (sum === undefined) sums.set(name, (sum = emptySum()));
    addValues(sum, values);
  }
  return [...sums].map(([name, sum]) => ({ name, total: figuresOf([sum]) }));
}

export function boundsOf(range: ActivityRange, now: Ms): Readonly<{ from: Ms; until: Ms }> {
  const { stepMs, steps } = activityRanges[range];
  const from = startOf(range, now);
  return { from, until: from + steps * stepMs };
}

/** Whose steps a range is made of. */
export function levelOf(range: ActivityRange): (typeof activityLevels)[number] {
  const { stepMs } = activityRanges[range];
  return activityLevels[stepMs < hourMs ? 0 : stepMs < dayMs ? 1 : 2];
}

/** Whose first step says when counting began: an hour says it closer than its day. */
export const beganLevelOf = (range: ActivityRange): (typeof activityLevels)[number] =>
  activityLevels[activityRanges[range].stepMs < hourMs ? 0 : 1];

function addEarlier({ counts }: Sum, { requests, input, cachedInput, output }: EarlierActivity): void {
  [requests, requests, 0, 0, 0, input, cachedInput, output].forEach((count, place) => (counts[place]! += count));
}

function takeGreater({ counts }: Sum, other: Sum): void {
  other.counts.forEach((count, place) => (counts[place] = Math.max(counts[place]!, count)));
}

export const emptySum = (): Sum => ({
  counts: activityCounts.map(() => 0),
  wait: new Uint32Array(durationBuckets),
  firstToken: new Uint32Array(durationBuckets),
});

export const valuesOf = ({ counts, wait, firstToken }: Sum): (string | number)[] => [
  ...counts,
  JSON.stringify(sparse(wait)),
  JSON.stringify(sparse(firstToken)),
];

export function addRow(
  sum: Sum,
  { counts, wait, firstToken }: Pick<ActivityRow, "counts" | "wait" | "firstToken">,
): void {
  for (let place = 0; place < sum.counts.length; place += 1) sum.counts[place]! += counts[place]!;
  for (let pair = 0; pair < wait.length; pair += 2) sum.wait[wait[pair]!]! += wait[pair + 1]!;
  for (let pair = 0; pair < firstToken.length; pair += 2) sum.firstToken[firstToken[pair]!]! += firstToken[pair + 1]!;
}

export function addValues(sum: Sum, [, ...values]: Values): void {
  const counts = values.slice(0, activityCounts.length) as number[];
  const [wait, firstToken] = values.slice(activityCounts.length).map((text) => JSON.parse(text as string) as number[]);
  addRow(sum, { counts, wait: wait!, firstToken: firstToken! });
}

function plus(sum: Sum, other: Sum): Sum {
  other.counts.forEach((count, place) => (sum.counts[place]! += count));
  other.wait.forEach((count, bucket) => (sum.wait[bucket]! += count));
  other.firstToken.forEach((count, bucket) => (sum.firstToken[bucket]! += count));
  return sum;
}

function sparse(buckets: Uint32Array): number[] {
  const pairs: number[] = [];
  buckets.forEach((count, bucket) => count > 0 && pairs.push(bucket, count));
  return pairs;
}

function figuresOf(sums: readonly Sum[]): ActivityFigures {
  const counts = activityCounts.map((name, place) => [name, sums.map((sum) => sum.counts[place]!)] as const);
  return {
    ...(Object.fromEntries(counts) as Record<(typeof activityCounts)[number], number[]>),
    waitP50: sums.map(({ wait }) => percentile(wait, 0.5)),
    waitP95: sums.map(({ wait }) => percentile(wait, 0.95)),
    firstTokenP50: sums.map(({ firstToken }) => percentile(firstToken, 0.5)),
    firstTokenP95: sums.map(({ firstToken }) => percentile(firstToken, 0.95)),
  };
}
