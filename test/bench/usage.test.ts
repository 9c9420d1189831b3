// The usage page's benchmark at a tiny size: every query finds what it must.
import { expect, test } from "bun:test";
import { measureUsage } from "../../bench/usage.ts";

test("usage finds every page, and as many replies as were written", async () => {
  const measured = await measureUsage({ replies: 3_000, looks: 2, quietMs: 50 });
  expect(measured.failures).toBe(0);
  expect(measured.looks.length).toBe(11);
  for (const { ms } of measured.looks) expect(ms).toHaveLength(2);
}, 120_000);
