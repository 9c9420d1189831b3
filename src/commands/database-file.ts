// Where the database is that a command reads by itself, beside a running server whose commits go on.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { dataFolderOf } from "../config/config.ts";
import { CommandError } from "../core/expected-error.ts";
import { checkFolderRights } from "../server/folder-rights.ts";
import { socketFile } from "../server/control-socket.ts";
import { databaseName } from "../store/folder/data-folder.ts";
import { type Invocation, textFlag } from "./command.ts";

/** Throws CommandError where there is none. */
export function databaseFileOf({ flags, environment }: Invocation): string {
  const dataFolder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
  checkFolderRights(dataFolder, socketFile(dataFolder)); // a folder that may not be seen is not one that is not there
  const file = join(dataFolder, databaseName);
  if (!existsSync(file)) throw new CommandError(`there is no data folder ${dataFolder}; name it with --data DIR`);
  return file;
}
