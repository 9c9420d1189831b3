// Flood protection: 120 counted requests per account, or as many as its plan says, in a fixed window of 60 s that opens with
// the first of them.
//
// Windows are durations: `now` is monotonic, so that a wall clock that steps opens none and locks no account out.
import { floodRequestsMax } from "../../core/limits.ts";
import type { RateLeft } from "../../core/rates-left.ts";
import type { AccountId, Ms } from "../../core/types.ts";

export const floodWindowMs = 60_000;

/** Some of an account's requests, from the first of them on. */
type OpenWindow = { readonly opensAt: Ms; requests: number };

type FloodWindow = OpenWindow & {
  /** Of the plan, when the latest was counted. */
  max: number;
};

export const isOver = ({ opensAt }: OpenWindow, now: Ms): boolean => now - opensAt >= floodWindowMs;

/** Counts a request in a window that is not over; returns 0 when it may pass, else the whole seconds to its end, 1 to 60. */
export function countIn(window: OpenWindow, now: Ms, max: number): number {
  window.requests += 1;
  return window.requests <= max ? 0 : Math.ceil((window.opensAt + floodWindowMs - now) / 1000);
}

/** What is left in a window, which may be over or none. */
export function leftIn(window: OpenWindow | undefined, now: Ms, limit: number): RateLeft {
  if (window === undefined || isOver(window, now)) return { limit, remaining: limit, resetMs: 0 };
  return { limit, remaining: Math.max(0, limit - window.requests), resetMs: window.opensAt + floodWindowMs - now };
}

export class Flood {
  // Windows live in two generations; the younger takes all new ones. At most every 60 s the older one is
  // dropped whole, by when all its windows have ended: memory is bounded by the accounts of two minutes, without sweeps.
  #young = new Map<AccountId, FloodWindow>();
  #old = new Map<AccountId, FloodWindow>();
  #youngSince: Ms = -Infinity;

  /** Counts a request; returns 0 when it may pass, else the whole seconds to the window's end, 1 to 60. */
  count(account: AccountId, now: Ms, max = floodRequestsMax): number {
    if (now - this.#youngSince >= floodWindowMs) this.#age(now);

    const window = this.#young.get(account) ?? this.#old.get(account);
    if (window === undefined || isOver(window, now)) {
      this.#young.set(account, { opensAt: now, requests: 1, max });
      return 0;
    }
    window.max = max;
    return countIn(window, now, max);
  }

  /** Whether a request would be refused now, as far as is known without a look at the plan. */
  isFull(account: AccountId, now: Ms): boolean {
    const window = this.#young.get(account) ?? this.#old.get(account);
    return window !== undefined && !isOver(window, now) && window.requests >= window.max;
  }

  left(account: AccountId, now: Ms, limit: number): RateLeft {
    return leftIn(this.#young.get(account) ?? this.#old.get(account), now, limit);
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  #age(now: Ms): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngSince = now;
  }
}
