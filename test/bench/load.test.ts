// The load test against the real gateway, a node and servers that misbehave: what it counts is what happened.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tokenBytesMin } from "../../bench/answer.ts";
import { clientDialects } from "../../bench/dialect.ts";
import { type Gateway, startGateway } from "../../bench/gateway.ts";
import { Histogram } from "../../bench/histogram.ts";
import { LoadMeasurement, type LoadSettings, runLoad } from "../../bench/load-client.ts";
import { type LoadReport, reportOf, svgOf, textOf } from "../../bench/load-report.ts";
import { type PacedNode, startPacedNode } from "../../bench/paced-node.ts";
import { ReplyMeter } from "../../bench/reply-meter.ts";
import { runToEnd } from "../fixtures/children.ts";

const launcher = join(import.meta.dir, "../../src/launch.mjs");
const runner = join(import.meta.dir, "../../bench/run.ts");
const tokens = 12;
const timeoutMs = 60_000;
let node: PacedNode;
let gateway: Gateway;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "bench-load-"));
  node = await startPacedNode({ tokens, tokenBytes: tokenBytesMin, intervalMs: 3 });
  gateway = await startGateway({ nodePort: node.port, dialect: clientDialects.chat, requests: 2_400 });
}, timeoutMs);

afterAll(async () => {
  await gateway.stop();
  await node.stop();
  rmSync(folder, { recursive: true });
}, timeoutMs);

/** Runs the load until `enough`, in this process. */
async function measure(part: Partial<LoadSettings>, enough: (seen: LoadMeasurement) => boolean): Promise<LoadReport> {
  const settings: LoadSettings = {
    url: new URL(`http://127.0.0.1:${gateway.port}/v1/`),
    keys: gateway.keys,
    model: "core-3",
    dialect: "chat",
    streams: 3,
    prompt: "Count.",
    outputTokensMax: 64,
    stream: true,
    ...part,
  };
  const seen = new LoadMeasurement();
  const stop = new AbortController();
  const watch = setInterval(() => enough(seen) && stop.abort(), 2);
  await runLoad(settings, seen, stop.signal);
  clearInterval(watch);
  const report = reportOf(settings, seen, 0.5);
  const { started, complete, failed, cutOff } = report.requests;
  expect(complete + failed + cutOff).toBe(started);
  return report;
}

for (const dialect of ["chat", "messages", "responses"] as const) {
  for (const stream of [true, false]) {
    test(`${dialect}, ${stream ? "streamed" : "whole"}: every reply is complete, with the tokens that the node sent`, async () => {
      const report = await measure({ dialect, stream }, ({ complete }) => complete >= 9);
      expect(report.errors).toEqual({});
      expect(report.requests.complete).toBeGreaterThanOrEqual(9);
      expect(report.wholeMs?.count).toBe(report.requests.complete);
      expect(report.tokensPerSecond).toBeGreaterThan(0);
      if (!stream) return expect(report).toMatchObject({ firstTokenMs: null, gapMs: null, tokensPerEvent: null });
      expect(report.tokensPerEvent).toBe(1);
      // Tokens that arrive together have no gap between them.
      const { count } = report.firstTokenMs!;
      expect(count).toBeGreaterThanOrEqual(report.requests.complete);
      expect(report.gapMs!.count).toBeWithin(1, count * (tokens - 1) + 1);
    }, 120_000);
  }
}

test("a node is loaded like a gateway, without a key", async () => {
  const report = await measure(
    { url: new URL(`http://127.0.0.1:${node.port}`), keys: [] },
    (seen) => seen.complete > 5,
  );
  expect(report).toMatchObject({ keys: 0, tokensPerEvent: 1, errors: {} });
}, 120_000);

test.each([
  [
    "without a key",
    [],
    /^Stopped, because no request can succeed: 401 .*\nGive an API key with --key, or in the variable/,
  ],
  ["with a wrong key", ["--key", "sk-tg-wrong"], /The key is void or mistyped/],
  ["with a model that is not there", ["--key", "GOOD", "--model", "none"], /Is --model none one of those/],
  ["where nothing listens", ["--url", "http://127.0.0.1:9"], /Does the server run/],
])(
  "%s it stops at once and says what to do",
  async (_, words, says) => {
    const given = words.map((word) => (word === "GOOD" ? gateway.keys[0]! : word));
    const all = ["load", "--url", `http://127.0.0.1:${gateway.port}`, "--duration", "1000", ...given];
    const env = { ...process.env, TOLLGATE_KEY: "" };
    const { code, stdout, stderr } = await runToEnd([process.execPath, runner, ...all], { env });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(says);
  },
  60_000,
);

test("failures are counted by status and message", async () => {
  const refused = await measure({ keys: ["wrong"] }, ({ failed }) => failed >= 3);
  expect(Object.keys(refused.errors)).toEqual(["401 Invalid API key provided"]);
  expect(textOf(refused)).toContain("3 x 401 Invalid API key provided");
  const closed = await measure({ url: new URL("http://127.0.0.1:9") }, ({ failed }) => failed >= 3);
  expect(Object.keys(closed.errors)).toEqual(["no connection: Failed to connect"]);
}, 120_000);

test("a stream that breaks, tells an error or lacks its end is not complete", () => {
  const failureOf = (dialect: "chat" | "messages" | "responses", stream: string) => {
    const meter = new ReplyMeter(dialect);
    for (const character of stream) meter.feed(character);
    return meter.failure(200);
  };
  const piece = 'data: {"choices":[{"delta":{"content":"a"}}]}\n\n';
  expect(failureOf("chat", `${piece}data: [DONE]\n\n`)).toBeNull();
  expect(failureOf("chat", `${piece}data: [DONE]\n\n`.replaceAll("\n", "\r\n"))).toBeNull();
  expect(failureOf("chat", piece)).toBe("200 without an end");
  expect(failureOf("chat", "data: {\n\ndata: [DONE]\n\n")).toBe("200 an event is no JSON");
  expect(failureOf("chat", 'data: {"error":{"message":"node 7 died"}}\n\n')).toBe("200 stream: node N died");
  expect(failureOf("messages", 'event: error\ndata: {"type":"error","error":{"message":"busy"}}\n\n')).toContain(
    "busy",
  );
  expect(failureOf("messages", 'data: {"type":"message_stop"}\n\n')).toBeNull();
  expect(failureOf("responses", 'data: {"type":"response.failed","response":{"error":{"message":"x"}}}\n\n')).toContain(
    "stream: x",
  );
});

test("percentiles of a histogram are right to one in a hundred, at any number of samples", () => {
  const durations = new Histogram();
  expect(durations.percentileMs(0.5)).toBeNull();
  for (let index = 1; index <= 100_000; index++) durations.add(index / 10);
  for (const share of [0.01, 0.5, 0.9, 0.99]) {
    expect(durations.percentileMs(share)! / (10_000 * share)).toBeWithin(0.99, 1.01);
  }
  expect(durations.percentileMs(1)! / 10_000).toBeWithin(0.99, 1.01);
  expect(durations).toMatchObject({ count: 100_000, longestMs: 10_000 });
});

test("the first signal ends the test early, with the report as text, JSON and SVG", async () => {
  const [json, svg] = [join(folder, "load.json"), join(folder, "load.svg")];
  const command = [
    ...["node", launcher, runner, "load", "--url", `http://127.0.0.1:${gateway.port}`, "--streams", "2"],
    ...["--duration", "600", "--json", json, "--svg", svg],
  ];
  const child = Bun.spawn(command, {
    env: { ...process.env, TOLLGATE_KEY: gateway.keys.join(",") },
    stdio: ["ignore", "pipe", "inherit"],
  });
  await requestsServed(2);
  child.kill("SIGINT");
  expect(await child.exited).toBe(0);
  expect(await new Response(child.stdout).text()).toContain("to the first token");
  const report = JSON.parse(readFileSync(json, "utf8")) as LoadReport;
  expect(report.requests.complete).toBeGreaterThan(0);
  expect(report.seconds).toBeLessThan(600);
  expect(JSON.stringify(report)).not.toContain("sk-tg-");
  const picture = readFileSync(svg, "utf8");
  expect(picture).toStartWith("<svg");
  expect(picture.match(/<text/g)).toHaveLength(picture.match(/<\/text>/g)!.length);
}, 120_000);

/** Resolves when the gateway has answered so many more requests than now. */
async function requestsServed(more: number): Promise<void> {
  const served = async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${gateway.port}/metrics`)).text();
    return [...metrics.matchAll(/^tollgate_requests_total\{.*\} (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0);
  };
  const before = await served();
  while ((await served()) < before + more) await Bun.sleep(20);
}

test("names in the picture are escaped", async () => {
  const report = await measure({ model: "<core>&" }, ({ failed }) => failed > 0);
  expect(svgOf(report)).toContain("&lt;core&gt;&amp;");
});

test("a flag that it does not know ends with the help", async () => {
  const { code, stderr } = await runToEnd([process.execPath, runner, "load", "--stream", "2"]);
  expect(code).toBe(2);
  expect(stderr).toContain("--streams N");
});
