// The journal in memory: lines are gathered while a commit is under way and go to disk together in the next.
//
//   append -> gathering batch --(no commit under way, end of this turn of the event loop)--> storage.commit
//                  ^                                                                              |
//                  '------------- committed | gave_up: tell the ledger, then the waiters <--------'
//
// A unit of the office that breaks a rule of a table (an e-mail that is another account's) is refused alone and as a whole:
// the rest of its batch is committed.
//
// At most one batch is under way; it leaves memory only when the storage has reported its outcome.
import { assert } from "../../core/assert.ts";
import type { Entry } from "../../account/money/entry.ts";
import type { AccountChange, JournalListener, UnitJournal } from "../../account/journal.ts";
import type { Clock } from "../../core/clock.ts";
import { journalGiveUpMs } from "../limits.ts";
import { StoreUnavailable, type Ms } from "../../core/types.ts";
import { accountsNotMade, type Batch, batchOf, type RefusedChange } from "./batch.ts";

/**
 * `gave_up`: the disk was busy or full for the whole time; the batch is not on disk and never will be. `refused`: that
 * holds for these changes, and for the lines of accounts that would have been made by them; the rest is on disk.
 */
export type CommitOutcome = "committed" | "gave_up" | Readonly<{ refused: readonly RefusedChange[] }>;

export interface Storage {
  /** False from the first failed try until a write succeeds. */
  readonly writable: boolean;
  /** Tries for at most `patienceMs`, at least once, and tells the outcome once. Not called while a batch is under way. */
  commit(batch: Batch, patienceMs: Ms, resolved: (outcome: CommitOutcome) => void): void;
  close(): Promise<void>;
}

class Gathering {
  readonly entries: Entry[] = [];
  /** In units, by their sequence numbers, in order. */
  readonly changes = new Map<number, readonly AccountChange[]>();
  waiters: PromiseWithResolvers<void> | null = null;
  /** Of units, each of which may be refused, by their sequence numbers. */
  readonly changeWaiters = new Map<number, PromiseWithResolvers<void>>();
  /** Monotonic time of the first line or change. */
  since: Ms = 0;

  constructor(readonly first: number) {}

  get size(): number {
    return this.entries.length + this.changes.size;
  }

  get next(): number {
    return this.first + this.size;
  }

  /** One promise for all who wait for a line of this commit; none if there are none. */
  wait(sequence: number): Promise<void> {
    if (this.changes.has(sequence)) return this.#waitForChange(sequence);
    this.waiters ??= Promise.withResolvers();
    return this.waiters.promise;
  }

  #waitForChange(sequence: number): Promise<void> {
    const waiter = this.changeWaiters.get(sequence) ?? Promise.withResolvers<void>();
    this.changeWaiters.set(sequence, waiter);
    return waiter.promise;
  }
}

/** Called with each commit: its lines and changes, and how long it took. */
export type CommitListener = (entries: number, durationMs: Ms) => void;

export class BatchingJournal implements UnitJournal {
  readonly #storage: Storage;
  readonly #onCommit: CommitListener;
  readonly #listener: JournalListener;
  readonly #clock: Clock;
  #gathering = new Gathering(1);
  #underWay: Gathering | null = null;
  #scheduled = false;
  /** Sequence numbers that were given up or refused, from `first` to before `next`. Grows by one for 10 s without a disk. */
  readonly #lost: Readonly<{ first: number; next: number; error: StoreUnavailable }>[] = [];
  #closed: PromiseWithResolvers<void> | null = null;

  constructor(storage: Storage, listener: JournalListener, clock: Clock, onCommit: CommitListener = () => {}) {
    this.#onCommit = onCommit;
    this.#storage = storage;
    this.#listener = listener;
    this.#clock = clock;
  }

  get writable(): boolean {
    return this.#storage.writable;
  }

  append(entry: Entry): number {
    const gathering = this.#open();
    gathering.entries.push(entry);
    return gathering.next - 1;
  }

  change(change: AccountChange): number {
    return this.changes([change]);
  }

  changes(unit: readonly AccountChange[]): number {
    const gathering = this.#open();
    const sequence = gathering.next;
    gathering.changes.set(sequence, unit);
    return sequence;
  }

  durable(sequence: number): Promise<void> {
    assert(sequence > 0 && sequence < this.#gathering.next, `line ${sequence} was appended`);
    if (sequence >= this.#gathering.first) return this.#gathering.wait(sequence);
    if (this.#underWay !== null && sequence >= this.#underWay.first) return this.#underWay.wait(sequence);
    const lost = this.#lost.find(({ first, next }) => sequence >= first && sequence < next);
    return lost === undefined ? Promise.resolve() : Promise.reject(lost.error);
  }

  /** Sends what was gathered, unless a commit is under way: then it follows by itself. */
  flush(): void {
    if (this.#underWay !== null || this.#gathering.size === 0) return;
    const batch = this.#gathering;
    this.#underWay = batch;
    this.#gathering = new Gathering(batch.next);
    const sentAt = this.#clock.monotonic();
    const patienceMs = Math.max(0, journalGiveUpMs - (sentAt - batch.since));
    const changes = [...batch.changes.values()];
    this.#storage.commit(batchOf(changes, batch.entries), patienceMs, (outcome) => {
      if (outcome !== "gave_up") this.#onCommit(batch.size, this.#clock.monotonic() - sentAt);
      this.#resolved(batch, outcome);
    });
  }

  get pending(): number {
    return this.#gathering.size + (this.#underWay?.size ?? 0);
  }

  /** Commits what is pending, then closes the storage. Nothing may be appended afterwards. */
  async close(): Promise<void> {
    assert(this.#closed === null, "the journal is closed once");
    this.#closed = Promise.withResolvers();
    this.flush();
    if (this.pending > 0) await this.#closed.promise;
    await this.#storage.close();
  }

  #open(): Gathering {
    assert(this.#closed === null, "nothing is appended to a closed journal");
    if (this.#gathering.size === 0) this.#gathering.since = this.#clock.monotonic();
    // At the end of this turn, so that all replies that end in it share a commit; never by a timer.
    if (this.#underWay === null && !this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => {
        this.#scheduled = false;
        this.flush();
      });
    }
    return this.#gathering;
  }

  #resolved(batch: Gathering, outcome: CommitOutcome): void {
    assert(this.#underWay === batch, "a batch is resolved once");
    this.#underWay = null;
    if (outcome === "gave_up") this.#gaveUp(batch);
    else this.#committed(batch, outcome === "committed" ? [] : outcome.refused);
    this.flush();
    if (this.pending === 0) this.#closed?.resolve();
  }

  #committed(batch: Gathering, refused: readonly RefusedChange[]): void {
    const notMade = refused.length === 0 ? null : accountsNotMade([...batch.changes.values()], refused);
    for (const entry of batch.entries) {
      if (notMade?.has(entry.account)) this.#listener.lost(entry);
      else this.#listener.committed(entry);
    }
    const sequences = refused.length === 0 ? [] : [...batch.changes.keys()];
    for (const { index, reason } of refused) {
      const sequence = sequences[index]!;
      const error = new StoreUnavailable(`the ledger does not take this change: ${reason}`);
      this.#lost.push({ first: sequence, next: sequence + 1, error });
      batch.changeWaiters.get(sequence)?.reject(error);
    }
    batch.waiters?.resolve();
    for (const waiter of batch.changeWaiters.values()) waiter.resolve(); // but those that were rejected above
  }

  #gaveUp(batch: Gathering): void {
    const error = givenUp();
    this.#lost.push({ first: batch.first, next: batch.next, error });
    for (const entry of batch.entries) this.#listener.lost(entry);
    batch.waiters?.reject(error);
    for (const waiter of batch.changeWaiters.values()) waiter.reject(error);
  }
}

function givenUp(): StoreUnavailable {
  return new StoreUnavailable(`the disk took no writes for ${journalGiveUpMs} ms`);
}
