// The only module that reads the time. Deciders take `now` as an argument; whoever must ask is handed this clock.
import type { Moment, Ms } from "./types.ts";

export interface Clock {
  /** Wall clock: periods, which are allowance days and coder windows. May step. */
  wall(): Ms;
  /** Never steps back: durations and time limits. */
  monotonic(): Ms;
}

export const momentOf = (clock: Clock): Moment => ({ wall: clock.wall(), monotonic: clock.monotonic() });

export const systemClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
};
