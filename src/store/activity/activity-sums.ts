// The sums that the operators' charts are made of: rows of a step are added, and a range is read from them.
import {
  type Activity,
  activityCounts,
  type ActivityFigures,
  type ActivityRow,
  type ActivitySeries,
  type ActivityTotal,
  durationBuckets,
  minuteMs,
  percentile,
  type Span,
  stepsOf,
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

/** Rows of a span's steps by name: of the split, and those that `all` is made of. */
export type SpanRows = Readonly<{ span: Span; all: readonly Row[]; ofSplit: readonly Row[] }>;
type Row = readonly [at: Ms, ...values: Values];

/** As ActivityQueries.read. */
export function activityOf({ span, all, ofSplit }: SpanRows): Activity {
  const { from, stepMs } = span;
  const requests = new Map<string, number>();
  for (const [, name, count] of ofSplit) requests.set(name, (requests.get(name) ?? 0) + Number(count));
  const names: (string | null)[] = [...requests]
    .sort(([a, many], [b, more]) => Number(a === "") - Number(b === "") || more - many || (a < b ? -1 : 1))
    .map(([name]) => name);
  if (names.length > activitySeriesMax) names.splice(activitySeriesMax - 1, names.length, null);
  const collect = (rows: readonly Row[], places: number, placeOf: (name: string) => number): ActivitySeries[] => {
    const sums = Array.from({ length: places }, () => Array.from({ length: stepsOf(span) }, emptySum));
    for (const [at, ...values] of rows) {
      addValues(sums[placeOf(values[0])]![Math.floor((at - from) / stepMs)]!, values);
    }
    return sums.map((each) => ({ steps: figuresOf(each), total: figuresOf([each.reduce(plus, emptySum())]) }));
  };
  const series = collect(ofSplit, names.length, (name) =>
    names.includes(name) ? names.indexOf(name) : names.length - 1,
  );
  return {
    all: collect(all, 1, () => 0)[0]!,
    series: series.map((each, place) => ({ ...each, name: names[place]! })),
  };
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

/** Whose steps a span is made of. */
export const levelOf = ({ stepMs }: Span): (typeof activityLevels)[number] =>
  activityLevels[stepMs < hourMs ? 0 : stepMs < dayMs ? 1 : 2];

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
