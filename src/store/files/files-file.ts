// The rows of files in a file beside the ledger's, which a Worker has while they are asked for: no thread that serves clients
// waits for their fsync.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { FileRows } from "../../files/files.ts";
import { remote } from "../../core/workers.ts";
import { besideWorker } from "../beside-worker.ts";
import { filesDatabaseName } from "../folder/data-folder.ts";

const filesIdleMs = 60_000;
/** Without a file there is nothing that these would find, and a start makes none. */
const finding: ReadonlySet<string> = new Set(["removeExpired", "removeAll", "known", "conversationShare"]);

export function fileRowsIn(dataFolder: string): FileRows {
  const file = join(dataFolder, filesDatabaseName);
  // Whoever calls hears of what fails.
  const options = { idleMs: filesIdleMs, onFailure: () => {} };
  const worker = besideWorker(file, "store/files/files-worker.ts", () => [file], options);
  return remote<FileRows>(async (call) => {
    if (call.order === "close") return worker.close();
    return finding.has(call.order) && !existsSync(file) ? [] : worker.call(call);
  });
}
