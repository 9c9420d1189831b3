// tollgate keys rotate EMAIL
import { type Command, folderFlags } from "./command.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["EMAIL"],
  flags: folderFlags,
  async run(invocation) {
    const rotated = await perform(invocation, "keys rotate", { email: invocation.words[0]! });
    if (invocation.flags["json"] === true) console.log(JSON.stringify(rotated));
    else console.log(`${rotated.api_key}\nThe key is shown this once. The one before is void.`);
    return 0;
  },
};
export default command;
