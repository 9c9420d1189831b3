// Opens the ledger's database: one connection writes, in the journal's Worker, and others read beside it.
import { Database } from "bun:sqlite";
import { assert } from "../core/assert.ts";
import { journalGiveUpMs } from "./limits.ts";
import { StoreUnavailable } from "../core/types.ts";
import { DataFolderUnusable, messageOf } from "./folder/folder-faults.ts";

/** How long a commit waits for another program's lock before nothing more is admitted. */
const journalBusyMs = 1_000;

assert(journalBusyMs < journalGiveUpMs, "another program's lock is waited for more than once before ends fail");

/** SQLite checkpoints by itself only above this many pages of 4 KiB (64 MiB): before that, it is done when idle. */
const walPagesMax = 16_384;

/** The one connection that writes. A commit is on disk when it returns: WAL with synchronous=FULL, read back. */
export function openForWriting(file: string): Database {
  const database = new Database(file, { readwrite: true, create: true, strict: true });
  try {
    // Litestream locks it for moments, and SQLite is sooner to notice the end of one than a timer is.
    database.run(`PRAGMA busy_timeout = ${journalBusyMs}`);
    database.run("PRAGMA journal_mode = WAL");
    database.run("PRAGMA synchronous = FULL");
    // What is erased is overwritten, where its page is written anyway.
    database.run("PRAGMA secure_delete = FAST");
    database.run(`PRAGMA wal_autocheckpoint = ${walPagesMax}`);
    if (file !== ":memory:") assert(pragma(database, "journal_mode") === "wal", "the database must be in WAL mode");
    assert(pragma(database, "synchronous") === 2, "commits must be synchronous (FULL)");
  } catch (thrown) {
    database.close();
    throw thrown instanceof Error && thrown.name === "SQLiteError"
      ? new DataFolderUnusable(`cannot use the database ${file}: ${thrown.message}`, { cause: thrown })
      : thrown;
  }
  return database;
}

export function openForReading(file: string): Database {
  return new Database(file, { readonly: true, strict: true });
}

/** Throws StoreUnavailable for whatever keeps the database from being read. */
export function read<Result>(query: () => Result): Result {
  try {
    return query();
  } catch (thrown) {
    throw new StoreUnavailable(`the database cannot be read: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** The version of its tables; 0 for a new file. */
export const versionOf = (database: Database): number => Number(pragma(database, "user_version"));

/** Of this file, which another version may have made with other pages. */
export const pageBytesOf = (database: Database): number => Number(pragma(database, "page_size"));

export const tooNew = (file: string, version: number, known: number): DataFolderUnusable =>
  new DataFolderUnusable(
    `${file} has version ${version}, but this tollgate knows versions up to ${known}: use a newer tollgate, ` +
      "or put a backup that was made before the upgrade in its place",
  );

function pragma(database: Database, name: string): number | string {
  const row = database.query(`PRAGMA ${name}`).get() as Record<string, number | string>;
  const value = row[name];
  assert(value !== undefined, `PRAGMA ${name} has a value`);
  return value;
}
