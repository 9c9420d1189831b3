// A server whose start fails, as a process of its own: composes it, lets the phase that it was told of fail, and writes
// what is open then as one line of JSON. It ends by itself, unless something was left that keeps a process alive. Usage:
// failing-start.ts PHASE FLAGS (JSON)
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { ConfigFlags } from "../../src/config/config.ts";
import { compose } from "../../src/server/compose.ts";

const [failing, flags = "{}", ...opened] = process.argv.slice(2);

/** Files, sockets and pipes of this process; none of the kinds that the run time opens for itself. */
const open = (): string[] =>
  readdirSync("/proc/self/fd").flatMap((descriptor) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${descriptor}`);
      return /^anon_inode|^\/proc\//.test(target) ? [] : [target];
    } catch {
      return []; // the listing's own
    }
  });
const threads = (): string[] =>
  readdirSync("/proc/self/task").flatMap((task) => {
    try {
      return [readFileSync(`/proc/self/task/${task}/comm`, "utf8").trim()];
    } catch {
      return []; // it ended meanwhile
    }
  });
/** Only ends what would never come. */
const waitMaxMs = 60_000;
/** Those of the product: a thread is in the list for a moment longer than it can say that it has ended. */
const ownThreads = (): string[] =>
  threads().filter((name) => /journal|relay|Worker$/.test(name) && name !== "JITWorker");

const before = open();
let whileOpen: readonly string[] = [];
let failed = "";
try {
  await compose({
    flags: JSON.parse(flags) as ConfigFlags,
    environment: process.env,
    onFirstLook() {},
    onFatal(error) {
      throw error;
    },
    reached(phase) {
      if (phase !== failing) return;
      // Without giving way: the start goes no further, and what threads of their own open (the search's index) comes.
      const deadline = performance.now() + waitMaxMs;
      do {
        whileOpen = [...open(), ...threads()];
        if (opened.every((what) => whileOpen.some((each) => each.includes(what)))) break;
        Bun.sleepSync(5);
      } while (performance.now() < deadline);
      throw new Error(`${phase} failed`);
    },
  });
} catch (error) {
  failed = (error as Error).message;
}
const deadline = performance.now() + waitMaxMs;
while (ownThreads().length > 0 && performance.now() < deadline) await Bun.sleep(5);
const left = open().filter((target) => !before.includes(target));
console.log(JSON.stringify({ failed, whileOpen, left, threads: ownThreads() }));
