// tollgate end-users list EMAIL [--limit N]
import { endUsersOf } from "../store/backup/end-users.ts";
import { endUserInWords } from "../core/end-user.ts";
import { type Command, folderFlags, readWhole, textFlag } from "./command.ts";
import { endUsersIn } from "../store/postgres/account-export.ts";
import { readLedger } from "./database-file.ts";
import { perform } from "./perform.ts";
import { formatTable } from "./table.ts";

const limitDefault = 50;

const command: Command = {
  words: ["EMAIL"],
  flags: { ...folderFlags, limit: { type: "string" } },
  async run(invocation) {
    const { words, flags } = invocation;
    const limit = readWhole("--limit", textFlag(flags, "limit") ?? String(limitDefault), 1);
    const idOf = async () => (await perform(invocation, "end-users list", { email: words[0]! })).id;
    const found = await readLedger(
      invocation,
      async (file) => endUsersOf(file, await idOf(), limit),
      async (database) => endUsersIn(database, await idOf(), limit),
    );
    if (flags["json"] === true) console.log(JSON.stringify(found));
    else {
      const headings = ["end user", "key", "first day", "last day", "tokens that day"];
      const cells = found.map(({ name, key, first_day, last_day, used_last_day }) => [
        ...[endUserInWords(name), key, first_day, last_day, used_last_day],
      ]);
      console.log(formatTable(headings, cells));
    }
    return 0;
  },
};
export default command;
