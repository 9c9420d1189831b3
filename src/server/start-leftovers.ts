// Frees memory that starting took and serving does not need: parsed sources, code that ran once, and temporary data.
import { startLeftoversMs } from "../core/limits.ts";

/**
 * Gives it back to the system, once, after the start: 3 to 5 MB. That stops the process for some tens of milliseconds, so
 * it waits until `isIdle`, and resolves then. What is needed of the code again is compiled again when it runs, so that
 * this comes before the code is warmed up.
 */
export function dropStartLeftovers(isIdle: () => boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setInterval(() => {
    if (!isIdle()) return;
    clearInterval(timer);
    Bun.shrink();
    resolve();
  }, startLeftoversMs);
  timer.unref();
  return promise;
}
