// The Worker that has the rows of files: no thread that serves clients waits for their fsync.
import { Database, type Statement } from "bun:sqlite";
import { answerCalls, endWorker } from "../../core/workers.ts";
import { openForWriting, tooNew, versionOf } from "../open.ts";
import { fileStatements, type FileValue } from "./file-rows.ts";
import type { FilesCall } from "./files-file.ts";

declare const self: Worker;

let database: Database;
let statements: ReadonlyMap<string, Statement<unknown, FileValue[]>>;

answerCalls<FilesCall>(self, (call) => {
  switch (call.order) {
    case "open":
      database = openFiles(call.file);
      statements = new Map(
        Object.entries(fileStatements).map(([name, sql]) => [
          name,
          database.prepare<unknown, FileValue[]>(
            sql.replaceAll(/:[nt](\d+)/g, "?$1").replaceAll(/:list(\d+)/g, "SELECT value FROM json_each(?$1)"),
          ),
        ]),
      );
      return null;
    case "run":
      return statements.get(call.name)!.all(...call.values);
    case "close":
      endWorker(self);
      database?.close();
      return null;
    default:
      return call satisfies never;
  }
});

function openFiles(file: string): Database {
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
