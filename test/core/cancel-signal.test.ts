// A CancelSignal is observed like an AbortSignal.
import { describe, expect, test } from "bun:test";
import { CancelSignal, signalOf } from "../../src/core/cancel-signal.ts";

describe("a departure", () => {
  test("is told once to each who listens then, in their order, and to nobody who stopped listening", () => {
    const cancelSignal = new CancelSignal();
    const heard: string[] = [];
    const left = (): void => void heard.push("left");
    cancelSignal.addEventListener("abort", () => heard.push("first"));
    cancelSignal.addEventListener("abort", left);
    cancelSignal.addEventListener("abort", {
      handleEvent: () => void heard.push(`second, ${String(cancelSignal.aborted)}`),
    });
    cancelSignal.removeEventListener("abort", left);
    expect([cancelSignal.aborted, cancelSignal.reason]).toEqual([false, undefined]);
    cancelSignal.abort("reason");
    cancelSignal.abort("another");
    cancelSignal.addEventListener("abort", () => heard.push("late"));
    expect(heard).toEqual(["first", "second, true"]);
    expect([cancelSignal.aborted, cancelSignal.reason]).toEqual([true, "reason"]);
  });

  test("goes on to those who listen to its signal, also where that was made afterwards", () => {
    const cancelSignal = new CancelSignal();
    const { signal } = cancelSignal;
    expect([signal.aborted, cancelSignal.signal === signal, signalOf(cancelSignal) === signal]).toEqual([
      false,
      true,
      true,
    ]);
    cancelSignal.abort("reason");
    expect([signal.aborted, signal.reason]).toEqual([true, "reason"]);
    const late = new CancelSignal();
    late.abort("late");
    expect([late.signal.aborted, late.signal.reason]).toEqual([true, "late"]);
    const plain = AbortSignal.abort();
    expect(signalOf(plain)).toBe(plain);
  });

  test("may be listened to, and left, while it is told", () => {
    const cancelSignal = new CancelSignal();
    let heard = 0;
    const listener = (): void => {
      heard++;
      cancelSignal.removeEventListener("abort", listener);
      cancelSignal.abort();
    };
    cancelSignal.addEventListener("abort", listener);
    cancelSignal.abort();
    expect(heard).toBe(1);
  });
});
