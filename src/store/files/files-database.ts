// Opens the database of the rows of files, and makes it if there is none.
import type { Database } from "bun:sqlite";
import { openForWriting, tooNew, versionOf } from "../open.ts";

/** Each text takes the file one version further. One that was released is never edited. */
const versions: readonly string[] = [
  `
  CREATE TABLE stored_files (
    id TEXT PRIMARY KEY,
    account_id INTEGER NOT NULL,
    filename TEXT NOT NULL,
    purpose TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    -- 0 while a batch writes it.
    finished INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX stored_files_by_account ON stored_files (account_id, id);
  CREATE INDEX stored_files_by_expiry ON stored_files (expires_at);
  `,
  `
  CREATE TABLE conversation_shares (
    account_id INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    -- Always the sums over the account's records.
    conversations INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE conversation_records (
    account_id INTEGER NOT NULL,
    conversation TEXT NOT NULL,
    id TEXT NOT NULL,
    -- Of the two texts below, which come last so that what looks at the other columns need not read them.
    bytes INTEGER NOT NULL,
    words TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (account_id, conversation, id)
  ) STRICT;
  `,
];

export function openFilesDatabase(file: string): Database {
  const opened = openForWriting(file);
  // A conversation that somebody deletes leaves nothing in free pages.
  opened.run("PRAGMA secure_delete = ON");
  const version = versionOf(opened);
  if (version > versions.length) throw tooNew(file, version, versions.length);
  for (const [index, sql] of versions.entries()) {
    if (index < version) continue;
    opened.transaction(() => {
      opened.run(sql);
      opened.run(`PRAGMA user_version = ${index + 1}`);
    })();
  }
  return opened;
}
