// Copies the database to a file while it is in use.
import { Database } from "bun:sqlite";
import { closeSync, existsSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { checkPages } from "../verify/database-check.ts";
import { messageOf } from "../folder/data-folder.ts";
import type { BackupOrder, BackupReport } from "./backup-writer.ts";

/** No copy was made; the message is one line for the operator. */
export class BackupFailed extends Error {
  override readonly name = "BackupFailed";
}

export type Backup = Readonly<{ file: string; bytes: number; integrity: "ok" }>;

// A compiled binary keeps its Workers' paths below src/, as with the journal's writer.
const workerPath = import.meta.url.includes("/$bunfs/") ? "./store/backup/backup-writer.ts" : "./backup-writer.ts";
const progressIntervalMs = 500;

/**
 * Copies the committed state of `databaseFile` to `file`, which must not exist, and checks the copy. Requests go on
 * meanwhile. A copy that failed or was cut off by a crash leaves `<file>.partial`, which the next one overwrites.
 * `open`: the only way to a database whose file was removed, moved or replaced; a copy over it stops all else meanwhile.
 * Throws BackupFailed.
 */
export async function backUp(
  databaseFile: string,
  file: string,
  progress: (line: string) => void,
  open: Database | null = null,
): Promise<Backup> {
  if (existsSync(file)) throw new BackupFailed(`${file} exists already; a backup never overwrites a file`);
  const partial = `${file}.partial`;
  if (open !== null) return rescue(open, partial, file);
  const worker = new Worker(new URL(workerPath, import.meta.url).href);
  const copied = Promise.withResolvers<number>();
  let databaseBytes = 0;
  let isChecking = false;
  worker.onmessage = ({ data }: MessageEvent<BackupReport>) => {
    if ("databaseBytes" in data) databaseBytes = data.databaseBytes;
    else if ("checking" in data) isChecking = true;
    else if ("copied" in data) copied.resolve(data.copied);
    else copied.reject(new BackupFailed(`cannot write the backup ${file}: ${data.failed}`));
  };
  worker.onerror = ({ message }) => copied.reject(new BackupFailed(`cannot write the backup ${file}: ${message}`));
  const timer = setInterval(() => {
    if (isChecking) progress("checking every page of the copy");
    else if (databaseBytes > 0) progress(`${bytesText(sizeOf(partial))} of about ${bytesText(databaseBytes)} copied`);
  }, progressIntervalMs);
  try {
    worker.postMessage({ database: databaseFile, partial, file } satisfies BackupOrder);
    return { file, bytes: await copied.promise, integrity: "ok" };
  } catch (thrown) {
    rmSync(partial, { force: true });
    throw thrown;
  } finally {
    clearInterval(timer);
  }
}

function rescue(open: Database, partial: string, file: string): Backup {
  try {
    closeSync(openSync(partial, "w", 0o600));
    const copy = open.prepare("VACUUM INTO ?");
    copy.run(partial);
    copy.finalize();
    const copied = new Database(partial, { readonly: true, strict: true });
    try {
      checkPages(copied);
    } finally {
      copied.close();
    }
    renameSync(partial, file);
    return { file, bytes: statSync(file).size, integrity: "ok" };
  } catch (thrown) {
    rmSync(partial, { force: true });
    throw new BackupFailed(`cannot write the backup ${file}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** "12,345 bytes" */
export const bytesText = (bytes: number): string => `${bytes.toLocaleString("en-US")} bytes`;

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
