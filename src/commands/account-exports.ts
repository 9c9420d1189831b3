// Exports of accounts for browsers. Each is written to a file without a name first: rows are read in one transaction,
// which must not last as long as somebody's connection is slow, because the journal's log cannot be cut meanwhile.
import { type FileHandle, open, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { AccountRecord } from "../account/records.ts";
import { exportAccount } from "../store/account-export.ts";
import { type AccountId, StoreUnavailable } from "../types.ts";

/** Of all accounts together; each is at most as large as the ledger. */
const exportsMax = 4;
const chunkBytes = 64 * 1024;

export class AccountExports {
  readonly #dataFolder: string;
  readonly #databaseFile: string;
  readonly #underWay = new Set<AccountId>();

  constructor(dataFolder: string, databaseFile: string) {
    this.#dataFolder = dataFolder;
    this.#databaseFile = databaseFile;
  }

  /** Null: too many are under way, or one of this account is. Rejects with StoreUnavailable. */
  async open({ id, email }: AccountRecord): Promise<ReadableStream<Uint8Array> | null> {
    if (this.#underWay.has(id) || this.#underWay.size >= exportsMax) return null;
    this.#underWay.add(id);
    try {
      const file = await this.#write(email);
      return streamOf(file, () => this.#underWay.delete(id));
    } catch (thrown) {
      this.#underWay.delete(id);
      throw new StoreUnavailable(`the account cannot be exported: ${(thrown as Error).message}`, { cause: thrown });
    }
  }

  async #write(email: string): Promise<FileHandle> {
    const path = join(this.#dataFolder, `export-${crypto.randomUUID()}.tmp`);
    const file = await open(path, "wx+", 0o600);
    try {
      await unlink(path); // whatever happens from here on, nothing is left behind
      const pieces = exportAccount(this.#databaseFile, email);
      if (pieces === null) throw new Error("it was deleted meanwhile");
      let text = "";
      for (const piece of pieces) {
        text += piece;
        if (text.length < chunkBytes) continue;
        await file.appendFile(text); // other requests are answered meanwhile
        text = "";
      }
      await file.appendFile(text);
      return file;
    } catch (thrown) {
      await file.close();
      throw thrown;
    }
  }
}

/** `ended` is called once, when everything was read or nobody wants the rest. */
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
