// The backups that are files of this machine, and the console's way to make one.
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { BackupSchedule, Config } from "../../config/config.ts";
import type { BackupFile, Backups } from "../../console/server-care.ts";
import type { Work } from "../../office/work.ts";
import { backupsName } from "../../store/folder/data-folder.ts";
import { freeBytesIn } from "../../store/folder/disk-room.ts";
import { noBackup } from "../../store/postgres/no-backup.ts";

export const backupsOf = (
  { databaseUrl, dataFolder }: Pick<Config, "databaseUrl" | "dataFolder">,
  schedule: () => BackupSchedule | null,
  work: Pick<Work, "backup">,
): Backups => (databaseUrl === null ? backupsIn(resolve(dataFolder, backupsName), schedule, work) : ofDatabase);

/** What went wrong is the operator's to see. */
const backupsIn = (
  folder: string,
  schedule: () => BackupSchedule | null,
  { backup }: Pick<Work, "backup">,
): Backups => ({
  folder,
  get schedule() {
    return schedule();
  },
  freeBytes: () => freeBytesIn(dirname(folder)), // it may not be there yet
  list: (max) => filesIn(folder).slice(0, max),
  async make(name) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const { bytes } = await backup(join(folder, name), () => {}); // no command waits for lines about its progress
      return { bytes };
    } catch (error) {
      return { failed: error instanceof Error ? error.message : String(error) };
    }
  },
});

const ofDatabase: Backups = {
  folder: null,
  schedule: null,
  freeBytes: () => null,
  list: () => [],
  make: () => Promise.resolve({ failed: noBackup }),
};

function filesIn(folder: string): BackupFile[] {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  const files = readdirSync(folder).flatMap((name) => {
    const found = name.endsWith(".db") ? statSync(join(folder, name), { throwIfNoEntry: false }) : undefined;
    return found?.isFile() === true ? { name, bytes: found.size, madeAt: Math.floor(found.mtimeMs) } : [];
  });
  return files.toSorted((one, other) => other.madeAt - one.madeAt);
}
