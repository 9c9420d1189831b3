// How long do running streams pause while another account's large body is read?
//
//   bun bench/large-body.ts [--streams 20 --interval-ms 10] [--bytes 33500000] [--runs 5] [--only "long text"] [--quick]
//
// The body comes from a process of its own and goes to a node of its own, so that what reads the streams and what writes
// them do nothing beside.
import { tokenBytesMin } from "./answer.ts";
import { clientDialects } from "./dialect.ts";
import { readFlags } from "./flags.ts";
import { type GapRun, runStreamsBeside } from "./gap-client.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { type BodyKind, bodyKinds, expectedStatus, largeBodyModel } from "./large-body-kinds.ts";
import { startPacedNode } from "./paced-node.ts";
import { placeClient } from "./placement.ts";
import { bun } from "./process.ts";
import { peakKilobytes } from "./resident-memory.ts";
import { keepResult, type Result } from "./result.ts";
import { median, percentile } from "./statistics.ts";
import { TurnMeter } from "./turns.ts";

export const largeBodyDefaults = { streams: 20, tokens: 200, intervalMs: 10, bytes: 33_500_000, runs: 5, only: "" };
type Flags = typeof largeBodyDefaults;
/** Two to compare with: no body at all, and one that passes the gateway by. */
type Sent = BodyKind | "none" | "long text, to the node itself";
/** The longest gap of each run, in milliseconds. */
type Row = { kind: string; longestMs: number[]; turnMs: number[]; tookMs: number[] };

async function measure(flags: Flags): Promise<{ rows: Row[]; failures: number; peakMegabytes: number }> {
  const answer = { tokens: flags.tokens, tokenBytes: tokenBytesMin };
  const node = await startPacedNode({ ...answer, intervalMs: flags.intervalMs });
  const other = await startPacedNode({ tokens: 1, tokenBytes: tokenBytesMin, intervalMs: 0 });
  const turns = new TurnMeter();
  const kinds: Sent[] = [
    "none",
    "long text, to the node itself",
    ...bodyKinds.filter((kind) => kind.includes(flags.only)),
  ];
  const gateway = await startGateway({
    nodePort: node.port,
    other: { model: largeBodyModel, port: other.port },
    dialect: clientDialects.chat,
    turns,
    requests: (flags.runs + 1) * kinds.length * (flags.streams + 1),
  });
  const rows = kinds.map((kind): Row => ({ kind, longestMs: [], turnMs: [], tookMs: [] }));
  let failures = 0;
  try {
    for (let run = 0; run <= flags.runs; run++) {
      for (const [index, kind] of kinds.entries()) {
        const load = { streams: flags.streams, intervalMs: flags.intervalMs, answer };
        const send = await prepared(kind, flags.bytes, gateway, other.port);
        const gaps = await runStreamsBeside(gateway, load, async (failed) => {
          await turns.longest(gateway.pids[0]!); // of before
          await send(failed);
        });
        const turnMs = await turns.longest(gateway.pids[0]!);
        failures += gaps.failures.length;
        if (run === 0) continue; // warms up
        add(rows[index]!, gaps, turnMs);
      }
    }
    return { rows, failures, peakMegabytes: peakKilobytes(gateway.pids) / 1_024 };
  } finally {
    await gateway.stop();
    await node.stop();
    await other.stop();
  }
}

function add(row: Row, { gapsMs, besideMs, failures }: GapRun, turnMs: number): void {
  const longest = percentile(gapsMs, 1);
  row.longestMs.push(longest);
  row.turnMs.push(turnMs);
  row.tookMs.push(besideMs);
  const failed = failures.length > 0 ? `, FAILED: ${failures[0]}` : "";
  console.log(
    `  ${row.kind}: longest turn ${turnMs.toFixed(1)} ms, longest gap ${longest.toFixed(1)} ms, in ${besideMs.toFixed(0)} ms${failed}`,
  );
}

/** A process with the body ready, which sends it when it is told to; "none" waits as long as a body takes. */
async function prepared(kind: Sent, bytes: number, { port, keys }: Gateway, nodePort: number) {
  if (kind === "none") return () => Bun.sleep(700);
  const [body, to] = kind === "long text, to the node itself" ? (["long text", nodePort] as const) : [kind, port];
  const sender = Bun.spawn([bun, `${import.meta.dir}/large-body-kinds.ts`, body, `${bytes}`, `${to}`, keys.at(-1)!], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const output = sender.stdout.getReader();
  const line = async () => new TextDecoder().decode((await output.read()).value);
  await line(); // ready
  return async (failures: string[]) => {
    void sender.stdin.write("send\n");
    await sender.stdin.end();
    const said = await line();
    if (!said.startsWith(expectedStatus[body] ?? "200")) failures.push(`${kind}: ${said}`);
  };
}

function resultOf(flags: Flags, { rows, failures, peakMegabytes }: Awaited<ReturnType<typeof measure>>): Result {
  return {
    bench: "large-body",
    variant: "",
    question: "Streams while another account's large body is read",
    columns: ["body", "longest turn ms, median", "worst run", "longest gap ms, median", "worst run", "answered in ms"],
    rows: rows.map(({ kind, longestMs, turnMs, tookMs }) => [
      kind,
      ...[turnMs, longestMs].flatMap((all) => [median(all).toFixed(1), Math.max(...all).toFixed(1)]),
      median(tookMs).toFixed(0),
    ]),
    chart: null,
    failures,
    notes: [
      `${flags.streams} streams, a token every ${flags.intervalMs} ms; one body of ${(flags.bytes / 1e6).toFixed(1)} MB ` +
        `from another process to another node. "Turn": CPU time of the gateway's main thread between two turns of its ` +
        `event loop; "gap": time between two tokens of a stream. ${flags.runs} runs of each kind in turn, after one to warm up. Peak of ` +
        `resident memory over all runs: ${peakMegabytes.toFixed(0)} MB.`,
    ],
  };
}

if (import.meta.main) {
  const flags = readFlags(largeBodyDefaults, { streams: 10, tokens: 100, bytes: 600_000, runs: 1 });
  placeClient();
  await keepResult(resultOf(flags, await measure(flags)));
}
