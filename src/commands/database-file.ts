// Finds the database that a command reads directly, beside a running server.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { CommandError } from "../core/expected-error.ts";
import { checkFolderRights } from "../server/process/folder-rights.ts";
import { socketFile } from "../server/control-socket.ts";
import { checkLedger } from "./stopped-books.ts";
import { databaseName } from "../store/folder/data-folder.ts";
import { exportOfFile } from "../store/backup/account-export.ts";
import type { LedgerExport } from "../store/backup/exported.ts";
import { exportOfDatabase } from "../store/postgres/account-export.ts";
import { Database } from "../store/postgres/database.ts";
import { openServer } from "../store/postgres/start.ts";
import type { Invocation } from "./command.ts";
import { databaseUrlOf, folderOf } from "./perform.ts";

/** Throws CommandError if there is none. */
function databaseFileOf({ flags, environment }: Invocation): string {
  const dataFolder = folderOf({ flags, environment });
  checkFolderRights(dataFolder, socketFile(dataFolder)); // an unreadable folder is not a missing one
  const file = join(dataFolder, databaseName);
  if (!existsSync(dataFolder)) throw new CommandError(`there is no data folder ${dataFolder}; name it with --data DIR`);
  checkLedger(dataFolder);
  return file;
}

/** For a command that reads the ledger directly. */
export async function readLedger<Result>(
  invocation: Invocation,
  read: (ledger: LedgerExport) => Promise<Result>,
): Promise<Result> {
  const url = await databaseUrlOf(invocation);
  if (url === null) return read(exportOfFile(databaseFileOf(invocation)));
  const database = new Database(await openServer(url));
  try {
    return await read(exportOfDatabase(database));
  } finally {
    await database.close();
  }
}
