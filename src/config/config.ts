// The configuration file, environment and flags as one checked value. Flags win over the environment, the environment
// over the file, the file over the defaults. Every error names where the value came from and what was expected.
import { dirname, resolve } from "node:path";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import type { Catalog } from "../core/catalog.ts";
import {
  dayMs,
  hourMs,
  ggufSlots,
  managedStartTimeoutMs,
  mcpCallTimeoutMs,
  nodeSlotsDefault,
  nodeSlotsMax,
  outputTokensDefault,
  outputTokensMax,
  outputTokensMin,
  queueMaxWaitMs,
  searchPagesDefault,
  searchPagesMax,
  searchRescanIntervalMs,
  searchTimeoutMs,
  storedResponsesKeepDays,
  scheduledBackupsKeptDefault,
  storedResponsesMaxMib,
  stopGraceMs,
  threadsMax,
} from "../core/limits.ts";
import { formatPath, misfitsOf, show } from "../core/schema-errors.ts";
import { nearest } from "../core/nearest.ts";
import { namesThisMachine } from "../core/this-machine.ts";
import { type LogFormat, type LogLevel, logLevels } from "../core/log.ts";
import { lineOf, lineOfSyntaxError } from "./toml-lines.ts";
import { type PlanId, planIds } from "../core/plan-ids.ts";
import type { Effort, Ms } from "../core/types.ts";

/** One inference node. */
export type NodeConfig = Readonly<{
  name: string;
  /** OpenAI-compatible base address, without a trailing slash, e.g. http://127.0.0.1:8000/v1 */
  url: string;
  apiKey: string | null;
  /** Requests the node runs at once; more wait in the gateway's line. */
  slots: number;
  /**
   * Public model id -> the name the node knows it by; "*" = any id not named on this or another node. The name "*"
   * stands for the public id itself where the node lists that, else for the first model that the node lists.
   */
  models: Readonly<Record<string, string>>;
  /** Reasoning depth -> the fields of the node's request that set it, in place of those usual for its engine. */
  depth?: Readonly<Partial<Record<Effort, Readonly<Record<string, unknown>>>>>;
  /** The node's names of models whose template opens a thought (`<think>`) that the node does not split off itself. */
  thinkTagOpened?: readonly string[];
  /** How the gateway starts it; absent: somebody else does. Then the port in `url` may be "{port}": any free one. */
  managed?: ManagedConfig;
}>;

export type ManagedConfig = Readonly<{
  /** The program and its arguments; "{port}" in them is the port of the node's address. */
  command: readonly string[];
  environment: Readonly<Record<string, string>>;
  /** Its working folder; null: the gateway's. */
  folder: string | null;
  /** It must answer within this time. */
  startTimeoutMs: Ms;
}>;

/** A node that the gateway starts itself. */
export type ManagedNodeConfig = NodeConfig & Readonly<{ managed: ManagedConfig }>;

/** A service that searches the web. */
export type WebSearchConfig = Readonly<{
  provider: "searxng" | "brave" | "tavily";
  /** Null = the service's own public address; never null for searxng. */
  url: string | null;
  /** Never null for brave and tavily. */
  apiKey: string | null;
  timeoutMs: Ms;
  /** So many of the first results are read whole, so that a model sees more of them than a snippet. */
  pages: number;
}>;

/** A folder of the operator's files, searched by an index of our own. */
export type FolderSearchConfig = Readonly<{
  provider: "local";
  folder: string;
  /** A file's address is this and its path; citations need an http(s) address. */
  baseUrl: string;
  rescanIntervalMs: Ms;
}>;

export type SearchConfig = WebSearchConfig | FolderSearchConfig;

/** One MCP server, whose tools models may call. */
export type McpConfig = Readonly<{
  name: string;
  reached:
    | Readonly<{ by: "http"; url: string; apiKey: string | null }>
    | Readonly<{
        by: "stdio";
        command: string;
        args: readonly string[];
        environment: Readonly<Record<string, string>>;
      }>;
  /** Who may use it: null = every model, every plan, every tool of the server. */
  models: readonly string[] | null;
  plans: readonly PlanId[] | null;
  tools: readonly string[] | null;
  /** The longest that one call may take. */
  timeoutMs: Ms;
}>;

/** How long and how many of an account's responses are kept for `previous_response_id`. */
export type StoredResponsesConfig = Readonly<{ keepMs: Ms; accountBytesMax: number }>;

/** The server makes a backup each `everyMs` and keeps the last `keep` of them. */
export type BackupSchedule = Readonly<{ everyMs: Ms; keep: number }>;

export type ConsoleConfig = Readonly<{
  /** Whether strangers may make an account of the plan free. */
  signUp: boolean;
  /** Header in which a proxy in front names a browser's address, in lower case; null: there is no proxy. */
  addressHeader: string | null;
}>;

export type StripeConfig = Readonly<{
  secretKey: string;
  /** Signs what Stripe tells about payments. */
  webhookSecret: string;
  /** Where Stripe's API is; null = at Stripe. */
  url: string | null;
}>;

export type LogConfig = Readonly<{
  level: LogLevel;
  /** Null = text on a terminal, JSON otherwise. */
  format: LogFormat | null;
}>;

export type TelemetryConfig = Readonly<{
  /** Where an OpenTelemetry collector takes OTLP over HTTP, without /v1/traces. */
  otlpEndpoint: string;
  /** Which part of the requests is traced, 0 to 1. */
  sampleRatio: number;
}>;

export type Config = Readonly<{
  /** The file it was read from; null when no file was named. */
  file: string | null;
  host: string;
  /** 0 = any free port. */
  port: number;
  /** {base_url} and {site_url} of the spec; null where the listening address is meant (see `addressesOf`). */
  baseUrl: string | null;
  siteUrl: string | null;
  /** Origins of pages that may call the API, as browsers write them; ["*"] = all, none = no page of another site. */
  corsOrigins: readonly string[];
  /** Open replies may go on for this long after the signal to stop. */
  stopGraceMs: Ms;
  /** Threads that serve clients; with 2 and more, the main thread keeps the books for them. */
  threads: number;
  dataFolder: string;
  nodes: readonly NodeConfig[];
  queueMaxWaitMs: number;
  search: SearchConfig | null;
  mcp: readonly McpConfig[];
  /** Null = responses are not stored. */
  storedResponses: StoredResponsesConfig | null;
  console: ConsoleConfig;
  /** Null = credit is not sold: an operator grants it. */
  stripe: StripeConfig | null;
  /** Null = the catalogue that comes with the program. */
  catalogFile: string | null;
  /** Output budget of requests that name none, for models whose row in the catalogue says nothing of it. */
  outputTokensDefault: number;
  log: LogConfig;
  /** What a scraper of /metrics must bring; null = it must ask from this machine. */
  metricsToken: string | null;
  /** Null = nothing is traced. */
  telemetry: TelemetryConfig | null;
  /** Replies older than this are kept as sums of a day; null = each is kept for ever. */
  usageKeepDays: number | null;
  /** Null = the server makes no backups by itself. */
  backups: BackupSchedule | null;
}>;

/** Flags of the command line as they were typed; absent ones were not given. */
export type ConfigFlags = Readonly<{
  config?: string;
  host?: string;
  port?: string;
  threads?: string;
  data?: string;
  node?: readonly string[];
  /** A model file that llama.cpp's server is started with. */
  gguf?: string;
}>;
export type Environment = Readonly<Record<string, string | undefined>>;

/** The configuration is wrong; the message has one line for each fault. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";

  constructor(
    message: string,
    /** Nothing but flags is wrong. */
    readonly isOfCommandLine = false,
  ) {
    super(message);
  }
}

export const hostDefault = "127.0.0.1";
export const portDefault = 8400;
export const threadsDefault = 1;
export const dataFolderDefault = "./data";

// ---------------------------------------------------------------- the file

const portExpected = "a whole number from 0 to 65535";
const threadsExpected = `a whole number from 1 to ${threadsMax}`;
const webAddress = "an http:// or https:// address";
const corsOriginsExpected = 'a list of origins such as "https://app.example.com", or ["*"] for all';
const text = (description: string) => Type.String({ minLength: 1, description });
const key = () => Type.String({ minLength: 1, writeOnly: true, description: "a text that is not empty" });
const variable = () =>
  Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]*$", description: "the name of an environment variable" });
const names = (what: string) =>
  Type.Array(Type.String({ minLength: 1 }), { minItems: 1, description: `a list of one or more ${what}` });
const oneOf = <Word extends string>(words: readonly Word[]) =>
  Type.Union(
    words.map((word) => Type.Literal(word)),
    { description: `one of ${words.map((word) => `"${word}"`).join(", ")}` },
  );
const logFormats = ["json", "text"] as const satisfies readonly LogFormat[];
const providers = ["searxng", "brave", "tavily", "local", "none"] as const;

/** What a request is about is not for a depth to change. */
const notDepth: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "stream",
  "stream_options",
  "tools",
  "tool_choice",
]);
const DepthFields = Type.Record(Type.String(), Type.Unknown(), {
  description: "a table of fields of the node's request",
});
const depths = {
  off: DepthFields,
  minimal: DepthFields,
  low: DepthFields,
  medium: DepthFields,
  high: DepthFields,
  max: DepthFields,
} as const satisfies Record<Effort, typeof DepthFields>;

const NodeTable = Type.Object(
  {
    name: Type.String({
      pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
      description: "a name of up to 64 letters, digits, dots and dashes",
    }),
    url: Type.Optional(text(webAddress)),
    api_key: Type.Optional(key()),
    api_key_env: Type.Optional(variable()),
    slots: Type.Optional(
      Type.Integer({ minimum: 1, maximum: nodeSlotsMax, description: `a whole number from 1 to ${nodeSlotsMax}` }),
    ),
    models: Type.Optional(
      Type.Record(Type.String(), text("the name the node knows the model by"), {
        minProperties: 1,
        description: 'a table of one or more models such as "core-3" = "qwen3-8b"',
      }),
    ),
    depth: Type.Optional(
      Type.Partial(Type.Object(depths, { additionalProperties: false }), {
        description: "a table such as off = { chat_template_kwargs = { enable_thinking = false } }",
      }),
    ),
    think_tag_opened: Type.Optional(
      Type.Array(text("the name the node knows a model by"), {
        minItems: 1,
        description: 'a list of models as the node names them, or ["*"] for all',
      }),
    ),
    command: Type.Optional(
      Type.Array(text("a text"), { minItems: 1, description: "a program and its arguments, as a list of texts" }),
    ),
    env: Type.Optional(
      Type.Record(Type.String(), Type.String({ writeOnly: true }), { description: "a table of environment variables" }),
    ),
    cwd: Type.Optional(text("the path of a folder")),
    start_timeout_seconds: Type.Optional(
      Type.Number({ minimum: 1, maximum: 86_400, description: "a number of seconds from 1 to 86400" }),
    ),
  },
  { additionalProperties: false, description: "a node" },
);

const McpTable = Type.Object(
  {
    // Its tools are named NAME__TOOL, and engines take at most 64 characters.
    name: Type.String({
      pattern: "^[A-Za-z0-9](?:[A-Za-z0-9-]{0,22}[A-Za-z0-9])?$",
      description: "a name of up to 24 letters, digits and dashes",
    }),
    url: Type.Optional(text(webAddress)),
    api_key: Type.Optional(key()),
    api_key_env: Type.Optional(variable()),
    command: Type.Optional(text("a program")),
    args: Type.Optional(Type.Array(Type.String(), { description: "a list of texts" })),
    env: Type.Optional(
      Type.Record(Type.String(), Type.String({ writeOnly: true }), { description: "a table of environment variables" }),
    ),
    models: Type.Optional(names("model ids")),
    plans: Type.Optional(
      Type.Array(
        Type.Union(
          planIds.map((plan) => Type.Literal(plan)),
          { description: `one of ${planIds.map((plan) => `"${plan}"`).join(", ")}` },
        ),
        { minItems: 1, description: "a list of one or more plans" },
      ),
    ),
    tools: Type.Optional(names("names of the server's tools")),
    timeout_seconds: Type.Optional(
      Type.Number({ minimum: 1, maximum: 3_600, description: "a number of seconds from 1 to 3600" }),
    ),
  },
  { additionalProperties: false, description: "an MCP server" },
);

const ConfigFile = Type.Object(
  {
    server: Type.Optional(
      Type.Object(
        {
          host: Type.Optional(text("a host name or address")),
          port: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535, description: portExpected })),
          base_url: Type.Optional(text(webAddress)),
          site_url: Type.Optional(text(webAddress)),
          cors_origins: Type.Optional(Type.Array(Type.String(), { description: corsOriginsExpected })),
          stop_grace_seconds: Type.Optional(
            Type.Number({ minimum: 0, maximum: 3_600, description: "a number of seconds from 0 to 3600" }),
          ),
          threads: Type.Optional(Type.Integer({ minimum: 1, maximum: threadsMax, description: threadsExpected })),
        },
        { additionalProperties: false, description: "a table [server]" },
      ),
    ),
    nodes: Type.Optional(Type.Array(NodeTable, { description: "one or more tables [[nodes]]" })),
    queue: Type.Optional(
      Type.Object(
        {
          max_wait_seconds: Type.Optional(
            Type.Number({ minimum: 1, maximum: 86_400, description: "a number of seconds from 1 to 86400" }),
          ),
        },
        { additionalProperties: false, description: "a table [queue]" },
      ),
    ),
    search: Type.Optional(
      Type.Object(
        {
          provider: Type.Union(
            providers.map((provider) => Type.Literal(provider)),
            { description: `one of ${providers.map((provider) => `"${provider}"`).join(", ")}` },
          ),
          url: Type.Optional(text(webAddress)),
          api_key: Type.Optional(key()),
          api_key_env: Type.Optional(variable()),
          timeout_seconds: Type.Optional(
            Type.Number({ minimum: 1, maximum: 60, description: "a number of seconds from 1 to 60" }),
          ),
          fetch_pages: Type.Optional(
            Type.Integer({
              minimum: 0,
              maximum: searchPagesMax,
              description: `a whole number from 0 to ${searchPagesMax}`,
            }),
          ),
          folder: Type.Optional(text("the path of a folder")),
          base_url: Type.Optional(text(webAddress)),
          rescan_seconds: Type.Optional(
            Type.Number({ minimum: 1, maximum: 86_400, description: "a number of seconds from 1 to 86400" }),
          ),
        },
        { additionalProperties: false, description: "a table [search]" },
      ),
    ),
    mcp: Type.Optional(Type.Array(McpTable, { description: "one or more tables [[mcp]]" })),
    responses: Type.Optional(
      Type.Object(
        {
          keep_days: Type.Optional(
            Type.Number({ minimum: 0, maximum: 3650, description: "a number of days from 0 (store nothing) to 3650" }),
          ),
          keep_max_mib: Type.Optional(
            Type.Number({ minimum: 1, maximum: 1_048_576, description: "a number of MiB from 1 to 1048576" }),
          ),
        },
        { additionalProperties: false, description: "a table [responses]" },
      ),
    ),
    console: Type.Optional(
      Type.Object(
        {
          sign_up: Type.Optional(Type.Boolean({ description: "true or false" })),
          address_header: Type.Optional(
            Type.String({ pattern: "^[A-Za-z][A-Za-z0-9-]{0,63}$", description: 'a header such as "x-forwarded-for"' }),
          ),
        },
        { additionalProperties: false, description: "a table [console]" },
      ),
    ),
    stripe: Type.Optional(
      Type.Object(
        {
          secret_key: Type.Optional(key()),
          secret_key_env: Type.Optional(variable()),
          webhook_secret: Type.Optional(key()),
          webhook_secret_env: Type.Optional(variable()),
          url: Type.Optional(text(webAddress)),
        },
        { additionalProperties: false, description: "a table [stripe]" },
      ),
    ),
    catalog: Type.Optional(
      Type.Object(
        { file: Type.Optional(text("the path of a file")) },
        { additionalProperties: false, description: "a table [catalog]" },
      ),
    ),
    limits: Type.Optional(
      Type.Object(
        {
          default_output_tokens: Type.Optional(
            Type.Integer({
              minimum: outputTokensMin,
              maximum: outputTokensMax,
              description: `a whole number from ${outputTokensMin} to ${outputTokensMax}`,
            }),
          ),
        },
        { additionalProperties: false, description: "a table [limits]" },
      ),
    ),
    log: Type.Optional(
      Type.Object(
        { level: Type.Optional(oneOf(logLevels)), format: Type.Optional(oneOf(logFormats)) },
        { additionalProperties: false, description: "a table [log]" },
      ),
    ),
    metrics: Type.Optional(
      Type.Object(
        { token: Type.Optional(key()), token_env: Type.Optional(variable()) },
        { additionalProperties: false, description: "a table [metrics]" },
      ),
    ),
    telemetry: Type.Optional(
      Type.Object(
        {
          otlp_endpoint: text(webAddress),
          sample_ratio: Type.Optional(Type.Number({ minimum: 0, maximum: 1, description: "a number from 0 to 1" })),
        },
        { additionalProperties: false, description: "a table [telemetry]" },
      ),
    ),
    retention: Type.Optional(
      Type.Object(
        {
          usage_days: Type.Optional(
            Type.Integer({ minimum: 0, maximum: 36_500, description: "a whole number from 0 (for ever) to 36500" }),
          ),
        },
        { additionalProperties: false, description: "a table [retention]" },
      ),
    ),
    backups: Type.Optional(
      Type.Object(
        {
          every_hours: Type.Union([Type.Literal(0), Type.Number({ minimum: 0.1, maximum: 8_760 })], {
            description: "a number of hours from 0.1 to 8760, or 0 (none)",
          }),
          keep: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 1_000, description: "a whole number from 1 to 1000" }),
          ),
        },
        { additionalProperties: false, description: "a table [backups]" },
      ),
    ),
  },
  { additionalProperties: false, description: "a configuration" },
);
type ConfigTables = Static<typeof ConfigFile>;
/** For the reference of the configuration. */
export const configSchema: TSchema = ConfigFile;

// ---------------------------------------------------------------- reading

/**
 * Reads the file that the flags or the environment name and merges all sources.
 * Throws ConfigError; touches nothing but the file.
 */
export async function loadConfig(flags: ConfigFlags, environment: Environment): Promise<Config> {
  const file = flags.config ?? given(environment["TOLLGATE_CONFIG"]) ?? null;
  if (file === null) return readConfig(null, "", flags, environment);
  let toml: string;
  try {
    toml = await Bun.file(file).text();
  } catch (error) {
    throw new ConfigError(`${file}: cannot be read: ${(error as Error).message}`);
  }
  return readConfig(file, toml, flags, environment);
}

/** Merges the text of a configuration file with flags and environment; throws ConfigError. */
export function readConfig(file: string | null, toml: string, flags: ConfigFlags, environment: Environment): Config {
  const faults = new Faults(file, toml);
  const tables = parseTables(toml, faults);
  const {
    server,
    queue,
    search,
    responses,
    console,
    stripe,
    catalog,
    limits,
    log,
    metrics,
    telemetry,
    retention,
    backups,
  } = tables;
  const port = firstOf([
    [flags.port, "--port"],
    [given(environment["TOLLGATE_PORT"]), "TOLLGATE_PORT"],
    [given(environment["PORT"]), "PORT"],
  ]);
  const config: Config = {
    file,
    host: flags.host ?? given(environment["TOLLGATE_HOST"]) ?? server?.host ?? hostDefault,
    port: port === null ? (server?.port ?? portDefault) : readPort(port, faults),
    baseUrl: server?.base_url === undefined ? null : faults.address(server.base_url, ["server", "base_url"]),
    siteUrl: server?.site_url === undefined ? null : faults.address(server.site_url, ["server", "site_url"]),
    corsOrigins: readOrigins(server?.cors_origins ?? [], faults),
    stopGraceMs: (server?.stop_grace_seconds ?? stopGraceMs / 1000) * 1000,
    threads: flags.threads === undefined ? (server?.threads ?? threadsDefault) : readThreads(flags.threads, faults),
    dataFolder: dataFolderOf(flags, environment),
    nodes: nodesOf(flags, () => readNodes(tables.nodes ?? [], dirname(file ?? "."), environment, faults), faults),
    queueMaxWaitMs: queue?.max_wait_seconds === undefined ? queueMaxWaitMs : queue.max_wait_seconds * 1000,
    search: search === undefined ? null : readSearch(search, dirname(file ?? "."), environment, faults),
    mcp: (tables.mcp ?? []).map((server, index, servers) => readMcp(server, index, servers, environment, faults)),
    storedResponses: readStoredResponses(responses ?? {}),
    console: { signUp: console?.sign_up ?? false, addressHeader: console?.address_header?.toLowerCase() ?? null },
    stripe: stripe === undefined ? null : readStripe(stripe, environment, faults),
    catalogFile: catalog?.file === undefined ? null : resolve(dirname(file ?? "."), catalog.file),
    outputTokensDefault: limits?.default_output_tokens ?? outputTokensDefault,
    log: readLog(log ?? {}, environment, faults),
    metricsToken: metrics === undefined ? null : readSecret("token", metrics, ["metrics"], environment, faults),
    telemetry:
      telemetry === undefined
        ? null
        : {
            otlpEndpoint: faults.address(telemetry.otlp_endpoint, ["telemetry", "otlp_endpoint"]),
            sampleRatio: telemetry.sample_ratio ?? 1,
          },
    usageKeepDays: (retention?.usage_days ?? 0) === 0 ? null : retention!.usage_days!,
    backups: readBackups(backups),
  };
  faults.throwIfAny();
  return config;
}

/** The data folder: known without the file, so that the commands on accounts need no configuration. */
export function dataFolderOf(flags: Pick<ConfigFlags, "data">, environment: Environment): string {
  return flags.data ?? given(environment["TOLLGATE_DATA"]) ?? dataFolderDefault;
}

/**
 * What the schema of the file cannot know: each model id of [nodes.models] and [[mcp]] is an id of the catalogue.
 * Throws ConfigError naming the nearest id.
 */
export function checkModelIds({ file, nodes, mcp }: Config, { models }: Catalog): void {
  const meantFor = (id: string, otherwise: string): string => {
    const meant = nearest(id, models.keys());
    return `must be a model id of the catalogue, ${meant === null ? otherwise : `did you mean "${meant}"?`}`;
  };
  const lines = [
    ...nodes.flatMap((node) =>
      Object.keys(node.models)
        .filter((id) => id !== "*" && !models.has(id))
        .map(
          (id) =>
            `${file ?? "--node"}: node "${node.name}": models.${JSON.stringify(id)} ${meantFor(id, 'or "*" for any')}`,
        ),
    ),
    ...mcp.flatMap((server) =>
      (server.models ?? [])
        .filter((id) => !models.has(id))
        .map(
          (id) =>
            `${file}: mcp "${server.name}": models: ${JSON.stringify(id)} ${meantFor(id, "or leave models out for any")}`,
        ),
    ),
  ];
  if (lines.length > 0) throw new ConfigError(lines.join("\n"));
}

/** The name under which a node is asked for a public model id; `listed` are the models that the node says it has. */
export function modelNameOn(models: NodeConfig["models"], publicId: string, listed: readonly string[]): string {
  const name = models[publicId] ?? models["*"] ?? publicId;
  if (name !== "*") return name;
  return listed.includes(publicId) ? publicId : (listed[0] ?? publicId);
}

/** {base_url} and {site_url} of a server that listens on `port`; the site is at the base unless the file says otherwise. */
export function addressesOf(config: Config, port: number): { baseUrl: string; siteUrl: string } {
  const baseUrl = config.baseUrl ?? listeningAddress(config.host, port);
  return { baseUrl, siteUrl: config.siteUrl ?? baseUrl };
}

/** Whether clients come through a proxy, as far as the configuration says it. */
export function isBehindProxy({ baseUrl, console: { addressHeader } }: Config): boolean {
  return addressHeader !== null || (baseUrl !== null && !namesThisMachine(new URL(baseUrl).hostname));
}

/** Address under which a server on `host` and `port` can be opened on its own machine. */
export function listeningAddress(host: string, port: number): string {
  const name = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

// ---------------------------------------------------------------- parts

/** Collects what is wrong, so that one start reports every fault of the file. */
class Faults {
  readonly #lines: string[] = [];
  #ofFlags = 0;
  readonly #file: string | null;
  readonly #toml: string;

  constructor(file: string | null, toml: string) {
    this.#file = file;
    this.#toml = toml;
  }

  /** A fault of a variable or the whole file. */
  add(line: string): void {
    this.#lines.push(line);
  }

  addOfFlag(line: string): void {
    this.#ofFlags += 1;
    this.add(line);
  }

  at(path: readonly (string | number)[], problem: string): void {
    // An item of a list in one line has the line of the list.
    const line = lineOf(this.#toml, path) ?? lineOf(this.#toml, path.slice(0, -1));
    this.add(`${this.#file}${line === null ? "" : `:${line}`}: ${formatPath(path)} ${problem}`);
  }

  syntax(message: string): never {
    const line = lineOfSyntaxError(this.#toml, message);
    throw new ConfigError(`${this.#file}${line === null ? "" : `:${line}`}: ${message}`);
  }

  /** A checked http(s) address without its trailing slash; "" (and a fault) when it is none. */
  address(url: string, path: readonly (string | number)[]): string {
    const address = readAddress(url);
    if (address === null) this.at(path, `must be ${webAddress} without user, query and fragment, is ${show(url)}`);
    return address ?? "";
  }

  /** A checked http(s) address exactly as it was written: a query or a slash at its end may be part of it. */
  endpoint(url: string, path: readonly (string | number)[]): string {
    const parsed = URL.parse(url);
    const isWeb = parsed !== null && /^https?:$/.test(parsed.protocol) && parsed.username + parsed.password === "";
    if (!isWeb) this.at(path, `must be ${webAddress} without user, is ${show(url)}`);
    return url;
  }

  throwIfAny(): void {
    const { length } = this.#lines;
    if (length > 0) throw new ConfigError(this.#lines.join("\n"), this.#ofFlags === length);
  }
}

function parseTables(toml: string, faults: Faults): ConfigTables {
  let tables: unknown;
  try {
    tables = Bun.TOML.parse(toml);
  } catch (error) {
    faults.syntax((error as Error).message);
  }
  for (const { path, problem } of misfitsOf(ConfigFile, tables)) faults.at(path, problem);
  faults.throwIfAny();
  return tables as ConfigTables;
}

/** Nodes of the command line stand in for those of the file. */
function nodesOf({ node = [], gguf }: ConfigFlags, ofFile: () => NodeConfig[], faults: Faults): NodeConfig[] {
  const given = node.map((url, index) => nodeOfFlag(url, index, faults));
  if (gguf !== undefined) given.push(ggufNode(gguf));
  return given.length > 0 ? given : ofFile();
}

function readNodes(
  tables: ConfigTables["nodes"] & {},
  configFolder: string,
  environment: Environment,
  faults: Faults,
): NodeConfig[] {
  const names = new Map<string, number>();
  return tables.map((table, index) => {
    const { name, slots, models, depth, think_tag_opened: thinkTagOpened } = table;
    const managed = readManaged(table, index, configFolder, faults);
    const first = names.get(name);
    if (first === undefined) names.set(name, index);
    else faults.at(["nodes", index, "name"], `must be unique, is also the name of nodes[${first}]`);
    for (const [effort, fields] of Object.entries(depth ?? {})) {
      for (const field of Object.keys(fields).filter((field) => notDepth.has(field))) {
        faults.at(["nodes", index, "depth", effort, field], "must be absent: it is not for a depth to set");
      }
    }
    return {
      name,
      url: readNodeAddress(table, index, faults),
      apiKey: readKey(table, ["nodes", index], environment, faults),
      slots: slots ?? nodeSlotsDefault,
      models: models ?? { "*": "*" },
      ...(depth === undefined ? {} : { depth }),
      ...(thinkTagOpened === undefined ? {} : { thinkTagOpened }),
      ...(managed === null ? {} : { managed }),
    };
  });
}

/** Of a node that the gateway starts without saying where: a port that is free then. */
const managedAddress = "http://127.0.0.1:{port}/v1";

function readNodeAddress({ url, command }: Static<typeof NodeTable>, index: number, faults: Faults): string {
  if (url !== undefined) return nodeAddress(faults.address(url, ["nodes", index, "url"]));
  if (command === undefined) faults.at(["nodes", index, "url"], `is missing: must be ${webAddress}`);
  else if (!command.some((word) => word.includes("{port}"))) {
    faults.at(["nodes", index, "command"], 'must have "{port}" where the port belongs, because there is no url');
  }
  return managedAddress;
}

function readManaged(
  { command, env, cwd, start_timeout_seconds, ...table }: Static<typeof NodeTable>,
  index: number,
  configFolder: string,
  faults: Faults,
): ManagedConfig | null {
  if (command === undefined) {
    const given = { env, cwd, start_timeout_seconds };
    for (const [key, value] of Object.entries(given)) {
      if (value !== undefined) faults.at(["nodes", index, key], "must be absent where no command is given");
    }
    return null;
  }
  if (table.url !== undefined && command.some((word) => word.includes("{port}"))) {
    faults.at(["nodes", index, "url"], 'must be absent where command has "{port}"');
  }
  return {
    command,
    environment: env ?? {},
    folder: cwd === undefined ? null : resolve(configFolder, cwd),
    startTimeoutMs: start_timeout_seconds === undefined ? managedStartTimeoutMs : start_timeout_seconds * 1000,
  };
}

/** `--gguf FILE`: llama.cpp's own server on this machine, for every model id that no other node names. */
const ggufNode = (file: string): NodeConfig => ({
  name: "llama-server",
  url: managedAddress,
  apiKey: null,
  slots: ggufSlots,
  models: { "*": "*" },
  managed: {
    command: ["llama-server", "--model", resolve(file), "--host", "127.0.0.1", "--port", "{port}", "--jinja"],
    environment: {},
    folder: null,
    startTimeoutMs: managedStartTimeoutMs,
  },
});

/** `--node URL`: takes every model id that the file does not speak of, under whatever name the node serves. */
function nodeOfFlag(url: string, index: number, faults: Faults): NodeConfig {
  const address = readAddress(url);
  if (address === null) {
    faults.addOfFlag(`--node must be ${webAddress} without user, query and fragment, is ${show(url)}`);
  }
  return {
    name: `node-${index + 1}`,
    url: nodeAddress(address ?? ""),
    apiKey: null,
    slots: nodeSlotsDefault,
    models: { "*": "*" },
  };
}

type SearchTable = ConfigTables["search"] & {};

/** Keys of [search] that mean nothing to the provider: a fault, since whoever wrote them expects something of them. */
const keysOfWebSearch = ["url", "api_key", "api_key_env", "timeout_seconds", "fetch_pages"] as const;
const keysOfFolderSearch = ["folder", "base_url", "rescan_seconds"] as const;

function readSearch(
  table: SearchTable,
  configFolder: string,
  environment: Environment,
  faults: Faults,
): SearchConfig | null {
  const { provider } = table;
  if (provider === "none") return null;
  for (const name of provider === "local" ? keysOfWebSearch : keysOfFolderSearch) {
    if (table[name] !== undefined) faults.at(["search", name], `must be absent for provider "${provider}"`);
  }
  return provider === "local"
    ? readFolderSearch(table, configFolder, faults)
    : readWebSearch(provider, table, environment, faults);
}

function readWebSearch(
  provider: WebSearchConfig["provider"],
  table: SearchTable,
  environment: Environment,
  faults: Faults,
): WebSearchConfig {
  const { url, timeout_seconds, fetch_pages } = table;
  const apiKey = readKey(table, ["search"], environment, faults);
  if (provider === "searxng" && url === undefined) {
    faults.at(["search", "url"], `is missing: must be ${webAddress} for provider "searxng"`);
  }
  if (provider !== "searxng" && apiKey === null) {
    faults.at(["search", "api_key_env"], `is missing: provider "${provider}" needs api_key_env or api_key`);
  }
  return {
    provider,
    url: url === undefined ? null : faults.address(url, ["search", "url"]),
    apiKey,
    timeoutMs: timeout_seconds === undefined ? searchTimeoutMs : timeout_seconds * 1000,
    pages: fetch_pages ?? searchPagesDefault[provider],
  };
}

/** An address that resolves nowhere (RFC 6761), for who has none: a citation must have one. */
const folderUrlDefault = "https://files.invalid";

function readFolderSearch({ folder, base_url, rescan_seconds }: SearchTable, configFolder: string, faults: Faults) {
  if (folder === undefined) faults.at(["search", "folder"], 'is missing: provider "local" searches a folder of files');
  return {
    provider: "local",
    folder: resolve(configFolder, folder ?? ""),
    baseUrl: base_url === undefined ? folderUrlDefault : faults.address(base_url, ["search", "base_url"]),
    rescanIntervalMs: rescan_seconds === undefined ? searchRescanIntervalMs : rescan_seconds * 1000,
  } satisfies FolderSearchConfig;
}

function readMcp(
  table: Static<typeof McpTable>,
  index: number,
  servers: readonly Static<typeof McpTable>[],
  environment: Environment,
  faults: Faults,
): McpConfig {
  const { name, url, command, args, env, models, plans, tools, timeout_seconds } = table;
  const first = servers.findIndex((server) => server.name === name);
  if (first !== index) {
    faults.at(["mcp", index, "name"], `must be unique, is also the name of mcp[${first}]`);
  }
  if ((url === undefined) === (command === undefined)) faults.at(["mcp", index], "must have either url or command");
  for (const key of url === undefined ? (["api_key", "api_key_env"] as const) : (["args", "env"] as const)) {
    if (table[key] === undefined) continue;
    faults.at(["mcp", index, key], `must be absent where ${url === undefined ? "command" : "url"} is given`);
  }
  return {
    name,
    reached:
      command === undefined
        ? {
            by: "http",
            url: url === undefined ? "" : faults.endpoint(url, ["mcp", index, "url"]),
            apiKey: readKey(table, ["mcp", index], environment, faults),
          }
        : { by: "stdio", command, args: args ?? [], environment: env ?? {} },
    models: models ?? null,
    plans: plans ?? null,
    tools: tools ?? null,
    timeoutMs: timeout_seconds === undefined ? mcpCallTimeoutMs : timeout_seconds * 1000,
  };
}

function readStoredResponses({
  keep_days = storedResponsesKeepDays,
  keep_max_mib = storedResponsesMaxMib,
}: ConfigTables["responses"] & {}): StoredResponsesConfig | null {
  return keep_days === 0 ? null : { keepMs: keep_days * dayMs, accountBytesMax: keep_max_mib * 1024 ** 2 };
}

function readBackups(table: ConfigTables["backups"]): BackupSchedule | null {
  if (table === undefined || table.every_hours === 0) return null;
  return { everyMs: table.every_hours * hourMs, keep: table.keep ?? scheduledBackupsKeptDefault };
}

/** TOLLGATE_LOG_LEVEL and TOLLGATE_LOG_FORMAT win over the file: whoever looks for a fault need not edit it. */
function readLog(table: ConfigTables["log"] & {}, environment: Environment, faults: Faults): LogConfig {
  const named = <Word extends string>(name: string, words: readonly Word[]): Word | undefined => {
    const value = given(environment[name]);
    const word = words.find((word) => word === value);
    if (value !== undefined && word === undefined) {
      faults.add(`${name} must be one of ${words.map((word) => `"${word}"`).join(", ")}, is ${show(value)}`);
    }
    return word;
  };
  return {
    level: named("TOLLGATE_LOG_LEVEL", logLevels) ?? table.level ?? "info",
    format: named("TOLLGATE_LOG_FORMAT", logFormats) ?? table.format ?? null,
  };
}

function readStripe(table: ConfigTables["stripe"] & {}, environment: Environment, faults: Faults): StripeConfig {
  const read = (name: "secret_key" | "webhook_secret"): string => {
    const secret = readSecret(name, table, ["stripe"], environment, faults);
    if (secret === null && table[`${name}_env`] === undefined) {
      faults.at(["stripe", `${name}_env`], `is missing: payments need ${name}_env or ${name}`);
    }
    return secret ?? "";
  };
  const url = table.url === undefined ? null : faults.address(table.url, ["stripe", "url"]);
  return { secretKey: read("secret_key"), webhookSecret: read("webhook_secret"), url };
}

function readKey(
  keys: { api_key?: string; api_key_env?: string },
  table: readonly (string | number)[],
  environment: Environment,
  faults: Faults,
): string | null {
  return readSecret("api_key", keys, table, environment, faults);
}

/** A secret of the file, or of the environment variable that the key `<name>_env` names; null where it has neither. */
function readSecret<Name extends string>(
  name: Name,
  keys: { readonly [Key in Name | `${Name}_env`]?: string },
  table: readonly (string | number)[],
  environment: Environment,
  faults: Faults,
): string | null {
  const secret = keys[name];
  const variable = keys[`${name}_env`];
  if (variable === undefined) return secret ?? null;
  if (secret !== undefined) faults.at([...table, name], `must be absent where ${name}_env is given`);
  const value = environment[variable];
  if (value === undefined || value === "") {
    faults.at([...table, `${name}_env`], `must name a set environment variable, but ${variable} is not set`);
  }
  return value ?? null;
}

function readPort([typed, source]: readonly [string, string], faults: Faults): number {
  const port = /^\d{1,5}$/.test(typed) ? Number(typed) : Number.NaN;
  if (port <= 65_535) return port;
  const fault = `${source} must be ${portExpected}, is ${show(typed)}`;
  if (source.startsWith("--")) faults.addOfFlag(fault);
  else faults.add(fault);
  return 0;
}

function readThreads(typed: string, faults: Faults): number {
  const threads = /^\d{1,3}$/.test(typed) ? Number(typed) : 0;
  if (threads >= 1 && threads <= threadsMax) return threads;
  faults.addOfFlag(`--threads must be ${threadsExpected}, is ${show(typed)}`);
  return threadsDefault;
}

/** As browsers write them: in lower case, without a usual port. Pages of programs have schemes of their own. */
function readOrigins(typed: readonly string[], faults: Faults): readonly string[] {
  return typed.map((origin, index) => {
    const at = ["server", "cors_origins", index];
    if (origin === "*") {
      if (typed.length > 1) faults.at(at, 'must be alone: "*" is all origins');
      return origin;
    }
    const address = origin.includes("*") ? null : readAddress(origin);
    const isOfProgram = /^(?!https?:)[A-Za-z][A-Za-z0-9+.-]*:\/\/[A-Za-z0-9._:[\]-]+$/.test(origin);
    if (address !== null && new URL(address).pathname === "/") return new URL(address).origin;
    if (!isOfProgram) {
      faults.at(at, `must be an origin such as "https://app.example.com", without a path, is ${show(origin)}`);
    }
    return origin.toLowerCase();
  });
}

/** The first value that was given, with the name of its source. */
function firstOf(sources: readonly (readonly [string | undefined, string])[]): readonly [string, string] | null {
  for (const [value, source] of sources) if (value !== undefined) return [value, source];
  return null;
}

/** An empty environment variable counts as not given. */
const given = (value: string | undefined): string | undefined => (value === "" ? undefined : value);

function readAddress(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const { protocol, username, password, search, hash, href } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") return null;
  if (username !== "" || password !== "" || search !== "" || hash !== "") return null;
  return href.replace(/\/+$/, "");
}

/** Engines serve their API under /v1: an address without any path means that. */
function nodeAddress(address: string): string {
  return address !== "" && new URL(address).pathname === "/" ? `${address}/v1` : address;
}
