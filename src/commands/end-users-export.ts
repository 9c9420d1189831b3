// tollgate end-users export EMAIL NAME
import { exportEndUser } from "../store/backup/end-users.ts";
import { type Command, folderFlags } from "./command.ts";
import { exportEndUserOf } from "../store/postgres/account-export.ts";
import { readLedger } from "./database-file.ts";
import { perform } from "./perform.ts";
import { writePieces } from "./written-pieces.ts";

/** That it is given out is written down first. */
const command: Command = {
  words: ["EMAIL", "NAME"],
  flags: folderFlags,
  async run(invocation) {
    const [email, name] = invocation.words;
    const note = () => perform(invocation, "end-users export", { email: email!, name: name! });
    return readLedger(
      invocation,
      async (file) => {
        const found = await note();
        return writePieces(exportEndUser(file, found.id, found.name));
      },
      async (database) => {
        const found = await note();
        return writePieces(exportEndUserOf(database, found.id, found.name));
      },
    );
  },
};
export default command;
