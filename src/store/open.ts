// Opens the database. Two connections, one writer: the journal's writer in its Worker, and a reader beside it.
import { Database } from "bun:sqlite";
import { assert } from "../core/assert.ts";
import { journalBusyMs } from "../core/limits.ts";
import { DataFolderUnusable, messageOf } from "./folder/data-folder.ts";
import { migrations, storedResponseMigrations } from "./ledger/migrations.ts";

/** SQLite checkpoints by itself only above this many pages of 4 KiB (64 MiB): before that, it is done when idle. */
const walPagesMax = 16_384;

/** Brings the database to the program's version and begins a new epoch, which is returned. */
export function migrate(file: string): number {
  const database = openForWriting(file);
  try {
    applyMigrations(database, file, migrations);
    const row = database.query("UPDATE instance SET epoch = epoch + 1 RETURNING epoch").get() as { epoch: number };
    return row.epoch;
  } catch (thrown) {
    if (thrown instanceof DataFolderUnusable) throw thrown;
    throw new DataFolderUnusable(`cannot use the database ${file}: ${messageOf(thrown)}`, { cause: thrown });
  } finally {
    database.close();
  }
}

function applyMigrations(database: Database, file: string, history: readonly string[]): void {
  const version = Number(pragma(database, "user_version"));
  if (version > history.length) {
    throw new DataFolderUnusable(
      `${file} has version ${version}, but this tollgate knows versions up to ${history.length}: use a newer tollgate, ` +
        "or put a backup that was made before the upgrade in its place",
    );
  }
  for (const [index, sql] of history.entries()) {
    if (index < version) continue;
    // One transaction each, with its version, so that a crash leaves either all of it or nothing.
    database.transaction(() => {
      database.run(sql);
      database.run(`PRAGMA user_version = ${index + 1}`);
    })();
  }
}

/**
 * Opens the file of stored responses, and makes it where there is none. Throws DataFolderUnusable.
 *
 * Its commits need no fsync: at a power cut the last ones may be lost but the file stays whole, and no fsync of a long
 * conversation gets in the way of the ledger's on the same disk.
 */
export function openStoredResponses(file: string): Database {
  let database: Database | null = null;
  try {
    database = new Database(file, { readwrite: true, create: true, strict: true });
    // Nothing else opens it but a person who looks inside.
    database.run("PRAGMA busy_timeout = 2000");
    // Before the first table, or it has no effect: what expires gives its room back to the disk.
    database.run("PRAGMA auto_vacuum = INCREMENTAL");
    database.run("PRAGMA journal_mode = WAL");
    database.run("PRAGMA synchronous = NORMAL");
    // What goes is overwritten, however it goes: an account that is erased later may have deleted it before.
    database.run("PRAGMA secure_delete = ON");
    applyMigrations(database, file, storedResponseMigrations);
    return database;
  } catch (thrown) {
    database?.close();
    if (thrown instanceof DataFolderUnusable) throw thrown;
    throw new DataFolderUnusable(
      `cannot use the stored responses ${file}: ${messageOf(thrown)} (without the file, tollgate starts with none)`,
      { cause: thrown },
    );
  }
}

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

/** A connection that cannot write. */
export function openForReading(file: string): Database {
  return new Database(file, { readonly: true, strict: true });
}

function pragma(database: Database, name: string): number | string {
  const row = database.query(`PRAGMA ${name}`).get() as Record<string, number | string>;
  const value = row[name];
  assert(value !== undefined, `PRAGMA ${name} has a value`);
  return value;
}
