// How much memory does an open stream take?
//
//   bun bench/memory.ts [--streams 10000 --interval-ms 1000] [--quick]
import { readFileSync } from "node:fs";
import { tokenBytesMin } from "./answer.ts";
import { readFlags } from "./flags.ts";
import { startLineup } from "./lineup.ts";
import { placeClient } from "./placement.ts";
import { residentKilobytes } from "./resident-memory.ts";
import type { Result } from "./result.ts";
import { keepResult } from "./result.ts";
import type { StreamRun } from "./stream-client.ts";
import { runStreams } from "./stream-client.ts";

export const memoryDefaults = {
  streams: 1_000,
  tokens: 40,
  intervalMs: 250,
  /** All streams are open after this time, and stay open for tokens * intervalMs. */
  spreadMs: 4_000,
  dialect: "chat",
  only: "nginx,tollgate",
};
export type MemoryFlags = typeof memoryDefaults;

type MemoryMeasurement = Readonly<{
  way: string;
  idleKilobytes: number;
  /** The highest value seen while the streams were open. */
  peakKilobytes: number;
  streams: StreamRun;
}>;

const sampleIntervalMs = 100;
/** A proxy's open files beside two for each stream: its database, its listening socket, spare connections. */
const filesBesideStreams = 200;

/** One run of each proxy, freshly started: memory does not come back, so a second run would say nothing new. */
export async function measureMemory(flags: MemoryFlags) {
  const answer = { tokens: flags.tokens, tokenBytes: tokenBytesMin };
  const limit = openFilesMax();
  const streams = Math.min(flags.streams, Math.floor((limit - filesBesideStreams) / 2));
  const skipped =
    streams === flags.streams
      ? []
      : [
          `${flags.streams} streams need ${2 * flags.streams + filesBesideStreams} open files in a proxy, and ulimit -Hn ` +
            `allows ${limit} here: ${streams} streams were open.`,
        ];
  for (const line of skipped) console.log(`  ${line}`);
  const lineup = await startLineup({
    node: { ...answer, intervalMs: flags.intervalMs },
    only: flags.only,
    dialect: flags.dialect,
    requests: streams,
  });
  const measurements: MemoryMeasurement[] = [];
  try {
    for (const subject of lineup.subjects) {
      const idleKilobytes = residentKilobytes(subject.pids);
      let peakKilobytes = idleKilobytes;
      const sampler = setInterval(() => {
        peakKilobytes = Math.max(peakKilobytes, residentKilobytes(subject.pids));
      }, sampleIntervalMs);
      const run = await runStreams(subject, {
        streams,
        repeats: 1,
        spreadMs: flags.spreadMs,
        answer,
      });
      clearInterval(sampler);
      const measurement = { way: subject.name, idleKilobytes, peakKilobytes, streams: run };
      measurements.push(measurement);
      console.log(`  ${subject.name.padEnd(8)} ${describe(measurement)}`);
    }
    return { measurements, streams, skipped: [...skipped, ...lineup.skipped] };
  } finally {
    await lineup.stop();
  }
}

/** Files that a process may open; the run time raises its own limit to this one, and its children inherit it. */
function openFilesMax(): number {
  const hardLimit = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
  return hardLimit === undefined || hardLimit === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(hardLimit);
}

function describe({ idleKilobytes, peakKilobytes, streams }: MemoryMeasurement): string {
  const failed =
    streams.failures.length > 0 ? `, ${streams.failures.length} FAILED, first: ${streams.failures[0]}` : "";
  return `idle ${megabytes(idleKilobytes)} MB, ${streams.complete} streams ${megabytes(peakKilobytes)} MB${failed}`;
}

function megabytes(kilobytes: number): string {
  return (kilobytes / 1_024).toFixed(1);
}

function resultOf(flags: MemoryFlags, measured: Awaited<ReturnType<typeof measureMemory>>): Result {
  return {
    bench: "memory",
    variant: flags.streams === memoryDefaults.streams ? "" : `${flags.streams}-streams`,
    question: `Resident memory of ${measured.streams} open streams`,
    columns: ["way", "idle MB", `MB with ${measured.streams} streams`, "KB/stream", "streams whole", "failed"],
    rows: measured.measurements.map(({ way, idleKilobytes, peakKilobytes, streams }) => [
      way,
      megabytes(idleKilobytes),
      megabytes(peakKilobytes),
      ((peakKilobytes - idleKilobytes) / measured.streams).toFixed(1),
      `${streams.complete}`,
      `${streams.failures.length}`,
    ]),
    chart: {
      unit: "KB of resident memory per open stream",
      bars: measured.measurements.map(({ way, idleKilobytes, peakKilobytes }) => ({
        label: way,
        value: (peakKilobytes - idleKilobytes) / measured.streams,
      })),
    },
    failures: measured.measurements.reduce((sum, { streams }) => sum + streams.failures.length, 0),
    notes: [
      `${measured.streams} streams open at once, each gets a token every ${flags.intervalMs} ms and all ${flags.tokens} ` +
        `of them; the highest of samples every ${sampleIntervalMs} ms, in a fresh process.`,
      ...measured.skipped,
    ],
  };
}

if (import.meta.main) {
  const flags = readFlags(memoryDefaults, { streams: 50, tokens: 20, intervalMs: 50, spreadMs: 500 });
  placeClient();
  await keepResult(resultOf(flags, await measureMemory(flags)));
}
