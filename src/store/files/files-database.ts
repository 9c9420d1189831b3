// Opens the database of the rows of files, and makes it if there is none.
import type { Database } from "bun:sqlite";
import { openForWriting, tooNew, versionOf } from "../open.ts";

export function openFilesDatabase(file: string): Database {
  const opened = openForWriting(file);
  const version = versionOf(opened);
  if (version > 1) throw tooNew(file, version, 1);
  if (version === 0) {
    opened.transaction(() => {
      opened.run(`
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
      `);
      opened.run("PRAGMA user_version = 1");
    })();
  }
  return opened;
}
