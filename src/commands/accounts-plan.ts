// tollgate accounts plan EMAIL PLAN
import { formatAccount } from "./account-view.ts";
import { type Command, folderFlags } from "./command.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["EMAIL", "PLAN"],
  flags: folderFlags,
  async run(invocation) {
    const [email, plan] = invocation.words;
    const account = await perform(invocation, "accounts plan", { email: email!, plan: plan! });
    console.log(invocation.flags["json"] === true ? JSON.stringify(account) : formatAccount(account));
    return 0;
  },
};
export default command;
