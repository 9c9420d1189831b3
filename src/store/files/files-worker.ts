// The Worker that has the rows of files: no thread that serves clients waits for their fsync.
import type { Database, Statement } from "bun:sqlite";
import { answerCalls, endWorker } from "../../core/workers.ts";
import { fileStatements, type FileValue } from "./file-rows.ts";
import { openFilesDatabase } from "./files-database.ts";
import type { FilesCall } from "./files-file.ts";

declare const self: Worker;

let database: Database;
let statements: ReadonlyMap<string, Statement<unknown, FileValue[]>>;

answerCalls<FilesCall>(self, (call) => {
  switch (call.order) {
    case "open":
      database = openFilesDatabase(call.file);
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
