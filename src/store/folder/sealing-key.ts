// The key that seals what clients carry for us (reasoning, summaries): minted once for a data folder, beside the
// database. Without it (another folder, a restored backup) sealed content is left out of conversations, not an error.
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { DataFolderUnusable, codeOf, messageOf, sealingKeyName } from "./data-folder.ts";

/** The key of `folder`, `bytes` long. Throws DataFolderUnusable when it can be neither read nor written. */
export function sealingKeyOf(folder: string, bytes: number): Uint8Array {
  const file = join(folder, sealingKeyName);
  try {
    const key = existing(file) ?? mint(file, bytes);
    if (key.length !== bytes) throw new Error(`has ${key.length} bytes instead of ${bytes}`);
    return key;
  } catch (thrown) {
    throw new DataFolderUnusable(`cannot use ${file}: ${messageOf(thrown)}`, {
      cause: thrown,
    });
  }
}

function existing(file: string): Uint8Array | null {
  try {
    return readFileSync(file);
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return null;
    throw thrown;
  }
}

/** Under its name only when it is whole: a crash in between leaves nothing that a start would trip over. */
function mint(file: string, bytes: number): Uint8Array {
  const key = crypto.getRandomValues(new Uint8Array(bytes));
  const unfinished = `${file}.new`;
  const descriptor = openSync(unfinished, "w", 0o600);
  writeSync(descriptor, key);
  fsyncSync(descriptor);
  closeSync(descriptor);
  renameSync(unfinished, file);
  return key;
}
