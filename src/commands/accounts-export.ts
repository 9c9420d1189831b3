// tollgate accounts export EMAIL
import { CommandError } from "../core/expected-error.ts";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { dataFolderOf } from "../config/config.ts";
import { exportAccount } from "../store/backup/account-export.ts";
import { databaseName } from "../store/folder/data-folder.ts";
import { type Command, folderFlags, textFlag } from "./command.ts";
import { socketFile } from "../server/control-socket.ts";
import { checkFolderRights } from "../server/folder-rights.ts";
import { perform } from "./perform.ts";

/** Read beside a running server, whose commits go on; that it is given out is written down first. */
const command: Command = {
  words: ["EMAIL"],
  flags: folderFlags,
  async run(invocation) {
    const { words, flags, environment } = invocation;
    const dataFolder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
    checkFolderRights(dataFolder, socketFile(dataFolder)); // a folder that may not be seen is not one that is not there
    const file = join(dataFolder, databaseName);
    if (!existsSync(file)) throw new CommandError(`there is no data folder ${dataFolder}; name it with --data DIR`);
    const email = words[0]!;
    await perform(invocation, "accounts export", { email });
    const pieces = exportAccount(file, email);
    if (pieces === null) throw new CommandError(`no account has the e-mail ${email}`); // it was deleted meanwhile
    const output = Bun.stdout.writer();
    try {
      for (const piece of pieces) {
        output.write(piece);
        await output.flush();
      }
      await output.end();
      return 0;
    } catch (error) {
      if ((error as { code?: string }).code !== "EPIPE") throw error;
      return 1; // who reads it wanted no more, and knows
    }
  },
};
export default command;
