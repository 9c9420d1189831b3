// The long run at a tiny size: every kind of request is served, and the books are right at its end.
import { expect, test } from "bun:test";
import { measureSoak, soakQuick } from "../../bench/soak.ts";

test("soak serves all kinds of requests, and finds the books right", async () => {
  const { parts, charges, reserved, violations, failures } = await measureSoak({ ...soakQuick, leavesOf: 5 });
  expect([failures, reserved, violations]).toEqual([[], 0, 0]);
  const ended = parts.reduce((sum, { whole, left }) => sum + whole + left, 0);
  expect(ended).toBeGreaterThan(100);
  expect(charges).toBeGreaterThanOrEqual(ended);
  expect(parts.every(({ left }) => left > 0)).toBe(true);
}, 120_000);
