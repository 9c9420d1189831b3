// The Worker that copies the database: VACUUM INTO blocks its thread until it is done. It reads one committed state and
// does not stop the journal's writer; only checkpoints wait for it.
import { Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync, renameSync, statSync } from "node:fs";
import { answerCalls, endWorker } from "../../core/workers.ts";

/** `copy`: copies `database` to `partial`, checks it, then gives it the name `file`; the result is its bytes. */
export type BackupCall =
  Readonly<{ order: "copy"; database: string; partial: string; file: string }> | Readonly<{ order: "close" }>;
/** The database's size when the copy begins, then which file is being checked. */
export type BackupProgress = Readonly<{ databaseBytes: number }> | Readonly<{ checking: string }>;

declare const self: Worker;

answerCalls<BackupCall>(self, (call, progress) => (call.order === "copy" ? copy(call, progress) : endWorker(self)));

/** Gives the bytes of the copy, which is on disk and whole when this returns. */
function copy(
  { database, partial, file }: Extract<BackupCall, { order: "copy" }>,
  progress: (progress: BackupProgress) => void,
): number {
  closeSync(openSync(partial, "w", 0o600)); // VACUUM INTO takes an empty file, and would make a readable one
  const source = new Database(database, { readonly: true, strict: true });
  try {
    progress({ databaseBytes: statSync(database).size });
    source.query("VACUUM INTO ?").run(partial);
  } finally {
    source.close();
  }
  progress({ checking: partial });
  checkIntegrity(partial);
  const descriptor = openSync(partial, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
  renameSync(partial, file);
  return statSync(file).size;
}

function checkIntegrity(file: string): void {
  const copied = new Database(file, { readonly: true, strict: true });
  try {
    const found = copied.query("PRAGMA integrity_check").all() as { integrity_check: string }[];
    const [first] = found;
    if (first?.integrity_check !== "ok")
      throw new Error(`the copy is damaged: ${first?.integrity_check ?? "no answer"}`);
  } finally {
    copied.close();
  }
}
