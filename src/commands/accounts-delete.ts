// tollgate accounts delete EMAIL --yes
import { CommandError } from "../core/expected-error.ts";
import { type Command, folderFlags } from "./command.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["EMAIL"],
  flags: { ...folderFlags, yes: { type: "boolean" } },
  async run(invocation) {
    const email = invocation.words[0]!;
    if (invocation.flags["yes"] !== true) {
      throw new CommandError(
        `this erases ${email}, its key, sessions and stored responses for good, and keeps its books without a name; ` +
          "say --yes to do it",
      );
    }
    const deleted = await perform(invocation, "accounts delete", { email });
    if (invocation.flags["json"] === true) console.log(JSON.stringify(deleted));
    else console.log(`deleted; the books of account ${deleted.id} stay, under the name ${deleted.name}`);
    return 0;
  },
};
export default command;
