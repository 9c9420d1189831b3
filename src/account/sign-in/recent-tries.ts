// Allows N tries per key in a sliding window. A fixed window would allow twice as many around its edge.
import { triedKeysMax } from "../../core/limits.ts";
import type { Ms } from "../../core/types.ts";

export class RecentTries {
  /** Times of the last tries by key, at most `max`; the map's order is that of the last try. */
  readonly #times = new Map<string, Ms[]>();

  constructor(
    readonly max: number,
    readonly windowMs: Ms,
  ) {}

  /** How long until the next one is allowed; 0: now. `now` is monotonic. */
  waitMs(key: string, now: Ms): Ms {
    const times = this.#times.get(key);
    if (times === undefined || times.length < this.max) return 0;
    return Math.max(0, times[0]! + this.windowMs - now);
  }

  /** How many there were in the window that ends now; no more than `max` are remembered. */
  count(key: string, now: Ms): number {
    const times = this.#times.get(key) ?? [];
    return times.reduce((sum, time) => (time + this.windowMs > now ? sum + 1 : sum), 0);
  }

  add(key: string, now: Ms): void {
    const times = (this.#times.get(key) ?? []).filter((time) => time + this.windowMs > now);
    times.push(now);
    if (times.length > this.max) times.shift();
    this.#times.delete(key);
    this.#times.set(key, times);
    for (const [oldest, tries] of this.#times) {
      if (this.#times.size <= triedKeysMax && tries.at(-1)! + this.windowMs > now) break;
      this.#times.delete(oldest);
    }
  }

  /** Takes the last one back: it does not count. */
  takeBack(key: string): void {
    const times = this.#times.get(key);
    times?.pop();
    if (times?.length === 0) this.#times.delete(key);
  }

  forget(key: string): void {
    this.#times.delete(key);
  }
}
