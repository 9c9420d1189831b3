// Whether the data folder's disk can be believed: the promise that a charge survives a power cut rests on its flushes.
import { join } from "node:path";
import { flushMedianMinUs, flushSamplePauseMs, flushSamples, flushSlowestPercentMaxMs } from "../limits.ts";
import type { Log } from "../log.ts";
import type { Ms } from "../types.ts";
import type { FlushOrder, FlushReport } from "./flush-time-worker.ts";

// A compiled binary keeps its Workers' paths below src/, as with the journal's writer.
const workerPath = import.meta.url.includes("/$bunfs/") ? "./store/flush-time-worker.ts" : "./flush-time-worker.ts";

/** Measures in the background for a few seconds and logs a warning where the disk is too quick or too slow. */
export function watchFlushTime(dataFolder: string, log: Log): void {
  const worker = new Worker(new URL(workerPath, import.meta.url).href);
  worker.unref();
  worker.onmessage = ({ data }: MessageEvent<FlushReport>) => {
    const warning =
      "failed" in data ? `flushes of the disk could not be measured: ${data.failed}` : flushWarning(data.flushedMs);
    if (warning !== null) log("warn", warning, { folder: dataFolder });
  };
  worker.onerror = ({ message }) => log("warn", `flushes of the disk could not be measured: ${message}`);
  const file = join(dataFolder, "tollgate.flush-test");
  worker.postMessage({ file, samples: flushSamples, pauseMs: flushSamplePauseMs } satisfies FlushOrder);
}

/** What is wrong with a disk of these flush times, in one line, or null. */
export function flushWarning(flushedMs: readonly Ms[]): string | null {
  const sorted = flushedMs.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const slowest = sorted[Math.floor(sorted.length * 0.99)] ?? 0;
  if (median * 1000 < flushMedianMinUs) {
    return (
      `half of the disk's flushes take less than ${flushMedianMinUs} us: it probably says that data is safe ` +
      "before it is, so a power cut may lose charges"
    );
  }
  if (slowest > flushSlowestPercentMaxMs) {
    return `one in 100 of the disk's flushes takes ${Math.round(slowest)} ms or more: the ends of replies wait for them`;
  }
  return null;
}
