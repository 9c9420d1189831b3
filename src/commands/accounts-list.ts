// tollgate accounts list
import type { AccountSummary } from "../account/accounts.ts";
import { type Command, folderFlags } from "./command.ts";
import { perform } from "./perform.ts";
import { formatTable } from "./table.ts";

/** Asked for in portions, so that a million accounts hold up no request of a running server. */
const portion = 1_000;

const command: Command = {
  words: [],
  flags: folderFlags,
  async run(invocation) {
    const accounts: AccountSummary[] = [];
    for (let after = 0; ; after = accounts.at(-1)!.id) {
      const next = await perform(invocation, "accounts list", { after, limit: portion });
      accounts.push(...next);
      if (next.length < portion) break;
    }
    if (invocation.flags["json"] === true) console.log(JSON.stringify(accounts));
    else {
      const rows = accounts.map(({ id, email, plan, credit, operator, disabled, created_at }) => [
        String(id),
        email,
        plan,
        credit,
        operator,
        disabled,
        created_at,
      ]);
      console.log(formatTable(["id", "e-mail", "plan", "credit", "operator", "disabled", "created"], rows));
    }
    return 0;
  },
};
export default command;
