// One timer for all open replies: opens slow streams, sends signs of life, and notices clients that stopped reading.
import { keepAliveIntervalMs, streamOpenDelayMs } from "../../core/limits.ts";
import { ActiveSet, type ActiveHandle } from "../../core/active-set.ts";

/** A client that reads nothing for this long is cut and charged for what was produced. */
const clientStallMs = 120_000;

const heartbeatMs = 2_000;
/** Ages in beats; a new reply may see its first beat at once, so n beats mean more than (n - 1) * heartbeatMs. */
export const streamOpenBeats = Math.ceil(streamOpenDelayMs / heartbeatMs) + 1;
export const keepAliveBeats = Math.floor(keepAliveIntervalMs / heartbeatMs);
export const clientStallBeats = Math.ceil(clientStallMs / heartbeatMs) + 1;

export interface Beating {
  beat(): void;
}

export class Heartbeat {
  readonly #open = new ActiveSet<Beating>();
  #timer: Timer | null = null;

  join(beating: Beating): ActiveHandle<Beating> {
    this.#timer ??= setInterval(() => this.beat(), heartbeatMs);
    return this.#open.join(beating);
  }

  leave(handle: ActiveHandle<Beating>): void {
    this.#open.leave(handle);
  }

  get size(): number {
    return this.#open.size;
  }

  /** One tick; an idle gateway stops ticking. */
  beat(): void {
    if (this.#open.size === 0) return this.close();
    for (const beating of this.#open.members()) beating.beat();
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
