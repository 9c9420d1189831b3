// tollgate keys create EMAIL --name N [limits]
import type { NewKey } from "../account/account-keys.ts";
import { type Command, folderFlags, readWhole, textFlag, UsageError } from "./command.ts";
import { keyLimitFlags, keyLimitsOf } from "./key-limit-flags.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["EMAIL"],
  flags: {
    ...folderFlags,
    ...keyLimitFlags,
    name: { type: "string" },
    "forwards-users": { type: "boolean" },
    "limit-end-user-day": { type: "string" },
  },
  async run(invocation) {
    const { words, flags } = invocation;
    const name = textFlag(flags, "name");
    if (name === undefined) throw new UsageError("keys create: --name is missing");
    const perEndUser = textFlag(flags, "limit-end-user-day");
    const key: NewKey = {
      name,
      ...(keyLimitsOf(flags) as Partial<NewKey>),
      ...(flags["forwards-users"] === true ? { forwards_users: true } : {}),
      ...(perEndUser === undefined ? {} : { limit_end_user_day: readWhole("--limit-end-user-day", perEndUser, 1) }),
    };
    const created = await perform(invocation, "keys create", { email: words[0]!, key });
    if (flags["json"] === true) console.log(JSON.stringify(created));
    else console.log(`${created.api_key}\nKey ${created.id}, "${created.name}". It is shown this once.`);
    return 0;
  },
};
export default command;
