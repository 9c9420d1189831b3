// Time that goes from event to event: everything that happens in a simulation of several processes is in one order.
import { drainMicrotasks } from "bun:jsc";
import type { Pace } from "../../../src/store/postgres/pace.ts";

type Event = { readonly at: number; readonly order: number; run: (() => void) | null };

export class Timeline {
  now = 0;
  #order = 0;
  /** The earliest last. */
  readonly #events: Event[] = [];

  after(ms: number, run: () => void): () => void {
    const event: Event = { at: this.now + Math.max(0, ms), order: (this.#order += 1), run };
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#events[middle]!;
      if (other.at > event.at || (other.at === event.at && other.order > event.order)) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, event);
    return () => void (event.run = null);
  }

  /** Lets the next thing happen, and all that follows from it at once; false where nothing is to come. */
  step(): boolean {
    const event = this.#events.pop();
    if (event === undefined) return false;
    if (event.run === null) return true;
    this.now = event.at;
    event.run();
    drainMicrotasks();
    return true;
  }
}

/** A process: what it waits for comes late where it was stopped for a while. Its clocks are its own. */
export class SimulatedProcess {
  #pausedUntil = 0;
  #isDead = false;
  readonly pace: Pace;

  constructor(
    readonly timeline: Timeline,
    startedAt: number,
    /** Of its wall clock from that of others. */
    wallOffset: number,
  ) {
    this.pace = {
      wall: () => Math.floor(startedAt + timeline.now + wallOffset),
      monotonic: () => timeline.now,
      after: (ms, run) => timeline.after(ms, () => this.awake(run)),
      soon: (run) => void timeline.after(0, () => this.awake(run)),
    };
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.timeline.now + ms);
  }

  kill(): void {
    this.#isDead = true;
  }

  /** Now, or when it goes on. */
  awake(run: () => void): void {
    if (this.#isDead) return;
    if (this.timeline.now >= this.#pausedUntil) run();
    else this.timeline.after(this.#pausedUntil - this.timeline.now, () => this.awake(run));
  }
}
