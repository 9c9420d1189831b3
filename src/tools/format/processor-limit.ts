// Stops work that takes too much processor time. A script that the wall clock stopped on a busy machine starts again; a
// native function (such as a regular expression) runs to its end.
import { Script } from "node:vm";
import type { Ms } from "../../core/types.ts";

const timedOut = "ERR_SCRIPT_EXECUTION_TIMEOUT";
const workName = "workWithinLimit";
const script = new Script(`${workName}()`);

/** The result, or null after `wallMs` with `limitMs` of processor time used. `work` may be started several times. */
export function withinProcessorTime<Result>(limitMs: Ms, wallMs: Ms, work: () => Result): Result | null {
  Object.assign(globalThis, { [workName]: work });
  for (let timeout = wallMs; ; timeout *= 2) {
    const before = process.threadCpuUsage();
    try {
      return script.runInThisContext({ timeout }) as Result;
    } catch (thrown) {
      if ((thrown as { code?: string }).code !== timedOut) throw thrown;
      if (usedSince(before) >= limitMs) return null;
    }
  }
}

export function usedSince(before: NodeJS.CpuUsage): Ms {
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
