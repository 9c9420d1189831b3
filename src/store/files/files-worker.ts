// The Worker that has the rows of files.
import { host } from "../../core/workers.ts";
import { SqliteQuestions } from "../questions.ts";
import { FileTables } from "./file-tables.ts";
import { openFilesDatabase } from "./files-database.ts";

declare const self: Worker;

host(self, (file: string) => {
  const database = openFilesDatabase(file);
  const tables = new FileTables(new SqliteQuestions(database));
  tables.close = async () => database.close();
  return tables;
});
