// Flood protection at its edges.
import { expect, test } from "bun:test";
import { Flood } from "../../../src/account/money/flood.ts";

const start = 1_234; // windows are measured with monotonic time, which begins with the process
const times = (count: number, flood: Flood, now: number, account = 1) =>
  Array.from({ length: count }, () => flood.count(account, now));

test("the 120th request of a window passes, the 121st is refused until its end", () => {
  const flood = new Flood();
  expect(times(120, flood, start).every((seconds) => seconds === 0)).toBe(true);
  expect(flood.count(1, start)).toBe(60);
});

// after the window opened (ms), seconds to wait
const waits = [
  [0, 60],
  [1, 60],
  [999, 60],
  [1_000, 59],
  [59_000, 1],
  [59_999, 1],
  [60_000, 0],
] as const;
for (const [after, seconds] of waits) {
  test(`a full window says ${seconds} s after ${after} ms`, () => {
    const flood = new Flood();
    times(120, flood, start);
    expect(flood.count(1, start + after)).toBe(seconds);
  });
}

test("the window opens with the first request and is fixed", () => {
  const flood = new Flood();
  flood.count(1, start + 30_000);
  times(119, flood, start + 89_999);
  expect(flood.count(1, start + 89_999)).toBe(1);
  expect(times(120, flood, start + 90_000)).toEqual(Array(120).fill(0));
});

test("refused requests count and do not move the window", () => {
  const flood = new Flood();
  times(120, flood, start);
  times(1_000, flood, start + 59_999);
  expect(flood.count(1, start + 60_000)).toBe(0);
});

test("accounts do not share windows", () => {
  const flood = new Flood();
  times(121, flood, start, 1);
  expect(flood.count(2, start)).toBe(0);
});

test("memory is bounded by the accounts of two minutes", () => {
  const flood = new Flood();
  for (let account = 0; account < 200_000; account += 1) flood.count(account, start + account * 10);
  expect(flood.size).toBeLessThanOrEqual(12_001);
});
