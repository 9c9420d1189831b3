// Numbers and times as the console writes them.
import { expect, test } from "bun:test";
import { bytes, duration, fullMoment, shortTime, utc } from "../../src/console/web/format.ts";

test("a duration has hours and minutes, and in its last hour seconds", () => {
  expect([5_400_000, 61_000].map(duration)).toEqual(["1 hr, 30 min", "1 min, 1 sec"]);
});

test("a time that stands alone has its year and zone; the same in UTC is written as in logs", () => {
  const at = "2026-03-28T09:05:07.000Z";
  expect(utc(at)).toBe("2026-03-28 09:05:07 UTC");
  expect(fullMoment(at)).toMatch(/^\d+ Mar 2026, \d\d:\d\d:07 \S+$/);
});

test("sizes and durations have the digits that say something", () => {
  expect([0, 512, 1_440_000, 99_960_000].map(bytes)).toEqual(["0 bytes", "512 bytes", "1.4 MB", "100 MB"]);
  expect([120, 1_500, 126_000].map(shortTime)).toEqual(["120 ms", "1.5 s", "2.1 min"]);
});
