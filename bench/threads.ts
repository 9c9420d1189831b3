// How much more do several threads carry than one, and how many can the thread feed that keeps the books?
//
//   bun bench/threads.ts [--threads 1,2,4,16] [--share-percent 20] [--runs 3] [--quick]
//
// Each thread of the gateway has a core of its own, as slow as `--share-percent` says, so that a machine of two cores shows
// what one of many would do and has time left for the load. With `--share-percent 100` nothing is held back.
import { tokenBytesMin } from "./answer.ts";
import { clientDialects } from "./dialect.ts";
import { readFlags } from "./flags.ts";
import { startGateway } from "./gateway.ts";
import { startPacedNode } from "./paced-node.ts";
import { runClosedLoop } from "./request-client.ts";
import type { Result } from "./result.ts";
import { keepResult } from "./result.ts";
import { median, spread } from "./statistics.ts";
import { runStreams } from "./stream-client.ts";
import { giveThreadsCores, preferLoad, threadCoresMissing } from "./thread-cores.ts";
import { since, threadTimes } from "./thread-times.ts";

export const threadsDefaults = {
  threads: "1,2,4,16",
  /** Of a core, for each thread where there are one or two; less where more of them would leave the load nothing. */
  sharePercent: 20,
  /** At once, for each thread on a whole core: about half of what it can relay, so that no two tokens share a read. */
  streams: 600,
  tokens: 100,
  intervalMs: 20,
  /** Streams that follow each other in each of those, on new connections, which the threads are dealt anew. */
  repeats: 4,
  connections: 96,
  requests: 6_000,
  runs: 3,
};
export type ThreadsFlags = typeof threadsDefaults;

type Load = "streams" | "requests";
export type ThreadsRun = Readonly<{
  /** Tokens or replies. */
  units: number;
  elapsedMs: number;
  failures: readonly string[];
  /** Microseconds of CPU time for each unit: of the thread that keeps the books, of those that serve clients, of the journal. */
  main: number;
  relays: number;
  journal: number;
  /** Which part of its slow core each used: the books' thread, and the relay that used the most and the least of it. */
  shares: Readonly<{ main: number; relays: number; relayMost: number; relayLeast: number }>;
}>;
export type ThreadsMeasurement = Readonly<{ threads: number; load: Load; share: number; runs: readonly ThreadsRun[] }>;

/** All threads together take at most 1.2 cores, so that the load has 0.8 on the smallest machine with two. */
const allThreadsShare = 1.2;

export async function measureThreads(flags: ThreadsFlags): Promise<readonly ThreadsMeasurement[]> {
  const results: ThreadsMeasurement[] = [];
  for (const threads of flags.threads.split(",").map(Number)) {
    for (const load of ["streams", "requests"] as const) results.push(await measure(threads, load, flags));
  }
  return results;
}

async function measure(threads: number, load: Load, flags: ThreadsFlags): Promise<ThreadsMeasurement> {
  const share = Math.min(flags.sharePercent / 100, flags.sharePercent === 100 ? 1 : allThreadsShare / (threads + 2));
  const answer =
    load === "streams" ? { tokens: flags.tokens, tokenBytes: tokenBytesMin } : { tokens: 8, tokenBytes: 100 };
  const streams = Math.ceil(flags.streams * threads * share);
  const perRun = load === "streams" ? streams * flags.repeats : flags.requests;
  // On whole cores, until every thread has compiled what runs often.
  const warmUps = 1 + threads;
  const node = await startPacedNode({ ...answer, intervalMs: load === "streams" ? flags.intervalMs : 0 }, "anywhere");
  const gateway = await startGateway({
    nodePort: node.port,
    dialect: clientDialects.chat,
    requests: (flags.runs + warmUps) * perRun,
    threads,
  });
  const isCapped = share < 1 && threadCoresMissing() === null;
  const [pid = 0] = gateway.pids;
  const run = () =>
    load === "streams"
      ? runStreams(gateway, { streams, repeats: flags.repeats, reconnects: true, spreadMs: flags.intervalMs, answer })
      : runClosedLoop(gateway, { requests: perRun, answer, promptBytes: 900 }, flags.connections);
  const release = isCapped ? preferLoad([node.pid, process.pid]) : () => {};
  let removeCores = () => {};
  try {
    for (let number = 0; number < warmUps; number += 1) await run();
    if (isCapped) removeCores = giveThreadsCores(pid, share);
    const runs: ThreadsRun[] = [];
    for (let number = 0; number < flags.runs; number += 1) {
      const before = threadTimes(pid);
      const startedMs = performance.now();
      const done = await run();
      const elapsedMs = performance.now() - startedMs;
      const units = "tokens" in done ? done.tokens : done.complete;
      const used = since(before, threadTimes(pid));
      const of = (name: RegExp) => used.filter((time) => name.test(time.name)).map(({ microseconds }) => microseconds);
      const sum = (times: readonly number[]) => times.reduce((total, time) => total + time, 0);
      const relays = threads === 1 ? of(/^main$/) : of(/^relay /);
      const shareOf = (microseconds: number) => microseconds / (elapsedMs * 1_000 * share);
      const measured: ThreadsRun = {
        units,
        elapsedMs,
        failures: done.failures,
        main: sum(of(/^main$/)) / units,
        relays: sum(relays) / units,
        journal: sum(of(/^journal$/)) / units,
        shares: {
          main: shareOf(sum(of(/^main$/))),
          relays: shareOf(sum(relays) / relays.length),
          relayMost: shareOf(relays[0] ?? 0),
          relayLeast: shareOf(relays.at(-1) ?? 0),
        },
      };
      console.log(`  ${threads} ${load}, run ${number + 1}/${flags.runs}: ${describe(measured)}`);
      runs.push(measured);
    }
    return { threads, load, share, runs };
  } finally {
    release();
    await gateway.stop();
    await node.stop();
    removeCores();
  }
}

const perSecond = ({ units, elapsedMs }: ThreadsRun): number => (units * 1_000) / elapsedMs;

/** What the threads that serve would do in a second on whole cores of which they used everything. */
const capacity = (run: ThreadsRun, share: number): number => perSecond(run) / share / run.shares.relays;

function describe(run: ThreadsRun): string {
  const { shares, failures } = run;
  return (
    `${perSecond(run).toFixed(0)} a second, main ${run.main.toFixed(2)} us each and ${percent(shares.main)} of its core, ` +
    `serving ${run.relays.toFixed(2)} us, ${percent(shares.relayLeast)} to ${percent(shares.relayMost)}` +
    (failures.length > 0 ? `, ${failures.length} FAILED, first: ${failures[0]}` : "")
  );
}

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;

function resultOf(flags: ThreadsFlags, measured: readonly ThreadsMeasurement[]): Result {
  const rateOf = ({ runs, share }: ThreadsMeasurement) => median(runs.map((run) => capacity(run, share)));
  const of = (run: (run: ThreadsRun) => number, { runs }: ThreadsMeasurement) => median(runs.map(run));
  const rows = measured.map((measurement) => {
    const { threads, load, share, runs } = measurement;
    const one = measured.find((other) => other.load === load && other.threads === 1);
    return [
      `${threads}, ${load === "streams" ? "tokens of streams" : "replies"}`,
      percent(share),
      spread(
        runs.map((run) => capacity(run, share)),
        0,
      ),
      one === undefined ? "-" : (rateOf(measurement) / rateOf(one)).toFixed(2),
      of((run) => run.relays, measurement).toFixed(2),
      threads === 1 ? "-" : of((run) => run.main, measurement).toFixed(2),
      of((run) => run.journal, measurement).toFixed(2),
      `${percent(of((run) => run.shares.relayLeast, measurement))} to ${percent(of((run) => run.shares.relayMost, measurement))}`,
      threads === 1 ? "-" : percent(of((run) => run.shares.main, measurement)),
      threads === 1 ? "-" : (of((run) => run.relays, measurement) / of((run) => run.main, measurement)).toFixed(1),
      `${runs.reduce((sum, run) => sum + run.failures.length, 0)}`,
    ];
  });
  const missing = threadCoresMissing();
  return {
    bench: "threads",
    variant: "",
    question: "What several threads carry, each on a core of its own",
    columns: [
      "threads, load",
      "speed of each core",
      "a second on whole, busy cores min / median / max",
      "times one thread",
      "serving us each",
      "main us each",
      "journal us each",
      "of their cores, relays used",
      "main used",
      "relays that one main could feed",
      "failed",
    ],
    rows,
    chart: {
      unit: "times what one thread carries, median",
      bars: measured
        .filter(({ threads }) => threads > 1)
        .map((measurement) => {
          const one = measured.find((other) => other.load === measurement.load && other.threads === 1);
          const value = one === undefined ? 0 : rateOf(measurement) / rateOf(one);
          return { label: `${measurement.threads} ${measurement.load}`, value };
        }),
    },
    failures: measured.flatMap(({ runs }) => runs.flatMap(({ failures }) => failures)).length,
    notes: [
      `Streams: ${flags.streams} at once for each thread on a whole core, a token every ${flags.intervalMs} ms, about half ` +
        "of what it can relay (at the limit several tokens share a read and cost less, which would be no comparison). " +
        `Replies: ${flags.connections} connections with a request each, as fast as they come. What was done in a second ` +
        "is divided by the part of their cores that the serving threads used. " +
        `${flags.runs} runs of each after as many as threads, and one more, to warm up.`,
      missing === null
        ? "Each thread of the gateway is in a control group of its own with a quota of CPU time, so that none takes from " +
          "another or from the load; where all take more than 1.2 real cores together, their cores are slower. Nothing is pinned to a core of the machine."
        : `Nothing was held back (${missing}): the threads shared the machine's cores with the load.`,
    ],
  };
}

if (import.meta.main) {
  const flags = readFlags(threadsDefaults, {
    threads: "1,2",
    streams: 20,
    tokens: 20,
    repeats: 2,
    requests: 200,
    runs: 1,
  });
  await keepResult(resultOf(flags, await measureThreads(flags)));
}
