// Resident memory of processes from /proc (Linux).
import { readFileSync } from "node:fs";

/** Kilobytes of VmRSS, summed over the processes; pages that they share count for each. */
export function residentKilobytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + kilobytesOf(pid, "VmRSS"), 0);
}

/** The most that was ever resident, in kilobytes. */
export function peakKilobytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + kilobytesOf(pid, "VmHWM"), 0);
}

function kilobytesOf(pid: number, field: "VmRSS" | "VmHWM"): number {
  const match = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(readFileSync(`/proc/${pid}/status`, "latin1"));
  if (match === null) throw new Error(`/proc/${pid}/status has no ${field}`);
  return Number(match[1]);
}
