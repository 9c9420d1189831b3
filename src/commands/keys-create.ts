// tollgate keys create EMAIL --name N [limits]
import type { NewKey } from "../account/account-keys.ts";
import { type Command, folderFlags, readWhole, textFlag, UsageError } from "./command.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["EMAIL"],
  flags: {
    ...folderFlags,
    name: { type: "string" },
    "limit-day": { type: "string" },
    "limit-month": { type: "string" },
    expires: { type: "string" },
    models: { type: "string" },
    addresses: { type: "string" },
    "forwards-users": { type: "boolean" },
    "limit-end-user-day": { type: "string" },
  },
  async run(invocation) {
    const { words, flags } = invocation;
    const name = textFlag(flags, "name");
    if (name === undefined) throw new UsageError("keys create: --name is missing");
    const limit = (flag: string): number | undefined => {
      const text = textFlag(flags, flag);
      return text === undefined ? undefined : readWhole(`--${flag}`, text, 1);
    };
    const list = (flag: string) =>
      textFlag(flags, flag)
        ?.split(",")
        .map((text) => text.trim());
    const asked = {
      name,
      limit_day: limit("limit-day"),
      limit_month: limit("limit-month"),
      expires_at: textFlag(flags, "expires"),
      models: list("models"),
      addresses: list("addresses"),
      forwards_users: flags["forwards-users"] === true ? true : undefined,
      limit_end_user_day: limit("limit-end-user-day"),
    };
    const given = Object.entries(asked).filter(([, value]) => value !== undefined);
    const key = Object.fromEntries(given) as unknown as NewKey;
    const created = await perform(invocation, "keys create", { email: words[0]!, key });
    if (flags["json"] === true) console.log(JSON.stringify(created));
    else console.log(`${created.api_key}\nKey ${created.id}, "${created.name}". It is shown this once.`);
    return 0;
  },
};
export default command;
