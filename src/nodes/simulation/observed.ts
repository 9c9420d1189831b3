// What a trace shows of its nodes: how fast their engines are, and how many requests they had at once.
//
//   reading   times from the node to the first token, of prompts that no other was read beside, or, where most had others
//             before them, from one first token to the next: medians of the short ones and of the few with half of the tokens
//             give the time of a token and, where they cross the axis, the way to the engine (behind the half of a step that
//             was under way, and the one that ends with the first token)
//   writing   times between tokens, less what other prompts took to be read meanwhile, by how many requests were there: the
//             time of a step and of each request in it
import type { Ms } from "../../core/types.ts";
import type { Trace } from "./trace.ts";
import { type EngineRates, usualRates } from "./virtual-engine.ts";

export type Observed = Readonly<{
  name: string;
  requests: number;
  /** The most requests that it had at once. */
  peak: number;
  /** Whether requests waited for that: most that waited in line came when it had as many again. */
  isFull: boolean;
  models: readonly string[];
  /** Null: too little is known. */
  rates: EngineRates | null;
}>;

const samplesMin = 20;
/** Numbers that differ by less show no slope. */
const alikeTimes = 1.2;
/** Where fewer prompts than this part are read alone, those are no fair sample. */
const alonePart = 0.5;
/** First tokens of one step come together. */
const sameStepMs = 2;
/** A wait that is none: the line gives a slot within a turn of the event loop. */
const noWaitMs = 5;
/** Of its peak: ends are recorded a little after the slot was given to the next. */
const fullPart = 0.85;
/** Fits see at most this many requests of a node. */
const samplesMax = 20_000;

export function observe(trace: Trace): readonly Observed[] {
  const all = trace.nodes.map((): number[] => []);
  for (let at = 0; at < trace.length; at++) if (trace.node[at]! >= 0) all[trace.node[at]!]!.push(at);
  return trace.nodes.map((name, node) => {
    const requests = all[node]!;
    const models = new Set(requests.map((at) => trace.models[trace.model[at]!]!));
    const measured = requests.filter((at) => trace.firstTokenMs[at]! >= 0 && trace.sentMs[at]! >= 0);
    const spans = spansOf(trace, measured.slice(-samplesMax));
    const peak = spans.reduce((most, { beside }) => Math.max(most, beside), 1);
    const waited = spans.filter(({ waitedMs }) => waitedMs > noWaitMs);
    return {
      name,
      requests: requests.length,
      peak,
      isFull:
        waited.length >= samplesMin &&
        2 * waited.filter(({ beside }) => beside >= fullPart * peak).length > waited.length,
      models: [...models],
      rates: ratesOf(spans),
    };
  });
}

/** Rates of all nodes together, for those that have shown too little. */
export function usualAmong(nodes: readonly Observed[]): EngineRates {
  const known = nodes.flatMap(({ rates }) => rates ?? []);
  if (known.length === 0) return usualRates;
  const middle = (of: (rates: EngineRates) => number): number => median(known.map(of));
  return {
    readPerMs: middle(({ readPerMs }) => readPerMs),
    stepMs: middle(({ stepMs }) => stepMs),
    requestMs: middle(({ requestMs }) => requestMs),
    wayMs: middle(({ wayMs }) => wayMs),
  };
}

/** A request on its node. `beside`: how many ran there when it was sent, itself included; `isAlone`: it alone was read. */
type Span = Readonly<{
  waitedMs: Ms;
  sentAt: Ms;
  firstAt: Ms;
  endedAt: Ms;
  unread: number;
  output: number;
  beside: number;
  isAlone: boolean;
}>;

function spansOf(trace: Trace, requests: readonly number[]): Span[] {
  const spans = requests.map((at) => {
    const cameAt = trace.lineAt[at]! - trace.beforeMs[at]!;
    const waitedMs = trace.waitMs[at]! || 0;
    const sentAt = cameAt + trace.beforeMs[at]! + waitedMs;
    return {
      waitedMs,
      sentAt,
      firstAt: Math.max(sentAt, cameAt + trace.firstTokenMs[at]!),
      endedAt: cameAt + trace.durationMs[at]!,
      unread: trace.input[at]! - trace.cached[at]!,
      output: trace.output[at]!,
    };
  });
  spans.sort((one, other) => one.sentAt - other.sentAt);
  const ends = Float64Array.from(spans, ({ endedAt }) => endedAt).sort();
  let ended = 0;
  let lastFirst = -Infinity;
  return spans.map((span, at) => {
    while (ended < ends.length && ends[ended]! <= span.sentAt + noWaitMs) ended++;
    const isAlone = lastFirst <= span.sentAt && (spans[at + 1]?.sentAt ?? Infinity) >= span.firstAt;
    lastFirst = Math.max(lastFirst, span.firstAt);
    return { ...span, beside: Math.max(1, at + 1 - ended), isAlone };
  });
}

function ratesOf(spans: readonly Span[]): EngineRates | null {
  if (spans.length < samplesMin) return null;
  const alone = spans.filter(({ isAlone }) => isAlone);
  const isQuiet = alone.length >= Math.max(samplesMin, spans.length * alonePart);
  const reading = lineThrough(
    isQuiet ? alone.map(({ unread, sentAt, firstAt }): Point => [unread, firstAt - sentAt]) : readInTurn(spans),
  );
  const readPerMs = reading.slope > 0 ? 1 / reading.slope : usualRates.readPerMs;
  const steps = stepsOf(spans, readPerMs);
  const step = steps.length < samplesMin ? null : lineThrough(steps);
  const requestMs = step === null ? usualRates.requestMs : Math.max(0, step.slope);
  const stepMs = step === null ? usualRates.stepMs : Math.max(0.1, step.atZero);
  const wayMs = isQuiet ? Math.max(0, reading.atZero - 1.5 * stepMs - requestMs) : usualRates.wayMs;
  return { readPerMs, stepMs, requestMs, wayMs };
}

type Point = readonly [x: number, y: number];

/** Where prompts wait for each other in the engine: what was read in one step, and how long after the one before. */
function readInTurn(spans: readonly Span[]): Point[] {
  const points: [unread: number, ms: Ms][] = [];
  let last = -Infinity;
  for (const { unread, sentAt, firstAt } of spans.toSorted((one, other) => one.firstAt - other.firstAt)) {
    if (firstAt - last > sameStepMs) points.push([unread, firstAt - Math.max(sentAt, last)]);
    else points.at(-1)![0] += unread;
    last = firstAt;
  }
  return points;
}

/**
 * Through the medians of the lower half and of an upper part, which is those at the end that have half of the sum: where
 * caches have most of nearly all prompts, only few show how long reading takes. Flat where they are alike, or where more of
 * the one is less of the other.
 */
function lineThrough(points: readonly Point[]): { slope: number; atZero: number } {
  const sorted = points.toSorted(([one], [other]) => one - other);
  let rest = sorted.reduce((sum, [x]) => sum + x, 0) / 2;
  let upper = sorted.length;
  while (upper > 0 && rest > 0) rest -= sorted[--upper]![0];
  const [low, high] = [sorted.slice(0, sorted.length >> 1), sorted.slice(upper)].map((part) => ({
    x: median(part.map(([x]) => x)),
    y: median(part.map(([, y]) => y)),
  })) as [Middle, Middle];
  const slope = high.x > alikeTimes * low.x ? Math.max(0, (high.y - low.y) / (high.x - low.x)) : 0;
  return { slope, atZero: Math.max(0, low.y - slope * low.x) };
}
type Middle = Readonly<{ x: number; y: number }>;

/** For each answer, how many requests were there while it was written and how long a token took, without reading. */
function stepsOf(spans: readonly Span[], readPerMs: number): (readonly [beside: number, ms: Ms])[] {
  const read = new Sums(spans.map(({ firstAt, unread }) => [firstAt, unread / readPerMs]));
  const came = new Sums(spans.map(({ sentAt }) => [sentAt, sentAt]));
  const went = new Sums(spans.map(({ endedAt }) => [endedAt, endedAt]));
  /** The requests that were there, times how long, until then. */
  const there = (at: Ms): number => went.until(at) + went.after(at) * at - came.until(at) - came.after(at) * at;
  return spans.flatMap(({ firstAt, endedAt, output }) => {
    const ms = endedAt - firstAt;
    if (output < 8 || ms <= 0) return [];
    const reading = Math.min(read.until(endedAt) - read.until(firstAt), 0.9 * ms);
    return [[(there(endedAt) - there(firstAt)) / ms, (ms - reading) / (output - 1)] as const];
  });
}

/** Sums of numbers by their times. */
class Sums {
  readonly #times: Float64Array;
  readonly #sums: Float64Array;

  constructor(numbers: readonly (readonly [at: Ms, number: number])[]) {
    const sorted = numbers.toSorted(([one], [other]) => one - other);
    this.#times = Float64Array.from(sorted, ([at]) => at);
    let sum = 0;
    this.#sums = Float64Array.from(sorted, ([, number]) => (sum += number));
  }

  until(at: Ms): number {
    return this.#sums[this.#countUntil(at) - 1] ?? 0;
  }

  /** How many come later. */
  after(at: Ms): number {
    return this.#times.length - this.#countUntil(at);
  }

  #countUntil(at: Ms): number {
    let [low, high] = [0, this.#times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#times[middle]! <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[numbers.length >> 1] ?? 0;
}
