// Handles signals: stop, and read the configuration again.
import type { Clock } from "../../core/clock.ts";

/** A terminal, npm and the launcher may each pass the same Ctrl-C on: within this time it is one signal. */
const sameSignalMs = 500;

/** Resolves at the first SIGTERM or SIGINT; a second one calls `atOnce`. */
export function firstStopSignal(clock: Clock, atOnce: () => void): Promise<void> {
  return new Promise((resolve) => {
    let first: number | null = null;
    const received = () => {
      const now = clock.monotonic();
      if (first === null) {
        first = now;
        resolve();
      } else if (now - first > sameSignalMs) atOnce();
    };
    process.on("SIGTERM", received);
    process.on("SIGINT", received);
  });
}

/** SIGHUP, from now on: without a handler it would end the process. One that comes before `follow` counts then. */
export class HangUps {
  #came = false;
  #tell = (): void => void (this.#came = true);

  constructor() {
    process.on("SIGHUP", () => this.#tell());
  }

  follow(tell: () => void): void {
    this.#tell = tell;
    if (this.#came) tell();
  }
}
