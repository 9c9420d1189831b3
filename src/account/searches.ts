// Searches of the day. One is held while it runs and counts when it found something, so that only searches that count
// are ever written: a line that takes one back could reach the disk without the line it belongs to.
import { assert } from "../assert.ts";
import type { AccountId, Ms } from "../types.ts";
import type { Journal } from "./journal.ts";
import type { Ledger } from "./ledger.ts";
import type { LoadedAccount } from "./loaded-account.ts";
import { dayOf } from "./quota.ts";

/** A search of the day, held for one caller. What was not kept goes back on dispose. */
export interface SearchHold extends Disposable {
  /** The search found something and counts, for the day on which it was taken. */
  keep(): void;
}

export class Searches {
  readonly #ledger: Ledger;
  readonly #journal: Journal;

  constructor(ledger: Ledger, journal: Journal) {
    this.#ledger = ledger;
    this.#journal = journal;
  }

  /** Takes a search of the day; null when none is left. Throws StoreUnavailable when the disk cannot be read. */
  take(account: AccountId, now: Ms): SearchHold | null {
    const loaded = this.#ledger.account(account);
    if (!this.#ledger.holdSearch(loaded, now)) return null;
    return new TakenSearch(this.#ledger, this.#journal, loaded, now);
  }
}

class TakenSearch implements SearchHold {
  readonly #ledger: Ledger;
  readonly #journal: Journal;
  readonly #account: LoadedAccount;
  readonly #takenAt: Ms;
  #open = true;

  constructor(ledger: Ledger, journal: Journal, account: LoadedAccount, takenAt: Ms) {
    this.#ledger = ledger;
    this.#journal = journal;
    this.#account = account;
    this.#takenAt = takenAt;
  }

  // Nobody waits for the line: a search lost in a crash is one more for the caller, never one less.
  keep(): void {
    assert(this.#open, "a search is resolved exactly once");
    this.#ledger.countSearch(this.#account, this.#takenAt);
    this.#open = false;
    this.#ledger.appended(this.#account);
    this.#journal.append({
      billingKey: `search:${crypto.randomUUID()}`,
      kind: "search",
      account: this.#account.id,
      at: this.#takenAt,
      period: dayOf(this.#takenAt),
      used: 1,
      creditDelta: 0,
      reply: null,
    });
  }

  [Symbol.dispose](): void {
    if (!this.#open) return;
    this.#open = false;
    this.#ledger.releaseSearch(this.#account);
  }
}
