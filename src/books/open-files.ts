// Opens the files that clients upload, in the folder that the configuration names.
import { join } from "node:path";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { AccountId } from "../core/types.ts";
import { FileStore } from "../files/file-store.ts";
import type { FileRows } from "../files/files.ts";
import { filesName } from "../store/folder/data-folder.ts";
import { DataFolderUnusable, messageOf } from "../store/folder/folder-faults.ts";
import { freeBytesIn } from "../store/folder/disk-room.ts";

export type FilesConfigured = Pick<Config, "dataFolder" | "databaseUrl" | "files">;

export const filesFolderOf = ({ dataFolder, files }: Pick<Config, "dataFolder" | "files">): string =>
  files?.folder ?? join(dataFolder, filesName);

/** Throws DataFolderUnusable. */
export async function openFiles(
  { dataFolder, databaseUrl, files }: FilesConfigured,
  rows: FileRows,
  clock: Clock,
  log: Log,
): Promise<FileStore> {
  const folder = filesFolderOf({ dataFolder, files });
  const limits = files ?? { fileBytesMax: 0, accountBytesMax: 0, totalBytesMax: 0, keepMs: 0 };
  const isShared = databaseUrl !== null;
  const freeBytes = () => freeBytesIn(folder);
  return FileStore.open({ folder, isShared, limits, rows, freeBytes, clock, log }).catch((thrown: unknown) => {
    throw new DataFolderUnusable(`cannot use the folder of files (files.folder): ${messageOf(thrown)}`, {
      cause: thrown,
    });
  });
}

/** Where no server takes files, or none runs. */
export async function eraseFilesIn(
  config: FilesConfigured,
  rows: FileRows,
  account: AccountId,
  clock: Clock,
  log: Log,
): Promise<void> {
  const files = await openFiles(config, rows, clock, log);
  try {
    await files.eraseAccount(account);
  } finally {
    await files.close();
  }
}
