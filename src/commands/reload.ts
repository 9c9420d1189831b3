// Applies a changed configuration to the running server without touching open streams. All that can fail is done before
// anything changes, so that a wrong file changes nothing.
import type { LiveCatalog } from "../catalog.ts";
import { checkModelIds, type Config } from "../config.ts";
import type { Log } from "../log.ts";
import type { NodePool } from "../nodes/pool.ts";
import { isExpected } from "./expected-error.ts";
import type { OwnedTools } from "./owned-tools.ts";
import { catalogOf } from "./perform.ts";
import { checkPrograms, type ServingNodes } from "./serving-nodes.ts";

/** What `tollgate reload` tells. */
export type ReloadReport = Readonly<{
  /** Parts of the configuration that changed and are in force now. */
  applied: readonly string[];
  /** Parts that differ from those the server was started with, and are not. */
  needsRestart: readonly string[];
}>;

export type ReloadParts = Readonly<{
  /** Reads the configuration again, from where it was read at the start. Throws ConfigError. */
  load(): Promise<Config>;
  catalog: LiveCatalog;
  serving: ServingNodes;
  pool: NodePool;
  ownedTools: OwnedTools;
  environment: Readonly<Record<string, string>>;
  log: Log;
  /** Called before anything of the new configuration is used. */
  adopting(config: Config): void;
  /** Called when plans may have other amounts. */
  plansChanged(): void;
}>;

/** Where each part of the configuration is written, by whether it can change while the server runs. */
const live = { nodes: "nodes", queueMaxWaitMs: "queue", search: "search", mcp: "mcp" } as const;
const fixed: Readonly<Record<Exclude<keyof Config, keyof typeof live | "file" | "catalogFile">, string>> = {
  host: "server.host",
  port: "server.port",
  baseUrl: "server.base_url",
  siteUrl: "server.site_url",
  stopGraceMs: "server.stop_grace_seconds",
  dataFolder: "--data",
  storedResponses: "responses",
  console: "console",
  stripe: "stripe",
  log: "log",
  metricsToken: "metrics",
  telemetry: "telemetry",
  usageKeepDays: "retention",
};

export class Reloader {
  readonly #parts: ReloadParts;
  readonly #atStart: Config;
  #config: Config;
  /** One at a time: a later signal waits for what the earlier one does. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(config: Config, parts: ReloadParts) {
    this.#atStart = config;
    this.#config = config;
    this.#parts = parts;
  }

  /** Throws what is wrong with the configuration; then nothing has changed. */
  apply(): Promise<ReloadReport> {
    const report = this.#last.then(() => this.#apply());
    this.#last = report.catch(() => {}); // whoever asked for it is told
    return report;
  }

  /** For SIGHUP: the log tells what became of it. */
  async applyAndLog(): Promise<void> {
    const { log } = this.#parts;
    try {
      const { applied, needsRestart } = await this.apply();
      log(needsRestart.length > 0 ? "warn" : "info", "configuration applied", {
        changed: applied.join(", ") || "nothing",
        needs_restart: needsRestart.join(", ") || "nothing",
      });
    } catch (error) {
      if (!isExpected(error)) throw error;
      log("error", "configuration not applied, the old one stays", { reason: (error as Error).message });
    }
  }

  async #apply(): Promise<ReloadReport> {
    const { load, catalog, serving, pool, ownedTools, environment, adopting, plansChanged } = this.#parts;
    const config = await load();
    const nextCatalog = await catalogOf(config.catalogFile);
    checkModelIds(config, nextCatalog);
    checkPrograms(config.nodes, environment);

    const before = this.#config;
    const isNewCatalog = textOf(catalog) !== textOf(nextCatalog);
    adopting(config);
    const searchApplied = await ownedTools.reconfigure(config);
    pool.reconfigure(serving.replace(config.nodes), config.queueMaxWaitMs);
    if (isNewCatalog) {
      catalog.replace(nextCatalog);
      plansChanged();
    }
    this.#config = searchApplied ? config : { ...config, search: before.search };
    return {
      applied: [...differences(live, before, this.#config), ...(isNewCatalog ? ["catalog"] : [])],
      needsRestart: [...differences(fixed, this.#atStart, config), ...(searchApplied ? [] : ["search"])],
    };
  }
}

const textOf = ({ models, plans, creditPacksTokens }: Pick<LiveCatalog, "models" | "plans" | "creditPacksTokens">) =>
  JSON.stringify([[...models], plans, creditPacksTokens]);

function differences<Key extends keyof Config>(places: Readonly<Record<Key, string>>, before: Config, after: Config) {
  return (Object.keys(places) as Key[])
    .filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]))
    .map((key) => places[key]);
}
