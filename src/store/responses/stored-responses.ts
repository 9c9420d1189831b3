// Stored responses in a file beside the ledger's.
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../core/log.ts";
import type { AccountId } from "../../core/types.ts";
import { startWorker as startWorkerOf } from "../../core/workers.ts";
import { responsesName } from "../folder/data-folder.ts";
import { DataFolderUnusable } from "../folder/folder-faults.ts";
import { KeptResponses, type SetLimits } from "./kept-responses.ts";

export type StoredResponsesOptions = SetLimits &
  Readonly<{
    dataFolder: string;
    log: Log;
    /** For tests: makes another Worker than the one that has the file. */
    startWorker?: () => Worker;
  }>;

export class StoredResponsesFile extends KeptResponses {
  private constructor(file: string, { keepMs, accountBytesMax, log, startWorker }: StoredResponsesOptions) {
    super({
      limits: { keepMs, accountBytesMax },
      log,
      awaited: false,
      worker: {
        start: startWorker ?? (() => startWorkerOf("store/responses/stored-responses-worker.ts")),
        open: (limits) => ({ order: "open", file, limits }),
      },
    });
  }

  /** Opens the file in a data folder that this process holds, and makes it if there is none. Throws DataFolderUnusable. */
  static async open(options: StoredResponsesOptions): Promise<StoredResponsesFile> {
    const file = join(options.dataFolder, responsesName);
    const responses = new StoredResponsesFile(file, options);
    closeSync(openSync(file, "a", 0o600)); // readable by its owner alone, like the ledger
    try {
      await responses.worker.start();
    } catch (thrown) {
      await responses.close();
      throw new DataFolderUnusable((thrown as Error).message, { cause: thrown });
    }
    return responses;
  }

  /** Removes all of an account's responses in a data folder that this process holds, where no server keeps any. */
  static async eraseIn(dataFolder: string, account: AccountId, log: Log): Promise<void> {
    if (!existsSync(join(dataFolder, responsesName))) return;
    // The limits are of no account here: what another start keeps for longer must not go.
    const responses = await StoredResponsesFile.open({
      dataFolder,
      keepMs: Number.MAX_SAFE_INTEGER,
      accountBytesMax: Number.MAX_SAFE_INTEGER,
      log,
    });
    try {
      await responses.erase(account, true);
    } finally {
      await responses.close();
    }
  }
}
