// The system's own faults at every boundary: the process is killed at its n-th write or flush, its writes and flushes
// fail, or flushes are slow. strace puts them in; the books are compared as after any crash.
import { describe, expect, test } from "bun:test";
import { missing } from "../fixtures/optional.ts";
import { canTrace } from "../fixtures/strace.ts";
import { crash } from "./rig.ts";

/** The first round is not under injection: it comes with a restart. */
const rounds = Math.max(2, Math.ceil(Number(process.env["TOLLGATE_CRASH_ROUNDS"] ?? 0) / 5));
const seed = Number(process.env["TOLLGATE_CRASH_SEED"] ?? crypto.getRandomValues(new Uint32Array(1))[0]);
const skipped = missing("strace", canTrace(), "apt-get install strace, and permission to trace", false);

/** SQLite as Bun has it flushes by fsync. The start's own look at the disk does the same 200 times. */
const flushes = "fsync";

type Injection = (below: (limit: number) => number) => readonly string[];
const into = (calls: string, what: string): readonly string[] => [
  "-e",
  `trace=${calls}`,
  "-e",
  `inject=${calls}:${what}`,
];

const faults: readonly (readonly [string, Injection])[] = [
  ["kills at a write", (below) => into("pwrite64", `signal=SIGKILL:when=${1 + below(200)}`)],
  ["kills at a flush", (below) => into(flushes, `signal=SIGKILL:when=${1 + below(60)}`)],
  ["a failing write", (below) => into("pwrite64", `error=EIO:when=${1 + below(200)}`)],
  ["a failing flush", (below) => into(flushes, `error=EIO:when=${1 + below(60)}`)],
  ["flushes of 100 ms", () => into(flushes, "delay_exit=100000")],
];

describe.skipIf(skipped)("after", () => {
  test.each(faults.map(([name, inject]) => ({ name, inject })))(
    `$name, the books agree with what the clients saw (TOLLGATE_CRASH_SEED=${seed})`,
    async ({ name, inject }) => {
      const report = await crash({ rounds, seed, clients: 12, accounts: 4, inject });
      console.log(`${name}: ${JSON.stringify({ ...report, ways: undefined, wrong: report.wrong.length })}`);
      expect(report.wrong).toEqual([]);
      expect(report.complete).toBeGreaterThan(0);
    },
    120_000 + rounds * 30_000,
  );
});
