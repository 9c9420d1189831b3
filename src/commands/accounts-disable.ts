// tollgate accounts disable EMAIL
import { formatAccount } from "./account-view.ts";
import { type Command, folderFlags } from "./command.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["EMAIL"],
  flags: folderFlags,
  async run(invocation) {
    const account = await perform(invocation, "accounts disable", { email: invocation.words[0]! });
    console.log(invocation.flags["json"] === true ? JSON.stringify(account) : formatAccount(account));
    return 0;
  },
};
export default command;
