// The Worker that measures how long the disk takes to make 4 KiB durable: a write and an fsync, which is how
// SQLite flushes a commit, again and again.
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { systemClock } from "../../core/clock.ts";
import { messageOf } from "./data-folder.ts";

/** To the Worker. `file` is written and removed. */
export type FlushOrder = Readonly<{ file: string; samples: number; pauseMs: number }>;
/** From the Worker: milliseconds of each flush, or why it could not be measured. */
export type FlushReport = Readonly<{ flushedMs: readonly number[] }> | Readonly<{ failed: string }>;

declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<FlushOrder>) => {
  self.onmessage = null; // a Worker that listens to nothing ends
  measure(data).then(
    (flushedMs) => self.postMessage({ flushedMs } satisfies FlushReport),
    (thrown) => self.postMessage({ failed: messageOf(thrown) } satisfies FlushReport),
  );
};

async function measure({ file, samples, pauseMs }: FlushOrder): Promise<number[]> {
  const descriptor = openSync(file, "w", 0o600);
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
