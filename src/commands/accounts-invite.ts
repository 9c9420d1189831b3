// tollgate accounts invite [--email EMAIL] [--plan PLAN] [--credit TOKENS] [--expires WHEN]
import { systemClock } from "../core/clock.ts";
import { invitationMs } from "../core/limits.ts";
import { type Command, folderFlags, readWhole, textFlag } from "./command.ts";
import { expiryOf } from "./link-expiry.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: [],
  flags: {
    ...folderFlags,
    email: { type: "string" },
    plan: { type: "string" },
    credit: { type: "string" },
    expires: { type: "string" },
  },
  async run(invocation) {
    const { flags } = invocation;
    const credit = textFlag(flags, "credit");
    const made = await perform(invocation, "accounts invite", {
      email: textFlag(flags, "email") ?? null,
      plan: textFlag(flags, "plan"),
      credit: credit === undefined ? 0 : readWhole("--credit", credit, 0),
      expiresAt: expiryOf(flags, systemClock.wall(), invitationMs),
    });
    if (flags["json"] === true) console.log(JSON.stringify(made));
    else console.log(`${made.link}\nIt makes one account, until ${made.expires_at}, and is shown this once.`);
    return 0;
  },
};
export default command;
