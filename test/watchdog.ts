// Ends a process of tests that stands still: a loop that never gives way stops the limits of time of its own tests, too.
// `run.ts` loads this before the tests of each process; the run then names the file as failed and goes on with the others.
import { beforeEach } from "bun:test";
import { writeSync } from "node:fs";

/** Above what a test may take. */
const stillMaxMs = 240_000;
const lookMs = Number(process.env["TOLLGATE_WATCHDOG_MS"] ?? stillMaxMs) / 48;
const [beats, lengthOfFile, nameAt, nameBytesMax] = [0, 1, 8, 1024];

if (Bun.isMainThread) {
  const shared = new SharedArrayBuffer(nameAt + nameBytesMax);
  const numbers = new Int32Array(shared, 0, 2);
  const name = new Uint8Array(shared, nameAt);
  let file = "";
  const beat = (): void => {
    if (Bun.main !== file) {
      file = Bun.main;
      numbers[lengthOfFile] = new TextEncoder().encodeInto(file, name).written;
    }
    Atomics.add(numbers, beats, 1);
  };
  beforeEach(beat); // so that it knows the file of the test that never gives way
  setInterval(beat, lookMs / 4).unref();
  const thread = new Worker(import.meta.url, { name: "watchdog" });
  thread.unref();
  thread.postMessage(shared);
} else {
  // Looks are counted, not time: one in which the whole machine stood still counts once.
  addEventListener("message", ({ data }: MessageEvent<SharedArrayBuffer>) => {
    const numbers = new Int32Array(data, 0, 2);
    let last = -1;
    let stillLooks = 0;
    for (;;) {
      const now = Atomics.load(numbers, beats);
      stillLooks = now === last ? stillLooks + 1 : 0;
      last = now;
      if (stillLooks >= 48) break;
      Bun.sleepSync(lookMs);
    }
    const file = new TextDecoder().decode(new Uint8Array(data, nameAt, numbers[lengthOfFile]).slice());
    writeSync(2, `\nstopped: for ${(48 * lookMs) / 1000} s nothing came to its turn in ${file}\n`);
    process.kill(process.pid, "SIGKILL");
  });
}
