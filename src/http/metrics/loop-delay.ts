// Measures five times a second how late the event loop is: every stream is as late as the loop.
import type { Clock } from "../../core/clock.ts";
import type { Ms } from "../../core/types.ts";

const intervalMs = 200;

export class LoopDelay {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #tell: (delayMs: Ms) => void;
  #timer: Timer;

  constructor(clock: Pick<Clock, "monotonic">, tell: (delayMs: Ms) => void) {
    this.#clock = clock;
    this.#tell = tell;
    this.#timer = this.#look();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #look(): Timer {
    const due = this.#clock.monotonic() + intervalMs;
    const timer = setTimeout(() => {
      this.#tell(Math.max(0, this.#clock.monotonic() - due));
      this.#timer = this.#look();
    }, intervalMs);
    timer.unref();
    return timer;
  }
}
