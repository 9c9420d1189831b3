// Copies the database to a file while it is in use.
import { Database } from "bun:sqlite";
import { closeSync, existsSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { checkPages } from "../verify/database-check.ts";
import { messageOf } from "../folder/folder-faults.ts";
import { bytesText } from "../../core/units.ts";
import { startWorker, WorkerClient } from "../../core/workers.ts";
import type { BackupCall, BackupProgress } from "./backup-writer.ts";

/** No copy was made; the message is one line for the operator. */
class BackupFailed extends Error {
  override readonly name = "BackupFailed";
}

export type Backup = Readonly<{ file: string; bytes: number; integrity: "ok" }>;

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
  const worker = new WorkerClient<BackupCall>({
    start: () => startWorker("store/backup/backup-writer.ts"),
    close: { order: "close" },
  });
  let state: BackupProgress = { databaseBytes: 0 };
  const timer = setInterval(() => {
    if ("checking" in state) progress("checking every page of the copy");
    else if (state.databaseBytes > 0)
      progress(`${bytesText(sizeOf(partial))} of about ${bytesText(state.databaseBytes)} copied`);
  }, progressIntervalMs);
  try {
    const bytes = await worker.call<number>(
      { order: "copy", database: databaseFile, partial, file },
      { progress: (news) => void (state = news as BackupProgress) },
    );
    return { file, bytes, integrity: "ok" };
  } catch (thrown) {
    rmSync(partial, { force: true });
    throw new BackupFailed(`cannot write the backup ${file}: ${(thrown as Error).message}`, { cause: thrown });
  } finally {
    clearInterval(timer);
    await worker.close();
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

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
