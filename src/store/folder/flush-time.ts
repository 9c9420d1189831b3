// Checks whether the data folder's disk really flushes: the promise that a charge survives a power cut depends on it.
import { closeSync, openSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../core/log.ts";
import type { Ms } from "../../core/types.ts";
import type { FlushCall } from "./flush-time-worker.ts";
import { startWorker, WorkerClient } from "../../core/workers.ts";

const flushSamples = 200;
/** So that the commits of the first requests find the disk free. */
const flushSamplePauseMs = 10;
/** No disk that keeps its promise is faster: one that is has probably not written anything yet. */
const flushMedianMinUs = 20;
const flushSlowestPercentMaxMs = 50;

/** How long flushes took: half of them at most the median, 99 in 100 at most the slowest percent. */
export type FlushTimes = Readonly<{ medianMs: Ms; slowestPercentMs: Ms }>;

/** Of the file that is written; the id of the process follows, as a server and a command may measure at the same time. */
const fileNameStart = "tollgate.flush-test-";

const fileIn = (dataFolder: string): string => join(dataFolder, `${fileNameStart}${process.pid}`);

/**
 * Measures in the background for a few seconds and logs a warning where the disk is too quick or too slow. Disposing it
 * before then leaves no file behind; what a server that was killed left goes now.
 */
export function watchFlushTime(dataFolder: string, log: Log): Disposable {
  const left = readdirSync(dataFolder).filter((name) => name.startsWith(fileNameStart));
  for (const name of left) rmSync(join(dataFolder, name), { force: true });
  const remove = (): void => rmSync(fileIn(dataFolder), { force: true });
  process.once("exit", remove); // a second signal ends the process without disposing anything
  let isStopped = false;
  measureFlushTime(dataFolder).then(
    (flushedMs) => {
      const warning = flushWarning(flushedMs);
      if (warning !== null) log("warn", warning, { folder: dataFolder });
    },
    (error: Error) => {
      if (isStopped) return;
      log("warn", `flushes of the disk could not be measured: ${error.message}`, { folder: dataFolder });
    },
  );
  return {
    [Symbol.dispose]() {
      isStopped = true;
      remove();
    },
  };
}

/** The time of each of 200 flushes; takes a few seconds. Rejects where the folder cannot be written. */
export async function measureFlushTime(dataFolder: string): Promise<readonly Ms[]> {
  const worker = new WorkerClient<FlushCall>({
    start: () => {
      const started = startWorker("store/folder/flush-time-worker.ts");
      started.unref(); // a server that stops does not wait for it
      return started;
    },
    close: { order: "close" },
  });
  const file = fileIn(dataFolder);
  try {
    closeSync(openSync(file, "w", 0o600));
    return await worker.call({ order: "measure", file, samples: flushSamples, pauseMs: flushSamplePauseMs });
  } finally {
    await worker.end();
  }
}

export function flushTimesOf(flushedMs: readonly Ms[]): FlushTimes {
  const sorted = flushedMs.toSorted((a, b) => a - b);
  return {
    medianMs: sorted[Math.floor(sorted.length / 2)] ?? 0,
    slowestPercentMs: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
  };
}

/** What is wrong with a disk of these flush times, in one line, or null. */
export function flushWarning(flushedMs: readonly Ms[]): string | null {
  const { medianMs, slowestPercentMs } = flushTimesOf(flushedMs);
  if (medianMs * 1000 < flushMedianMinUs) {
    return (
      `half of the disk's flushes take less than ${flushMedianMinUs} us: it probably says that data is safe ` +
      "before it is, so a power cut may lose charges"
    );
  }
  if (slowestPercentMs > flushSlowestPercentMaxMs) {
    const slowest = Math.round(slowestPercentMs);
    return `one in 100 of the disk's flushes takes ${slowest} ms or more: the ends of replies wait for them`;
  }
  return null;
}
