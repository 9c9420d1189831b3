// The main thread's end of the usage index, which lives in a file and a Worker of its own. The index is created when
// usage is first asked for; once it exists, it follows the journal from the start of the server.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { UsageQueries } from "../../account/usage-queries.ts";
import type { Log } from "../../core/log.ts";
import { type AccountId, StoreUnavailable } from "../../core/types.ts";
import { remote } from "../../core/workers.ts";
import { besideWorker } from "../beside-worker.ts";
import { usageName } from "../folder/data-folder.ts";
import { messageOf } from "../folder/folder-faults.ts";

type UsageFile = UsageQueries &
  Readonly<{
    /** Removes the tags of an account whose lines have none anymore. */
    erase(account: AccountId): Promise<void>;
    close(): Promise<void>;
  }>;

/** `journalFile` is the database of a data folder that this process holds. `follows`: an index that is there, from now on. */
export function usageInFile(dataFolder: string, journalFile: string, log: Log, follows = true): UsageFile {
  const file = join(dataFolder, usageName);
  const failed = (reason: unknown): void => log("error", "the usage index failed", { reason: messageOf(reason) });
  const open = () => [file, journalFile];
  const worker = besideWorker(file, "store/usage/usage-worker.ts", open, { onNews: failed, onFailure: failed });
  if (follows && existsSync(file)) worker.start().catch(failed);
  return remote<UsageFile>((call) =>
    call.order === "close"
      ? worker.close()
      : call.order === "erase" && !existsSync(file)
        ? Promise.resolve()
        : worker.call(call).catch((thrown: Error) => {
            throw new StoreUnavailable(`usage cannot be read: ${thrown.message}`, { cause: thrown });
          }),
  );
}
