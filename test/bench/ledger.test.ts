// The accounting's benchmark at a tiny size: the books add up after it, and every settlement is a row.
import { expect, test } from "bun:test";
import { ledgerDefaults, measureLedger } from "../../bench/ledger.ts";

test("ledger settles every pair once, on disk, and leaves nothing held", async () => {
  const flags = { ...ledgerDefaults, accounts: 5, pairs: 100, settlements: 50, waiting: 7, runs: 2 };
  const measured = await measureLedger(flags);
  expect(measured.verification).toEqual({ accounts: 5, violations: [] });
  expect(measured.rowsOfFirst).toBe((50 * 2) / 5);
  expect(measured.holds).toBe(0);
  expect(measured.heldTokens).toBe(0);
  for (const run of measured.durable) expect(run.latencyMs).toHaveLength(50);
});
