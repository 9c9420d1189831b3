// tollgate accounts credit EMAIL TOKENS [--reference R]
import { formatAccount } from "./account-view.ts";
import { type Command, folderFlags, readWhole, textFlag } from "./command.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["EMAIL", "TOKENS"],
  flags: { ...folderFlags, reference: { type: "string" } },
  async run(invocation) {
    const { words, flags } = invocation;
    const account = await perform(invocation, "accounts credit", {
      email: words[0]!,
      tokens: readWhole("TOKENS", words[1]!, 1),
      reference: textFlag(flags, "reference"),
    });
    if (flags["json"] === true) console.log(JSON.stringify(account));
    else {
      if (!account.credited) console.log("This reference was credited before; nothing was added.");
      console.log(formatAccount(account));
    }
    return 0;
  },
};
export default command;
