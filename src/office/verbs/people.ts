// End users of programs, and the request log.
import { Type } from "@sinclair/typebox";
import { namesOf } from "../../account/people/account-names.ts";
import { logFilterOf, logPlaceOf, type RequestRow, requestRowsOf } from "../../account/request-row.ts";
import { anyRequest } from "../../core/request-log.ts";
import { rowsMax, rowsMaxUsual, text } from "../fields.ts";
import { formatTable } from "../table.ts";
import { accountVerb, verb } from "../verb.ts";

/** Programs may have sent any characters, and such a name can be erased, too. */
const name = text("The program's name for that person.", "NAME", { pattern: "^[^\\u0000]*$" });

/** Their accounts' names: the door lists them itself. */
export const endUsersList = accountVerb({
  name: "end-users list",
  summary: "List the end users of keys with --forwards-users, most recent first",
  fields: { limit: rowsMax },
  scope: "read",
  read: (_, { account: { id } }) => Promise.resolve({ id }),
  print: ({ id }) => `account ${id}`,
});

const endUserDetail = (_: unknown, { keys }: Readonly<{ keys: readonly string[] }>) =>
  `an end user of ${keys.join(", ")}`;

/** Records the export without the name, which can be erased; the door makes the export. */
export const endUsersExport = accountVerb({
  name: "end-users export",
  summary: "Print everything stored about one end user, as JSON",
  words: ["name"],
  fields: { name },
  scope: "people",
  audit: { action: "end_user.export", detail: endUserDetail },
  change: async ({ accountKeys }, { account: { id }, input }) => ({
    id,
    ...(await accountKeys.endUser(id, input.name)),
  }),
  print: ({ name }) => name,
});

export const endUsersErase = accountVerb({
  name: "end-users erase",
  summary: "Erase the name of an end user",
  details: "Usage stays, without the name.",
  words: ["name"],
  fields: { name },
  scope: "people",
  warning: (input) => `this erases the name ${input.name} from all that ${input.email} was charged for`,
  audit: { action: "end_user.erase", detail: endUserDetail },
  change: ({ accountKeys }, { account: { id }, input }) => accountKeys.eraseEndUser(id, input.name),
  print: ({ keys }) => `erased; usage stays, without a name (of ${keys.join(", ")})`,
});

export const usage = accountVerb({
  name: "usage",
  summary: "List the replies to an account, newest first",
  fields: { limit: rowsMax },
  scope: "read",
  read: ({ accounts }, { account, input: { limit = rowsMaxUsual } }) => accounts.usage(account.id, limit),
  print: (rows) =>
    formatTable(
      [
        ...["time", "endpoint", "model", "input", "cached", "output", "reasoning", "balance tokens", "cost USD", "key"],
        ...["end user", ""],
      ],
      rows.map((row) => [
        ...[row.time, row.endpoint, row.model, row.input, row.cached_input, row.output, row.reasoning],
        ...[row.billed_tokens, row.cost_usd, row.key, row.end_user ?? "", row.estimated ? "estimated" : ""],
      ]),
    ),
});

const filter = (description: string, placeholder: string, more: object = {}) =>
  Type.Optional(text(description, placeholder, more));

export const requests = verb({
  name: "requests",
  summary: "List all requests, newest first, including refused and failed ones",
  fields: {
    account: filter("Of one account.", "EMAIL"),
    model: filter("For one model.", "MODEL"),
    node: filter("On one node.", "NODE"),
    endpoint: filter("To one endpoint.", "PATH"),
    status: filter("With one status, or one of a hundred.", "4xx"),
    reason: filter(
      "Refused or failed for this reason; or `served`, `failed` for any reason, `refused` for one of a 4xx, `broken` for one of a 5xx; `charged` for what reports count.",
      "REASON",
    ),
    address: filter("From one address.", "ADDRESS"),
    end_user: filter("Charged, for one end user.", "NAME"),
    priority: filter("Of one class in line.", "PRIORITY"),
    from: filter("From a time on.", "TIME"),
    to: filter("Before a time.", "TIME"),
    wait_min_ms: filter("Waited for a node for at least N ms.", "N", { flag: "wait-ms" }),
    first_token_min_ms: filter("Took at least N ms to the first token.", "N", { flag: "first-token-ms" }),
    duration_min_ms: filter("Took at least N ms in all.", "N", { flag: "duration-ms" }),
    tokens_min: filter("Of at least N tokens.", "N", { flag: "tokens" }),
    billed_min: filter("Charged with at least N balance tokens.", "N", { flag: "billed" }),
    request_id: filter("The beginning of the id of a request or its reply.", "ID", { flag: "id" }),
    after: filter("The next page: next of the page before.", "PLACE", { flag: null }),
    limit: rowsMax,
  },
  scope: "read",
  problem(input) {
    const wanted = logFilterOf(input);
    return typeof wanted === "string" ? { path: [], problem: wanted } : null;
  },
  async run({ office, requestLog }, { input }) {
    const { account: email, after, limit = rowsMaxUsual } = input;
    const wanted = logFilterOf(input);
    const of = email === undefined ? null : await office.read(({ accounts }) => accounts.ofEmail(email));
    const page = await requestLog.page(
      { ...(typeof wanted === "string" ? anyRequest : wanted), account: of?.id ?? null },
      logPlaceOf(after),
      Math.min(limit, rowsEverMax),
    );
    const named = page.rows.map((row) => row.account);
    return requestRowsOf(page, await namesOf(office, named));
  },
  json: ({ rows }) => rows,
  print({ rows }) {
    const [row] = rows;
    const table = formatTable(headings, rows.map(cellsOf));
    // One request is shown in detail.
    if (row === undefined || rows.length > 1) return table;
    return [table, ...(row.cause === null ? [] : [`${row.node}: ${row.cause}`]), row.sum ?? []].flat().join("\n");
  },
});

const rowsEverMax = 1_000;

const headings = [
  ...["time", "account", "key", "address", "model", "node", "status", "reason", "wait ms", "first token ms"],
  ...["ms", "input", "output", "balance tokens", "cost USD", "request id", ""],
];

const modelIn = ({ model, asked_model: asked }: RequestRow): string =>
  asked === null ? model : `${model} for ${asked}`;

export const cellsOf = (row: RequestRow): (string | number)[] => [
  ...[
    row.time,
    row.account ?? "",
    row.key ?? "",
    row.address ?? "",
    modelIn(row),
    row.node ?? "",
    row.status,
    row.reason ?? "",
  ],
  ...[row.wait_ms ?? "", row.first_token_ms ?? "", row.duration_ms ?? "", row.input, row.output],
  ...[row.billed_tokens, row.cost_usd, row.request_id, row.more === 0 ? "" : `and ${row.more} more like this`],
];

export default [endUsersList, endUsersExport, endUsersErase, usage, requests];
