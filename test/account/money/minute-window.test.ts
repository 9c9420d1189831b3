// A minute's requests and tokens, against a list of all that was admitted.
import { expect, test } from "bun:test";
import { MinuteWindow } from "../../../src/account/money/minute-window.ts";

test("in no 60 s are more admitted than the limits, and who is refused is admitted when it was told", () => {
  let seed = 7;
  const random = (below: number): number => (seed = (seed * 16_807) % 2_147_483_647) % below;
  for (let round = 0; round < 60; round += 1) {
    let window = new MinuteWindow();
    const limits = { requestsMax: 1 + random(20), tokensMax: 100 + random(1_000) };
    Object.assign(window, limits);
    const admitted: { at: number; tokens: number }[] = [];
    let now = random(5_000);
    for (let step = 0; step < 300; step += 1) {
      now += random(4) === 0 ? random(9_000) : random(40);
      const tokens = 1 + random(limits.tokensMax);
      const waitMs = window.waitMs(tokens, now);
      if (waitMs > 0) {
        expect(waitMs).toBeLessThanOrEqual(60_000);
        expect(window.rates(now + waitMs - 1)).not.toEqual(window.rates(now + waitMs));
        if (random(3) > 0) continue;
        now += waitMs;
        expect(window.waitMs(tokens, now)).toBe(0);
      }
      window.count(tokens, now);
      const one = { at: now, tokens };
      admitted.push(one);
      if (random(2) === 0) {
        const used = random(tokens + 1);
        window.correct(tokens, now, used, now);
        one.tokens = used;
      }
      const lately = admitted.filter(({ at }) => at > now - 60_000);
      expect(lately.length).toBeLessThanOrEqual(limits.requestsMax);
      expect(lately.reduce((sum, { tokens }) => sum + tokens, 0)).toBeLessThanOrEqual(limits.tokensMax);
      window = Object.assign(MinuteWindow.of(window.slots, now), limits);
    }
    expect(admitted.length).toBeGreaterThan(10);
  }
});

test("what a request used beyond its count is counted at its end, and a larger one than the limit begins alone", () => {
  const window = Object.assign(new MinuteWindow(), { tokensMax: 100 });
  expect(window.waitMs(500, 0)).toBe(0);
  window.count(500, 0);
  expect(window.waitMs(1, 30_000)).toBe(30_000);
  window.correct(500, 0, 20, 30_000);
  expect(window.rates(30_000).tokens).toEqual({ limit: 100, remaining: 80, resetMs: 30_000 });
  window.correct(0, 0, 80, 50_000);
  expect(window.waitMs(1, 60_000)).toBe(0);
  expect(window.waitMs(21, 60_000)).toBe(50_000);
});

test("a clock that steps back opens no window and locks nobody out for longer", () => {
  const window = Object.assign(new MinuteWindow(), { requestsMax: 1 });
  window.count(0, 1_000_000);
  const after = Object.assign(MinuteWindow.of(window.slots, 400_000), { requestsMax: 1 });
  expect(after.waitMs(0, 400_000)).toBe(60_000);
});

test("a request's place is free after a minute at most, at any fraction of a millisecond", () => {
  for (let at = 100_000; at < 100_100; at += 1 / 7) {
    const window = new MinuteWindow();
    window.requestsMax = 1;
    window.count(0, at);
    expect([window.rates(at).requests?.resetMs, window.waitMs(0, at)]).toEqual([60_000, 60_000]);
  }
});
