// tollgate accounts password EMAIL [--password P]
import { type Command, folderFlags } from "./command.ts";
import { generatedPassword, passwordOf, readPassword } from "./new-password.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["EMAIL"],
  flags: { ...folderFlags, password: { type: "string" } },
  async run(invocation) {
    const { words, flags } = invocation;
    const given = passwordOf(flags) ?? (await readPassword());
    const password = given ?? generatedPassword();
    const account = await perform(invocation, "accounts password", { email: words[0]!, password });
    const made = given === null ? password : null;
    if (flags["json"] === true) console.log(JSON.stringify({ ...account, password: made }));
    else {
      if (made !== null) console.log(`${made}\nThe password is shown this once: only its hash is kept.`);
      console.log(`The password of ${account.email} is set; all browsers were signed out.`);
    }
    return 0;
  },
};
export default command;
