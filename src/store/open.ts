// Opens the database. Two connections, one writer: the journal's writer in its Worker, and a reader beside it.
import { Database } from "bun:sqlite";
import { assert } from "../assert.ts";
import { DataFolderUnusable, messageOf } from "./data-folder.ts";
import { migrations } from "./migrations.ts";

/** SQLite checkpoints by itself only above this many pages of 4 KiB (64 MiB): before that, it is done when idle. */
const walPagesMax = 16_384;

/** Brings the database to the program's version and begins a new epoch, which is returned. */
export function migrate(file: string): number {
  const database = openForWriting(file);
  try {
    const version = Number(pragma(database, "user_version"));
    if (version > migrations.length) {
      throw new DataFolderUnusable(
        `${file} has version ${version}, but this tollgate knows versions up to ${migrations.length}: use a newer tollgate`,
      );
    }
    for (const [index, sql] of migrations.entries()) {
      if (index < version) continue;
      // One transaction each, with its version, so that a crash leaves either all of it or nothing.
      database.transaction(() => {
        database.run(sql);
        database.run(`PRAGMA user_version = ${index + 1}`);
      })();
    }
    const row = database.query("UPDATE instance SET epoch = epoch + 1 RETURNING epoch").get() as { epoch: number };
    return row.epoch;
  } catch (thrown) {
    if (thrown instanceof DataFolderUnusable) throw thrown;
    throw new DataFolderUnusable(`cannot use the database ${file}: ${messageOf(thrown)}`, { cause: thrown });
  } finally {
    database.close();
  }
}

/** The one connection that writes. A commit is on disk when it returns: WAL with synchronous=FULL, read back. */
export function openForWriting(file: string): Database {
  const database = new Database(file, { readwrite: true, create: true, strict: true });
  try {
    database.run("PRAGMA busy_timeout = 0");
    database.run("PRAGMA journal_mode = WAL");
    database.run("PRAGMA synchronous = FULL");
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
