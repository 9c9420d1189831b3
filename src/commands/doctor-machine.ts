// The part of `tollgate doctor` about the machine: open files and the clock.
import { readFileSync, statSync } from "node:fs";
import type { Ms } from "../core/types.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

/** A stream takes two: the client's connection and the node's. The server itself takes about this many. */
const filesOfServer = 100;
const streamsMin = 1_000;
/** Allowed difference between two clocks. */
const clockToleranceMs = 60_000;

export function fileLimitFinding(limitsFile = "/proc/self/limits"): Finding {
  const what = "open files";
  let limits: string;
  try {
    limits = readFileSync(limitsFile, "utf8");
  } catch {
    return ok(what, "this system does not report its limit");
  }
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1] ?? "unlimited";
  if (soft === "unlimited") return ok(what, "unlimited");
  const streams = Math.max(0, Math.floor((Number(soft) - filesOfServer) / 2));
  const facts = `${soft}, for about ${streams} streams at once`;
  return streams < streamsMin
    ? warning(what, `${facts}: raise ulimit -n, or LimitNOFILE of the service`)
    : ok(what, facts);
}

/** A clock that is behind would grant an allowance twice; the ledger prevents it, but windows and days would be wrong. */
export function clockFinding(folder: string, newestLineAt: Ms | null, now: Ms): Finding {
  const what = "clock";
  const facts = `${new Date(now).toISOString()} UTC`;
  if (newestLineAt !== null && newestLineAt > now + clockToleranceMs) {
    return problem(what, `${facts}, but the journal's newest line is of ${new Date(newestLineAt).toISOString()}`);
  }
  const programMadeAt = statSync(process.execPath, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (programMadeAt > now + clockToleranceMs) return warning(what, `${facts}, but this program is newer than that`);
  const folderAt = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? now;
  if (folderAt > now + clockToleranceMs)
    return warning(what, `${facts}, but the data folder was written later than that`);
  return ok(what, facts);
}
