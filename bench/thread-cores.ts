// Gives each thread of a process a core of its own that is slower than a real one: a Linux control group for each
// thread, with a quota of CPU time (cgroups version 1, whose groups may hold single threads; needs root). So a machine of
// two cores shows what one of many cores would do, while most of its time is left to the load.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";

const root = "/sys/fs/cgroup/cpu";
/** Short, so that a thread that used up its quota waits for a few milliseconds at most; the kernel gives no quota below 1 ms. */
const periodMinUs = 5_000;
const quotaMinUs = 1_000;
/** Ten times the usual weight: what else the machine does must not take a share away. */
const weight = 10_240;

/** Why threads cannot be given slow cores here, or null. */
export function threadCoresMissing(): string | null {
  if (!existsSync(`${root}/cpu.cfs_quota_us`) && !existsSync(`${root}/cpu.shares`)) {
    return "no control groups of version 1 for CPU time";
  }
  try {
    makeGroup("tollgate-bench-probe");
    rmdirSync(`${root}/tollgate-bench-probe`);
    return null;
  } catch (thrown) {
    return `control groups cannot be made: ${(thrown as Error).message}`;
  }
}

/**
 * Every thread that the process has now gets `share` (0..1) of a core; threads that it starts later share their parent's.
 * What it returns takes the groups away, after the end of the process.
 */
export function giveThreadsCores(pid: number, share: number): () => void {
  const threads = readdirSync(`/proc/${pid}/task`);
  const periodUs = Math.max(periodMinUs, Math.ceil(quotaMinUs / share));
  for (const thread of threads) {
    const group = `tollgate-bench-${thread}`;
    makeGroup(group);
    write(group, "cpu.cfs_period_us", periodUs);
    write(group, "cpu.cfs_quota_us", Math.round(periodUs * share));
    write(group, "cpu.shares", weight);
    write(group, "tasks", Number(thread));
  }
  return () => {
    for (const thread of threads) rmdirSync(`${root}/tollgate-bench-${thread}`);
  };
}

/** Lets the load go before everything else on the machine, without a quota. */
export function preferLoad(pids: readonly number[]): () => void {
  const group = `tollgate-bench-load-${process.pid}`;
  makeGroup(group);
  write(group, "cpu.shares", weight);
  for (const pid of pids) write(group, "cgroup.procs", pid);
  return () => {
    for (const task of readFileSync(`${root}/${group}/tasks`, "latin1").trim().split("\n")) {
      if (task !== "") writeFileSync(`${root}/tasks`, task);
    }
    rmdirSync(`${root}/${group}`);
  };
}

const makeGroup = (group: string): void => mkdirSync(`${root}/${group}`);

const write = (group: string, file: string, value: number): void =>
  writeFileSync(`${root}/${group}/${file}`, `${value}`);
