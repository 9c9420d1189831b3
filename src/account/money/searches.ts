// Searches of the day. One is held while it runs and counts when it found something, so that only searches that count
// are ever written: a line that takes one back could reach the disk without the line it belongs to.
//
// The operator pays for each call of the search service, also for those that find nothing, so that the calls of a day
// are limited, too: a fixed number for each search of the plan. Then there is no search for the account that day. One that
// failed counts as well: only the service knows whether it did it.
import { assert } from "../../core/assert.ts";
import type { Soon } from "../../core/soon.ts";
import { type AccountId, defaultKey, type Ms } from "../../core/types.ts";
import type { Journal } from "../journal.ts";
import type { Ledger } from "./ledger.ts";
import type { LoadedAccount, SearchCalls } from "./loaded-account.ts";
import { dayOf, type Period } from "./quota.ts";
import type { AccountRecords } from "../records.ts";

/**
 * Only searches that find something count against the day's allowance, but the operator pays for each call. An account
 * that made this many calls for each search of its allowance gets no further one that day.
 */
const searchCallsPerSearchMax = 5;

/** A search of the day, held for one caller. What was not kept goes back on dispose. */
export interface SearchHold extends Disposable {
  /** The search found something and counts, for the day on which it was taken. */
  keep(): void;
  /** Counts a call of the search service for that day; false where none is left: it is not to be made. */
  call(): Soon<boolean>;
}

export class Searches {
  readonly #ledger: Ledger;
  readonly #records: Pick<AccountRecords, "searchCalls">;
  readonly #journal: Journal;

  constructor(ledger: Ledger, records: Pick<AccountRecords, "searchCalls">, journal: Journal) {
    this.#ledger = ledger;
    this.#records = records;
    this.#journal = journal;
  }

  /** Takes a search of the day; null when none is left, or no call. Throws StoreUnavailable when the disk cannot be read. */
  take(account: AccountId, now: Ms): SearchHold | null {
    const loaded = this.#ledger.account(account);
    const { calls } = this.#callsOf(loaded, dayOf(now));
    if (calls >= callsMax(loaded) || !this.#ledger.holdSearch(loaded, now)) return null;
    return this.resume(account, now);
  }

  /** Goes on with one that was taken. */
  resume(account: AccountId, takenAt: Ms): SearchHold {
    const loaded = this.#ledger.account(account);
    return new TakenSearch(this.#ledger, this.#journal, loaded, this.#callsOf(loaded, dayOf(takenAt)), takenAt);
  }

  #callsOf(account: LoadedAccount, day: Period): SearchCalls {
    if (account.searchCalls?.day === day) return account.searchCalls;
    return (account.searchCalls = { day, calls: this.#records.searchCalls(account.id, day) });
  }
}

const callsMax = ({ plan }: LoadedAccount): number => searchCallsPerSearchMax * plan.searchesPerDay;

class TakenSearch implements SearchHold {
  readonly #ledger: Ledger;
  readonly #journal: Journal;
  readonly #account: LoadedAccount;
  readonly #day: SearchCalls;
  readonly #takenAt: Ms;
  #open = true;

  constructor(ledger: Ledger, journal: Journal, account: LoadedAccount, day: SearchCalls, takenAt: Ms) {
    this.#ledger = ledger;
    this.#journal = journal;
    this.#account = account;
    this.#day = day;
    this.#takenAt = takenAt;
  }

  call(): boolean {
    if (this.#day.calls >= callsMax(this.#account)) return false;
    this.#day.calls += 1;
    // No caller waits for it: a restart forgets no more than the calls of the last commit.
    this.#journal.change({ change: "search_calls", account: this.#account.id, ...this.#day });
    return true;
  }

  // No caller waits for the line: a search lost in a crash is one more for the caller, never one less.
  keep(): void {
    assert(this.#open, "a search is resolved exactly once");
    this.#ledger.countSearch(this.#account, this.#takenAt);
    this.#open = false;
    this.#ledger.appended(this.#account);
    this.#journal.append({
      billingKey: `search:${crypto.randomUUID()}`,
      kind: "search",
      account: this.#account.id,
      key: defaultKey,
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
