// Does anything grow that should not, when the load goes on for long? Requests of every kind come at a steady rate: the
// three dialects, streaming or not, and clients that leave in the middle. At the end the books must be right.
//
//   bun bench/soak.ts [--minutes 30 --per-second 300] [--quick]
import { Database } from "bun:sqlite";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { floodRequestsMax } from "../src/core/limits.ts";
import { answerText, tokenBytesMin } from "./answer.ts";
import { Connection } from "./connection.ts";
import { startCpuTimer } from "./cpu-time.ts";
import { benchModel, type ClientDialect, clientDialects } from "./dialect.ts";
import { readFlags } from "./flags.ts";
import { benchEmail, type Gateway, startGateway } from "./gateway.ts";
import { startPacedNode } from "./paced-node.ts";
import { placeClient } from "./placement.ts";
import { bun } from "./process.ts";
import { residentKilobytes } from "./resident-memory.ts";
import { keepResult, type Result } from "./result.ts";
import { percentile } from "./statistics.ts";
import { StreamCheck } from "./stream-client.ts";
import { RequestSource } from "./subject.ts";

const soakDefaults = {
  minutes: 30,
  perSecond: 300,
  tokens: 20,
  intervalMs: 25,
  /** One stream in so many is left by its client after its first token. */
  leavesOf: 10,
  /** The time is reported in so many parts. */
  parts: 12,
};
export type SoakFlags = typeof soakDefaults;
export const soakQuick: SoakFlags = { ...soakDefaults, minutes: 0.05, perSecond: 50, intervalMs: 5, parts: 3 };

/** What happened in one part of the time, and how things stood at its end. */
type SoakPart = Readonly<{
  minutes: number;
  whole: number;
  left: number;
  /** Of the gateway, for each request that ended in this part. */
  cpuMicroseconds: number;
  /** From the moment at which a request without streaming was due until its reply was whole. */
  latencyP50Ms: number;
  latencyP99Ms: number;
  residentMegabytes: number;
  openFiles: number;
  dataMegabytes: number;
}>;

export type Soak = Readonly<{
  parts: readonly SoakPart[];
  /** Journal lines of replies, at the end. */
  charges: number;
  /** Tokens that some of the accounts still hold when no request is open. */
  reserved: number;
  /** What the server's own check of its ledger found. */
  violations: number;
  /** Replies that were not as they should be, and books that do not add up. */
  failures: readonly string[];
}>;

/** A way to ask: a dialect, streaming or not. */
type Kind = Readonly<{ dialect: ClientDialect; stream: boolean; source: RequestSource }>;
type Counts = { whole: number; left: number; latencyMs: number[] };

const settleMs = 500;
const accountsShown = 8;

export async function measureSoak(flags: SoakFlags): Promise<Soak> {
  const answer = { tokens: flags.tokens, tokenBytes: tokenBytesMin };
  const node = await startPacedNode({ ...answer, intervalMs: flags.intervalMs });
  const gateway = await startGateway({
    nodePort: node.port,
    dialect: clientDialects.chat,
    // An account for each request of a second: it sends 60 a minute, half of what flood protection lets pass.
    requests: flags.perSecond * floodRequestsMax,
  });
  try {
    const load = new SoakLoad(gateway, answer, flags.leavesOf);
    const parts: SoakPart[] = [];
    const startedMs = performance.now();
    const partMs = (flags.minutes * 60_000) / flags.parts;
    for (let part = 1; part <= flags.parts; part++) {
      const cpu = startCpuTimer(gateway.pids);
      await load.sendUntil(startedMs, startedMs + part * partMs, flags.perSecond);
      const counts = load.take();
      parts.push(partOf(counts, (part * partMs) / 60_000, cpu.elapsedMicroseconds(), gateway));
      console.log(`  ${described(parts.at(-1)!)}${load.failures.length > 0 ? `, FAILED: ${load.failures[0]}` : ""}`);
    }
    await load.finish();
    const rest = load.take();
    const whole = sumOf(parts, ({ whole }) => whole) + rest.whole;
    const left = sumOf(parts, ({ left }) => left) + rest.left;
    return { parts, ...(await books(gateway, whole, left, load.failures)) };
  } finally {
    await gateway.stop();
    await node.stop();
  }
}

class SoakLoad {
  readonly failures: string[] = [];
  readonly #port: number;
  readonly #kinds: readonly Kind[];
  readonly #expected: string;
  readonly #leavesOf: number;
  readonly #idle: Connection[] = [];
  readonly #open = new Set<Promise<void>>();
  #sent = 0;
  #streams = 0;
  #counts: Counts = { whole: 0, left: 0, latencyMs: [] };

  constructor(gateway: Gateway, answer: { tokens: number; tokenBytes: number }, leavesOf: number) {
    this.#port = gateway.port;
    this.#expected = answerText(answer);
    this.#leavesOf = leavesOf;
    this.#kinds = Object.values(clientDialects).flatMap((dialect) =>
      [true, false].map((stream) => {
        const ask = { model: benchModel, prompt: "p".repeat(500), outputTokensMax: answer.tokens, stream };
        return { dialect, stream, source: new RequestSource({ ...gateway, dialect }, ask) };
      }),
    );
  }

  /** Sends what is due until then; a request that the client is late for counts from when it was due. */
  async sendUntil(startedMs: number, untilMs: number, perSecond: number): Promise<void> {
    for (let now = performance.now(); now < untilMs; now = performance.now()) {
      const due = Math.floor(((now - startedMs) * perSecond) / 1_000);
      while (this.#sent < due) {
        const dueMs = startedMs + (this.#sent * 1_000) / perSecond;
        const kind = this.#kinds[this.#sent++ % this.#kinds.length]!;
        const reply = this.#send(kind, dueMs).finally(() => this.#open.delete(reply));
        this.#open.add(reply);
      }
      await Bun.sleep(1);
    }
  }

  /** What was counted since the last time. */
  take(): Counts {
    const counts = this.#counts;
    this.#counts = { whole: 0, left: 0, latencyMs: [] };
    return counts;
  }

  async finish(): Promise<void> {
    await Promise.all(this.#open);
    for (const connection of this.#idle) connection.close();
  }

  async #send(kind: Kind, dueMs: number): Promise<void> {
    let connection = this.#idle.pop();
    if (connection === undefined || !connection.open) connection = await Connection.open(this.#port);
    const leaves = kind.stream && ++this.#streams % this.#leavesOf === 0;
    const failure = kind.stream
      ? await this.#stream(connection, kind, leaves)
      : await this.#whole(connection, kind, dueMs);
    if (failure === null) this.#idle.push(connection);
    else if (failure !== "left") this.failures.push(failure);
  }

  #whole(connection: Connection, { dialect, source }: Kind, dueMs: number): Promise<string | null> {
    const { promise, resolve } = Promise.withResolvers<string | null>();
    let body = "";
    connection.ask(source.next(), {
      body: (text) => void (body += text),
      end: (status) => {
        const isWhole = status === 200 && body.includes(dialect.replyTextKey + this.#expected);
        if (!isWhole) return resolve(`status ${status}: ${body.slice(0, 200)}`);
        this.#counts.whole++;
        this.#counts.latencyMs.push(performance.now() - dueMs);
        resolve(null);
      },
      failed: resolve,
    });
    return promise;
  }

  #stream(connection: Connection, { dialect, source }: Kind, leaves: boolean): Promise<string | null> {
    const { promise, resolve } = Promise.withResolvers<string | null>();
    const check = new StreamCheck(dialect, this.#expected);
    connection.ask(source.next(), {
      body: (text) => {
        if (!connection.open) return; // one read may bring more than the text after which the client left
        check.read(text);
        if (!leaves || check.textEvents === 0) return;
        connection.close();
        this.#counts.left++;
        resolve("left");
      },
      end: (status) => {
        const failure = check.failure(status);
        if (failure === null) this.#counts.whole++;
        resolve(failure);
      },
      failed: resolve,
    });
    return promise;
  }
}

function partOf(counts: Counts, minutes: number, cpuMicroseconds: number, gateway: Gateway): SoakPart {
  const { whole, left, latencyMs } = counts;
  const latencyAt = (share: number): number => (latencyMs.length === 0 ? Number.NaN : percentile(latencyMs, share));
  return {
    minutes,
    whole,
    left,
    cpuMicroseconds: cpuMicroseconds / Math.max(1, whole + left),
    latencyP50Ms: latencyAt(0.5),
    latencyP99Ms: latencyAt(0.99),
    residentMegabytes: residentKilobytes(gateway.pids) / 1_024,
    openFiles: sumOf(gateway.pids, (pid) => readdirSync(`/proc/${pid}/fd`).length),
    dataMegabytes:
      sumOf(readdirSync(gateway.dataFolder), (name) => statSync(join(gateway.dataFolder, name)).size) / 2 ** 20,
  };
}

/** Whether each reply that was whole, or left after its first token, has one charge, and nothing is held anymore. */
async function books(gateway: Gateway, whole: number, left: number, failures: string[]) {
  await Bun.sleep(settleMs); // the last of those who left are settled
  const shown = await Promise.all(Array.from({ length: accountsShown }, (_none, index) => show(gateway, index)));
  const reserved = sumOf(shown, (account) => account.reserved);
  const metrics = await (await fetch(`http://127.0.0.1:${gateway.port}/metrics`)).text();
  const violations = Number(/^tollgate_ledger_violations (\d+)$/m.exec(metrics)?.[1] ?? Number.NaN);
  using database = new Database(join(gateway.dataFolder, "tollgate.db"), { readonly: true });
  const counted = database.query("SELECT count(*) AS charges FROM journal WHERE kind = 'charge'").get();
  const { charges } = counted as { charges: number };
  const expected = whole + left;
  const wrong = [...failures];
  if (charges !== expected) wrong.push(`${charges} charges of ${whole} whole replies and ${left} that were left`);
  if (reserved !== 0) wrong.push(`${reserved} tokens are still held`);
  if (violations !== 0) wrong.push(`the ledger's check found ${violations} contradictions`);
  return { charges, reserved, violations, failures: wrong };
}

async function show({ dataFolder }: Gateway, index: number): Promise<Readonly<{ reserved: number }>> {
  const command = [bun, join(import.meta.dir, "../src/main.ts"), "accounts", "show", benchEmail(index)];
  const shown = await Bun.spawn([...command, "--json", "--data", dataFolder]).stdout.text();
  return JSON.parse(shown) as { reserved: number };
}

const sumOf = <Item>(items: readonly Item[], valueOf: (item: Item) => number): number =>
  items.reduce((sum, item) => sum + valueOf(item), 0);

function described(part: SoakPart): string {
  return (
    `${part.minutes.toFixed(1)} min: ${part.whole} whole, ${part.left} left, ${part.cpuMicroseconds.toFixed(0)} us each, ` +
    `p50 ${part.latencyP50Ms.toFixed(0)} p99 ${part.latencyP99Ms.toFixed(0)} ms, ` +
    `${part.residentMegabytes.toFixed(0)} MB, ${part.openFiles} files, data ${part.dataMegabytes.toFixed(0)} MB`
  );
}

function resultOf(flags: SoakFlags, soak: Soak): Result {
  const { parts, charges, failures } = soak;
  for (const failure of failures.slice(0, 10)) console.log(`  ${failure}`);
  return {
    bench: "soak",
    variant: "",
    question: `${flags.minutes} minutes at ${flags.perSecond} requests a second`,
    columns: ["until minute", "whole", "left", "CPU us/request", "p50 ms", "p99 ms", "MB", "open files", "data MB"],
    rows: parts.map((part) => [
      part.minutes.toFixed(1),
      `${part.whole}`,
      `${part.left}`,
      part.cpuMicroseconds.toFixed(0),
      part.latencyP50Ms.toFixed(0),
      part.latencyP99Ms.toFixed(0),
      part.residentMegabytes.toFixed(0),
      `${part.openFiles}`,
      part.dataMegabytes.toFixed(0),
    ]),
    chart: {
      unit: "MB of resident memory at the end of each part, by minute",
      bars: parts.map((part) => ({ label: part.minutes.toFixed(1), value: part.residentMegabytes })),
    },
    failures: failures.length,
    notes: [
      `Three dialects in turn, every other request a stream of ${flags.tokens} tokens, one each ${flags.intervalMs} ms; one ` +
        `stream in ${flags.leavesOf} is left after its first token. The latency is that of requests without streaming, ` +
        "most of it the node's.",
      `At the end: ${charges} charges for as many replies, whole or left by the client, ${soak.reserved} tokens held on ` +
        `${accountsShown} accounts, ` +
        `${soak.violations} contradictions found by the running check.`,
    ],
  };
}

if (import.meta.main) {
  const flags = readFlags(soakDefaults, soakQuick);
  placeClient();
  await keepResult(resultOf(flags, await measureSoak(flags)));
}
