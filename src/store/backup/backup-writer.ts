// The Worker that copies the database: VACUUM INTO holds its thread until it is done. It reads one committed state and
// does not stop the journal's writer; only checkpoints wait for it.
import { Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync, renameSync, statSync } from "node:fs";
import { messageOf } from "../folder/data-folder.ts";

/** To the Worker: copy `database` to `partial`, check it, then give it the name `file`. */
export type BackupOrder = Readonly<{ database: string; partial: string; file: string }>;
/** From the Worker: the database's size when it begins, the check of the copy when that begins, then how it ended. */
export type BackupReport =
  | Readonly<{ databaseBytes: number }>
  | Readonly<{ checking: string }>
  | Readonly<{ copied: number }>
  | Readonly<{ failed: string }>;

declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<BackupOrder>) => {
  try {
    report({ copied: copy(data) });
  } catch (thrown) {
    report({ failed: messageOf(thrown) });
  }
  self.onmessage = null; // a Worker that listens to nothing ends
};

/** Gives the bytes of the copy, which is on disk and whole when this returns. */
function copy({ database, partial, file }: BackupOrder): number {
  closeSync(openSync(partial, "w", 0o600)); // VACUUM INTO takes an empty file, and would make a readable one
  const source = new Database(database, { readonly: true, strict: true });
  try {
    report({ databaseBytes: statSync(database).size });
    source.query("VACUUM INTO ?").run(partial);
  } finally {
    source.close();
  }
  report({ checking: partial });
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

function report(message: BackupReport): void {
  self.postMessage(message);
}
