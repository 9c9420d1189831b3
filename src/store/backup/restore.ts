// Puts a backup in the place of a data folder's ledger. All that can be wrong with the backup is found on a copy of it in
// the folder, before anything else is touched; the ledger of before is kept beside under another name.
//
//   FILE -> tollgate.db.restoring -> checked, brought to this version -> renamed to tollgate.db
//
// A crash at any moment leaves either the old ledger or the new one in place, whole.
import { Database } from "bun:sqlite";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { serverEntry, theServer } from "../../account/audit.ts";
import { assert } from "../../core/assert.ts";
import { systemClock } from "../../core/clock.ts";
import type { Ms } from "../../core/types.ts";
import { noteInLedger } from "../ledger/audit-note.ts";
import { bytesText } from "../../core/units.ts";
import { checkPages, contentsOf, DatabaseUnfit, type LedgerContents, versionOf } from "../verify/database-check.ts";
import { ledgerViolations } from "../verify/verify.ts";
import {
  activityName,
  filesDatabaseName,
  filesName,
  requestsName,
  databaseName,
  lockDataFolder,
  lockName,
  missingLedger,
  responsesName,
  usageName,
} from "../folder/data-folder.ts";
import { giveToOwner } from "../folder/whole-file.ts";
import { codeOf, messageOf } from "../folder/folder-faults.ts";
import { whyMoved } from "../folder/moved-folder.ts";
import { servedMark } from "../folder/served-folder.ts";
import { migrate } from "../ledger/migrate.ts";
import { openForReading, openForWriting } from "../open.ts";
import { openFilesDatabase } from "../files/files-database.ts";
import { openStoredResponses } from "../responses/stored-responses-file.ts";

/** Nothing was put in place and nothing has changed; the message is one line for the operator. */
class RestoreFailed extends Error {
  override readonly name = "RestoreFailed";
}

export type RestoreOrder = Readonly<{
  file: string;
  dataFolder: string;
  /** Wall-clock time, which is in the names of what is kept. */
  now: Ms;
  /** How it came, for the audit log of what is restored. */
  by: string;
  /** Restores a ledger that contradicts itself, too: where there is no better one. */
  acceptViolations: boolean;
  progress: (line: string) => void;
}>;

export type Restored = LedgerContents &
  Readonly<{
    bytes: number;
    violations: number;
    /** Where the ledger of before is; null where there was none. */
    kept: string | null;
    /** Where the stored responses of before are, if they may be of other accounts; null where they stay, or there were none. */
    keptResponses: string | null;
  }>;

const pieceBytes = 8 * 1024 ** 2;
const progressIntervalMs = 1_000;
const violationsTold = 5;
const logs = ["-wal", "-shm"];

/** Throws RestoreFailed, and DataFolderInUse where a process works on the folder. */
export function restore(order: RestoreOrder): Restored {
  const { file, dataFolder } = order;
  if (!existsSync(file)) throw new RestoreFailed(`there is no file ${file}`);
  const place = join(dataFolder, databaseName);
  if (isSameFile(file, place)) throw new RestoreFailed(`${file} is the ledger in use itself`);
  if (isSameFile(file, `${place}.restoring`)) {
    throw new RestoreFailed(`${file} is where a restore puts its copy, and is overwritten by it; rename it first`);
  }
  const folder = lockDataFolder(dataFolder);
  giveToOwner(join(dataFolder, lockName));
  const live = folder.databaseFile;
  const copy = `${live}.restoring`;
  try {
    const elsewhere = whyMoved(dataFolder) ?? (servedMark(dataFolder) === null ? null : missingLedger(dataFolder));
    if (elsewhere !== null) throw new RestoreFailed(`nothing was restored: ${elsewhere}`);
    const checked = checkedCopy(copy, order);
    return { ...checked, ...putInPlace(copy, live, order) };
  } catch (thrown) {
    if (thrown instanceof RestoreFailed) throw thrown;
    const reason = thrown instanceof DatabaseUnfit ? `${file} ${thrown.message}` : `${file}: ${messageOf(thrown)}`;
    throw new RestoreFailed(`nothing was restored: ${reason}`, { cause: thrown });
  } finally {
    removeDatabase(copy);
    folder.release();
  }
}

/** The copy is on disk, whole, of this program's version and without a log when this returns. */
function checkedCopy(copy: string, { file, now, by, acceptViolations, progress }: RestoreOrder) {
  removeDatabase(copy); // of a restore that was cut off
  copyFile(file, copy, progress);
  if (existsSync(`${file}-wal`)) copyFile(`${file}-wal`, `${copy}-wal`, progress);
  inDatabase(new Database(copy, { readwrite: true, strict: true }), (database) => {
    versionOf(database);
    progress("checking every page");
    checkPages(database);
  });
  migrate(copy);
  noteInLedger(copy, serverEntry(now, by, "server.restore", theServer, `from ${file}`));
  // Before the check, whose statements keep their connection open.
  assert(removeLog(copy), "no other process has the copy open");
  const checked = inDatabase(openForReading(copy), (database) => {
    const violations = ledgerViolations(database, progress);
    if (violations.length > 0 && !acceptViolations) {
      const more = violations.length > violationsTold ? [`and ${violations.length - violationsTold} more`] : [];
      const shown = violations.slice(0, violationsTold).map(({ account, detail }) => `account ${account}: ${detail}`);
      throw new DatabaseUnfit(`contradicts itself: ${[...shown, ...more].join("; ")}`);
    }
    return { ...contentsOf(database), violations: violations.length };
  });
  return { ...checked, bytes: statSync(copy).size };
}

function putInPlace(copy: string, live: string, order: RestoreOrder): Pick<Restored, "kept" | "keptResponses"> {
  const { dataFolder, now } = order;
  const stamp = new Date(now).toISOString().replaceAll(/[-:.]/g, "");
  const keptAs = (name: string) => join(dataFolder, `replaced-${stamp}-${name}`);
  // An empty file is one that a first start had no time for.
  const hadLedger = sizeOf(live) > 0;
  const kept = hadLedger ? keptAs(databaseName) : null;
  if (kept !== null) keepLedger(live, kept, order);
  const keptResponses = keepOwn(responsesName, copy, live, keptAs, order);
  keepOwn(filesDatabaseName, copy, live, keptAs, order);
  for (const log of logs) rmSync(live + log, { force: true });
  renameSync(copy, live);
  flush(dataFolder);
  removeDatabase(join(dataFolder, usageName)); // an index of another journal
  removeDatabase(join(dataFolder, activityName)); // its accounts may be others, as the next one's
  removeDatabase(join(dataFolder, requestsName));
  return { kept, keptResponses };
}

/**
 * Gives the ledger in use a second name. Its log is moved into it first, so that one rename then takes the place of both;
 * one that is too damaged for that keeps its log as it was. Throws RestoreFailed where another program reads it.
 */
function keepLedger(live: string, kept: string, { progress }: RestoreOrder): void {
  const [log, keptLog] = [`${live}-wal`, `${kept}-wal`];
  if (existsSync(log)) copyFile(log, keptLog, progress); // SQLite may remove a log that it cannot use
  try {
    const isRead = !removeLog(live);
    rmSync(keptLog, { force: true });
    if (isRead) throw new RestoreFailed(`nothing was restored: another program has ${live} open; stop it first`);
  } catch (thrown) {
    if (thrown instanceof RestoreFailed) throw thrown;
    progress(`the ledger of before is kept as it is, because it is damaged: ${messageOf(thrown)}`);
  }
  linkSync(live, kept);
}

/**
 * Numbers of accounts that were made after the backup will be given again, and their new owners must not find the stored
 * responses and files of another. Those of accounts that both ledgers know stay; where that cannot be found out, all are set aside,
 * and their place is returned.
 */
function keepOwn(
  name: keyof typeof openBeside,
  copy: string,
  live: string,
  keptAs: (name: string) => string,
  { dataFolder, progress }: RestoreOrder,
): string | null {
  const path = join(dataFolder, name);
  if (sizeOf(path) === 0) return null;
  try {
    inDatabase(openBeside[name](path), (database) => {
      attach(database, live, "replaced");
      attach(database, copy, "restored");
      database.transaction(() => {
        for (const table of name === responsesName
          ? ["responses", "responses_use"]
          : ["stored_files", "conversation_shares", "conversation_records"]) {
          database.run(`DELETE FROM ${table} WHERE account_id NOT IN (
            SELECT id FROM replaced.accounts JOIN restored.accounts USING (id, created_at))`);
        }
      })();
    });
    return null;
  } catch (thrown) {
    const what = name === responsesName ? "stored responses" : "files";
    progress(`${what} are set aside, because their accounts cannot be compared: ${messageOf(thrown)}`);
    // A start would remove contents without rows.
    const all = ["", ...logs].map((log) => name + log).concat(name === filesDatabaseName ? filesName : []);
    for (const each of all) if (existsSync(join(dataFolder, each))) renameSync(join(dataFolder, each), keptAs(each));
    return keptAs(name);
  }
}

const openBeside = { [responsesName]: openStoredResponses, [filesDatabaseName]: openFilesDatabase } as const;

function attach(database: Database, file: string, name: string): void {
  const statement = database.prepare(`ATTACH ? AS ${name}`);
  statement.run(file);
  statement.finalize();
}

/**
 * Moves the log into the file, on disk, and removes it; false where another program has the file open. Leaving WAL mode
 * does that: unlike a checkpoint, it finds those too that read nothing at the moment, as Litestream between two looks.
 */
function removeLog(file: string): boolean {
  const isRemoved = inDatabase(openForWriting(file), (database) => {
    try {
      const { journal_mode } = database.query("PRAGMA journal_mode = DELETE").get() as { journal_mode: string };
      return journal_mode === "delete";
    } catch (thrown) {
      if (codeOf(thrown).startsWith("SQLITE_BUSY")) return false;
      throw thrown;
    }
  });
  flush(file);
  return isRemoved;
}

function copyFile(from: string, to: string, progress: (line: string) => void): void {
  const source = openSync(from, "r");
  const target = openSync(to, "w", 0o600);
  const piece = new Uint8Array(pieceBytes);
  const { size } = statSync(from);
  let toldAt = systemClock.monotonic();
  let copied = 0;
  try {
    for (let read = readSync(source, piece); read > 0; read = readSync(source, piece)) {
      writeSync(target, piece, 0, read);
      copied += read;
      if (systemClock.monotonic() - toldAt < progressIntervalMs) continue;
      progress(`${bytesText(copied)} of ${bytesText(size)} copied`);
      toldAt = systemClock.monotonic();
    }
  } finally {
    closeSync(source);
    closeSync(target);
  }
  giveToOwner(to);
}

const isSameFile = (one: string, other: string): boolean =>
  existsSync(one) && existsSync(other) && realpathSync(one) === realpathSync(other);

function inDatabase<Result>(database: Database, work: (database: Database) => Result): Result {
  try {
    return work(database);
  } finally {
    database.close();
  }
}

function removeDatabase(file: string): void {
  for (const suffix of ["", ...logs]) rmSync(file + suffix, { force: true });
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/** Of a file or a folder: what was written before is on disk when this returns. */
function flush(path: string): void {
  const descriptor = openSync(path, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
}
