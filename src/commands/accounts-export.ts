// tollgate accounts export EMAIL
import { CommandError } from "../core/expected-error.ts";
import { exportAccount } from "../store/backup/account-export.ts";
import { type Command, folderFlags } from "./command.ts";
import { exportAccountOf } from "../store/postgres/account-export.ts";
import { readLedger } from "./database-file.ts";
import { perform } from "./perform.ts";
import { writePieces } from "./written-pieces.ts";

/** That it is given out is written down first. */
const command: Command = {
  words: ["EMAIL"],
  flags: folderFlags,
  async run(invocation) {
    const email = invocation.words[0]!;
    const write = (pieces: Iterable<string> | AsyncIterable<string> | null): Promise<number> => {
      if (pieces === null) throw new CommandError(`no account has the e-mail ${email}`); // it was deleted meanwhile
      return writePieces(pieces);
    };
    const note = () => perform(invocation, "accounts export", { email });
    return readLedger(
      invocation,
      async (file) => {
        await note();
        return write(exportAccount(file, email));
      },
      async (database) => {
        await note();
        return write(await exportAccountOf(database, email));
      },
    );
  },
};
export default command;
