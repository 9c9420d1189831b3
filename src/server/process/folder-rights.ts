// Checks whether this user may work on a data folder. This is checked first, because the system's own errors would be
// about sockets, locks and databases.
import { CommandError } from "../../core/expected-error.ts";
import { accessSync, constants, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { databaseName, lockName } from "../../store/folder/data-folder.ts";

/** Throws CommandError, which names whose the folder is. A folder that is not there, or a file of it, is no matter. */
export function checkFolderRights(folder: string, socket: string): void {
  const { R_OK, W_OK, X_OK } = constants;
  if (isOther(folder)) throw new CommandError(`${folder} is not a folder; name the data folder with --data DIR`);
  check(folder, folder, R_OK | W_OK | X_OK);
  for (const file of [socket, join(folder, lockName), join(folder, databaseName)]) check(folder, file, R_OK | W_OK);
}

/** Something is there that is no folder. */
function isOther(path: string): boolean {
  try {
    return !statSync(path).isDirectory();
  } catch {
    return false; // nothing, or nothing that may be looked at, which is found out next
  }
}

function check(folder: string, path: string, rights: number): void {
  try {
    accessSync(path, rights);
  } catch (error) {
    const { code } = error as { code?: string };
    if (code !== "EACCES" && code !== "EPERM" && code !== "EROFS") return;
    if (code === "EROFS") throw new CommandError(`the data folder ${folder} is on a disk that is mounted read-only`);
    throw new CommandError(
      `this user (id ${process.getuid?.()}) has no right to ${path}${ownerOf(path)}: run the command as that user or as root`,
    );
  }
}

/** Of the nearest folder above that may be looked at. */
function ownerOf(path: string): string {
  for (let at = path; ; at = dirname(at)) {
    try {
      const { uid } = statSync(at);
      return at === path
        ? `, which belongs to the user with the id ${uid}`
        : ` in ${at}, which belongs to the user with the id ${uid}`;
    } catch {
      if (at === dirname(at)) return "";
    }
  }
}
