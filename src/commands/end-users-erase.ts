// tollgate end-users erase EMAIL NAME --yes
import { CommandError } from "../core/expected-error.ts";
import { type Command, folderFlags } from "./command.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["EMAIL", "NAME"],
  flags: { ...folderFlags, yes: { type: "boolean" } },
  async run(invocation) {
    const [email, name] = invocation.words;
    if (invocation.flags["yes"] !== true) {
      throw new CommandError(`this erases the name ${name} from all that ${email} was charged for; say --yes to do it`);
    }
    const erased = await perform(invocation, "end-users erase", { email: email!, name: name! });
    if (invocation.flags["json"] === true) console.log(JSON.stringify(erased));
    else console.log(`erased; what was used stays, without a name (of ${erased.keys.join(", ")})`);
    return 0;
  },
};
export default command;
