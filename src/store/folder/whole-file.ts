// Small files of the data folder that are there as a whole or not at all, whatever happens while they are written.
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { codeOf } from "./data-folder.ts";

/** Null where there is none. */
export function readWhole(file: string): Uint8Array | null {
  try {
    return readFileSync(file);
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return null;
    throw thrown;
  }
}

/** A damaged one is null, or lacks what it should have. */
export function parsedMark<Mark extends object>(bytes: Uint8Array): Partial<Mark> | null {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Partial<Mark> | null;
  } catch {
    return null;
  }
}

/** Under its name only when it is on disk; readable by its owner alone. Its name is, too, where its `folder` is given. */
export function writeWhole(file: string, bytes: Uint8Array, folder: string | null = null): void {
  const unfinished = `${file}.new`;
  const descriptor = openSync(unfinished, "w", 0o600);
  writeSync(descriptor, bytes);
  fsyncSync(descriptor);
  closeSync(descriptor);
  renameSync(unfinished, file);
  if (folder !== null) flush(folder);
}

/** A file, or the names in a folder. */
export function flush(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
