// Flood protection: 120 counted requests per account in a fixed window of 60 s that opens with the first of them.
//
// Windows run on a time of their own that stands still when the wall clock steps back: no second window is granted,
// and nobody is locked out for longer than the rest of a window. A clock that steps forward ends windows early.
import { floodRequestsMax, floodWindowMs } from "../limits.ts";
import type { AccountId, Ms } from "../types.ts";

type FloodWindow = { readonly opensAt: Ms; requests: number };

export class Flood {
  // Windows live in two generations, the younger of which takes all new ones. At most every 60 s the older one is
  // dropped whole, by when all its windows have ended: memory is bounded by the accounts of two minutes, without sweeps.
  #young = new Map<AccountId, FloodWindow>();
  #old = new Map<AccountId, FloodWindow>();
  #youngSince: Ms = 0;
  /** Wall clock of the latest count, and what is added to it for all its steps back. */
  #latest: Ms = 0;
  #correction: Ms = 0;

  /** Counts a request; returns 0 when it may pass, else the whole seconds to the window's end, 1 to 60. */
  count(account: AccountId, now: Ms): number {
    if (now < this.#latest) this.#correction += this.#latest - now;
    this.#latest = now;
    const time = now + this.#correction;
    if (time - this.#youngSince >= floodWindowMs) this.#age(time);

    const window = this.#young.get(account) ?? this.#old.get(account);
    if (window === undefined || time - window.opensAt >= floodWindowMs) {
      this.#young.set(account, { opensAt: time, requests: 1 });
      return 0;
    }
    window.requests += 1;
    return window.requests <= floodRequestsMax ? 0 : Math.ceil((window.opensAt + floodWindowMs - time) / 1000);
  }

  /** Whether a request would be refused now. */
  isFull(account: AccountId, now: Ms): boolean {
    const window = this.#young.get(account) ?? this.#old.get(account);
    const time = now + this.#correction;
    return window !== undefined && time - window.opensAt < floodWindowMs && window.requests >= floodRequestsMax;
  }

  /** Windows in memory. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  #age(time: Ms): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngSince = time;
  }
}
