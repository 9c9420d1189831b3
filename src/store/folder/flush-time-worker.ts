// The Worker that measures how long the disk takes to make 4 KiB durable: a write and an fsync, repeated. This is how
// SQLite flushes a commit.
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { systemClock } from "../../core/clock.ts";
import { answerCalls, endWorker } from "../../core/workers.ts";

/** `measure`: `file`, which is there, is written and removed; the result is the milliseconds of each flush. */
export type FlushCall =
  Readonly<{ order: "measure"; file: string; samples: number; pauseMs: number }> | Readonly<{ order: "close" }>;

declare const self: Worker;

answerCalls<FlushCall>(self, (call) => (call.order === "measure" ? measure(call) : endWorker(self)));

async function measure({ file, samples, pauseMs }: Extract<FlushCall, { order: "measure" }>): Promise<number[]> {
  const descriptor = openSync(file, "r+"); // never made here: who stops early has removed it
  try {
    const page = new Uint8Array(4_096);
    const flushedMs: number[] = [];
    for (let sample = 0; sample < samples; sample += 1) {
      page.fill(sample);
      writeSync(descriptor, page, 0, page.length, 0);
      const from = systemClock.monotonic();
      fsyncSync(descriptor);
      flushedMs.push(systemClock.monotonic() - from);
      await Bun.sleep(pauseMs);
    }
    return flushedMs;
  } finally {
    closeSync(descriptor);
    rmSync(file, { force: true });
  }
}
