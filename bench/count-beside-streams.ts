// How much longer are the gaps between the tokens of running streams while large texts are counted?
//
//   bun bench/count-beside-streams.ts [--streams 200 --interval-ms 20] [--counts 20 --bytes 4000000] [--runs 3] [--quick]
import { type AnswerShape, tokenBytesMin } from "./answer.ts";
import { Connection } from "./connection.ts";
import { readFlags } from "./flags.ts";
import { type GapRun, runStreamsBeside } from "./gap-client.ts";
import { startLineup } from "./lineup.ts";
import { placeClient } from "./placement.ts";
import type { Result } from "./result.ts";
import { keepResult } from "./result.ts";
import { median, percentile } from "./statistics.ts";
import type { Subject } from "./subject.ts";

export const countBesideStreamsDefaults = {
  streams: 200,
  tokens: 200,
  intervalMs: 20,
  /** Texts counted at once, and the size of each. */
  counts: 20,
  bytes: 4_000_000,
  runs: 3,
};
export type CountBesideStreamsFlags = typeof countBesideStreamsDefaults;

/** Prose, one letter and random letters in turn: all are read alike, and counted at different speeds. */
const units: readonly (() => string)[] = [
  () => "How many tokens does this sentence have? ",
  () => "a",
  () => String.fromCharCode(97 + Math.floor(Math.random() * 26)),
];

/** Streams alone and streams beside counts, `runs` times in turn. */
export async function measureGaps(flags: CountBesideStreamsFlags) {
  const answer = { tokens: flags.tokens, tokenBytes: tokenBytesMin };
  const lineup = await startLineup({
    node: { ...answer, intervalMs: flags.intervalMs },
    only: "tollgate",
    dialect: "chat",
    requests: (2 * flags.runs + 1) * flags.streams,
  });
  const [subject] = lineup.subjects;
  const requests = Array.from({ length: flags.counts }, (_none, index) => countRequest(subject!, flags, index));
  const alone: GapRun[] = [];
  const beside: GapRun[] = [];
  try {
    await measure(subject!, flags, answer, requests.slice(0, 1)); // warm up: connections, compiled code, the tables
    for (let run = 1; run <= flags.runs; run++) {
      for (const [runs, asked] of [
        [alone, []],
        [beside, requests],
      ] as const) {
        const measured = await measure(subject!, flags, answer, asked);
        runs.push(measured);
        console.log(`  run ${run}/${flags.runs} ${asked.length} counts: ${describe(measured)}`);
      }
    }
  } finally {
    await lineup.stop();
  }
  return { alone, beside };
}

function countRequest(subject: Subject, { bytes }: CountBesideStreamsFlags, index: number): Buffer {
  const unit = units[index % units.length]!;
  let text = "";
  while (text.length < bytes) text += unit();
  const body = JSON.stringify({ text: text.slice(0, bytes) });
  return Buffer.from(
    `POST /v1/tokenize HTTP/1.1\r\nhost: 127.0.0.1:${subject.port}\r\nauthorization: Bearer ${subject.keys[0]!}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

function measure(
  subject: Subject,
  { streams, intervalMs }: CountBesideStreamsFlags,
  answer: AnswerShape,
  counts: readonly Buffer[],
): Promise<GapRun> {
  return runStreamsBeside(subject, { streams, intervalMs, answer }, (failures) =>
    Promise.all(counts.map((request) => count(subject, request, failures))),
  );
}

async function count(subject: Subject, request: Buffer, failures: string[]): Promise<void> {
  const connection = await Connection.open(subject.port);
  let reply = "";
  const failure = await new Promise<string | null>((resolve) => {
    connection.ask(request, {
      body: (text) => (reply += text),
      end: (status) => resolve(status === 200 && reply.includes('"count":') ? null : `count: ${status} ${reply}`),
      failed: resolve,
    });
  });
  connection.close();
  if (failure !== null) failures.push(failure);
}

function describe({ gapsMs, besideMs, failures }: GapRun): string {
  const [p50, p99, longest] = [0.5, 0.99, 1].map((share) => percentile(gapsMs, share).toFixed(1));
  return (
    `gaps p50 ${p50} ms, p99 ${p99} ms, longest ${longest} ms` +
    (besideMs > 0 ? `, counted in ${besideMs.toFixed(0)} ms` : "") +
    (failures.length > 0 ? `, ${failures.length} FAILED, first: ${failures[0]}` : "")
  );
}

function resultOf(flags: CountBesideStreamsFlags, { alone, beside }: Awaited<ReturnType<typeof measureGaps>>): Result {
  const row = (label: string, runs: readonly GapRun[]) => [
    label,
    ...[0.5, 0.99, 0.999, 1].map((share) => median(runs.map(({ gapsMs }) => percentile(gapsMs, share))).toFixed(1)),
    median(runs.map(({ besideMs }) => besideMs)).toFixed(0),
  ];
  return {
    bench: "count-beside-streams",
    variant: "",
    question: "Streams while large texts are counted",
    columns: ["streams", "gap p50 ms", "p99", "p99.9", "longest", "all counted in ms"],
    rows: [row("alone", alone), row(`beside ${flags.counts} counts`, beside)],
    chart: null,
    failures: [...alone, ...beside].reduce((sum, { failures }) => sum + failures.length, 0),
    notes: [
      `${flags.streams} streams of ${flags.tokens} tokens, one every ${flags.intervalMs} ms; ${flags.counts} texts of ` +
        `${(flags.bytes / 1e6).toFixed(1)} MB arrive at once on POST /v1/tokenize. Medians of ${flags.runs} runs; the ` +
        "client that sends the texts also reads the streams, so that its own work is in the gaps.",
    ],
  };
}

if (import.meta.main) {
  const flags = readFlags(countBesideStreamsDefaults, { streams: 20, tokens: 40, counts: 3, bytes: 100_000, runs: 1 });
  placeClient();
  await keepResult(resultOf(flags, await measureGaps(flags)));
}
