// The benchmarks of size at tiny sizes: every request is answered, every size measured, and the books of a filled data
// folder add up.
import { desksOf } from "../account/desks.ts";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fillDataFolder } from "../../bench/filled-folder.ts";
import { openBenchAccounting } from "../../bench/gateway.ts";
import { growthQuick, measureGrowth } from "../../bench/growth.ts";
import { measureStart, startDefaults } from "../../bench/start.ts";
import { growthExponent } from "../../bench/statistics.ts";

test("growth measures every quantity at every size, and no request fails", async () => {
  const { growths, failures } = await measureGrowth(growthQuick);
  expect(failures).toBe(0);
  expect(growths.map(({ what }) => what)).toEqual([
    ...["streams at once", "tokens of a stream", ...Array.from({ length: 3 }, () => "accounts and usage rows")],
    ...["bytes of a body", "bytes of a body", "bytes of a body", "nodes", "nodes"],
  ]);
  for (const { points } of growths) {
    expect(points).toHaveLength(2);
    for (const { size, value } of points) {
      expect(size).toBeGreaterThan(0);
      expect(value).toBeGreaterThanOrEqual(0);
    }
  }
}, 300_000);

test("start begins as often as told and answers each time", async () => {
  const flags = { ...startDefaults, accounts: 20, rows: 50, runs: 2, idleMs: 50, settleMs: 0 };
  const measured = await measureStart(flags);
  expect(measured.startsMs).toHaveLength(2);
  expect(measured.failures).toBe(0);
  expect(measured.idleMegabytes).toBeGreaterThan(0);
}, 120_000);

test("the books of a filled data folder add up, and it has as many accounts and rows as it should", async () => {
  const folder = mkdtempSync(join(tmpdir(), "bench-filled-"));
  try {
    fillDataFolder(folder, { accounts: 40, rows: 100 });
    const accounting = await openBenchAccounting(folder);
    expect(await accounting.verify()).toEqual({ accounts: 40, violations: [] });
    expect(await desksOf(accounting).accounts.usage("filled-20@example.com", 10)).toHaveLength(3);
    expect(await desksOf(accounting).accounts.usage("filled-40@example.com", 10)).toHaveLength(2);
    await accounting.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the exponent of growth is that of the power law", () => {
  const grown = (exponent: number) => [1, 10, 100].map((size) => ({ size, value: 3 * size ** exponent }));
  for (const exponent of [0, 0.5, 1, 2]) expect(growthExponent(grown(exponent))).toBeCloseTo(exponent, 9);
});
