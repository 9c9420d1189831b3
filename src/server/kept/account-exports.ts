// Exports of accounts for browsers. Each is first written to a file without a name: rows are read in one transaction,
// which must not last as long as a slow connection, because the journal's log cannot be truncated meanwhile. A Worker
// does this, since a single row may hold tens of MB.
import { type FileHandle, open, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { AccountRecord } from "../../account/records.ts";
import { RecentTries } from "../../account/sign-in/recent-tries.ts";
import type { Clock } from "../../core/clock.ts";
import type { NoExport } from "../../console/account-data.ts";
import { hourMs } from "../../core/units.ts";
import { type AccountId, StoreUnavailable } from "../../core/types.ts";

/** For each account: an export reads everything kept of it, up to several hundred MB. */
export const exportsPerHourMax = 6;

/** Written at once, of all accounts together; each is at most as large as the ledger. */
const writingMax = 4;
/** Seconds after which an export that found no place may be asked for again. */
const busyRetrySeconds = 10;
const chunkBytes = 64 * 1024;

/** Writes everything that is kept of an account to an open file; conversations are for their owner alone. */
type WriteExport = (email: string, descriptor: number, withConversations: boolean) => Promise<void>;

export class AccountExports {
  readonly #dataFolder: string;
  readonly #writeExport: WriteExport;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #recent = new RecentTries(exportsPerHourMax, hourMs);
  /**
   * Who has one of whom, until it was read or left: one each, so that unread files have a bound. Operators
   * count for themselves: the account that they ask for can neither use up their exports, nor they its own.
   */
  readonly #underWay = new Set<string>();
  /** How many are being written. A file that waits for its reader takes no place. */
  #writing = 0;

  constructor(dataFolder: string, write: WriteExport, clock: Pick<Clock, "monotonic">) {
    this.#dataFolder = dataFolder;
    this.#writeExport = write;
    this.#clock = clock;
  }

  /** Rejects with StoreUnavailable. */
  async open({ id, email }: AccountRecord, asking: AccountId): Promise<ReadableStream<Uint8Array> | NoExport> {
    const now = this.#clock.monotonic();
    const who = `${asking} ${id}`;
    const waitMs = this.#recent.waitMs(who, now);
    if (waitMs > 0) return { noExport: "too_many", retrySeconds: Math.ceil(waitMs / 1000) };
    if (this.#underWay.has(who) || this.#writing >= writingMax) {
      return { noExport: "busy", retrySeconds: busyRetrySeconds };
    }
    this.#recent.add(who, now);
    this.#underWay.add(who);
    this.#writing += 1;
    try {
      const file = await this.#write(email, asking === id);
      return streamOf(file, () => this.#underWay.delete(who));
    } catch (thrown) {
      this.#underWay.delete(who);
      throw new StoreUnavailable(`the account cannot be exported: ${(thrown as Error).message}`, { cause: thrown });
    } finally {
      this.#writing -= 1;
    }
  }

  async #write(email: string, withConversations: boolean): Promise<FileHandle> {
    const path = join(this.#dataFolder, `export-${crypto.randomUUID()}.tmp`);
    const file = await open(path, "wx+", 0o600);
    try {
      await unlink(path); // whatever happens from here on, nothing is left behind
      await this.#writeExport(email, file.fd, withConversations);
      return file;
    } catch (thrown) {
      await file.close();
      throw thrown;
    }
  }
}

/** `ended` is called once, when everything was read or the reader has left. */
function streamOf(file: FileHandle, ended: () => void): ReadableStream<Uint8Array> {
  let position = 0;
  const end = async (): Promise<void> => {
    ended();
    await file.close();
  };
  return new ReadableStream({
    async pull(controller) {
      const { bytesRead, buffer } = await file.read(new Uint8Array(chunkBytes), 0, chunkBytes, position);
      position += bytesRead;
      if (bytesRead > 0) return controller.enqueue(buffer.subarray(0, bytesRead));
      await end();
      controller.close();
    },
    cancel: end,
  });
}
