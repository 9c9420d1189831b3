// The only place that reads time. Deciders take `now` as an argument; this seam is handed to those who must ask.
import type { Ms } from "./types.ts";

export interface Clock {
  /** Wall clock: allowance days and windows. May step back. */
  wall(): Ms;
  /** Never steps back: durations and time limits. */
  monotonic(): Ms;
}

export const systemClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
};
