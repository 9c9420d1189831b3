// The table of all options: one row each, with its key, what it must be, what it is for, what holds without it, the flag
// and the variables that win over the file, and what becomes of a change while the server runs. The schema that files are
// checked with, the value that the program reads, the reference and what a reload does all follow from it.
import { hostname } from "node:os";
import {
  creditGrantMaxTokens,
  inputRequestsPerMinuteDefault,
  outputTokensDefault,
  outputTokensMax,
  outputTokensMin,
  queueMaxWaitMs,
} from "../core/limits.ts";
import { dayMs } from "../core/units.ts";
import { type LogFormat, logLevels } from "../core/log.ts";
import { usualDataFolder } from "./usual-data-folder.ts";
import { databaseUrl, databaseUrlVariable } from "./database-url.ts";
import {
  address,
  days,
  hoursOrNone,
  mapped,
  mebibytes,
  oneOf,
  origins,
  path,
  seconds,
  text,
  textLike,
  whole,
  yesOrNo,
} from "./kinds.ts";
import { mailTable } from "./mail.ts";
import { mcpTable } from "./mcp.ts";
import { managedSettingsTable } from "./managed-settings.ts";
import { modelTable } from "./models.ts";
import { planTable } from "./plans.ts";
import { nodesOfFlags, nodeTable, sharePrefixCache } from "./nodes.ts";
import { oidcTable } from "./oidc.ts";
import { list, option, outside, type Restart, restart, section } from "./option.ts";
import { key, required, secret, table } from "./rows.ts";
import type { BackupSchedule, FilesConfig, StoredResponsesConfig } from "./running.ts";
import { searchTable } from "./search.ts";
import { telemetryTable } from "./telemetry.ts";
import { webhookTable } from "./webhooks.ts";

const inputRequestsPerMinuteMax = 1_000_000;
/** How long open replies may continue after SIGTERM, unless the configuration says otherwise. */
export const stopGraceMs = 30_000;
const threadsMax = 64;
const storedResponsesKeepDays = 30;
/** An account's share; beyond it the oldest go first. Far above what a person's conversations need, as is the count. */
const storedResponsesMaxMib = 100;
const filesKeepDays = 30;
const gibibyte = 1024 ** 3;
/** A week of daily backups. */
const scheduledBackupsKeptDefault = 7;
/** One US dollar. */
const lowBalanceTokensDefault = 200_000;

const logFormats = ["json", "text"] as const satisfies readonly LogFormat[];

/** Read in lower case. */
const headerName = (example = "x-openwebui-user-email") =>
  mapped(textLike("^[A-Za-z][A-Za-z0-9-]{0,63}$", `a header such as "${example}"`), (name) => name.toLowerCase());

const responsesTable = table(
  {
    keepMs: key("keep_days", days(0, 3_650, "a number of days from 0 (store nothing) to 3650"), {
      about: "How long responses and conversations are stored.",
      otherwise: storedResponsesKeepDays * dayMs,
    }),
    accountBytesMax: key("keep_max_mib", mebibytes(1, 1_048_576), {
      about: "Limit for each account; the oldest are removed first.",
      otherwise: storedResponsesMaxMib * 1024 ** 2,
    }),
  },
  (limits): StoredResponsesConfig | null => (limits.keepMs === 0 ? null : limits),
);

const filesTable = table(
  {
    folder: key("folder", path("folder"), {
      about: "Where files are kept; several gateways need one that all of them share.",
      otherwise: null,
      shown: "`files` in the data folder",
    }),
    keepMs: key("keep_days", days(0, 3_650, "a number of days from 0 (take no files) to 3650"), {
      about: "How long a file is kept that does not say when it expires.",
      otherwise: filesKeepDays * dayMs,
    }),
    fileBytesMax: key("file_max_mib", mebibytes(1, 1_048_576), {
      about: "Limit for one file.",
      otherwise: 4 * gibibyte,
    }),
    accountBytesMax: key("account_max_mib", mebibytes(1, 1_073_741_824), {
      about: "Limit for all files of an account.",
      otherwise: 20 * gibibyte,
    }),
    totalBytesMax: key("total_max_mib", mebibytes(1, 1_073_741_824), {
      about: "Limit for all files together.",
      otherwise: 200 * gibibyte,
    }),
  },
  (limits): FilesConfig | null => (limits.keepMs === 0 ? null : limits),
);

const stripeTable = table(
  {
    secretKey: secret("secret_key", { about: "Sells credit through Stripe." }),
    /** Signs what Stripe tells about payments. */
    webhookSecret: secret("webhook_secret", { about: "Secret of the webhook `{base_url}/console/webhooks/stripe`." }),
    /** Null = at Stripe. */
    url: key("url", address(), { about: "The address of Stripe's API.", otherwise: null, shown: "Stripe's own" }),
  },
  ({ secretKey, webhookSecret, url }, place, given) => {
    for (const name of ["secret_key", "webhook_secret"].filter((name) => !(name in given || `${name}_env` in given))) {
      place.at(`${name}_env`).fault(`is missing: payments need ${name}_env or ${name}`);
    }
    return { secretKey: secretKey ?? "", webhookSecret: webhookSecret ?? "", url };
  },
);

const backupsTable = table(
  {
    everyMs: required(
      "every_hours",
      hoursOrNone(0.1, 8_760),
      "How often the server makes a backup, in the data folder's `backups`.",
    ),
    keep: key("keep", whole(1, 1_000), {
      about: "How many of these it keeps; it removes the oldest.",
      otherwise: scheduledBackupsKeptDefault,
    }),
  },
  (schedule): BackupSchedule | null => (schedule.everyMs === 0 ? null : schedule),
);

/** By the names that the program reads them by; the reference has the file's tables in this order. */
export const options = {
  host: option(
    "server",
    key("host", text("a host name or address"), { about: "The address to listen on.", otherwise: "127.0.0.1" }),
    restart,
    { flag: "host", variables: ["TOLLGATE_HOST"] },
  ),
  port: option(
    "server",
    key("port", whole(0, 65_535), { about: "The port to listen on; 0 takes any free one.", otherwise: 8400 }),
    restart,
    {
      flag: "port",
      variables: ["TOLLGATE_PORT", "PORT"],
    },
  ),
  /** {base_url} and {site_url} of the specification; null where the listening address is meant (see `addressesOf`). */
  baseUrl: option(
    "server",
    key("base_url", address(), { about: "The address that clients use.", otherwise: null, shown: "host and port" }),
    restart,
  ),
  siteUrl: option(
    "server",
    key("site_url", address(), {
      about: "The site that error messages name: `{site_url}/plan`.",
      otherwise: null,
      shown: "`base_url`",
    }),
    restart,
  ),
  /** As browsers write them; ["*"] = all, none = no page of another site. */
  corsOrigins: option(
    "server",
    key("cors_origins", origins(), {
      about: 'Sites whose pages may call the API with a key; `["*"]`: all.',
      otherwise: [] as readonly string[],
      shown: "none",
    }),
    { reload: ({ values }, corsOrigins) => void (values.corsOrigins = corsOrigins) },
  ),
  stopGraceMs: option(
    "server",
    key("stop_grace_seconds", seconds(0, 3_600), {
      about: "How long open replies may continue after SIGTERM.",
      otherwise: stopGraceMs,
    }),
    { reload: ({ values }, graceMs) => void (values.stopGraceMs = graceMs) },
  ),
  /** With 2 and more, the main thread keeps the books for those that serve clients. */
  threads: option(
    "server",
    key("threads", whole(1, threadsMax), { about: "Cores that serve clients; see More cores.", otherwise: 1 }),
    restart,
    { flag: "threads" },
  ),
  /** Null = none do, where the engine can keep them apart. Without rows of nodes it may stand in [nodes]. */
  sharePrefixCache: option(
    "server",
    key("share_prefix_cache", sharePrefixCache(), {
      about: "Which accounts share the engines' prompt caches, on all nodes; see Your own nodes.",
      otherwise: null,
      shown: "none, if the engine can keep them apart",
    }),
    { reload: (running, shares) => running.sharePrefixCaches(shares) },
  ),
  /** Null = the ledger is in the data folder. Others who ask the same database are gateways of the same shop. */
  databaseUrl: option(
    "ledger",
    databaseUrl("The PostgreSQL database that holds the ledger, for several gateways; see More than one machine."),
    restart,
    { variables: [databaseUrlVariable] },
  ),
  gateway: option(
    "ledger",
    key("gateway", textLike("^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$", 'a name such as "gate-1"'), {
      about: "This gateway's name among those of one database.",
      otherwise:
        hostname()
          .replace(/[^A-Za-z0-9._-]/g, "-")
          .slice(0, 63) || "gateway",
      shown: "the host's name",
    }),
    restart,
  ),
  gatherMs: option(
    "ledger",
    key("gather_ms", whole(0, 100), {
      about:
        "How long requests wait for others, so that one transaction serves all of them: less work for the database at low rates.",
      otherwise: 0,
    }),
    restart,
  ),
  dataFolder: outside({ flag: "data", variables: ["TOLLGATE_DATA"], otherwise: () => usualDataFolder() }),
  nodes: list("nodes", nodeTable, { reload: (running, nodes) => running.useNodes(nodes) }, nodesOfFlags),
  queueMaxWaitMs: option(
    "queue",
    key("max_wait_seconds", seconds(1, 86_400), {
      about: "How long a request waits for its account's others, and again for a node, before it is refused as busy.",
      otherwise: queueMaxWaitMs,
    }),
    { reload: (running, ms) => running.waitAtMost(ms) },
  ),
  search: section("search", searchTable, "none", {
    reload: (running, search) => running.useSearch(search),
    canFail: true,
  }),
  mcp: list("mcp", mcpTable, { reload: (running, servers) => running.useMcpServers(servers) }),
  /** Null = responses are not stored. */
  storedResponses: section("responses", responsesTable, "empty", {
    reload: (running, limits) => void (limits !== null && running.limitStoredResponses(limits)),
    beyond: { what: "whether responses are stored", is: (atStart, next) => (atStart === null) !== (next === null) },
  }),
  /** Null = no files are taken. */
  files: section("files", filesTable, "empty", {
    reload: (running, limits) => void (limits !== null && running.limitFiles(limits)),
    beyond: {
      what: "whether and where files are kept",
      is: (atStart, next) => (atStart === null) !== (next === null) || atStart?.folder !== next?.folder,
    },
  }),
  signUp: option(
    "console",
    key("sign_up", yesOrNo(), {
      about: "Whether strangers may create an account, on the first plan.",
      otherwise: false,
    }),
    restart,
  ),
  passwords: option(
    "console",
    key("passwords", yesOrNo(), {
      about: "Whether people may sign in with a password; `false` needs `[oidc]`.",
      otherwise: true,
    }),
    restart,
  ),
  accountDeletion: option(
    "console",
    key("account_deletion", oneOf(["self", "request", "off"]), {
      about:
        "Whether owners delete their accounts in the console, or ask an operator to. Off by default, since credit ends " +
        "with an account, and its owner may come back for another day's allowance.",
      otherwise: "off" as const,
    }),
    restart,
  ),
  machineTokenMs: option(
    "console",
    key("machine_token_days", days(0.01, 365), {
      about: "How long the token of a machine that signed in is valid; the machine renews it by itself.",
      otherwise: 30 * dayMs,
    }),
    restart,
  ),
  /** In lower case; null: there is no proxy. */
  addressHeader: option(
    "console",
    key("address_header", headerName("x-forwarded-for"), {
      about: "The header in which a proxy in front sends the browser's address.",
      otherwise: null,
      shown: "there is no proxy",
    }),
    restart,
  ),
  managedSettings: list(
    "managed_settings",
    managedSettingsTable,
    { reload: ({ values }, settings) => void (values.managedSettings = settings) },
    undefined,
    null,
  ),
  /** Null = no identity provider. */
  oidc: section("oidc", oidcTable, "none", restart),
  /** Null = credit is not sold: an operator grants it. */
  stripe: section("stripe", stripeTable, "none", restart),
  /** Null = the catalog that comes with the program. What a file says may be another, too, while its name is the same. */
  catalogFile: option(
    "catalog",
    key("file", path("file"), {
      about: "Models, prices and plans.",
      otherwise: null,
      shown: "those of data/catalog.json",
    }),
    {
      reload: (running, _file, offered) => running.offer(offered),
      differs: (running, { catalog }) => running.isOtherCatalog(catalog),
    },
    { name: "catalog" },
  ),
  /** A shop's own; none: those of the catalog are served. */
  models: list(
    "models",
    modelTable,
    { reload: (running, _models, offered) => running.offer(offered) },
    undefined,
    "id",
  ),
  /** A shop's own; none: those of the catalog are offered. */
  plans: list("plans", planTable, { reload: (running, _plans, offered) => running.offer(offered) }, undefined, "id"),
  /** What nodes list is served beside the catalog, if the shop names no models; this shows it in lists, too. */
  listNodeModels: option(
    "catalog",
    key("list_node_models", yesOrNo(), {
      about: "Whether lists of models show what nodes list beside the catalog.",
      otherwise: false,
    }),
    { reload: (running, shows) => running.showListedModels(shows) },
  ),
  /** For models whose row in the catalog says nothing of it. */
  outputTokensDefault: option(
    "limits",
    key("default_output_tokens", whole(outputTokensMin, outputTokensMax), {
      about: "Output budget of requests that name none, if the catalog has no `default_output_tokens` for the model.",
      otherwise: outputTokensDefault,
      shown: `${outputTokensDefault}; of a coder model ${outputTokensMax} on chat-completions and messages`,
    }),
    { reload: (running, budget, { catalog }) => running.useOutputBudget(budget, catalog) },
  ),
  inputRequestsPerMinute: option(
    "limits",
    key("embedding_requests_per_minute", whole(1, inputRequestsPerMinuteMax), {
      about: "An account's requests for embeddings and reranking in a minute, counted apart from all others.",
      otherwise: inputRequestsPerMinuteDefault,
    }),
    { reload: (running, requests) => running.limitInputRequests(requests) },
  ),
  /** Variables win over the file, so that a search for a fault needs no edit of it. */
  logLevel: option(
    "log",
    key("level", oneOf(logLevels), {
      about: "The lowest level that is logged; `debug` has a line for each request.",
      otherwise: "info" as const,
    }),
    { reload: ({ values }, level) => void (values.logLevel = level) },
    { variables: ["TOLLGATE_LOG_LEVEL"] },
  ),
  /** Null = text on a terminal, JSON otherwise. */
  logFormat: option(
    "log",
    key("format", oneOf(logFormats), {
      about: "How lines are written.",
      otherwise: null,
      shown: "text on a terminal, else json",
    }),
    restart,
    { variables: ["TOLLGATE_LOG_FORMAT"] },
  ),
  /** What a scraper of /metrics must bring; null = it must ask from this machine. */
  metricsToken: option(
    "metrics",
    secret("token", {
      about: "What a scraper of `/metrics` sends as a bearer token.",
      shown: "only this machine may ask, and no proxy",
    }),
    { reload: ({ values }, token) => void (values.metricsToken = token) },
  ),
  /** Null = nothing is traced. */
  telemetry: section("telemetry", telemetryTable, "none", { reload: (running, telemetry) => running.trace(telemetry) }),
  /** In lower case. Null = the body alone says for whom a program asks. */
  endUserHeader: option(
    "usage",
    key("end_user_header", headerName(), {
      about: "The header in which programs name their end users, with keys that may do so; see End users.",
      otherwise: null,
      shown: "none: the field of the request's body",
    }),
    { reload: ({ values }, header) => void (values.endUserHeader = header) },
  ),
  webhooks: list("webhooks", webhookTable, { reload: (running, webhooks) => running.useWebhooks(webhooks) }),
  /** Null = no mail is sent. */
  mail: section("mail", mailTable, "none", { reload: (running, mail) => running.useMail(mail) }),
  lowBalanceTokens: option(
    "notices",
    key("low_balance_tokens", whole(0, creditGrantMaxTokens), {
      about:
        "`balance.low` is sent if an account had at least this much credit and its balance falls below it; 0: never.",
      otherwise: lowBalanceTokensDefault,
    }),
    { reload: ({ values }, tokens) => void (values.lowBalanceTokens = tokens) },
  ),
  /** Null = each reply is kept for ever. */
  usageKeepDays: option(
    "retention",
    key(
      "usage_days",
      mapped(whole(0, 36_500, "a whole number from 0 (forever) to 36500"), (days) => (days === 0 ? null : days)),
      {
        about: "After this time only daily sums of the replies are kept.",
        otherwise: null,
        shown: "each is kept forever",
      },
    ),
    { reload: (running, days) => running.keepUsage(days) },
  ),
  failedKeepDays: option(
    "retention",
    key("failed_days", whole(0, 3_650, "a number of days from 0 (none is kept) to 3650"), {
      about: "How long the request log keeps refused and failed requests, and the addresses of all.",
      otherwise: 7,
    }),
    { reload: (running, days) => running.keepFailed(days) },
  ),
  /** Null = the server makes no backups by itself. */
  backups: section("backups", backupsTable, "none", { reload: (running, schedule) => running.backUp(schedule) }),
};

export type OptionName = keyof typeof options;
type ValueOf<O> = O extends { read(sources: never): infer Value } ? Value : never;
export type OptionValues = Readonly<{ [Name in OptionName]: ValueOf<(typeof options)[Name]> }>;

/** Names of the options that a reload applies. */
type LiveName = {
  [Name in OptionName]: (typeof options)[Name]["change"] extends Restart ? never : Name;
}[OptionName];
export type LiveOptions = Pick<OptionValues, LiveName>;
export type FixedOptions = Omit<OptionValues, LiveName>;
