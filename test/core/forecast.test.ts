// What a request in line can expect where only its place is known.
import { expect, test } from "bun:test";
import { outlookOf } from "../../src/core/forecast.ts";

test("the time follows from how far it has come", () => {
  let [position, now] = [8 as number | null, 1_000];
  const outlook = outlookOf(
    () => position,
    () => now,
  );
  expect(outlook()).toEqual({ position: 8, firstTokenMs: null });
  [position, now] = [6, 5_000];
  expect(outlook()).toEqual({ position: 6, firstTokenMs: 12_000 });
  position = null;
  expect(outlook()).toBeNull();
});
