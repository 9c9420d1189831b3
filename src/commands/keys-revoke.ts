// tollgate keys revoke EMAIL ID
import { type Command, folderFlags, readWhole } from "./command.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["EMAIL", "ID"],
  flags: folderFlags,
  async run(invocation) {
    const { words, flags } = invocation;
    const key = readWhole("ID", words[1]!, 1);
    const revoked = await perform(invocation, "keys revoke", { email: words[0]!, key });
    if (flags["json"] === true) console.log(JSON.stringify(revoked));
    else console.log(`Key ${revoked.id}, "${revoked.name}", is void.`);
    return 0;
  },
};
export default command;
