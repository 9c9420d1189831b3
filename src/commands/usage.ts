// tollgate usage EMAIL [--limit N]
import { type Command, folderFlags, readWhole, textFlag } from "./command.ts";
import { perform } from "./perform.ts";
import { formatTable } from "./table.ts";

const limitDefault = 50;

const command: Command = {
  words: ["EMAIL"],
  flags: { ...folderFlags, limit: { type: "string" } },
  async run(invocation) {
    const { words, flags } = invocation;
    const limit = readWhole("--limit", textFlag(flags, "limit") ?? String(limitDefault), 1);
    const rows = await perform(invocation, "usage", { email: words[0]!, limit });
    if (flags["json"] === true) console.log(JSON.stringify(rows));
    else {
      const headings = [
        "time",
        "endpoint",
        "model",
        "input",
        "cached",
        "output",
        "reasoning",
        "balance tokens",
        "cost USD",
        "key",
        "end user",
      ];
      const cells = rows.map((row) => [
        row.time,
        row.endpoint,
        row.model,
        row.input,
        row.cached_input,
        row.output,
        row.reasoning,
        row.billed_tokens,
        row.cost_usd,
        row.key,
        row.end_user ?? "",
        row.estimated ? "estimated" : "",
      ]);
      console.log(formatTable([...headings, ""], cells));
    }
    return 0;
  },
};
export default command;
