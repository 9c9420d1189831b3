// How much more do several threads carry than one, and how many can the thread feed that keeps the books?
//
//   bun bench/threads.ts [--threads 1,2,4] [--share-percent 20] [--runs 7] [--quick]
//
// Each thread of the gateway has a core of its own, as slow as `--share-percent` says, so that a machine of two cores shows
// what one of many would do and has time left for the load. With `--share-percent 100` nothing is held back.
//
// What N threads carry is compared with N gateways of one thread, which share nothing but the machine: run by run, with the
// same load. A single thread alone leaves the machine idle, which is another machine: caches, wake-ups and what the
// hypervisor takes differ.
import { floodRequestsMax } from "../src/core/limits.ts";
import { tokenBytesMin } from "./answer.ts";
import { clientDialects } from "./dialect.ts";
import { readFlags } from "./flags.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { startPacedNode } from "./paced-node.ts";
import { type RequestRun, runClosedLoop } from "./request-client.ts";
import type { Result } from "./result.ts";
import { keepResult } from "./result.ts";
import { median, spread } from "./statistics.ts";
import { runStreams, type StreamRun } from "./stream-client.ts";
import { giveThreadsCores, preferLoad, threadCoresMissing } from "./thread-cores.ts";
import { since, threadTimes } from "./thread-times.ts";

export const threadsDefaults = {
  threads: "1,2,4",
  /** Of a core, for each thread where there are one or two; less where more of them would leave the load nothing. */
  sharePercent: 20,
  /** At once, for each thread on a whole core: about half of what it can relay, so that no two tokens share a read. */
  streams: 300,
  tokens: 100,
  intervalMs: 20,
  connections: 96,
  /** In a run, for each thread on a whole core. */
  requests: 10_000,
  runs: 7,
};
export type ThreadsFlags = typeof threadsDefaults;

type Load = "streams" | "requests";
type ThreadsRun = Readonly<{
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
export type ThreadsMeasurement = Readonly<{
  threads: number;
  load: Load;
  share: number;
  runs: readonly ThreadsRun[];
  /** Of as many gateways of one thread, each beside the run at the same place of `runs`. Empty for one thread. */
  separate: readonly ThreadsRun[];
}>;

/** One gateway with all threads, or as many gateways with one each. */
type Way = Readonly<{ gateways: readonly Gateway[]; serving: RegExp }>;

/** On whole cores, until every thread has compiled what runs often. */
const warmUps = 4;

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
  const streams = Math.ceil(flags.streams * share) * threads;
  const perRun = load === "streams" ? streams : Math.ceil(flags.requests * share) * threads;
  // Each run begins with the first key again.
  const perKey = Math.max(1, Math.floor(floodRequestsMax / (flags.runs + warmUps)));
  const node = await startPacedNode({ ...answer, intervalMs: load === "streams" ? flags.intervalMs : 0 }, "anywhere");
  const start = (gateways: number, threadsEach: number) =>
    Promise.all(
      Array.from({ length: gateways }, () =>
        startGateway({
          nodePort: node.port,
          dialect: clientDialects.chat,
          requests: Math.ceil(perRun / gateways / perKey) * floodRequestsMax,
          threads: threadsEach,
        }),
      ),
    );
  const together: Way = { gateways: await start(1, threads), serving: threads === 1 ? /^main$/ : /^relay / };
  const separate: Way | null = threads === 1 ? null : { gateways: await start(threads, 1), serving: /^main$/ };
  const ways = separate === null ? [together] : [together, separate];
  const gateways = ways.flatMap((way) => way.gateways);
  const isCapped = share < 1 && threadCoresMissing() === null;
  const loadOf = (way: Way) =>
    way.gateways.map((gateway) => {
      const of = way.gateways.length;
      return load === "streams"
        ? runStreams(gateway, { streams: streams / of, repeats: 1, spreadMs: flags.intervalMs, answer })
        : runClosedLoop(
            gateway,
            { requests: perRun / of, answer, promptBytes: 900 },
            Math.ceil(flags.connections / of),
          );
    });
  const release = isCapped ? preferLoad([node.pid, process.pid]) : () => {};
  const removeCores: (() => void)[] = [];
  try {
    for (let number = 0; number < warmUps; number += 1) await Promise.all(ways.flatMap(loadOf));
    if (isCapped) for (const { pids } of gateways) removeCores.push(giveThreadsCores(pids[0]!, share));
    const runs = new Map<Way, ThreadsRun[]>(ways.map((way) => [way, []]));
    for (let number = 0; number < flags.runs; number += 1) {
      for (const way of number % 2 === 0 ? ways : ways.toReversed()) {
        const measured = await measureRun(way, share, () => Promise.all(loadOf(way)));
        const name = way === separate ? `${threads} gateways` : `${threads}`;
        console.log(`  ${name} ${load}, run ${number + 1}/${flags.runs}: ${describe(measured)}`);
        runs.get(way)!.push(measured);
      }
    }
    const separateRuns = separate === null ? [] : runs.get(separate)!;
    return { threads, load, share, runs: runs.get(together)!, separate: separateRuns };
  } finally {
    release();
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await node.stop();
    for (const remove of removeCores) remove();
  }
}

async function measureRun(
  { gateways, serving }: Way,
  share: number,
  run: () => Promise<readonly (StreamRun | RequestRun)[]>,
): Promise<ThreadsRun> {
  const times = () => gateways.map(({ pids }) => threadTimes(pids[0]!));
  const before = times();
  const startedMs = performance.now();
  const done = await run();
  const elapsedMs = performance.now() - startedMs;
  const used = times().flatMap((after, index) => since(before[index]!, after));
  const units = sum(done.map((one) => ("tokens" in one ? one.tokens : one.complete)));
  const of = (name: RegExp) => used.filter((time) => name.test(time.name)).map(({ microseconds }) => microseconds);
  const relays = of(serving);
  const shareOf = (microseconds: number) => microseconds / (elapsedMs * 1_000 * share);
  return {
    units,
    elapsedMs,
    failures: done.flatMap(({ failures }) => failures),
    main: sum(of(/^main$/)) / units,
    relays: sum(relays) / units,
    journal: sum(of(/^journal$/)) / units,
    shares: {
      main: shareOf(sum(of(/^main$/)) / gateways.length),
      relays: shareOf(sum(relays) / relays.length),
      relayMost: shareOf(Math.max(...relays)),
      relayLeast: shareOf(Math.min(...relays)),
    },
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

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

const failuresOf = ({ runs, separate }: ThreadsMeasurement): readonly string[] =>
  [...runs, ...separate].flatMap(({ failures }) => failures);

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;

/** As many times as one of as many gateways the threads carry: by what a unit costs each, the median of the pairs of runs. */
const timesOneOfMany = ({ threads, runs, separate }: ThreadsMeasurement): number =>
  threads * median(runs.map((run, index) => separate[index]!.relays / run.relays));

function resultOf(flags: ThreadsFlags, measured: readonly ThreadsMeasurement[]): Result {
  const rateOf = ({ runs, share }: ThreadsMeasurement) => median(runs.map((run) => capacity(run, share)));
  const of = (run: (run: ThreadsRun) => number, { runs }: ThreadsMeasurement) => median(runs.map(run));
  const rows = measured.map((measurement) => {
    const { threads, load, share, runs, separate } = measurement;
    const one = measured.find((other) => other.load === load && other.threads === 1);
    return [
      `${threads}, ${load === "streams" ? "tokens of streams" : "replies"}`,
      percent(share),
      spread(
        runs.map((run) => capacity(run, share)),
        0,
      ),
      one === undefined ? "-" : (rateOf(measurement) / rateOf(one)).toFixed(2),
      separate.length === 0 ? "-" : timesOneOfMany(measurement).toFixed(2),
      of((run) => run.relays, measurement).toFixed(2),
      separate.length === 0 ? "-" : median(separate.map((run) => run.relays)).toFixed(2),
      threads === 1 ? "-" : of((run) => run.main, measurement).toFixed(2),
      of((run) => run.journal, measurement).toFixed(2),
      `${percent(of((run) => run.shares.relayLeast, measurement))} to ${percent(of((run) => run.shares.relayMost, measurement))}`,
      threads === 1 ? "-" : percent(of((run) => run.shares.main, measurement)),
      threads === 1 ? "-" : (of((run) => run.relays, measurement) / of((run) => run.main, measurement)).toFixed(1),
      `${failuresOf(measurement).length}`,
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
      "times one thread alone",
      "times one of so many gateways",
      "serving us each",
      "serving us each, so many gateways",
      "main us each",
      "journal us each",
      "of their cores, relays used",
      "main used",
      "relays that one main could feed",
      "failed",
    ],
    rows,
    chart: {
      unit: "times what one of so many gateways of one thread carries, median",
      bars: measured
        .filter(({ separate }) => separate.length > 0)
        .map((measurement) => ({
          label: `${measurement.threads} ${measurement.load}`,
          value: timesOneOfMany(measurement),
        })),
    },
    failures: measured.flatMap(failuresOf).length,
    notes: [
      `Streams: ${flags.streams} at once for each thread on a whole core, a token every ${flags.intervalMs} ms, about half ` +
        "of what it can relay (at the limit several tokens share a read and cost less, which would be no comparison). " +
        `Replies: ${flags.connections} connections with a request each, as fast as they come. What was done in a second ` +
        "is divided by the part of their cores that the serving threads used. " +
        `${flags.runs} runs of each after ${warmUps} to warm up.`,
      "Times one of so many gateways: as many gateways of one thread as there are threads, on the same slow cores, with the " +
        "same node and client and in turns, carry the same; the median over the pairs of runs. Times one thread alone: " +
        "against the first rows, whose machine had less to do and was measured minutes before.",
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
    requests: 200,
    runs: 1,
  });
  await keepResult(resultOf(flags, await measureThreads(flags)));
}
