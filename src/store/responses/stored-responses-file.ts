// Opens the file of stored responses and creates its tables. They are described only here, because only this file's
// Worker uses them, with prepared statements.
import { Database } from "bun:sqlite";
import { DataFolderUnusable, messageOf } from "../folder/folder-faults.ts";
import { pageBytesOf, tooNew, versionOf } from "../open.ts";

/** About as large the log becomes before it goes into the file. */
const logBytesMax = 32 * 1024 * 1024;

/** Each text takes the file one version further. One that was released is never edited. */
const versions: readonly string[] = [
  `
  CREATE TABLE responses (
    -- In the order in which they were kept.
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account_id INTEGER NOT NULL,
    previous_id TEXT,
    kept_at INTEGER NOT NULL,
    -- Of the three texts below, which come last so that what looks at the other columns need not read them.
    bytes INTEGER NOT NULL,
    -- JSON: the items of the request, the items of the output, and the response object without its output.
    input TEXT NOT NULL,
    output TEXT NOT NULL,
    settings TEXT NOT NULL
  ) STRICT;

  CREATE INDEX responses_by_account ON responses (account_id, sequence);
  CREATE INDEX responses_by_age ON responses (kept_at);

  -- Always the sum over the account's responses.
  CREATE TABLE responses_use (
    account_id INTEGER PRIMARY KEY,
    responses INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  ) STRICT;
  `,
];

/**
 * Opens the file of stored responses, and makes it if there is none. Throws DataFolderUnusable.
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
    // Before the first table, or these have no effect. A response takes most of a page of 4 KiB, and of a larger one what it
    // needs: with 16 KiB storing costs 0.65. What expires gives its room back to the disk.
    database.run("PRAGMA page_size = 16384");
    database.run("PRAGMA auto_vacuum = INCREMENTAL");
    database.run("PRAGMA journal_mode = WAL");
    database.run("PRAGMA synchronous = NORMAL");
    // Indexes are written again with each commit to the log, but once to the file when the log goes into it: with a log
    // of 32 MiB storing costs 0.85 of what it does with 16.
    database.run(`PRAGMA wal_autocheckpoint = ${logBytesMax / pageBytesOf(database)}`);
    // What goes is overwritten, however it goes: an account that is erased later may have deleted it before.
    database.run("PRAGMA secure_delete = ON");
    makeTables(database, file);
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

function makeTables(database: Database, file: string): void {
  const version = versionOf(database);
  if (version > versions.length) throw tooNew(file, version, versions.length);
  for (const [index, sql] of versions.entries()) {
    if (index < version) continue;
    // One transaction each, with its version, so that a crash leaves either all of it or nothing.
    database.transaction(() => {
      database.run(sql);
      database.run(`PRAGMA user_version = ${index + 1}`);
    })();
  }
}
