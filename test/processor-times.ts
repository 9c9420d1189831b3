// Writes down what each test file took of the processors, itself and with the processes that it started: `run.ts` loads
// this before the tests of each process where TOLLGATE_TEST_TIMES is set. Time on the clock says little beside others.
import { afterAll } from "bun:test";
import { appendFileSync, readFileSync } from "node:fs";
import { relative } from "node:path";

/** The variable that names the file to write to. */
export const timesFileVariable = "TOLLGATE_TEST_TIMES_FILE";

/** Milliseconds of processors that a file took until its last hook had ended; the imports are its own. */
type FileTime = Readonly<{ file: string; own: number; children: number; clock: number }>;

const clockTicksPerSecond = 100; // of Linux, on every machine that Bun runs on

/** Of the processes that were started and have ended, and of those that they had waited for. */
function childrenMs(): number {
  const [, , , , , , , , , , , , , user = "0", system = "0"] = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return ((Number(user) + Number(system)) * 1000) / clockTicksPerSecond;
}

const now = (): readonly [own: number, children: number, clock: number] => {
  const { user, system } = process.cpuUsage();
  return [(user + system) / 1000, childrenMs(), performance.now()];
};

const timesFile = process.env[timesFileVariable];
if (timesFile !== undefined && Bun.isMainThread) {
  let [own, children, clock] = [0, 0, 0];
  afterAll(() => {
    const [ownNow, childrenNow, clockNow] = now();
    const time: FileTime = {
      file: relative(process.cwd(), Bun.main),
      own: ownNow - own,
      children: childrenNow - children,
      clock: clockNow - clock,
    };
    [own, children, clock] = [ownNow, childrenNow, clockNow];
    appendFileSync(timesFile, `${JSON.stringify(time)}\n`);
  });
}

/** The dearest files first, and their sum. */
export function tableOfTimes(text: string): string {
  const seconds = (ms: number): string => (ms / 1000).toFixed(1).padStart(9);
  const times = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as FileTime)
    .sort((a, b) => b.own + b.children - a.own - a.children);
  const sum = { file: `${times.length} files`, own: 0, children: 0, clock: 0 };
  for (const { own, children, clock } of times) {
    sum.own += own;
    sum.children += children;
    sum.clock += clock;
  }
  const rows = [sum, ...times].map(
    ({ file, own, children, clock }) =>
      `${seconds(own + children)}${seconds(own)}${seconds(children)}${seconds(clock)}  ${file}`,
  );
  return ["Seconds of the processors, of which the tests' own and their children's; on the clock", ...rows].join("\n");
}
