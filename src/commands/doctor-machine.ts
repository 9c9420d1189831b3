// Checks what the machine allows a server: open files, and whether its clock is right.
import { readFileSync, statSync } from "node:fs";
import type { Ms } from "../core/types.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

/** A stream takes two files, the client's connection and the node's; the server itself takes about as many as this. */
const filesOfServer = 100;
const streamsMin = 1_000;
/** Clocks of two machines, or of a machine and its disk, may differ by this much. */
const clockToleranceMs = 60_000;

export function fileLimitFinding(limitsFile = "/proc/self/limits"): Finding {
  const what = "open files";
  let limits: string;
  try {
    limits = readFileSync(limitsFile, "utf8");
  } catch {
    return ok(what, "this system does not say how many there may be");
  }
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1] ?? "unlimited";
  if (soft === "unlimited") return ok(what, "unlimited");
  const streams = Math.max(0, Math.floor((Number(soft) - filesOfServer) / 2));
  const told = `${soft}, for about ${streams} streams at once`;
  return streams < streamsMin
    ? warning(what, `${told}: raise ulimit -n, or LimitNOFILE of the service`)
    : ok(what, told);
}

/** A clock that is behind would grant an allowance twice; the ledger prevents that, but windows and days are wrong. */
export function clockFinding(folder: string, newestLineAt: Ms | null, now: Ms): Finding {
  const what = "clock";
  const told = `${new Date(now).toISOString()} UTC`;
  if (newestLineAt !== null && newestLineAt > now + clockToleranceMs) {
    return problem(what, `${told}, but the journal's newest line is of ${new Date(newestLineAt).toISOString()}`);
  }
  const programMadeAt = statSync(process.execPath, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (programMadeAt > now + clockToleranceMs) return warning(what, `${told}, but this program is newer than that`);
  const folderAt = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? now;
  if (folderAt > now + clockToleranceMs)
    return warning(what, `${told}, but the data folder was written later than that`);
  return ok(what, told);
}
