// Small files of the data folder that are there as a whole or not at all, whatever happens while they are written.
import { chownSync, closeSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { databaseName } from "../../core/ledger-files.ts";
import { codeOf, DataFolderUnusable, messageOf } from "./folder-faults.ts";

/** Null where there is none. */
export function readWhole(file: string): Uint8Array | null {
  try {
    return readFileSync(file);
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return null;
    throw thrown;
  }
}

/** Null where there is none; a damaged one lacks what it should have. Throws DataFolderUnusable where it cannot be read. */
export function readMark<Mark extends object>(file: string): Partial<Mark> | null {
  try {
    const bytes = readWhole(file);
    return bytes === null ? null : ((JSON.parse(new TextDecoder().decode(bytes)) as Partial<Mark> | null) ?? {});
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return {};
    throw new DataFolderUnusable(`cannot read ${file}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/**
 * Under its name only when it is on disk; readable by its owner alone, who is the ledger's or the folder's. Its name is on disk,
 * too, where its `folder` is given.
 */
export function writeWhole(file: string, bytes: Uint8Array, folder: string | null = null): void {
  const unfinished = `${file}.new`;
  const descriptor = openSync(unfinished, "w", 0o600);
  writeSync(descriptor, bytes);
  fsyncSync(descriptor);
  closeSync(descriptor);
  giveToOwner(unfinished);
  renameSync(unfinished, file);
  if (folder !== null) flush(folder);
}

export function flush(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * What a command of root makes in a data folder belongs to whose the ledger is, or the folder: a service that runs as
 * another user must be able to open it.
 */
export function giveToOwner(file: string): void {
  if (process.geteuid?.() !== 0) return;
  const folder = dirname(file);
  const { uid, gid } = statSync(join(folder, databaseName), { throwIfNoEntry: false }) ?? statSync(folder);
  chownSync(file, uid, gid);
}
