// The clock of what talks to PostgreSQL, and what waits by it: tests have one that goes as they say.
import { type Clock, systemClock } from "../../core/clock.ts";
import type { Ms } from "../../core/types.ts";
import { StatementError } from "./connection.ts";
import { callTimeoutMs } from "./limits.ts";

export interface Pace extends Clock {
  /** Calls it later, once; gives what takes that back. */
  after(ms: Ms, run: () => void): () => void;
  /** At the end of this turn of the event loop, so that all that ends in it shares a batch. */
  soon(run: () => void): void;
}

export const systemPace: Pace = {
  ...systemClock,
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  soon: (run) => void setImmediate(run),
};

/** A network that falls silent never rejects. `late`: what comes after the time is over. */
export function limited<Value>(
  pace: Pace,
  work: Promise<Value>,
  late: (value: Value) => void,
  limitMs: Ms = callTimeoutMs,
): Promise<Value> {
  const { promise, resolve, reject } = Promise.withResolvers<Value>();
  let isOver = false;
  const cancel = pace.after(limitMs, () => {
    isOver = true;
    // What is left of a longer time limit says nothing of how long it took.
    const waited = limitMs < callTimeoutMs ? "in time" : `for ${Math.round(limitMs)} ms`;
    reject(new StatementError(null, `the database has not answered ${waited}`));
  });
  work.then(
    (value) => {
      cancel();
      if (isOver) late(value);
      else resolve(value);
    },
    (error: unknown) => {
      cancel();
      reject(error instanceof Error ? error : new Error(String(error)));
    },
  );
  return promise;
}
