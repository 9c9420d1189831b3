// The default place of the data: a folder of its own, so that a ledger does not lie beside files of a repository.
// Until 2026-11 that was the folder above it. Who has a ledger there goes on with it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { databaseName, lockName } from "../core/ledger-files.ts";

export const newDataFolder = "./data/var";
export const olderDataFolder = "./data";

/** `within`: the working folder. */
export function usualDataFolder(within = "."): string {
  const has = (folder: string, name: string): boolean => existsSync(join(within, folder, name));
  if (has(olderDataFolder, databaseName)) return olderDataFolder;
  // Its ledger is gone: a start there says so, and makes none.
  return has(olderDataFolder, lockName) && !has(newDataFolder, "") ? olderDataFolder : newDataFolder;
}
