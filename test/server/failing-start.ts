// A server whose start fails, as a process of its own: composes it, lets the phase that it was told of fail, and writes
// what is open then as one line of JSON. It ends by itself, unless something was left that keeps a process alive. Usage:
// failing-start.ts PHASE FLAGS (JSON)
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { ConfigFlags } from "../../src/config/config.ts";
import { compose } from "../../src/server/compose.ts";

const [failing, flags = "{}"] = process.argv.slice(2);

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
  readdirSync("/proc/self/task").map((task) => readFileSync(`/proc/self/task/${task}/comm`, "utf8").trim());

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
      whileOpen = [...open(), ...threads()];
      throw new Error(`${phase} failed`);
    },
  });
} catch (error) {
  failed = (error as Error).message;
}
const left = open().filter((target) => !before.includes(target));
console.log(JSON.stringify({ failed, whileOpen, left, threads: threads() }));
