// The real writer on a database in memory, where a test decides when a batch commits, and how it fails.
import { Database } from "bun:sqlite";
import { assert } from "../../src/core/assert.ts";
import type { Batch, RefusedChange } from "../../src/store/ledger/batch.ts";
import type { CommitOutcome, Storage } from "../../src/store/ledger/journal.ts";
import { addWhatLacks } from "../../src/store/ledger/migrate.ts";
import { Writer } from "../../src/store/ledger/writer.ts";

/** A database with all tables that a crash of the program does not touch. */
export function memoryDatabase(): Database {
  const database = new Database(":memory:", { strict: true });
  addWhatLacks(database);
  return database;
}

export class MemoryStorage implements Storage {
  writable = true;
  /** Commits at once when true; else a batch waits for one of the verbs below. */
  immediate = true;
  commits = 0;
  readonly #writer: Writer;
  #waiting: { batch: Batch; resolved: (outcome: CommitOutcome) => void } | null = null;
  #dead = false;

  constructor(database: Database) {
    this.#writer = new Writer(database, 0);
  }

  get waiting(): boolean {
    return this.#waiting !== null;
  }

  commit(batch: Batch, _patienceMs: number, resolved: (outcome: CommitOutcome) => void): void {
    if (this.#dead) return;
    assert(this.#waiting === null, "one batch at a time");
    this.#waiting = { batch, resolved };
    if (this.immediate) this.succeed();
  }

  /** Writes the waiting batch and says so. */
  succeed(): void {
    const refused = this.write();
    this.#take().resolved(refused.length === 0 ? "committed" : { refused });
  }

  /** Writes the waiting batch and says nothing yet. */
  write(): readonly RefusedChange[] {
    assert(this.#waiting !== null, "a batch is waiting");
    const refused = this.#writer.commit(this.#waiting.batch);
    this.commits += 1;
    return refused;
  }

  /** Fails in the middle of writing the batch: its last line breaks a rule of the table. */
  tear(): void {
    assert(this.#waiting !== null, "a batch is waiting");
    const { changes, rows } = this.#waiting.batch;
    const bad = ["bad", "no such kind", 1, 0, 0, 0, 0, ...Array(11).fill(null)] as unknown as Batch["rows"][number];
    let torn = false;
    try {
      this.#writer.commit({ changes, rows: [...rows, bad] });
    } catch {
      torn = true;
    }
    assert(torn, "a line of an unknown kind is refused");
  }

  /** Says that the waiting batch is not on disk and never will be. */
  giveUp(): void {
    this.#take().resolved("gave_up");
  }

  /** The process is gone: nothing is written or answered anymore. */
  die(): void {
    this.#dead = true;
    this.#waiting = null;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #take() {
    const waiting = this.#waiting;
    assert(waiting !== null, "a batch is waiting");
    this.#waiting = null;
    return waiting;
  }
}
