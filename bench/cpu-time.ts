// CPU time of processes, all threads included, from /proc (Linux).
import { readdirSync, readFileSync } from "node:fs";

const nanosecondsPerMicrosecond = 1_000;
/** USER_HZ is 100 on every Linux that Bun runs on. */
const microsecondsPerTick = 10_000;

/** CPU time of one process at one moment. */
type Sample = Readonly<{
  /** utime + stime of /proc/<pid>/stat: ended threads included, but in steps of 10 ms. */
  ticks: number;
  /** /proc/<pid>/task/<tid>/schedstat: nanoseconds, living threads only; null where the kernel lacks it. */
  threads: ReadonlyMap<string, number> | null;
}>;

export type CpuTimer = Readonly<{
  /** Microseconds of CPU time since the timer was started. */
  elapsedMicroseconds(): number;
}>;

/** Starts to measure the CPU time of the processes together. */
export function startCpuTimer(pids: readonly number[]): CpuTimer {
  const before = pids.map(sampleOf);
  return {
    elapsedMicroseconds: () =>
      pids.reduce((sum, pid, index) => sum + microsecondsBetween(before[index]!, sampleOf(pid)), 0),
  };
}

/** The fine clock where it is complete; the coarse one when a thread ended in between and took its count along. */
function microsecondsBetween(before: Sample, after: Sample): number {
  const coarse = (after.ticks - before.ticks) * microsecondsPerTick;
  if (before.threads === null || after.threads === null) return coarse;
  for (const thread of before.threads.keys()) if (!after.threads.has(thread)) return coarse;
  let nanoseconds = 0;
  for (const [thread, total] of after.threads) nanoseconds += total - (before.threads.get(thread) ?? 0);
  return nanoseconds / nanosecondsPerMicrosecond;
}

function sampleOf(pid: number): Sample {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The command name stands in parentheses and may hold spaces; the fields after it begin with number 3.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { ticks: Number(fields[14 - 3]) + Number(fields[15 - 3]), threads: threadsOf(pid) };
}

function threadsOf(pid: number): ReadonlyMap<string, number> | null {
  const threads = new Map<string, number>();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const text = readIfThere(`/proc/${pid}/task/${thread}/schedstat`);
    if (text === null) continue; // the thread ended between the two reads
    const nanoseconds = Number(text.split(" ")[0]);
    if (!Number.isFinite(nanoseconds)) return null;
    threads.set(thread, nanoseconds);
  }
  return threads.size === 0 ? null : threads;
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "latin1");
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ESRCH") return null;
    throw thrown;
  }
}

/** The process and the children that it forked. */
export function processFamily(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").trim();
  return [pid, ...(children === "" ? [] : children.split(" ").map(Number))];
}
