// Frees memory that starting took and serving does not need: parsed sources, code that ran once, and temporary data.

/**
 * How often, after the start and while requests are open, to look for a moment to give back what starting left in
 * memory.
 */
const startLeftoversMs = 250;
const startLeftoversLooks = 8;

/**
 * Gives it back to the system, once, after the start: 3 to 5 MB. That stops the process for some tens of milliseconds and
 * drops compiled code, so it waits until `isIdle`. A gateway that was busy at each of the looks keeps it all: its code is
 * hot by then, and compiling it again took a second of CPU in the middle of the load. Resolves with whether it was done.
 */
export function dropStartLeftovers(isIdle: () => boolean, looks = startLeftoversLooks): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let looked = 0;
  const timer = setInterval(() => {
    looked += 1;
    const idle = isIdle();
    if (!idle && looked < looks) return;
    clearInterval(timer);
    if (idle) Bun.shrink();
    resolve(idle);
  }, startLeftoversMs);
  timer.unref();
  return promise;
}
