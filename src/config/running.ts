// What of a running server an option may change: what the rows of live options are applied to. `server/running.ts` is it.
import type { Catalog } from "../core/catalog.ts";
import type { LogLevel } from "../core/log.ts";
import type { Ms, Plan } from "../core/types.ts";
import type { MailConfig } from "./mail.ts";
import type { ManagedSettings } from "./managed-settings.ts";
import type { McpConfig } from "./mcp.ts";
import type { NodeConfig, SharePrefixCache } from "./nodes.ts";
import type { OwnModel } from "./models.ts";
import type { SearchConfig } from "./search.ts";
import type { TelemetryConfig } from "./telemetry.ts";
import type { WebhookConfig } from "./webhooks.ts";

/** How long and how many of an account's responses are kept for `previous_response_id`. */
export type StoredResponsesConfig = Readonly<{ keepMs: Ms; accountBytesMax: number }>;

/** What clients upload. `folder`: null = in the data folder. */
export type FilesConfig = Readonly<{
  folder: string | null;
  keepMs: Ms;
  fileBytesMax: number;
  accountBytesMax: number;
  totalBytesMax: number;
}>;

/** The server makes a backup each `everyMs` and keeps the last `keep` of them. */
export type BackupSchedule = Readonly<{ everyMs: Ms; keep: number }>;

/** What is in force when a change was applied, beside the options themselves. */
export type Derived = Readonly<{
  catalog: Catalog;
  /** Models and plans speak of each other, and so are put in force together. */
  models: readonly OwnModel[];
  plans: readonly Plan[];
}>;

/** What parts of the server look up whenever they need it. */
export type LiveValues = {
  stopGraceMs: Ms;
  corsOrigins: readonly string[];
  logLevel: LogLevel;
  metricsToken: string | null;
  endUserHeader: string | null;
  lowBalanceTokens: number;
  managedSettings: readonly ManagedSettings[];
};

export interface Running {
  readonly values: LiveValues;
  useNodes(nodes: readonly NodeConfig[]): void;
  /** For a node, and for others of the account. */
  waitAtMost(ms: Ms): void;
  /** Whether accounts share what engines keep of prompts, on nodes that leave it open; null: where they must. */
  sharePrefixCaches(shares: SharePrefixCache | null): void;
  /** Throws what the operator can put right; then nothing has changed. */
  useSearch(search: SearchConfig | null): Promise<void>;
  useMcpServers(servers: readonly McpConfig[]): Promise<void>;
  /** Requests of an account in a minute to models of embeddings and reranking. */
  limitInputRequests(perMinute: number): void;
  limitStoredResponses(limits: StoredResponsesConfig): void;
  limitFiles(limits: FilesConfig): void;
  trace(telemetry: TelemetryConfig | null): Promise<void>;
  /** Replies that are older are kept as sums of a day; null: each is kept. */
  keepUsage(days: number | null): void;
  /** Refused and failed requests that are older are let go of. */
  keepFailed(days: number): Promise<void>;
  backUp(schedule: BackupSchedule | null): void;
  useWebhooks(webhooks: readonly WebhookConfig[]): Promise<void>;
  useMail(mail: MailConfig | null): Promise<void>;
  /** A catalog with a shop's own models and plans, where it has any: all at once. */
  offer(offered: Derived): void;
  /** Of requests that name none; the catalog says it of each of its models. */
  useOutputBudget(tokens: number, catalog: Catalog): void;
  /** Whether lists of models show what nodes list beside the catalog. */
  showListedModels(shows: boolean): void;
  /** Whether it says something else than the one in force. */
  isOtherCatalog(catalog: Catalog): boolean;
}
