// Retries a batch until it is on disk or its time is over. Runs in the writer's Worker.
import type { Clock } from "../../core/clock.ts";
import { journalGiveUpMs } from "../limits.ts";
import { assert } from "../../core/assert.ts";
import type { Ms } from "../../core/types.ts";
import type { Batch, RefusedChange } from "./batch.ts";
import { LedgerMisplaced } from "./ledger-place.ts";
import { mayRetry, type Writer } from "./writer.ts";

/** Between two attempts at a batch that found the disk busy or full. */
export const journalRetryIntervalMs = 50;
/** Between two checks whether a disk that refused writes takes them again. */
export const journalProbeIntervalMs = 250;

assert(journalProbeIntervalMs < journalGiveUpMs, "a disk that takes writes again is noticed in time");

/** `refused`: committed but for these changes. `misplaced`: stalled, because of this. */
export type CommitReport =
  | "committed"
  | Readonly<{ refused: readonly RefusedChange[] }>
  | "gave_up"
  | "stalled"
  | Readonly<{ misplaced: string }>
  | "writable";

export class Persistence {
  readonly #writer: Pick<Writer, "commit" | "probe" | "checkPlace">;
  readonly #clock: Clock;
  readonly #sleep: (ms: Ms) => Promise<void>;
  readonly #report: (report: CommitReport) => void;
  #stalled = false;
  #probing = false;
  /** The last try was written to files that were lost by then: it may be on disk, where they come back. */
  #isUncertain = false;

  constructor(
    writer: Pick<Writer, "commit" | "probe" | "checkPlace">,
    clock: Clock,
    sleep: (ms: Ms) => Promise<void>,
    report: (report: CommitReport) => void,
  ) {
    this.#writer = writer;
    this.#clock = clock;
    this.#sleep = sleep;
    this.#report = report;
  }

  /**
   * Reports `committed`, `refused` or `gave_up` once, `stalled` or `misplaced` at the first failed try and `writable` when a write succeeds
   * again. Whether to give up is decided here and nowhere else: only this side knows that no try is under way.
   * Throws what must not be retried; after a failed fsync the pages count as clean, so that a second one would lie.
   */
  async commit(batch: Batch, patienceMs: Ms): Promise<void> {
    const deadline = this.#clock.monotonic() + patienceMs;
    let refused: readonly RefusedChange[] = [];
    this.#isUncertain = false;
    while (!this.#try(() => (refused = this.#writer.commit(batch)))) {
      if (this.#clock.monotonic() >= deadline) {
        if (this.#isUncertain) throw new Error("the ledger was removed, moved or replaced during a commit");
        this.#report("gave_up");
        return this.#probeUntilWritable();
      }
      await this.#sleep(journalRetryIntervalMs);
    }
    this.#recovered();
    this.#report(refused.length === 0 ? "committed" : { refused });
  }

  /** From the first failed try until a write succeeds. */
  get stalled(): boolean {
    return this.#stalled;
  }

  /** Checks that the files are in place, although there is nothing to write. Throws like `commit`. */
  look(): void {
    if (!this.#stalled && !this.#try(() => this.#writer.checkPlace())) void this.#probeUntilWritable();
  }

  /** Ends the looks at a disk that takes no writes: the writer is about to close. */
  close(): void {
    this.#stalled = false;
  }

  /** While nothing is admitted, nothing would be written that could tell that the disk is well again. */
  async #probeUntilWritable(): Promise<void> {
    if (this.#probing) return;
    this.#probing = true;
    while (this.#stalled) {
      await this.#sleep(journalProbeIntervalMs);
      if (this.#stalled && this.#try(() => this.#writer.probe())) this.#recovered();
    }
    this.#probing = false;
  }

  #try(write: () => void): boolean {
    try {
      write();
      return true;
    } catch (thrown) {
      if (!mayRetry(thrown)) throw thrown;
      const misplaced = thrown instanceof LedgerMisplaced ? thrown : null;
      if (misplaced?.isWritten === true) this.#isUncertain = true;
      if (!this.#stalled) this.#report(misplaced === null ? "stalled" : { misplaced: misplaced.message });
      this.#stalled = true;
      return false;
    }
  }

  #recovered(): void {
    if (this.#stalled) this.#report("writable");
    this.#stalled = false;
  }
}
