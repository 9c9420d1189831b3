// The benchmark of threads at a tiny size: every token and reply arrives with two threads and with two gateways of one.
import { expect, test } from "bun:test";
import { measureThreads, threadsDefaults } from "../../bench/threads.ts";

test("threads delivers every token and reply, also through gateways of one thread, and says what each thread used", async () => {
  const sizes = { threads: "2", streams: 40, tokens: 10, intervalMs: 5, requests: 500, connections: 8 };
  const measured = await measureThreads({ ...threadsDefaults, ...sizes, runs: 1 });
  expect(measured.map(({ load }) => load)).toEqual(["streams", "requests"]);
  for (const { load, threads, share, runs, separate } of measured) {
    const units = load === "streams" ? Math.ceil(40 * share) * 10 : Math.ceil(500 * share);
    expect(separate.length).toBe(1);
    for (const run of [...runs, ...separate]) {
      expect(run.failures).toEqual([]);
      expect(run.units).toBe(units * threads);
      expect(run.relays).toBeGreaterThan(0);
      expect(run.main).toBeGreaterThan(0);
    }
  }
}, 120_000);
