// Searches of the day: taken before searching, given back when the search found nothing.
import type { AccountId, Ms } from "../types.ts";
import type { Journal } from "./journal.ts";
import type { Ledger } from "./ledger.ts";
import { dayOf } from "./quota.ts";

export class Searches {
  readonly #ledger: Ledger;
  readonly #journal: Journal;

  constructor(ledger: Ledger, journal: Journal) {
    this.#ledger = ledger;
    this.#journal = journal;
  }

  /** Takes a search of the day; false when none is left. Throws StoreUnavailable when the disk cannot be read. */
  take(account: AccountId, now: Ms): boolean {
    if (!this.#ledger.takeSearch(this.#ledger.account(account), now)) return false;
    this.#append(account, now, 1);
    return true;
  }

  /** Gives back a search that found nothing. `takenAt` is the time it was taken with, so that it goes to that day. */
  giveBack(account: AccountId, takenAt: Ms): void {
    this.#ledger.returnSearch(this.#ledger.account(account), takenAt);
    this.#append(account, takenAt, -1);
  }

  // Nobody waits for these lines: a search lost in a crash is one more for the caller, never one less.
  #append(account: AccountId, at: Ms, used: 1 | -1): void {
    this.#ledger.appended(this.#ledger.account(account));
    this.#journal.append({
      billingKey: `search:${crypto.randomUUID()}`,
      kind: "search",
      account,
      at,
      period: dayOf(at),
      used,
      creditDelta: 0,
      reply: null,
    });
  }
}
