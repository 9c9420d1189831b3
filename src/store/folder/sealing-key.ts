// The key that seals what clients carry for us (reasoning, summaries): minted once for a data folder, beside the
// database. Without it (another folder, a restored backup) sealed content is left out of conversations, not an error.
import { join } from "node:path";
import { sealingKeyName } from "./data-folder.ts";
import { DataFolderUnusable, messageOf } from "./folder-faults.ts";
import { readWhole, writeWhole } from "./whole-file.ts";

/** The key of `folder`, `bytes` long. Throws DataFolderUnusable when it can be neither read nor written. */
export function sealingKeyOf(folder: string, bytes: number): Uint8Array {
  const file = join(folder, sealingKeyName);
  try {
    const key = readWhole(file) ?? mint(file, bytes);
    if (key.length !== bytes) throw new Error(`has ${key.length} bytes instead of ${bytes}`);
    return key;
  } catch (thrown) {
    throw new DataFolderUnusable(`cannot use ${file}: ${messageOf(thrown)}`, {
      cause: thrown,
    });
  }
}

function mint(file: string, bytes: number): Uint8Array {
  const key = crypto.getRandomValues(new Uint8Array(bytes));
  writeWhole(file, key);
  return key;
}
