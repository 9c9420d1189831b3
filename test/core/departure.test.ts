// A departure is heard of as an AbortSignal's abort is.
import { describe, expect, test } from "bun:test";
import { Departure, signalOf } from "../../src/core/departure.ts";

describe("a departure", () => {
  test("is told once to each who listens then, in their order, and to nobody who stopped listening", () => {
    const gone = new Departure();
    const heard: string[] = [];
    const left = (): void => void heard.push("left");
    gone.addEventListener("abort", () => heard.push("first"));
    gone.addEventListener("abort", left);
    gone.addEventListener("abort", { handleEvent: () => void heard.push(`second, ${String(gone.aborted)}`) });
    gone.removeEventListener("abort", left);
    expect([gone.aborted, gone.reason]).toEqual([false, undefined]);
    gone.abort("reason");
    gone.abort("another");
    gone.addEventListener("abort", () => heard.push("late"));
    expect(heard).toEqual(["first", "second, true"]);
    expect([gone.aborted, gone.reason]).toEqual([true, "reason"]);
  });

  test("goes on to those who listen to its signal, also where that was made afterwards", () => {
    const gone = new Departure();
    const { signal } = gone;
    expect([signal.aborted, gone.signal === signal, signalOf(gone) === signal]).toEqual([false, true, true]);
    gone.abort("reason");
    expect([signal.aborted, signal.reason]).toEqual([true, "reason"]);
    const late = new Departure();
    late.abort("late");
    expect([late.signal.aborted, late.signal.reason]).toEqual([true, "late"]);
    const plain = AbortSignal.abort();
    expect(signalOf(plain)).toBe(plain);
  });

  test("may be listened to, and left, while it is told", () => {
    const gone = new Departure();
    let heard = 0;
    const listener = (): void => {
      heard++;
      gone.removeEventListener("abort", listener);
      gone.abort();
    };
    gone.addEventListener("abort", listener);
    gone.abort();
    expect(heard).toBe(1);
  });
});
