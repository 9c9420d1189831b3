// tollgate keys limits EMAIL ID [limits]
import { type Command, folderFlags, readWhole, UsageError } from "./command.ts";
import { keyLimitFlags, keyLimitsOf } from "./key-limit-flags.ts";
import { limitsInWords } from "./keys-list.ts";
import { perform } from "./perform.ts";

const limitFlags = { ...keyLimitFlags, "no-forwards-users": { type: "boolean" } } as const;

const command: Command = {
  words: ["EMAIL", "ID"],
  flags: { ...folderFlags, ...limitFlags },
  async run(invocation) {
    const { words, flags } = invocation;
    const key = readWhole("ID", words[1]!, 1);
    const limits = keyLimitsOf(flags, "none");
    if (Object.keys(limits).length === 0) {
      const names = Object.keys(limitFlags).map((flag) => `--${flag}`);
      throw new UsageError(`keys limits: name one or more of ${names.join(", ")}; none lifts a limit`);
    }
    const limited = await perform(invocation, "keys limits", { email: words[0]!, key, limits });
    if (flags["json"] === true) console.log(JSON.stringify(limited));
    else console.log(`Key ${limited.id}, "${limited.name}": ${limitsInWords(limited) || "no limits"}.`);
    return 0;
  },
};
export default command;
