// The data folder: readable by its owner alone, and held by one process at a time.
import { Database } from "bun:sqlite";
import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { databaseName, lockName } from "../../core/ledger-files.ts";
import { movedMark, whyMoved } from "./moved-folder.ts";
import { codeOf, DataFolderInUse, DataFolderUnusable, messageOf } from "./folder-faults.ts";
import { servedMark, servedName } from "./served-folder.ts";

export { databaseName, lockName };
/** The files of the stored responses, of the usage index, of the operators' charts and of refused and failed requests. */
export const responsesName = "responses.db";
export const usageName = "usage.db";
export const activityName = "activity.db";
export const requestsName = "requests.db";
/** What is known of files, and the folder of their contents. */
export const filesDatabaseName = "files.db";
export const filesName = "files";
export const sealingKeyName = "sealing.key";
export const drainedName = "drained-nodes.json";
/** Used-up budgets that webhooks have reported. */
export const toldName = "told-budgets.json";
/** A folder, of the backups that the console and a schedule make. */
export const backupsName = "backups";

export type DataFolder = Readonly<{
  databaseFile: string;
  release(): void;
}>;

/** As `lockDataFolder`, with an empty database if there is none, unless there must have been one. */
export function takeDataFolder(folder: string): DataFolder {
  const held = lockDataFolder(folder);
  try {
    const moved = whyMoved(folder);
    if (moved !== null) throw new DataFolderUnusable(moved);
    const missing = missingLedger(folder);
    if (missing !== null) throw new DataFolderUnusable(missing);
    createPrivate(held.databaseFile);
    return held;
  } catch (thrown) {
    held.release();
    throw thrown instanceof DataFolderUnusable ? thrown : unusable(folder, thrown);
  }
}

/**
 * What to do where a folder's ledger is gone: files are there that are made beside one only; or where it never had one, since
 * its gateway served from a database. Null where it is there, or none was ever made. An empty file is one that a first start
 * had no time for.
 */
export function missingLedger(folder: string): string | null {
  if (sizeOf(join(folder, databaseName)) > 0) return null;
  const replaced = namesIn(folder).filter((name) => /^replaced-.*-tollgate\.db$/.test(name));
  const backups = namesIn(join(folder, backupsName)).filter((name) => name.endsWith(".db"));
  const made = [responsesName, usageName, activityName, requestsName, filesDatabaseName, sealingKeyName, drainedName];
  made.push(`${databaseName}-wal`);
  const left = made.filter((name) => sizeOf(join(folder, name)) > 0).concat(replaced);
  if (backups.length > 0) left.push(backupsName);
  const served = servedMark(folder);
  if (served !== null) left.unshift(servedName);
  if (left.length === 0) return null;
  const away = `\`cd ${folder} && mkdir -p before && mv ${left.join(" ")} before\``;
  if (served !== null) {
    return (
      `the gateway of ${folder} served from ${served.from}, which has the accounts and keys: name it in [ledger] url or ` +
      `TOLLGATE_DATABASE_URL; \`tollgate move --from env --to-data ${folder}\` brings its books here, and ${away} begins anew ` +
      `without any account`
    );
  }
  const [newest] = [
    ...backups.toReversed().map((name) => join(folder, backupsName, name)),
    ...replaced.toReversed().map((name) => join(folder, name)),
  ];
  return (
    `the ledger ${join(folder, databaseName)} is gone, but ${left.join(", ")} of it ${left.length === 1 ? "is" : "are"} there: ` +
    `restore a backup with \`tollgate restore ${newest ?? "FILE"} --data ${folder}\`, or, to begin anew without any ` +
    `account, move what is left away with ${away}`
  );
}

/**
 * As `lockDataFolder`, for a gateway whose ledger is in `database`, as it is named to people: a folder that has books of its
 * own is refused, since they would be left behind.
 */
export function takeFolderBeside(folder: string, database: string): DataFolder {
  const held = lockDataFolder(folder);
  try {
    const mark = movedMark(folder);
    const problem =
      mark === null && sizeOf(held.databaseFile) > 0
        ? `${folder} has books of its own, which ${database} does not have: move them there with ` +
          `\`tollgate move --to env --data ${folder}\`, or name another folder with --data DIR`
        : mark?.state === "moving"
          ? whyMoved(folder)
          : null;
    if (problem === null) return held;
    throw new DataFolderUnusable(problem);
  } catch (thrown) {
    held.release();
    throw thrown;
  }
}

/** In order; none where there is no such folder. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch {
    return [];
  }
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/**
 * Makes the folder if there is none and takes it for this process. Throws DataFolderInUse or DataFolderUnusable.
 *
 * The lock is SQLite's own exclusive lock on a small database of its own: it is an fcntl lock, so the system drops it
 * with the process, also after `kill -9`. Nothing else in the process may open that file, since closing any descriptor
 * of a file drops all of the process's fcntl locks on it.
 */
export function lockDataFolder(folder: string): DataFolder {
  const lockFile = join(folder, lockName);
  const databaseFile = join(folder, databaseName);
  let lock: Database | null = null;
  try {
    if (mkdirSync(folder, { recursive: true }) !== undefined) chmodSync(folder, 0o700);
    lock = new Database(lockFile, { create: true });
    chmodSync(lockFile, 0o600);
    lock.run("PRAGMA busy_timeout = 0");
    lock.run("BEGIN EXCLUSIVE");
  } catch (thrown) {
    lock?.close();
    if (codeOf(thrown).startsWith("SQLITE_BUSY")) throw new DataFolderInUse(folder);
    throw unusable(folder, thrown);
  }
  const held = lock;
  return { databaseFile, release: () => held.close() };
}

function unusable(folder: string, thrown: unknown): DataFolderUnusable {
  return new DataFolderUnusable(`cannot write to the data folder ${folder}: ${messageOf(thrown)}`, { cause: thrown });
}

/** Creates the file readable by its owner alone; SQLite gives its -wal and -shm files the same mode. */
function createPrivate(file: string): void {
  closeSync(openSync(file, "a", 0o600));
}
