// Numbers and times as the console writes them.
import { expect, test } from "bun:test";
import { interval } from "../../src/console/web/format.ts";

test("how often something happens reads well after 'every'", () => {
  const hourMs = 3_600_000;
  expect([1, 24, 1.5].map((hours) => interval(hours * hourMs))).toEqual(["hour", "24 hours", "1 h 30 min"]);
});
