// How much later do the first token, the end of a stream and a non-streaming reply arrive than directly from the node?
//
//   bun bench/latency.ts [--streams 200] [--interval-ms 10] [--per-second 1500] [--runs 3] [--quick]
import { tokenBytesMin } from "./answer.ts";
import { startCpuTimer } from "./cpu-time.ts";
import { readFlags } from "./flags.ts";
import type { LineupSettings } from "./lineup.ts";
import { startLineup } from "./lineup.ts";
import { placeClient } from "./placement.ts";
import { runOpenLoop } from "./request-client.ts";
import type { Result } from "./result.ts";
import { keepResult } from "./result.ts";
import { percentile } from "./statistics.ts";
import { runStreams } from "./stream-client.ts";
import type { Subject, SubjectName } from "./subject.ts";
import { interleaved } from "./subject.ts";

export const latencyDefaults = {
  /** Streams open at once; each connection carries `repeats` of them, one after the other. */
  streams: 200,
  repeats: 4,
  tokens: 100,
  intervalMs: 10,
  /** Non-streaming requests: how many a run, and at which rate. */
  requests: 4_000,
  perSecond: 1_500,
  runs: 3,
  dialect: "chat",
  only: "direct,nginx,tollgate",
};
export type LatencyFlags = typeof latencyDefaults;

export type LatencyRun = Readonly<{
  /** Milliseconds, one each for a reply. */
  samples: Readonly<Record<string, readonly number[]>>;
  /** Share of one core that the proxy used. */
  load: number;
  failures: readonly string[];
}>;

/** Latencies of streams: to the first token, and to the end. */
export async function measureStreamLatency(flags: LatencyFlags) {
  const answer = { tokens: flags.tokens, tokenBytes: tokenBytesMin };
  const spreadMs = flags.tokens * flags.intervalMs;
  return measureEach(
    flags,
    { ...answer, intervalMs: flags.intervalMs },
    flags.streams * flags.repeats,
    async (subject) => {
      const run = await runStreams(subject, { streams: flags.streams, repeats: flags.repeats, spreadMs, answer });
      return { samples: { "first token": run.firstTokenMs, "whole stream": run.wholeMs }, failures: run.failures };
    },
  );
}

/** Latencies of non-streaming requests at a fixed rate. */
export async function measureRequestLatency(flags: LatencyFlags) {
  const answer = { tokens: 8, tokenBytes: 100 };
  return measureEach(flags, { ...answer, intervalMs: 0 }, flags.requests, async (subject) => {
    const run = await runOpenLoop(subject, { requests: flags.requests, answer, promptBytes: 900 }, flags.perSecond);
    return { samples: { "non-streaming reply": run.latencyMs }, failures: run.failures };
  });
}

async function measureEach(
  flags: LatencyFlags,
  node: LineupSettings["node"],
  requestsPerRun: number,
  measure: (subject: Subject) => Promise<Omit<LatencyRun, "load">>,
) {
  const requests = (flags.runs + 1) * requestsPerRun;
  const lineup = await startLineup({ node, only: flags.only, dialect: flags.dialect, requests });
  const measureWithLoad = async (subject: Subject): Promise<LatencyRun> => {
    const timer = startCpuTimer(subject.pids);
    const startedMs = performance.now();
    const run = await measure(subject);
    const elapsedMs = performance.now() - startedMs;
    return { ...run, load: timer.elapsedMicroseconds() / (elapsedMs * 1_000) };
  };
  try {
    for (const subject of lineup.subjects) await measure(subject);
    const runs = await interleaved(lineup.subjects, flags.runs, measureWithLoad, describe);
    return { runs, skipped: lineup.skipped };
  } finally {
    await lineup.stop();
  }
}

function describe(run: LatencyRun): string {
  const parts = Object.entries(run.samples).map(
    ([name, values]) =>
      `${name} p50 ${percentile(values, 0.5).toFixed(2)} ms p99 ${percentile(values, 0.99).toFixed(2)} ms`,
  );
  parts.push(`proxy ${(run.load * 100).toFixed(0)} % of a core`);
  if (run.failures.length > 0) parts.push(`${run.failures.length} FAILED, first: ${run.failures[0]}`);
  return parts.join(", ");
}

/** One row for each kind of latency and each way; added = the way's percentile less the direct one's. */
function rowsOf(runs: ReadonlyMap<SubjectName, readonly LatencyRun[]>): string[][] {
  const rows: string[][] = [];
  const direct = runs.get("direct");
  const kinds = Object.keys([...runs.values()][0]?.[0]?.samples ?? {});
  for (const kind of kinds) {
    for (const [name, subjectRuns] of runs) {
      const load = subjectRuns.reduce((sum, run) => sum + run.load, 0) / subjectRuns.length;
      const cells = [0.5, 0.99].map((share) => {
        const own = percentile(pooled(subjectRuns, kind), share);
        const added = direct === undefined || name === "direct" ? null : own - percentile(pooled(direct, kind), share);
        return [own.toFixed(2), added === null ? "-" : added.toFixed(2)];
      });
      const failed = subjectRuns.reduce((sum, run) => sum + run.failures.length, 0);
      rows.push([kind, name, ...cells[0]!, ...cells[1]!, `${(load * 100).toFixed(0)} %`, `${failed}`]);
    }
  }
  return rows;
}

function pooled(runs: readonly LatencyRun[], kind: string): readonly number[] {
  return runs.flatMap((run) => run.samples[kind] ?? []);
}

if (import.meta.main) {
  const flags = readFlags(latencyDefaults, {
    streams: 20,
    repeats: 1,
    tokens: 20,
    requests: 200,
    perSecond: 400,
    runs: 1,
  });
  placeClient();
  const streams = await measureStreamLatency(flags);
  const requests = await measureRequestLatency(flags);
  const result: Result = {
    bench: "latency",
    variant: "",
    question: "Latency added over the node itself",
    columns: ["latency in ms", "way", "p50", "added p50", "p99", "added p99", "proxy core", "failed"],
    rows: [...rowsOf(streams.runs), ...rowsOf(requests.runs)],
    chart: null,
    failures: [streams, requests]
      .flatMap(({ runs }) => [...runs.values()].flat())
      .reduce((sum, run) => sum + run.failures.length, 0),
    notes: [
      `Streams: ${flags.streams} at once, ${flags.tokens} tokens each every ${flags.intervalMs} ms. Non-streaming: ` +
        `${flags.perSecond} requests a second, open loop, counted from the due time. ${flags.runs} runs of each, ` +
        `interleaved in random order, pooled; "added" is the difference of the percentiles.`,
      ...streams.skipped,
    ],
  };
  await keepResult(result);
}
