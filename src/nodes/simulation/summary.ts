// A replayed trace in a few numbers.
import { priorities } from "../../core/priority.ts";
import type { Calibration, FirstTokens, SimulatedRun, Spread } from "../../core/simulation.ts";
import type { Replayed, Setup } from "./replay.ts";
import type { Trace } from "./trace.ts";

const timeParts = 60;
/** An output token is as much work as this many input tokens, as in Placement. */
const outputWork = 4;

/** By work, without what caches had. */
export function workOf(trace: Trace): Float64Array {
  const work = new Float64Array(trace.accounts.length);
  for (let at = 0; at < trace.length; at++)
    work[trace.account[at]!]! += trace.input[at]! - trace.cached[at]! + outputWork * trace.output[at]!;
  return work;
}

/** Without the names of accounts, which stand in the order of `shown`. */
export type Summary = Omit<SimulatedRun, "configuration" | "accounts"> & Readonly<{ accounts: readonly FirstTokens[] }>;

/** `shown`: the places of the accounts to list. */
export function summaryOf(trace: Trace, setup: Setup, replayed: Replayed, shown: readonly number[]): Summary {
  const { ranks, nodes } = replayed;
  const work = workOf(trace);
  const all = work.reduce((sum, one) => sum + one, 0);
  const listed = new Map(shown.map((account, place) => [account, place]));
  const groupOf = (at: number): number => listed.get(trace.account[at]!) ?? shown.length;
  const byAccount = firstTokens(trace, replayed, shown.length + 1, groupOf);
  const spanMs = Math.max(1, (trace.lineAt.at(-1) ?? 0) - (trace.lineAt[0] ?? 0));
  const others = trace.accounts.length - shown.length;
  const shownWork = shown.reduce((sum, account) => sum + work[account]!, 0);
  return {
    all: firstTokens(trace, replayed, 1, () => 0)[0]!,
    classes: firstTokens(trace, replayed, priorities.length, (at) => ranks[at]!)
      .map((tokens, rank) => ({ class: priorities[rank]!, ...tokens }))
      .filter(({ requests }) => requests > 0),
    accounts: byAccount.slice(0, shown.length),
    others:
      others === 0 ? null : { accounts: others, work: (all - shownWork) / Math.max(1, all), ...byAccount.at(-1)! },
    nodes: nodes.map(({ name, requests, busyMs, input, cached }, at) => ({
      node: name,
      slots: setup.nodes[at]!.slots,
      requests,
      busy: Math.min(1, busyMs / spanMs),
      cached_input: input === 0 ? null : cached / input,
    })),
    over_time_ms: overTime(trace, replayed, spanMs),
  };
}

function firstTokens(trace: Trace, replayed: Replayed, groups: number, groupOf: (at: number) => number): FirstTokens[] {
  const { firstMs, waitMs } = replayed;
  const counts = new Uint32Array(groups);
  for (let at = 0; at < trace.length; at++) counts[groupOf(at)]!++;
  const firsts = Array.from(counts, (count) => new Float32Array(count));
  const waits = Array.from(counts, (count) => new Float32Array(count));
  const filled = new Uint32Array(groups);
  for (let at = 0; at < trace.length; at++) {
    if (Number.isNaN(firstMs[at]!)) continue;
    const group = groupOf(at);
    firsts[group]![filled[group]!] = firstMs[at]!;
    waits[group]![filled[group]!++] = waitMs[at]!;
  }
  return firsts.map((column, group) => {
    const first = column.subarray(0, filled[group]).sort();
    const line = waits[group]!.subarray(0, filled[group]).sort();
    const requests = counts[group]!;
    return {
      requests,
      refused: requests - first.length,
      mean_ms: meanOf(first),
      p50_ms: quantileOf(first, 0.5),
      p90_ms: quantileOf(first, 0.9),
      p99_ms: quantileOf(first, 0.99),
      line_mean_ms: meanOf(line),
      line_p90_ms: quantileOf(line, 0.9),
    };
  });
}

function overTime(trace: Trace, { firstMs }: Replayed, spanMs: number): (number | null)[] {
  const sums = new Float64Array(timeParts);
  const counts = new Uint32Array(timeParts);
  for (let at = 0; at < trace.length; at++) {
    if (Number.isNaN(firstMs[at]!)) continue;
    const part = Math.min(timeParts - 1, Math.floor(((trace.lineAt[at]! - trace.lineAt[0]!) / spanMs) * timeParts));
    sums[part]! += firstMs[at]!;
    counts[part]!++;
  }
  return Array.from(sums, (sum, part) => (counts[part] === 0 ? null : tenth(sum / counts[part]!)));
}

/** Null where nothing was recorded. */
export function calibrationOf(trace: Trace, { firstMs, nodes }: Replayed): Calibration | null {
  const both: number[] = [];
  let [input, cached] = [0, 0];
  for (let at = 0; at < trace.length; at++) {
    input += trace.input[at]!;
    cached += trace.cached[at]!;
    if (trace.firstTokenMs[at]! >= 0 && !Number.isNaN(firstMs[at]!)) both.push(at);
  }
  if (both.length === 0) return null;
  const recorded = spreadOf(Float32Array.from(both, (at) => trace.firstTokenMs[at]!).sort());
  const simulated = spreadOf(Float32Array.from(both, (at) => firstMs[at]!).sort());
  const names = ["mean_ms", "p50_ms", "p90_ms", "p99_ms"] as const;
  const error = names.map((name) => [name, thousandth(simulated[name] / Math.max(1, recorded[name]) - 1)] as const);
  const found = nodes.reduce((sum, node) => sum + node.cached, 0);
  return {
    requests: both.length,
    recorded,
    simulated,
    error: Object.fromEntries(error) as Spread,
    cached_input_recorded: thousandth(cached / Math.max(1, input)),
    cached_input_simulated: thousandth(found / Math.max(1, input)),
  };
}

const spreadOf = (sorted: Float32Array): Spread => ({
  mean_ms: meanOf(sorted)!,
  p50_ms: quantileOf(sorted, 0.5)!,
  p90_ms: quantileOf(sorted, 0.9)!,
  p99_ms: quantileOf(sorted, 0.99)!,
});

const meanOf = (numbers: Float32Array): number | null =>
  numbers.length === 0 ? null : tenth(numbers.reduce((sum, one) => sum + one, 0) / numbers.length);

const quantileOf = (sorted: Float32Array, part: number): number | null =>
  sorted.length === 0 ? null : tenth(sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]!);

const tenth = (number: number): number => Math.round(10 * number) / 10;
const thousandth = (number: number): number => Math.round(1_000 * number) / 1_000;
