// How soon does the gateway take requests after its start, and what does it cost while idle?
//
//   bun bench/start.ts [--program dist/tollgate] [--accounts 1000000 --rows 10000000] [--runs 5] [--idle-ms 60000] [--quick]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCpuTimer } from "./cpu-time.ts";
import { clientDialects } from "./dialect.ts";
import { cachedDataFolder, databaseMebibytes, fillDataFolder } from "./filled-folder.ts";
import { readFlags } from "./flags.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { startPacedNode } from "./paced-node.ts";
import { residentKilobytes } from "./resident-memory.ts";
import { keepResult, type Result } from "./result.ts";
import { median, spread } from "./statistics.ts";

export const startDefaults = {
  /** Accounts and usage rows on disk; from a million rows on the folder is kept for the next time. */
  accounts: 1_000,
  rows: 1_000,
  runs: 5,
  /** A program that was built, instead of the sources. */
  program: "",
  /** The last start's process is looked at for so long, once it has settled. */
  idleMs: 10_000,
  settleMs: 8_000,
};
export type StartFlags = typeof startDefaults;

const cachedFromRows = 1_000_000;

export type StartMeasurement = Readonly<{
  startsMs: readonly number[];
  databaseMebibytes: number;
  idleMegabytes: number;
  /** Share of a core, 0..1. */
  idleShare: number;
  /** Replies that were not 200, of one request after each start. */
  failures: number;
}>;

/** Starts the gateway `runs` times, and leaves the last one idle for a while. */
export async function measureStart(flags: StartFlags): Promise<StartMeasurement> {
  const filling = { accounts: flags.accounts, rows: flags.rows };
  if (flags.rows >= cachedFromRows) return measureFolder(cachedDataFolder(filling), flags);
  const folder = mkdtempSync(join(tmpdir(), "bench-start-"));
  try {
    fillDataFolder(join(folder, "data"), filling);
    return await measureFolder(join(folder, "data"), flags);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function measureFolder(
  dataFolder: string,
  { runs, program, idleMs, settleMs }: StartFlags,
): Promise<StartMeasurement> {
  const node = await startPacedNode({ tokens: 1, tokenBytes: 7, intervalMs: 0 });
  const startsMs: number[] = [];
  let failures = 0;
  let gateway: Gateway | null = null;
  try {
    for (let run = 1; run <= runs; run++) {
      await gateway?.stop();
      const settings = { nodePort: node.port, dialect: clientDialects.chat, requests: 0, dataFolder, program };
      gateway = await startGateway(settings);
      startsMs.push(gateway.startMs);
      // What says that it listens must answer at once, with or without a key.
      const { status } = await fetch(`http://127.0.0.1:${gateway.port}/v1/models`);
      if (status !== 200 && status !== 401) failures += 1;
      console.log(`  run ${run}/${runs} takes requests after ${gateway.startMs.toFixed(0)} ms`);
    }
    await Bun.sleep(settleMs);
    const { pids } = gateway!;
    const timer = startCpuTimer(pids);
    await Bun.sleep(idleMs);
    const idleShare = timer.elapsedMicroseconds() / (idleMs * 1_000);
    const idleMegabytes = residentKilobytes(pids) / 1_024;
    console.log(`  idle: ${idleMegabytes.toFixed(0)} MB, ${(idleShare * 100).toFixed(1)} % of a core`);
    return { startsMs, databaseMebibytes: databaseMebibytes(dataFolder), idleMegabytes, idleShare, failures };
  } finally {
    await gateway?.stop();
    await node.stop();
  }
}

function resultOf(flags: StartFlags, measured: StartMeasurement): Result {
  const large = flags.rows > startDefaults.rows;
  return {
    bench: "start",
    variant: [...(large ? [`${flags.rows}-rows`] : []), ...(flags.program === "" ? [] : ["binary"])].join("-"),
    question: `Start and idling with ${flags.accounts} accounts and ${flags.rows} usage rows${flags.program === "" ? "" : ", the single binary"}`,
    columns: ["takes requests after ms, min / median / max", "idle MB", "idle CPU, % of a core", "database MiB"],
    rows: [
      [
        spread(measured.startsMs, 0),
        measured.idleMegabytes.toFixed(1),
        (measured.idleShare * 100).toFixed(2),
        measured.databaseMebibytes.toFixed(0),
      ],
    ],
    chart: null,
    failures: measured.failures,
    notes: [
      `${flags.runs} starts, from the start of the process, the run time included; median ` +
        `${median(measured.startsMs).toFixed(0)} ms. Idle: from ${flags.settleMs / 1_000} s after the last start, for ` +
        `${flags.idleMs / 1_000} s, with one node that is asked how it is every 5 s and the ledger checked in the background` +
        (large ? ", which at this size is still going on." : "."),
    ],
  };
}

if (import.meta.main) {
  const flags = readFlags(startDefaults, { accounts: 100, rows: 100, runs: 2, idleMs: 500, settleMs: 0 });
  await keepResult(resultOf(flags, await measureStart(flags)));
}
