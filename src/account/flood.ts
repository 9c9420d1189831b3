// Flood protection: 120 counted requests per account in a fixed window of 60 s that opens with the first of them.
//
// A clock that steps back before a window's opening moves the opening to now and keeps the count: no second window is
// granted, and nobody is locked out for longer than one window. A clock that steps forward ends the window early.
import { floodRequestsMax, floodWindowMs } from "../limits.ts";
import type { AccountId, Ms } from "../types.ts";

type FloodWindow = { opensAt: Ms; requests: number };

export class Flood {
  // Windows live in two generations, the younger of which takes all new ones. Every 60 s the older is dropped whole, by
  // when all its windows have ended, so memory is bounded by the accounts seen in the last two minutes, without sweeps.
  #young = new Map<AccountId, FloodWindow>();
  #old = new Map<AccountId, FloodWindow>();
  #youngSince: Ms = 0;

  /** Counts a request; returns 0 when it may pass, else the whole seconds to the window's end, 1 to 60. */
  count(account: AccountId, now: Ms): number {
    if (now < this.#youngSince) this.#youngSince = now;
    if (now - this.#youngSince >= floodWindowMs) this.#age(now);
    const window = this.#young.get(account) ?? this.#keep(account);
    if (window === null || now - window.opensAt >= floodWindowMs) {
      this.#young.set(account, { opensAt: now, requests: 1 });
      return 0;
    }
    if (now < window.opensAt) window.opensAt = now;
    window.requests += 1;
    if (window.requests <= floodRequestsMax) return 0;
    return Math.ceil((window.opensAt + floodWindowMs - now) / 1000);
  }

  /** Windows in memory. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** Finds a window of the older generation and takes it into the younger, where a clock that stepped back keeps it. */
  #keep(account: AccountId): FloodWindow | null {
    const window = this.#old.get(account);
    if (window === undefined) return null;
    this.#old.delete(account);
    this.#young.set(account, window);
    return window;
  }

  #age(now: Ms): void {
    this.#old = now - this.#youngSince < 2 * floodWindowMs ? this.#young : new Map();
    this.#young = new Map();
    this.#youngSince = now;
  }
}
