// tollgate requests [--account EMAIL] [filters] [--limit N] [--follow]
import { logFilterOf, type LogWords, logWords } from "../account/request-row.ts";
import type { RequestRow } from "../account/request-row.ts";
import { visibleLine } from "../core/visible.ts";
import { type Command, folderFlags, type Invocation, readWhole, textFlag, UsageError } from "./command.ts";
import { perform } from "./perform.ts";
import { formatTable } from "./table.ts";

const limitDefault = 50;
/** Shown at first, and looked at in each second. */
const followedFrom = 10;
const followLimit = 1_000;
const followIntervalMs = 1_000;
/** Of the rows shown last, so that none is shown twice. */
const shownMax = 2_000;

const flagOf = (word: (typeof logWords)[number]): string =>
  word === "request_id" ? "id" : word.replaceAll("_min", "").replaceAll("_", "-");

const command: Command = {
  words: [],
  flags: {
    ...folderFlags,
    account: { type: "string" },
    ...Object.fromEntries(logWords.map((word) => [flagOf(word), { type: "string" }] as const)),
    limit: { type: "string" },
    follow: { type: "boolean" },
  },
  async run(invocation) {
    const { flags } = invocation;
    const words: LogWords = Object.fromEntries(logWords.map((word) => [word, textFlag(flags, flagOf(word))]));
    const filter = logFilterOf(words);
    if (typeof filter === "string") throw new UsageError(`requests: ${filter}`);
    const limit = readWhole("--limit", textFlag(flags, "limit") ?? String(limitDefault), 1);
    const email = textFlag(flags, "account") ?? null;
    const ask = (most: number) =>
      perform(invocation, "requests", { email, filter, after: undefined, limit: Math.min(most, 1_000) });
    if (flags["follow"] === true) return follow(invocation, () => ask(followLimit));
    const { rows, searched_to } = await ask(limit);
    if (flags["json"] === true) console.log(JSON.stringify(rows));
    else console.log(formatTable(headings, rows.map(cellsOf)));
    const [row] = rows;
    // A single one is looked at more closely.
    if (flags["json"] !== true && row !== undefined && rows.length === 1) {
      if (row.cause !== null) console.log(`${row.node}: ${row.cause}`);
      if (row.sum !== null) console.log(row.sum);
    }
    if (searched_to !== null) console.error(`looked back to ${searched_to}; --to goes on from there`);
    return 0;
  },
};
export default command;

const headings = [
  ...["time", "account", "key", "model", "node", "status", "reason", "wait ms", "first token ms"],
  ...["ms", "input", "output", "balance tokens", "cost USD", "request id", ""],
];

const cellsOf = (row: RequestRow): (string | number)[] => [
  row.time,
  row.account ?? "",
  row.key ?? "",
  row.model,
  row.node ?? "",
  row.status,
  row.reason ?? "",
  row.wait_ms ?? "",
  row.first_token_ms ?? "",
  row.duration_ms ?? "",
  row.input,
  row.output,
  row.billed_tokens,
  row.cost_usd,
  row.request_id,
  row.more === 0 ? "" : `and ${row.more} more like this`,
];

/** Prints what comes, the oldest first, until it is interrupted. */
async function follow({ flags }: Invocation, ask: () => Promise<Readonly<{ rows: RequestRow[] }>>): Promise<never> {
  const shown = new Set<string>();
  let isFirst = true;
  for (;;) {
    const { rows } = await ask();
    const news = rows.filter(({ request_id }) => !shown.has(request_id)).reverse();
    for (const [place, row] of news.entries()) {
      shown.add(row.request_id);
      if (isFirst && place < news.length - followedFrom) continue;
      console.log(flags["json"] === true ? JSON.stringify(row) : cellsOf(row).map(String).map(visibleLine).join("  "));
    }
    isFirst = false;
    for (const old of shown) {
      if (shown.size <= shownMax) break;
      shown.delete(old);
    }
    await Bun.sleep(followIntervalMs);
  }
}
