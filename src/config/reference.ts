// Every key of the configuration file in Markdown: `tollgate help config`, and the chapter of the guide. What a value must
// be comes from the schema that the file is checked with; what it is for, and what holds without it, is written here.
import type { TSchema } from "@sinclair/typebox";
import { configSchema, hostDefault, portDefault, threadsDefault } from "./config.ts";
import {
  managedStartTimeoutMs,
  mcpCallTimeoutMs,
  nodeSlotsDefault,
  outputTokensDefault,
  outputTokensMax,
  queueMaxWaitMs,
  scheduledBackupsKeptDefault,
  searchPagesDefault,
  searchRescanIntervalMs,
  searchTimeoutMs,
  stopGraceMs,
  storedResponsesKeepDays,
  storedResponsesMaxMib,
} from "../core/limits.ts";

/** What a key is for, and what holds where it is left out; undefined: it must be given, or nothing holds. */
type Note = Readonly<{ about: string; otherwise?: string }>;
type Notes = Readonly<Record<string, Note>>;

const seconds = (ms: number): string => `${ms / 1000}`;
const keyOf = (what: string): Notes => ({
  api_key: { about: `Key for ${what}.` },
  api_key_env: { about: "Variable that holds the key instead, which keeps it out of the file." },
});
const environment: Note = { about: "Variables of the program." };

const notes: Readonly<Record<string, Notes>> = {
  server: {
    host: { about: "Where it listens.", otherwise: hostDefault },
    port: { about: "0: any free port.", otherwise: String(portDefault) },
    base_url: { about: "How clients reach it.", otherwise: "host and port" },
    site_url: { about: "Named in error messages: `{site_url}/plan`.", otherwise: "`base_url`" },
    cors_origins: {
      about: 'Pages of other sites that may call the API with a key; `["*"]`: all.',
      otherwise: "none",
    },
    stop_grace_seconds: {
      about: "Open streams may go on for this long after SIGTERM.",
      otherwise: seconds(stopGraceMs),
    },
    threads: { about: "Cores that serve clients; see More cores.", otherwise: String(threadsDefault) },
  },
  nodes: {
    name: { about: "In the log, the metrics and the console." },
    url: { about: "An OpenAI-compatible address. Left out only where `command` is given." },
    ...keyOf("the node"),
    slots: { about: "Requests it runs at once; more wait in line.", otherwise: String(nodeSlotsDefault) },
    models: {
      about: 'Model id = the name the node knows it by; `"*"`: any id that no node names.',
      otherwise: '`{ "*" = "*" }`',
    },
    depth: { about: "Reasoning depth = fields of the node's request that set it.", otherwise: "those of its engine" },
    think_tag_opened: { about: 'The node\'s names of models whose template opens `<think>`; `["*"]`: all.' },
    command: { about: 'The gateway starts the node with this; `"{port}"` in it is a free port.' },
    env: { ...environment, otherwise: "the gateway's, without its keys" },
    cwd: { about: "Working folder of `command`, from the file's folder.", otherwise: "the gateway's" },
    start_timeout_seconds: {
      about: "The node must answer in this time, or is started again.",
      otherwise: seconds(managedStartTimeoutMs),
    },
  },
  queue: {
    max_wait_seconds: {
      about: "A request waits this long for its account's others, and as long for a node; then it is refused as busy.",
      otherwise: seconds(queueMaxWaitMs),
    },
  },
  search: {
    provider: { about: "What `web_search` finds with." },
    url: { about: "Of your SearXNG; another address of Brave or Tavily.", otherwise: "the service's own" },
    ...keyOf("the service"),
    timeout_seconds: { about: "Of one search.", otherwise: seconds(searchTimeoutMs) },
    fetch_pages: {
      about: "So many of the first results are read whole.",
      otherwise: `${searchPagesDefault.searxng}; ${searchPagesDefault.tavily} with Tavily`,
    },
    folder: { about: 'Of `"local"`: the files that are searched.' },
    base_url: { about: 'Of `"local"`: the address that files are cited under.', otherwise: "`https://files.invalid`" },
    rescan_seconds: { about: "Between two looks for changed files.", otherwise: seconds(searchRescanIntervalMs) },
  },
  mcp: {
    name: { about: "Its tools are called `name__tool`." },
    url: { about: "A server with streamable HTTP. Either this or `command`." },
    ...keyOf("the server"),
    command: { about: "A server that runs as a child, over its standard input and output." },
    args: { about: "Arguments of `command`.", otherwise: "none" },
    env: { ...environment, otherwise: "PATH and HOME" },
    models: { about: "Models that may use it.", otherwise: "all" },
    plans: { about: "Plans that may use it.", otherwise: "all" },
    tools: { about: "Tools of it that may be used.", otherwise: "all" },
    timeout_seconds: { about: "Of one call.", otherwise: seconds(mcpCallTimeoutMs) },
  },
  responses: {
    keep_days: { about: "Stored responses live this long.", otherwise: String(storedResponsesKeepDays) },
    keep_max_mib: { about: "Of each account; the oldest go first.", otherwise: String(storedResponsesMaxMib) },
  },
  console: {
    sign_up: { about: "Whether strangers may make an account of the plan free.", otherwise: "false" },
    address_header: { about: "Where a proxy in front names the browser's address.", otherwise: "there is no proxy" },
  },
  stripe: {
    secret_key: { about: "Sells credit through Stripe." },
    secret_key_env: { about: "Variable that holds it instead." },
    webhook_secret: { about: "Of the webhook `{base_url}/console/webhooks/stripe`." },
    webhook_secret_env: { about: "Variable that holds it instead." },
    url: { about: "Where Stripe's API is.", otherwise: "at Stripe" },
  },
  catalog: {
    file: { about: "Models, prices and plans.", otherwise: "those of data/catalog.json" },
  },
  limits: {
    default_output_tokens: {
      about:
        "Output budget of requests that name none, where the catalogue has no `default_output_tokens` for the model.",
      otherwise: `${outputTokensDefault}; of a coder model ${outputTokensMax} on chat-completions and messages`,
    },
  },
  log: {
    level: { about: "The least that is logged; `debug` has a line for each request.", otherwise: "info" },
    format: { about: "How lines are written.", otherwise: "text on a terminal, else json" },
  },
  metrics: {
    token: {
      about: "What a scraper of `/metrics` sends as a bearer token.",
      otherwise: "this machine alone may ask, and no proxy",
    },
    token_env: { about: "Variable that holds it instead." },
  },
  telemetry: {
    otlp_endpoint: { about: "Where traces are sent, by OTLP over HTTP." },
    sample_ratio: { about: "The part that is traced of the requests whose callers do not say.", otherwise: "1" },
  },
  retention: {
    usage_days: { about: "Older replies are kept as sums of a day.", otherwise: "each is kept for ever" },
  },
  backups: {
    every_hours: { about: "A backup is made so often, in the data folder's `backups`." },
    keep: { about: "So many of those are kept; the oldest go.", otherwise: String(scheduledBackupsKeptDefault) },
  },
};

/** One table of Markdown for each table of the file. */
export function configReference(): string {
  const tables = configSchema["properties"] as Record<string, TSchema>;
  return Object.entries(tables)
    .map(([name, table]) => {
      const isList = table["type"] === "array";
      const item = (isList ? table["items"] : table) as TSchema;
      const rows = Object.entries(item["properties"] as Record<string, TSchema>).map(([key, schema]) =>
        rowOf(name, key, schema),
      );
      const title = isList ? `[[${name}]]` : `[${name}]`;
      return markdownTable(`\`${title}\``, rows);
    })
    .join("\n\n");
}

type Row = readonly [key: string, value: string, otherwise: string, about: string];

function rowOf(table: string, key: string, schema: TSchema): Row {
  const note = notes[table]?.[key];
  if (note === undefined) throw new Error(`[${table}] ${key} is not described`);
  return [`\`${key}\``, String(schema.description), note.otherwise ?? "", note.about];
}

/** Columns as wide as their widest cell, as the formatter writes them. */
function markdownTable(title: string, rows: readonly Row[]): string {
  const all: readonly (readonly string[])[] = [[title, "Value", "Without it", ""], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(3, ...all.map((row) => row[column]!.length)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(" | ")} |`;
  return [line(all[0]!), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
