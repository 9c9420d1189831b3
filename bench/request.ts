// How much CPU time does a non-streaming request of about 1 KB cost, and how many fit in a second?
//
//   bun bench/request.ts [--requests 20000] [--connections 64] [--runs 5] [--quick]
import { startCpuTimer } from "./cpu-time.ts";
import { readFlags } from "./flags.ts";
import { startLineup } from "./lineup.ts";
import { loadShareNote } from "./load-share.ts";
import { isPeer, peerNotes } from "./peers.ts";
import { placeClient, setPlacement } from "./placement.ts";
import type { RequestRun } from "./request-client.ts";
import { runClosedLoop } from "./request-client.ts";
import type { Result } from "./result.ts";
import { keepResult } from "./result.ts";
import { median, spread } from "./statistics.ts";
import type { Subject } from "./subject.ts";
import { interleaved } from "./subject.ts";

export const requestDefaults = {
  requests: 20_000,
  connections: 64,
  /** Text of a reply: `tokens` pieces of `tokenBytes`; Tollgate gets it from the node as so many events. */
  tokens: 8,
  tokenBytes: 100,
  promptBytes: 900,
  runs: 5,
  dialect: "chat",
  only: "direct,nginx,tollgate",
  /** "free": nothing is pinned, for how many requests fit in a second of all cores; "own core" is for the CPU time. */
  placement: "own core",
};
export type RequestFlags = typeof requestDefaults;

export type RequestMeasurement = Readonly<{
  requests: RequestRun;
  perSecond: number;
  /** Microseconds of CPU time per reply. */
  proxy: number;
  node: number;
  client: number;
}>;

/** Measures every subject `runs` times. */
export async function measureRequest(flags: RequestFlags) {
  setPlacement(flags.placement);
  const answer = { tokens: flags.tokens, tokenBytes: flags.tokenBytes };
  const lineup = await startLineup({
    node: { ...answer, intervalMs: 0 },
    only: flags.only,
    dialect: flags.dialect,
    // Half more, because runs do not use all accounts equally.
    requests: 1.5 * (flags.runs + 1) * flags.requests,
  });
  const load = { requests: flags.requests, answer, promptBytes: flags.promptBytes };
  const measure = async (subject: Subject): Promise<RequestMeasurement> => {
    const timers = [subject.pids, [lineup.node.pid], [process.pid]].map(startCpuTimer);
    const requests = await runClosedLoop(subject, load, flags.connections);
    const [proxy, node, client] = timers.map((timer) => timer.elapsedMicroseconds() / Math.max(1, requests.complete));
    const perSecond = (requests.complete * 1_000) / requests.elapsedMs;
    return { requests, perSecond, proxy: proxy!, node: node!, client: client! };
  };
  try {
    // Warm up: connections, compiled code.
    for (const subject of lineup.subjects) await measure(subject);
    const runs = await interleaved(lineup.subjects, flags.runs, measure, describe);
    return { runs, skipped: lineup.skipped };
  } finally {
    await lineup.stop();
  }
}

function describe(run: RequestMeasurement): string {
  const { failures } = run.requests;
  return (
    `${run.perSecond.toFixed(0)} requests/s, proxy ${run.proxy.toFixed(1)} us/request, ` +
    `node ${run.node.toFixed(1)}, client ${run.client.toFixed(1)}` +
    (failures.length > 0 ? `, ${failures.length} FAILED, first: ${failures[0]}` : "")
  );
}

function resultOf(flags: RequestFlags, measured: Awaited<ReturnType<typeof measureRequest>>): Result {
  const baseline = measured.runs.get("nginx");
  const nginx = baseline === undefined ? null : median(baseline.map((run) => run.proxy));
  const rows = [...measured.runs].map(([name, runs]) => {
    const proxy = runs.map((run) => run.proxy);
    return [
      name === "tollgate" ? `${name} (${flags.dialect})` : name,
      name === "direct" ? "-" : spread(proxy, 1),
      name === "direct" || nginx === null ? "-" : (median(proxy) / nginx).toFixed(2),
      spread(
        runs.map((run) => run.perSecond),
        0,
      ),
      median(runs.map((run) => run.node)).toFixed(1),
      median(runs.map((run) => run.client)).toFixed(1),
      `${runs.reduce((sum, run) => sum + run.requests.failures.length, 0)}`,
    ];
  });
  const bars = [...measured.runs].filter(([name]) => name !== "direct");
  return {
    bench: "request",
    variant: variantOf(flags),
    question:
      `CPU time per non-streaming request of about 1 KB, and requests a second at saturation, ${flags.dialect}` +
      (variantOf(flags) === "peers" ? ", with other gateways" : "") +
      (flags.placement === "free" ? ", all cores for everybody" : ""),
    columns: [
      "way",
      "proxy us/request min / median / max",
      "ratio to nginx",
      "requests/s min / median / max",
      "node us/request",
      "client us/request",
      "failed",
    ],
    rows,
    chart: {
      unit: "us of the proxy's CPU time per request, median",
      bars: bars.map(([label, runs]) => ({ label, value: median(runs.map((run) => run.proxy)) })),
    },
    failures: [...measured.runs.values()].flat().reduce((sum, run) => sum + run.requests.failures.length, 0),
    notes: [
      `${flags.connections} connections, each with one request open at a time; ${flags.requests} requests a run, ` +
        `${flags.runs} runs of each, interleaved in random order. Tollgate asks the node for a stream of ` +
        `${flags.tokens} events and builds the reply; the others relay the node's JSON of the same text.`,
      loadShareNote([...measured.runs].map(([way, runs]) => ({ way, ...sharesOf(runs) }))),
      ...peerNotes([...measured.runs.keys()]),
      ...measured.skipped,
    ],
  };
}

function variantOf({ dialect, only, placement }: RequestFlags): string {
  if (placement === "free") return "all-cores";
  if (only.split(",").some(isPeer)) return "peers";
  return dialect === requestDefaults.dialect ? "" : dialect;
}

function sharesOf(runs: readonly RequestMeasurement[]) {
  const share = (role: "node" | "client") => median(runs.map((run) => (run[role] * run.perSecond) / 1e6));
  return { node: share("node"), client: share("client") };
}

if (import.meta.main) {
  const flags = readFlags(requestDefaults, { requests: 200, connections: 8, runs: 1 });
  setPlacement(flags.placement);
  placeClient();
  await keepResult(resultOf(flags, await measureRequest(flags)));
}
