// The only module that reads the time. Deciders take `now` as an argument; other code is given this clock.
import type { Moment, Ms } from "./types.ts";

export interface Clock {
  /** Wall clock, for periods: allowance days and coder windows. May step. */
  wall(): Ms;
  /** Never steps back, for durations and time limits. */
  monotonic(): Ms;
}

export const momentOf = (clock: Clock): Moment => ({ wall: clock.wall(), monotonic: clock.monotonic() });

export const systemClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
};
