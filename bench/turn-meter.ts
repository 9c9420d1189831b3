// Loaded before a gateway that is measured: how much of its CPU time the main thread spent in one turn of its event loop.
// Unlike a gap between tokens, that does not depend on what else the machine does. At SIGUSR2 the longest turn since the
// last time is written to the file that TOLLGATE_BENCH_TURNS names.
import { closeSync, openSync, readSync, writeFileSync } from "node:fs";

const schedstat = openSync(`/proc/${process.pid}/task/${process.pid}/schedstat`, "r");
const text = Buffer.alloc(64);
const cpuMs = (): number =>
  Number(text.toString("latin1", 0, readSync(schedstat, text, 0, text.length, 0)).split(" ")[0]) / 1e6;
const file = process.env["TOLLGATE_BENCH_TURNS"]!;

let last = cpuMs();
let longest = 0;
const tick = setInterval(() => {
  const now = cpuMs();
  longest = Math.max(longest, now - last);
  last = now;
}, 1);
tick.unref();
process.on("SIGUSR2", () => {
  writeFileSync(file, longest.toFixed(2));
  longest = 0;
});
process.on("exit", () => closeSync(schedstat));
