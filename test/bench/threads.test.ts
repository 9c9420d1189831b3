// The benchmark of threads at a tiny size: every token and reply arrives with one thread and with two.
import { expect, test } from "bun:test";
import { measureThreads, threadsDefaults } from "../../bench/threads.ts";

test("threads delivers every token and reply, and says what each thread used", async () => {
  const sizes = { threads: "1,2", streams: 40, tokens: 10, intervalMs: 5, repeats: 2, requests: 100, connections: 8 };
  const measured = await measureThreads({ ...threadsDefaults, ...sizes, runs: 1 });
  expect(measured.map(({ threads, load }) => `${threads} ${load}`)).toEqual([
    "1 streams",
    "1 requests",
    "2 streams",
    "2 requests",
  ]);
  for (const { load, threads, share, runs } of measured) {
    const streams = Math.ceil(40 * threads * share);
    expect(runs[0]!.failures).toEqual([]);
    expect(runs[0]!.units).toBe(load === "streams" ? streams * 2 * 10 : 100);
    expect(runs[0]!.relays).toBeGreaterThan(0);
    expect(runs[0]!.main).toBeGreaterThan(0);
  }
}, 120_000);
