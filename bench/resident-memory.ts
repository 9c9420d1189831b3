// Resident memory of processes from /proc (Linux).
import { readFileSync } from "node:fs";

/** Kilobytes of VmRSS, summed over the processes; pages that they share count for each. */
export function residentKilobytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + residentKilobytesOf(pid), 0);
}

function residentKilobytesOf(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"));
  if (match === null) throw new Error(`/proc/${pid}/status has no VmRSS`);
  return Number(match[1]);
}
