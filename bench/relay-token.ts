// How much CPU time does a relayed token cost, compared with nginx?
//
//   bun bench/relay-token.ts [--streams 2000 --interval-ms 200] [--dialect messages] [--runs 5] [--quick]
import { tokenBytesMin } from "./answer.ts";
import { startCpuTimer } from "./cpu-time.ts";
import { readFlags } from "./flags.ts";
import { startLineup } from "./lineup.ts";
import { loadShareNote } from "./load-share.ts";
import { isPeer, peerNotes } from "./peers.ts";
import { placeClient } from "./placement.ts";
import type { Result } from "./result.ts";
import { keepResult } from "./result.ts";
import { median, spread } from "./statistics.ts";
import type { StreamRun } from "./stream-client.ts";
import { runStreams } from "./stream-client.ts";
import type { Subject } from "./subject.ts";
import { interleaved } from "./subject.ts";

export const relayTokenDefaults = {
  streams: 200,
  tokens: 100,
  intervalMs: 20,
  runs: 5,
  /**
   * Runs of each way before those that count: the runtime compiles what runs often, and after a few thousand streams it is
   * through with that.
   */
  warmUps: 20,
  dialect: "chat",
  only: "direct,nginx,tollgate",
};
export type RelayTokenFlags = typeof relayTokenDefaults;

export type RelayTokenRun = Readonly<{
  streams: StreamRun;
  elapsedMs: number;
  /** Microseconds of CPU time per token delivered. */
  proxy: number;
  node: number;
  client: number;
}>;

/** Measures every subject `runs` times. */
export async function measureRelayToken(flags: RelayTokenFlags) {
  const answer = { tokens: flags.tokens, tokenBytes: tokenBytesMin };
  const lineup = await startLineup({
    node: { ...answer, intervalMs: flags.intervalMs },
    only: flags.only,
    dialect: flags.dialect,
    // Half more, because runs do not use all accounts equally.
    requests: 1.5 * (flags.runs + flags.warmUps) * flags.streams,
  });
  const load = { streams: flags.streams, repeats: 1, spreadMs: flags.intervalMs, answer };
  const measure = async (subject: Subject): Promise<RelayTokenRun> => {
    const timers = [subject.pids, [lineup.node.pid], [process.pid]].map(startCpuTimer);
    const startedMs = performance.now();
    const streams = await runStreams(subject, load);
    const elapsedMs = performance.now() - startedMs;
    const [proxy, node, client] = timers.map((timer) => timer.elapsedMicroseconds() / Math.max(1, streams.tokens));
    return { streams, elapsedMs, proxy: proxy!, node: node!, client: client! };
  };
  try {
    for (let warmUp = 0; warmUp < flags.warmUps; warmUp++) {
      for (const subject of lineup.subjects) await measure(subject);
    }
    const runs = await interleaved(lineup.subjects, flags.runs, measure, describe);
    return { runs, skipped: lineup.skipped };
  } finally {
    await lineup.stop();
  }
}

function describe(run: RelayTokenRun): string {
  const failures = run.streams.failures.length;
  return (
    `${run.streams.tokens} tokens in ${run.streams.textEvents} events, proxy ${run.proxy.toFixed(2)} us/token, ` +
    `node ${run.node.toFixed(2)}, client ${run.client.toFixed(2)}` +
    (failures > 0 ? `, ${failures} FAILED, first: ${run.streams.failures[0]}` : "")
  );
}

function resultOf(flags: RelayTokenFlags, measured: Awaited<ReturnType<typeof measureRelayToken>>): Result {
  const baseline = measured.runs.get("nginx");
  const nginx = baseline === undefined ? null : median(baseline.map((run) => run.proxy));
  const rows = [...measured.runs].map(([name, runs]) => {
    const proxy = runs.map((run) => run.proxy);
    return [
      name === "tollgate" ? `${name} (${flags.dialect})` : name,
      name === "direct" ? "-" : spread(proxy, 2),
      name === "direct" || nginx === null ? "-" : (median(proxy) / nginx).toFixed(2),
      median(runs.map((run) => run.node)).toFixed(2),
      median(runs.map((run) => run.client)).toFixed(2),
      `${runs.reduce((sum, run) => sum + run.streams.failures.length, 0)}`,
    ];
  });
  const bars = [...measured.runs].filter(([name]) => name !== "direct");
  return {
    bench: "relay-token",
    variant: variantOf(flags),
    question:
      `CPU time per relayed token, ${flags.dialect}, ${flags.streams} streams` +
      (variantOf(flags) === "peers" ? ", with other gateways" : ""),
    columns: [
      "way",
      "proxy us/token min / median / max",
      "ratio to nginx",
      "node us/token",
      "client us/token",
      "failed",
    ],
    rows,
    chart: {
      unit: "us of the proxy's CPU time per token, median",
      bars: bars.map(([label, runs]) => ({ label, value: median(runs.map((run) => run.proxy)) })),
    },
    failures: [...measured.runs.values()].flat().reduce((sum, run) => sum + run.streams.failures.length, 0),
    notes: [
      `${flags.streams} streams at once, ${flags.tokens} tokens each, one event per token every ${flags.intervalMs} ms; ` +
        `${flags.runs} runs of each after ${flags.warmUps} to warm up, interleaved in random order; every stream on a ` +
        "new connection.",
      loadShareNote([...measured.runs].map(([way, runs]) => ({ way, ...sharesOf(runs) }))),
      ...peerNotes([...measured.runs.keys()]),
      ...measured.skipped,
    ],
  };
}

function sharesOf(runs: readonly RelayTokenRun[]) {
  const share = (role: "node" | "client") =>
    median(runs.map((run) => (run[role] * run.streams.tokens) / (run.elapsedMs * 1_000)));
  return { node: share("node"), client: share("client") };
}

function variantOf({ dialect, streams, only }: RelayTokenFlags): string {
  if (only.split(",").some(isPeer)) return "peers";
  if (dialect !== relayTokenDefaults.dialect) return dialect;
  return streams === relayTokenDefaults.streams ? "" : `${streams}-streams`;
}

if (import.meta.main) {
  const flags = readFlags(relayTokenDefaults, { streams: 20, tokens: 20, intervalMs: 20, runs: 1, warmUps: 1 });
  placeClient();
  await keepResult(resultOf(flags, await measureRelayToken(flags)));
}
