// The main thread's end of the writer's Worker.
import { assert } from "../../core/assert.ts";
import type { Ms } from "../../core/types.ts";
import { startWorker } from "../../core/workers.ts";
import type { Batch } from "./batch.ts";
import type { WriterAnswer, WriterOrder } from "./journal-writer.ts";
import type { CommitOutcome, Storage } from "./journal.ts";

/** The disk failed in a way that must not be retried (I/O error, failed fsync, the Worker died). */
export class StorageFailed extends Error {
  override readonly name = "StorageFailed";
}

export class WorkerStorage implements Storage {
  readonly #worker: Worker;
  /** Null until the Worker has opened the database: before that, `open` throws. */
  #onFatal: ((error: Error) => void) | null = null;
  readonly #opened = Promise.withResolvers<void>();
  #resolved: ((outcome: CommitOutcome) => void) | null = null;
  #closed: PromiseWithResolvers<void> | null = null;
  #failed = false;
  #unwritable: string | null = null;
  #misplaced = false;
  #onWritable: (unwritable: string | null) => void = () => {};

  private constructor() {
    this.#worker = startWorker("store/ledger/journal-writer.ts", "journal");
    this.#worker.onmessage = ({ data }: MessageEvent<WriterAnswer>) => this.#answered(data);
    this.#worker.onerror = ({ message }) => this.#fail(new StorageFailed(`the journal's writer failed: ${message}`));
    this.#worker.addEventListener("close", () => {
      if (this.#closed === null) this.#fail(new StorageFailed("the journal's writer ended"));
      else this.#closed.resolve();
    });
  }

  /**
   * Starts the Worker on a migrated database; throws StorageFailed where it cannot. `onFatal` is called once, for what must end the process: after it no
   * outcome is reported anymore, so no reply that waits for its charge can go out.
   */
  static async open(
    file: string,
    epoch: number,
    onFatal: (error: Error) => void,
    keepDays: number | null = null,
  ): Promise<WorkerStorage> {
    const storage = new WorkerStorage();
    storage.#send({ order: "open", file, epoch, keepDays });
    await storage.#opened.promise;
    storage.#onFatal = onFatal;
    return storage;
  }

  get writable(): boolean {
    return this.#unwritable === null && !this.#failed;
  }

  /** Why nothing can be written for now, in words; null while it can. */
  get unwritable(): string | null {
    return this.#unwritable;
  }

  /** The name of the database leads to another file, or to none. */
  get misplaced(): boolean {
    return this.#misplaced;
  }

  follow(listener: (unwritable: string | null) => void): void {
    this.#onWritable = listener;
  }

  commit(batch: Batch, patienceMs: Ms, resolved: (outcome: CommitOutcome) => void): void {
    assert(this.#resolved === null, "one batch at a time");
    this.#resolved = resolved;
    this.#send({ order: "commit", json: JSON.stringify(batch), patienceMs });
  }

  /** From here on, lines of the journal that are older than this many days are folded into sums; null: none are. */
  retain(keepDays: number | null): void {
    this.#send({ order: "retain", keepDays });
  }

  close(): Promise<void> {
    this.#closed ??= Promise.withResolvers();
    this.#send({ order: "close" });
    return this.#closed.promise;
  }

  #send(order: WriterOrder): void {
    if (!this.#failed) this.#worker.postMessage(order);
  }

  #answered(answer: WriterAnswer): void {
    switch (answer) {
      case "opened":
        return this.#opened.resolve();
      case "stalled":
        return this.#becomes("the ledger's disk takes no writes");
      case "writable":
        return this.#becomes(null);
      case "committed":
      case "gave_up":
        return this.#resolve(answer);
      case "closed":
        return; // The Worker's close event follows, when its files are let go of.
      default:
        if ("refused" in answer) return this.#resolve(answer);
        if ("misplaced" in answer) return this.#becomes(answer.misplaced, true);
        this.#fail(new StorageFailed(`the disk failed: ${answer.fatal}`, { cause: answer.code }));
    }
  }

  #becomes(unwritable: string | null, misplaced = false): void {
    this.#misplaced = misplaced;
    this.#unwritable = unwritable;
    this.#onWritable(unwritable);
  }

  #resolve(outcome: CommitOutcome): void {
    const resolved = this.#resolved;
    assert(resolved !== null, "an outcome belongs to a batch");
    this.#resolved = null;
    resolved(outcome);
  }

  #fail(error: StorageFailed): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#opened.reject(error);
    this.#closed?.reject(error);
    this.#onFatal?.(error);
  }
}
