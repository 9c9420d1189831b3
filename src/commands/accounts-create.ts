// tollgate accounts create EMAIL [--plan PLAN] [--credit TOKENS] [--password P] [--operator]
import { type Command, folderFlags, readWhole, textFlag } from "./command.ts";
import { passwordOf } from "./new-password.ts";
import { perform } from "./perform.ts";
import { formatPairs } from "./table.ts";

const command: Command = {
  words: ["EMAIL"],
  flags: {
    ...folderFlags,
    plan: { type: "string" },
    credit: { type: "string" },
    password: { type: "string" },
    operator: { type: "boolean" },
  },
  async run(invocation) {
    const { words, flags } = invocation;
    const credit = textFlag(flags, "credit");
    const created = await perform(
      invocation,
      "accounts create",
      {
        email: words[0]!,
        plan: textFlag(flags, "plan"),
        credit: credit === undefined ? undefined : readWhole("--credit", credit, 0),
        password: passwordOf(flags),
        operator: flags["operator"] === true,
      },
      true,
    );
    if (flags["json"] === true) console.log(JSON.stringify(created));
    else {
      const { id, email, plan, api_key } = created;
      const pairs = [
        ["id", String(id)],
        ["e-mail", email],
        ["plan", plan],
        ["API key", api_key],
      ] as const;
      console.log(`${formatPairs(pairs)}\nThe key is shown this once: only its hash is kept.`);
    }
    return 0;
  },
};
export default command;
