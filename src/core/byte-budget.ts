// Limits how many bytes may wait, in total and per account: texts to count (which is free and not limited per minute)
// and large bodies. A decider: no threads, timers or promises.
import { assert } from "./assert.ts";
import type { AccountId } from "./types.ts";

export type ByteBudgetLimits = Readonly<{
  /** Requests and bytes that may wait in total. */
  places: number;
  bytes: number;
  accountPlaces: number;
  accountBytes: number;
}>;

type Use = { places: number; bytes: number };

export class ByteBudget {
  readonly #limits: ByteBudgetLimits;
  readonly #accounts = new Map<AccountId, Use>();
  readonly #all: Use = { places: 0, bytes: 0 };

  constructor(limits: ByteBudgetLimits) {
    assert(limits.accountBytes * 2 <= limits.bytes, "one account leaves room for others");
    assert(limits.accountPlaces * 2 <= limits.places, "one account leaves room for others");
    this.#limits = limits;
  }

  get places(): number {
    return this.#all.places;
  }

  get bytes(): number {
    return this.#all.bytes;
  }

  /**
   * Reserves room for one request of `bytes` bytes, or returns false. A quarter of the room is for accounts with
   * nothing waiting, so that a few busy ones do not shut out the others.
   */
  enter(account: AccountId, bytes: number): boolean {
    const { places, bytes: bytesMax, accountPlaces, accountBytes } = this.#limits;
    const use = this.#accounts.get(account);
    const share = use === undefined ? 1 : 3 / 4;
    if (this.#all.places + 1 > places * share || this.#all.bytes + bytes > bytesMax * share) return false;
    if (use === undefined) {
      if (bytes > accountBytes) return false;
      this.#accounts.set(account, { places: 1, bytes });
    } else {
      if (use.places + 1 > accountPlaces || use.bytes + bytes > accountBytes) return false;
      use.places++;
      use.bytes += bytes;
    }
    this.#all.places++;
    this.#all.bytes += bytes;
    return true;
  }

  /** Gives back what `enter` took. */
  leave(account: AccountId, bytes: number): void {
    const use = this.#accounts.get(account);
    assert(use !== undefined && use.places > 0 && use.bytes >= bytes, "room is given back once");
    use.places--;
    use.bytes -= bytes;
    if (use.places === 0) this.#accounts.delete(account);
    this.#all.places--;
    this.#all.bytes -= bytes;
  }
}
