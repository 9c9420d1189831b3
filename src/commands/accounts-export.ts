// tollgate accounts export EMAIL
import { CommandError } from "../core/expected-error.ts";
import { exportAccount } from "../store/backup/account-export.ts";
import { type Command, folderFlags } from "./command.ts";
import { databaseFileOf } from "./database-file.ts";
import { perform } from "./perform.ts";
import { writePieces } from "./written-pieces.ts";

/** That it is given out is written down first. */
const command: Command = {
  words: ["EMAIL"],
  flags: folderFlags,
  async run(invocation) {
    const file = databaseFileOf(invocation);
    const email = invocation.words[0]!;
    await perform(invocation, "accounts export", { email });
    const pieces = exportAccount(file, email);
    if (pieces === null) throw new CommandError(`no account has the e-mail ${email}`); // it was deleted meanwhile
    return writePieces(pieces);
  },
};
export default command;
