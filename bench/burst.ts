// How long do streams wait for their first token that all begin in the same moment, and what does such a stream cost?
//
//   bun bench/burst.ts [--streams 200] [--tokens 100] [--interval-ms 20] [--dialect messages] [--runs 8] [--quick]
import { tokenBytesMin } from "./answer.ts";
import { startCpuTimer } from "./cpu-time.ts";
import { readFlags } from "./flags.ts";
import { startLineup } from "./lineup.ts";
import { isPeer, peerNotes } from "./peers.ts";
import { placeClient } from "./placement.ts";
import { keepResult } from "./result.ts";
import { median, percentile, spread } from "./statistics.ts";
import { runBurst, type StreamRun } from "./stream-client.ts";
import { interleaved, type Subject, type SubjectName } from "./subject.ts";

export const burstDefaults = {
  streams: 200,
  tokens: 100,
  intervalMs: 20,
  runs: 8,
  dialect: "chat",
  only: "direct,nginx,tollgate",
};
export type BurstFlags = typeof burstDefaults;

export type Burst = Readonly<{
  streams: StreamRun;
  /** Microseconds of CPU time per stream. */
  proxy: number;
}>;

/** The first burst after the start of each, and those that follow. */
export async function measureBursts(flags: BurstFlags) {
  const { tokens, intervalMs, only, dialect, streams, runs } = flags;
  const answer = { tokens, tokenBytes: tokenBytesMin };
  // Half more, because bursts do not use all accounts equally.
  const requests = 1.5 * (runs + 1) * streams;
  const lineup = await startLineup({ node: { ...answer, intervalMs }, only, dialect, requests });
  const measure = async (subject: Subject): Promise<Burst> => {
    const timer = startCpuTimer(subject.pids);
    const run = await runBurst(subject, streams, answer);
    return { streams: run, proxy: timer.elapsedMicroseconds() / streams };
  };
  try {
    const first = new Map<SubjectName, Burst>();
    for (const subject of lineup.subjects) {
      const burst = await measure(subject);
      first.set(subject.name, burst);
      console.log(`  first after the start ${subject.name.padEnd(8)} ${describe(burst)}`);
    }
    return { first, later: await interleaved(lineup.subjects, runs, measure, describe), skipped: lineup.skipped };
  } finally {
    await lineup.stop();
  }
}

const firstTokens = (bursts: readonly Burst[]): number[] => bursts.flatMap(({ streams }) => streams.firstTokenMs);

function describe({ streams, proxy }: Burst): string {
  const { firstTokenMs, failures } = streams;
  if (failures.length > 0) return `${failures.length} FAILED, first: ${failures[0]}`;
  return `first token p50 ${median(firstTokenMs).toFixed(1)} ms p99 ${percentile(firstTokenMs, 0.99).toFixed(1)} ms, proxy ${proxy.toFixed(0)} us/stream`;
}

if (import.meta.main) {
  const flags = readFlags(burstDefaults, { streams: 20, tokens: 10, runs: 2 });
  placeClient();
  const { first, later, skipped } = await measureBursts(flags);
  const baseline = later.get("nginx");
  const peers = [...later.keys()].filter(isPeer);
  await keepResult({
    bench: "burst",
    variant: peers.length > 0 ? "peers" : flags.dialect === "chat" ? "" : flags.dialect,
    question: `${flags.streams} streams that begin in the same moment, ${flags.dialect}`,
    columns: [
      ...[
        "way",
        "first token p50 ms",
        "p99 ms",
        "first burst after the start, p50 ms",
        "proxy us/stream min / median / max",
      ],
      ...["ratio to nginx", "failed"],
    ],
    rows: [...later].map(([name, bursts]) => {
      const costs = bursts.map(({ proxy }) => proxy);
      const ratio = baseline === undefined ? null : median(costs) / median(baseline.map(({ proxy }) => proxy));
      const all = [first.get(name)!, ...bursts];
      const times = firstTokens(bursts);
      return [
        name,
        times.length === 0 ? "-" : median(times).toFixed(1),
        times.length === 0 ? "-" : percentile(times, 0.99).toFixed(1),
        first.get(name)!.streams.complete === 0 ? "-" : median(firstTokens([first.get(name)!])).toFixed(1),
        name === "direct" ? "-" : spread(costs, 0),
        ratio === null || name === "direct" ? "-" : ratio.toFixed(2),
        `${all.reduce((sum, { streams }) => sum + streams.failures.length, 0)}`,
      ];
    }),
    chart: null,
    failures: [...first.values(), ...[...later.values()].flat()].reduce(
      (sum, { streams }) => sum + streams.failures.length,
      0,
    ),
    notes: [
      `Connections are open before; ${flags.tokens} tokens each every ${flags.intervalMs} ms. ${flags.runs} bursts of each way, interleaved ` +
        "in random order, pooled, after one that is a column of its own. Node and client share a core and need their own time for the burst: " +
        "compare with the direct way.",
      ...peerNotes([...later.keys()]),
      ...skipped,
    ],
  });
}
