// A running server as the options see it: where each change of a live one is put in force. See `config/options.ts`.
import type { Accounting } from "../books/accounting.ts";
import type {
  BackupSchedule,
  McpConfig,
  NodeConfig,
  SearchConfig,
  FilesConfig,
  StoredResponsesConfig,
  TelemetryConfig,
  SharePrefixCache,
} from "../config/config.ts";
import type { MailConfig } from "../config/mail.ts";
import type { WebhookConfig } from "../config/webhooks.ts";
import type { LiveValues, Running, Derived } from "../config/running.ts";
import type { Catalog } from "../core/catalog.ts";
import type { Ms } from "../core/types.ts";
import type { NodePool } from "../nodes/queue/pool.ts";
import { dayMs } from "../core/units.ts";
import type { KeptRequestLog } from "../store/requests/kept-request-log.ts";
import type { FileStore } from "../files/file-store.ts";
import type { KeptResponses } from "../store/responses/kept-responses.ts";
import type { LedgerWatch } from "../store/verify/verify-watch.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import type { ServingNodes } from "./fleet/nodes.ts";
import type { Mailing } from "./mailing.ts";
import type { LazyNotices } from "./lazy-notices.ts";
import type { OwnedTools } from "./owned-tools.ts";
import { type ServedModels, textOf } from "./fleet/served-models.ts";
import type { ScheduledBackups } from "./kept/scheduled-backups.ts";

type Parts = Readonly<{
  values: LiveValues;
  accounting: Pick<Accounting, "admission" | "retain">;
  requestLog: Pick<KeptRequestLog, "keep">;
  watch: Pick<LedgerWatch, "plansChanged">;
  storedResponses: Pick<KeptResponses, "limit"> | null;
  files: Pick<FileStore, "limits"> | null;
  serving: Pick<ServingNodes, "replace">;
  pool: NodePool;
  ownedTools: OwnedTools;
  backups: Pick<ScheduledBackups, "follow">;
  notices: Pick<LazyNotices, "configure">;
  mailing: Pick<Mailing, "follow">;
  served: ServedModels;
  tracing: Tracing;
}>;

export class RunningParts implements Running {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get values(): LiveValues {
    return this.#parts.values;
  }

  useNodes(configs: readonly NodeConfig[]): void {
    const { serving, pool } = this.#parts;
    const { nodes, arrivals } = serving.replace(configs);
    pool.reconfigure(nodes, undefined, arrivals);
  }

  waitAtMost(ms: Ms): void {
    const { accounting, pool } = this.#parts;
    accounting.admission.line.maxWaitMs = ms;
    pool.waitAtMost(ms);
  }

  sharePrefixCaches(shares: SharePrefixCache | null): void {
    this.#parts.pool.sharePrefixCaches(shares);
  }

  useSearch(search: SearchConfig | null): Promise<void> {
    return this.#parts.ownedTools.useSearch(search);
  }

  useMcpServers(servers: readonly McpConfig[]): Promise<void> {
    return this.#parts.ownedTools.useServers(servers);
  }

  limitInputRequests(perMinute: number): void {
    this.#parts.accounting.admission.inputRequestsPerMinute = perMinute;
  }

  limitFiles(limits: FilesConfig): void {
    if (this.#parts.files !== null) this.#parts.files.limits = limits;
  }

  limitStoredResponses(limits: StoredResponsesConfig): void {
    this.#parts.storedResponses?.limit(limits);
  }

  trace(telemetry: TelemetryConfig | null): Promise<void> {
    return this.#parts.tracing.follow({ telemetry });
  }

  keepUsage(days: number | null): void {
    this.#parts.accounting.retain(days);
  }

  keepFailed(days: number): Promise<void> {
    return this.#parts.requestLog.keep(days * dayMs);
  }

  backUp(schedule: BackupSchedule | null): void {
    this.#parts.backups.follow(schedule);
  }

  useWebhooks(webhooks: readonly WebhookConfig[]): Promise<void> {
    return this.#parts.notices.configure(webhooks);
  }

  useMail(mail: MailConfig | null): Promise<void> {
    return this.#parts.mailing.follow(mail);
  }

  offer(offered: Derived): void {
    const { served, watch } = this.#parts;
    served.offer(offered);
    watch.plansChanged();
  }

  useOutputBudget(tokens: number, next: Catalog): void {
    this.#parts.served.useBudget(tokens, next);
  }

  showListedModels(shows: boolean): void {
    this.#parts.served.showListed(shows);
  }

  isOtherCatalog(next: Catalog): boolean {
    return textOf(this.#parts.served.catalog) !== textOf(next);
  }
}
