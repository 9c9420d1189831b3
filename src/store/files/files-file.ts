// The rows of files in SQLite, in a file beside the ledger's that a Worker has; it ends when idle.
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { startWorker, WorkerClient } from "../../core/workers.ts";
import { filesDatabaseName } from "../folder/data-folder.ts";
import { fileStatements, FileRowsIn, type FileValue } from "./file-rows.ts";

/** The Worker ends after this long without anything to do. */
const filesIdleMs = 60_000;

export type FilesCall =
  | Readonly<{ order: "open"; file: string }>
  | Readonly<{ order: "run"; name: keyof typeof fileStatements; values: readonly FileValue[] }>
  | Readonly<{ order: "close" }>;

export function fileRowsIn(dataFolder: string): FileRowsIn {
  const file = join(dataFolder, filesDatabaseName);
  const worker = new WorkerClient<FilesCall>({
    start: () => {
      closeSync(openSync(file, "a", 0o600)); // readable by its owner alone, like the ledger
      return startWorker("store/files/files-worker.ts");
    },
    open: () => ({ order: "open", file }),
    close: { order: "close" },
    idleMs: filesIdleMs,
  });
  const run = <Row>(name: keyof typeof fileStatements, ...values: readonly FileValue[]): Promise<readonly Row[]> => {
    // Without a file there is nothing to remove, and a start makes none.
    const isIdle = (name === "expire" || name === "erase" || name === "known") && !existsSync(file);
    return isIdle ? Promise.resolve([]) : worker.call({ order: "run", name, values });
  };
  return new FileRowsIn(run, () => worker.close());
}
