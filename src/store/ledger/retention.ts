// Decides when old lines of the journal are folded: in the writer's Worker, a slice at a time between commits, resting
// 20 times as long as the slice took. A commit that arrives meanwhile waits for one slice of 250 lines at most.
import type { Clock } from "../../core/clock.ts";
import { foldFirstMs, foldIntervalMs, foldSliceLines } from "../limits.ts";
import { dayMs } from "../../core/units.ts";
import type { Ms } from "../../core/types.ts";
import { mayRetry, type Writer } from "./writer.ts";

const restsPerSlice = 20;
const restMinMs = 20;

export type RetentionParts = Readonly<{
  writer: Pick<Writer, "fold" | "checkpoint">;
  clock: Clock;
  /** Lines are kept for this many whole days after their own. */
  keepDays: number;
  busy: () => boolean;
  /** Takes what must not be retried. */
  onFatal: (thrown: unknown) => void;
  firstMs?: Ms;
}>;

export class Retention {
  readonly #parts: RetentionParts;
  #timer: Timer;

  constructor(parts: RetentionParts) {
    this.#parts = parts;
    this.#timer = this.#after(parts.firstMs ?? foldFirstMs);
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #after(delayMs: Ms): Timer {
    return setTimeout(() => {
      this.#timer = this.#after(this.#step());
    }, delayMs);
  }

  /** Folds a slice, unless it would be in the way; gives the wait until the next. */
  #step(): Ms {
    const { writer, clock, keepDays, busy, onFatal } = this.#parts;
    if (busy()) return restMinMs;
    const from = clock.monotonic();
    try {
      const more = writer.fold(foldedBefore(clock.wall(), keepDays), foldSliceLines);
      if (more) return Math.max(restMinMs, (clock.monotonic() - from) * restsPerSlice);
      writer.checkpoint();
    } catch (thrown) {
      if (!mayRetry(thrown)) onFatal(thrown);
    }
    return foldIntervalMs;
  }
}

/** Whole UTC days are folded, so that a day is either there line by line or as its sums. */
export function foldedBefore(now: Ms, keepDays: number): Ms {
  return (Math.floor(now / dayMs) - keepDays) * dayMs;
}
