// How does the gateway's cost grow with streams, tokens, accounts, body size and nodes?
//
//   bun bench/growth.ts [--runs 3] [--sizes 4] [--largest-accounts 1000000] [--quick]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tokenBytesMin } from "./answer.ts";
import { startCpuTimer } from "./cpu-time.ts";
import { clientDialects } from "./dialect.ts";
import { fillDataFolder } from "./filled-folder.ts";
import { readFlags } from "./flags.ts";
import { runStreamsBeside } from "./gap-client.ts";
import { type GatewaySettings, startGateway } from "./gateway.ts";
import { startLineup } from "./lineup.ts";
import { startPacedNode } from "./paced-node.ts";
import { placeClient } from "./placement.ts";
import { measureRelayToken, relayTokenDefaults } from "./relay-token.ts";
import { runClosedLoop } from "./request-client.ts";
import { residentKilobytes } from "./resident-memory.ts";
import { keepResult, type Result } from "./result.ts";
import { growthExponent, median, percentile } from "./statistics.ts";
import type { Subject } from "./subject.ts";

const growthDefaults = {
  runs: 3,
  /** Sizes of each: from the smallest to the largest in equal ratios. */
  sizes: 4,
  smallestStreams: 50,
  largestStreams: 800,
  smallestTokens: 25,
  largestTokens: 400,
  smallestAccounts: 1_000,
  largestAccounts: 1_000_000,
  smallestBodyBytes: 1_024,
  largestBodyBytes: 32 * 1024 * 1024,
  largestNodes: 200,
  /** Requests that a cost per request is the mean of; fewer of large bodies. */
  requests: 3_000,
  idleMs: 5_500,
};
export type GrowthFlags = typeof growthDefaults;

export const growthQuick: GrowthFlags = {
  runs: 1,
  sizes: 2,
  smallestStreams: 2,
  largestStreams: 16,
  smallestTokens: 5,
  largestTokens: 40,
  smallestAccounts: 10,
  largestAccounts: 1_000,
  smallestBodyBytes: 1_024,
  largestBodyBytes: 1024 * 1024,
  largestNodes: 10,
  requests: 20,
  idleMs: 200,
};

/** One measured quantity at each size. */
type Growth = Readonly<{
  what: string;
  measured: string;
  points: readonly Readonly<{ size: number; value: number }>[];
}>;

type Measured = Readonly<{ growths: readonly Growth[]; failures: number }>;

const reply = { tokens: 8, tokenBytes: 100 };

export async function measureGrowth(flags: GrowthFlags): Promise<Measured> {
  const between = (smallest: number, largest: number) => equalRatios(smallest, largest, flags.sizes);
  const parts = [
    await growOver("streams at once", between(flags.smallestStreams, flags.largestStreams), (streams) =>
      relayCost({ runs: flags.runs, streams, tokens: 50, intervalMs: 20 }),
    ),
    await growOver("tokens of a stream", between(flags.smallestTokens, flags.largestTokens), (tokens) =>
      relayCost({ runs: flags.runs, streams: 100, tokens, intervalMs: 10 }),
    ),
    await growOver("accounts and usage rows", between(flags.smallestAccounts, flags.largestAccounts), (accounts) =>
      accountsCost(accounts, flags),
    ),
    await growOver("bytes of a body", between(flags.smallestBodyBytes, flags.largestBodyBytes), (bytes) =>
      bodyCost(bytes, flags),
    ),
    await growOver("nodes", between(1, flags.largestNodes), (nodes) => nodesCost(nodes, flags)),
  ];
  return {
    growths: parts.flatMap(({ growths }) => growths),
    failures: parts.reduce((sum, { failures }) => sum + failures, 0),
  };
}

function equalRatios(smallest: number, largest: number, count: number): number[] {
  const ratio = (largest / smallest) ** (1 / (count - 1));
  return Array.from({ length: count }, (_none, index) => Math.round(smallest * ratio ** index));
}

/** What one size costs: quantities by their name, in the order in which they are reported. */
type Cost = Readonly<{ quantities: Readonly<Record<string, number>>; failures: readonly string[] }>;

async function growOver(
  what: string,
  sizes: readonly number[],
  measure: (size: number) => Promise<Cost>,
): Promise<Measured> {
  const costs: { size: number; cost: Cost }[] = [];
  for (const size of sizes) {
    const cost = await measure(size);
    costs.push({ size, cost });
    const quantities = Object.entries(cost.quantities).map(([name, value]) => `${name} ${value.toFixed(2)}`);
    const failed = cost.failures.length > 0 ? `, ${cost.failures.length} FAILED, first: ${cost.failures[0]}` : "";
    console.log(`  ${what} ${size}: ${quantities.join(", ")}${failed}`);
  }
  const names = Object.keys(costs[0]!.cost.quantities);
  return {
    growths: names.map((measured) => ({
      what,
      measured,
      points: costs.map(({ size, cost }) => ({ size, value: cost.quantities[measured]! })),
    })),
    failures: costs.reduce((sum, { cost }) => sum + cost.failures.length, 0),
  };
}

async function relayCost(load: { streams: number; tokens: number; intervalMs: number; runs: number }): Promise<Cost> {
  const { runs } = await measureRelayToken({ ...relayTokenDefaults, ...load, warmUps: 2, only: "tollgate" });
  const tollgate = runs.get("tollgate")!;
  return {
    quantities: { "CPU ms in all": median(tollgate.map(({ proxy, streams }) => (proxy * streams.tokens) / 1_000)) },
    failures: tollgate.flatMap(({ streams }) => streams.failures),
  };
}

async function accountsCost(accounts: number, { runs, requests }: GrowthFlags): Promise<Cost> {
  const folder = mkdtempSync(join(tmpdir(), "bench-growth-"));
  const dataFolder = join(folder, "data");
  try {
    fillDataFolder(dataFolder, { accounts, rows: accounts });
    const startsMs: number[] = [];
    for (let run = 0; run < runs; run++) {
      startsMs.push(await withGateway({ dataFolder, requests: 0 }, ({ startMs }) => Promise.resolve(startMs)));
    }
    return await withGateway({ dataFolder, requests: 2 * requests }, async (gateway) => {
      const idleMegabytes = residentKilobytes(gateway.pids) / 1_024;
      const { microseconds, failures } = await requestCost(gateway, requests, 900);
      return {
        quantities: { "start ms": median(startsMs), "idle MB": idleMegabytes, "CPU us a request": microseconds },
        failures,
      };
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Streams of a second and a half; a body comes in their middle. */
const besideLoad = { streams: 50, intervalMs: 20, answer: { tokens: 75, tokenBytes: tokenBytesMin } };
/** The body's JSON around its prompt, and then some: the limit is 32 MiB of body. */
const envelopeBytes = 200;

async function bodyCost(bytes: number, { runs, requests }: GrowthFlags): Promise<Cost> {
  const promptBytes = bytes - envelopeBytes;
  const total = Math.max(2, Math.min(requests, Math.round((64 * 1024 * 1024) / bytes)));
  const { microseconds, failures } = await withGateway({ requests: 2 * total }, (gateway) =>
    requestCost(gateway, total, promptBytes),
  );
  const lineup = await startLineup({
    node: { ...besideLoad.answer, intervalMs: besideLoad.intervalMs },
    only: "direct,tollgate",
    dialect: "chat",
    requests: 2 * (runs + 1) * (besideLoad.streams + 1),
  });
  try {
    const longest = async (subject: Subject, times: number): Promise<number> => {
      const gapsMs: number[] = [];
      for (let run = 0; run < times; run++) {
        const beside = await runStreamsBeside(subject, besideLoad, async (failed) => {
          const { answer } = besideLoad;
          const body = await runClosedLoop(subject, { requests: 1, answer, promptBytes }, 1);
          failed.push(...body.failures);
        });
        failures.push(...beside.failures);
        gapsMs.push(percentile(beside.gapsMs, 1));
      }
      return median(gapsMs);
    };
    const [direct, tollgate] = lineup.subjects;
    await longest(tollgate!, 1); // warm up
    return {
      quantities: {
        "CPU us a request": microseconds,
        "longest gap of other streams, ms": await longest(tollgate!, runs),
        "the same without a proxy, ms": await longest(direct!, runs),
      },
      failures,
    };
  } finally {
    await lineup.stop();
  }
}

async function nodesCost(nodes: number, { requests, idleMs }: GrowthFlags): Promise<Cost> {
  return withGateway({ nodes, requests: 2 * requests }, async (gateway) => {
    const { microseconds, failures } = await requestCost(gateway, requests, 900);
    const timer = startCpuTimer(gateway.pids);
    await Bun.sleep(idleMs);
    const idlePercent = timer.elapsedMicroseconds() / (idleMs * 10);
    return { quantities: { "CPU us a request": microseconds, "idle CPU, % of a core": idlePercent }, failures };
  });
}

/** A gateway and a node of its own that answers at once, for as long as `use` takes. */
async function withGateway<Found>(
  settings: Omit<GatewaySettings, "nodePort" | "dialect">,
  use: (gateway: Awaited<ReturnType<typeof startGateway>>) => Promise<Found>,
): Promise<Found> {
  const node = await startPacedNode({ ...reply, intervalMs: 0 });
  try {
    const gateway = await startGateway({ nodePort: node.port, dialect: clientDialects.chat, ...settings });
    try {
      return await use(gateway);
    } finally {
      await gateway.stop();
    }
  } finally {
    await node.stop();
  }
}

const connectionsMax = 16;

/** Mean CPU time of a non-streaming request, after as many to warm up. */
async function requestCost(gateway: Subject, requests: number, promptBytes: number) {
  const connections = Math.min(connectionsMax, requests);
  const load = { requests, answer: reply, promptBytes };
  const warmUp = await runClosedLoop(gateway, load, connections);
  const timer = startCpuTimer(gateway.pids);
  const run = await runClosedLoop(gateway, load, connections);
  return {
    microseconds: timer.elapsedMicroseconds() / requests,
    failures: [...warmUp.failures, ...run.failures],
  };
}

function resultOf(flags: GrowthFlags, { growths, failures }: Measured): Result {
  return {
    bench: "growth",
    variant: "",
    question: "Growth of the cost",
    columns: ["with", "of", "sizes", "values", "growth"],
    rows: growths.map(({ what, measured, points }) => [
      what,
      measured,
      points.map(({ size }) => sizeText(size)).join(" / "),
      points.map(({ value }) => valueText(value)).join(" / "),
      growthExponent(points).toFixed(2),
    ]),
    chart: null,
    failures,
    notes: [
      "Growth is the exponent e that fits value = c * size^e best (least squares of the logarithms): 0 stays the same, 1 " +
        "grows in proportion, 2 with the square. Medians of " +
        `${flags.runs} runs for starts, relayed streams and gaps; means of up to ${flags.requests} requests for others. ` +
        "Streams: 50 tokens each, one every 20 ms; streams of growing length: 100 at once, a token every 10 ms. " +
        `Gaps: one body comes while ${besideLoad.streams} streams get a token every ${besideLoad.intervalMs} ms; client and ` +
        "node read or write the body beside those streams as well, which is what is there without a proxy.",
    ],
  };
}

function valueText(value: number): string {
  return value.toFixed(value < 100 ? 1 : 0);
}

function sizeText(size: number): string {
  if (size >= 1e6) return `${(size / 1e6).toPrecision(3)}M`;
  return size >= 10_000 ? `${(size / 1e3).toPrecision(3)}k` : `${size}`;
}

if (import.meta.main) {
  const flags = readFlags(growthDefaults, growthQuick);
  placeClient();
  await keepResult(resultOf(flags, await measureGrowth(flags)));
}
