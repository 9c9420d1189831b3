// tollgate keys create EMAIL --name N [limits]
import type { NewKey } from "../account/account-keys.ts";
import { type Command, folderFlags, textFlag, UsageError } from "./command.ts";
import { keyLimitFlags, keyLimitsOf } from "./key-limit-flags.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["EMAIL"],
  flags: { ...folderFlags, ...keyLimitFlags, name: { type: "string" } },
  async run(invocation) {
    const { words, flags } = invocation;
    const name = textFlag(flags, "name");
    if (name === undefined) throw new UsageError("keys create: --name is missing");
    const key: NewKey = { name, ...(keyLimitsOf(flags) as Partial<NewKey>) };
    const created = await perform(invocation, "keys create", { email: words[0]!, key });
    if (flags["json"] === true) console.log(JSON.stringify(created));
    else console.log(`${created.api_key}\nKey ${created.id}, "${created.name}". It is shown this once.`);
    return 0;
  },
};
export default command;
