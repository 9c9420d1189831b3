// The Worker that recomputes the ledger from disk beside the running server, on a read-only connection: it delays
// neither the event loop nor the writer. It works a slice at a time and rests 20 times as long as the slice took, so a
// check of 10,000,000 lines costs 5 % of one core while it lasts.
import type { Database } from "bun:sqlite";
import { systemClock } from "../../core/clock.ts";
import type { Violation } from "../../account/people/accounts.ts";
import type { AccountId } from "../../core/types.ts";
import { answerCalls, endWorker } from "../../core/workers.ts";
import { openForReading } from "../open.ts";
import type { BoundsSince, QuotaBounds } from "./quota-bounds.ts";
import { DiskVerifier } from "./verify-disk.ts";

/** A check of the disk pauses after this long and continues in the next one. */
const ledgerCheckMaxMs = 45_000;

/** What the Worker is called for; a check's result is a DiskReport. */
export type VerifyCall =
  | Readonly<{ order: "open"; file: string; bounds: QuotaBounds; since: BoundsSince }>
  | Readonly<{ order: "check" }>
  | Readonly<{ order: "close" }>;

/** `wholePass`: since the last report, the last account was reached once more. */
export type DiskReport = Readonly<{ violations: readonly Violation[]; accounts: number; wholePass: boolean }>;

const accountsPerSlice = 25;
const linesPerSlice = 10_000;
const restsPerSlice = 20;
/** Accounts known to be broken are looked at in every check, so that a repair is noticed. */
const brokenMax = 1_000;

declare const self: Worker;

class Rounds {
  readonly #disk: DiskVerifier;
  /** Lines up to here have had their accounts put into `#touched`. */
  #sequence: number;
  /** Accounts with new lines, those that wait longest first. */
  readonly #touched = new Set<AccountId>();
  readonly #broken = new Map<AccountId, readonly Violation[]>();
  /** The walk over all accounts goes on behind this one. */
  #walked: AccountId = 0;

  constructor(disk: DiskVerifier) {
    this.#disk = disk;
    this.#sequence = disk.lastSequence();
  }

  /** One check: what is known to be broken, what is new, and as much of the walk as there is time for. */
  async check(): Promise<DiskReport> {
    const until = systemClock.monotonic() + ledgerCheckMaxMs;
    const inTime = () => !closing && systemClock.monotonic() < until;
    let accounts = 0;
    const look = async (id: AccountId) => {
      await slice(() => this.#look(id - 1, id));
      accounts += 1;
    };
    for (const id of [...this.#broken.keys()]) if (!closing) await look(id);
    while (inTime() && (await slice(() => this.#readLines())));
    // Half of the time at most, so that busy accounts do not keep the walk from the others.
    const half = systemClock.monotonic() + (until - systemClock.monotonic()) / 2;
    for (const id of this.#touched) {
      if (!inTime() || systemClock.monotonic() > half) break;
      this.#touched.delete(id);
      await look(id);
    }
    let wholePass = false;
    while (inTime() && !wholePass) {
      const walked = await slice(() => this.#walk());
      accounts += walked;
      wholePass = walked === 0;
    }
    return { violations: [...this.#broken.values()].flat(), accounts, wholePass };
  }

  /** Whether there may be more lines. */
  #readLines(): boolean {
    const last = this.#disk.lastSequence();
    const next = Math.min(last, this.#sequence + linesPerSlice);
    for (const id of this.#disk.accountsOfLines(this.#sequence, next)) this.#touched.add(id);
    this.#sequence = next;
    return next < last;
  }

  /** The accounts seen; 0 at the end, after which the walk begins anew. */
  #walk(): number {
    const ids = this.#disk.accountsAfter(this.#walked, accountsPerSlice);
    const last = ids.at(-1);
    // After the last account there may still be lines of accounts that do not exist.
    this.#look(this.#walked, last ?? Number.MAX_SAFE_INTEGER);
    this.#walked = last ?? 0;
    return ids.length;
  }

  /** Looks at the accounts with after < id <= last. */
  #look(after: AccountId, last: AccountId): void {
    for (const id of this.#broken.keys()) if (id > after && id <= last) this.#broken.delete(id);
    const found = Map.groupBy(this.#disk.violationsOf(after, last), ({ account }) => account!);
    for (const [id, violations] of found) if (this.#broken.size < brokenMax) this.#broken.set(id, violations);
  }
}

let database: Database;
let rounds: Rounds;
let closing = false;

answerCalls<VerifyCall>(self, (call) => {
  switch (call.order) {
    case "open":
      database = openForReading(call.file);
      rounds = new Rounds(new DiskVerifier(database, call.bounds, call.since));
      return null;
    case "check":
      return rounds.check();
    case "close":
      closing = true;
      database?.close();
      endWorker(self);
      return null;
    default:
      return call satisfies never;
  }
});

/** Does a part of the work, then rests in proportion. */
async function slice<Result>(work: () => Result): Promise<Result> {
  const from = systemClock.monotonic();
  const result = work();
  const restMs = (systemClock.monotonic() - from) * restsPerSlice;
  await Bun.sleep(Math.min(restMs, ledgerCheckMaxMs));
  return result;
}
