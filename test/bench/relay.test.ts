// The benchmarks at tiny sizes: every token and reply arrives through every way, so that the numbers cannot rot.
import { expect, test } from "bun:test";
import { latencyDefaults, measureRequestLatency, measureStreamLatency } from "../../bench/latency.ts";
import { measureMemory, memoryDefaults } from "../../bench/memory.ts";
import { nginxMissing } from "../../bench/nginx.ts";
import { measureRelayToken, relayTokenDefaults } from "../../bench/relay-token.ts";
import { measureRequest, requestDefaults } from "../../bench/request.ts";

const missing = nginxMissing();
if (missing !== null) console.log(`the benchmarks' nginx baseline is not tested: ${missing}`);
const ways = missing === null ? ["direct", "nginx", "tollgate"] : ["direct", "tollgate"];
const only = ways.join(",");

test("relay-token delivers every token of every stream, one event each", async () => {
  const { runs } = await measureRelayToken({
    ...relayTokenDefaults,
    only,
    streams: 8,
    tokens: 12,
    intervalMs: 5,
    runs: 2,
    warmUps: 1,
  });
  expect([...runs.keys()]).toEqual(ways as never);
  for (const measurements of runs.values()) {
    expect(measurements).toHaveLength(2);
    for (const { streams } of measurements) {
      expect(streams.failures).toEqual([]);
      expect(streams).toMatchObject({ complete: 8, tokens: 96, textEvents: 96 });
      expect(streams.firstTokenMs).toHaveLength(8);
    }
  }
});

test("request gets a whole, correct reply to every request", async () => {
  const { runs } = await measureRequest({ ...requestDefaults, only, requests: 30, connections: 4, runs: 1 });
  for (const [measurement] of runs.values()) {
    expect(measurement?.requests.failures).toEqual([]);
    expect(measurement?.requests.complete).toBe(30);
  }
});

test("latency has one sample for each stream and each request", async () => {
  const flags = {
    ...latencyDefaults,
    only,
    streams: 4,
    repeats: 2,
    tokens: 5,
    intervalMs: 2,
    requests: 20,
    perSecond: 400,
    runs: 1,
  };
  for (const [run] of (await measureStreamLatency(flags)).runs.values()) {
    expect(run?.failures).toEqual([]);
    expect(run?.samples["first token"]).toHaveLength(8);
    expect(run?.samples["whole stream"]).toHaveLength(8);
  }
  for (const [run] of (await measureRequestLatency(flags)).runs.values()) {
    expect(run?.failures).toEqual([]);
    expect(run?.samples["non-streaming reply"]).toHaveLength(20);
  }
});

test("memory sees every stream open at once and whole", async () => {
  const flags = { ...memoryDefaults, only: "tollgate", streams: 10, tokens: 10, intervalMs: 10, spreadMs: 20 };
  const [measurement] = (await measureMemory(flags)).measurements;
  expect(measurement?.streams).toMatchObject({ complete: 10, tokens: 100, failures: [] });
  expect(measurement?.peakKilobytes).toBeGreaterThan(0);
});
