// Applies a changed configuration to the running server without touching open streams. All that can fail is done before
// anything changes, so that a wrong file changes nothing.
import { catalogOf } from "../config/configured-catalog.ts";
import type { LiveCatalog } from "../core/catalog.ts";
import type { Clock } from "../core/clock.ts";
import { checkModelIds, type Config } from "../config/config.ts";
import type { Log } from "../core/log.ts";
import type { NodePool } from "../nodes/queue/pool.ts";
import type { Ms } from "../core/types.ts";
import { isExpected } from "../core/expected-error.ts";
import type { OwnedTools } from "./owned-tools.ts";
import { checkPrograms, type ServingNodes } from "./nodes.ts";

/** What `tollgate reload` tells. */
export type ReloadReport = Readonly<{
  /** Parts of the configuration that changed and are in force now. */
  applied: readonly string[];
  /** Parts that differ from those the server was started with, and are not. */
  needsRestart: readonly string[];
}>;

/** `refused` says what is wrong with the configuration; then nothing has changed. */
export type ReloadOutcome = ReloadReport | Readonly<{ refused: string }>;

export type ReloadParts = Readonly<{
  clock: Clock;
  /** Reads the configuration again, from where it was read at the start. Throws ConfigError. */
  load(): Promise<Config>;
  catalog: LiveCatalog;
  serving: ServingNodes;
  pool: NodePool;
  ownedTools: OwnedTools;
  /** What the nodes' programs get. */
  environment(): Readonly<Record<string, string>>;
  log: Log;
  /** Called before anything of the new configuration is used. */
  adopting(config: Config): void;
  /** Takes what is neither of nodes, tools nor the catalogue; it cannot fail. */
  adopted(config: Config): Promise<void>;
  /** Called when plans may have other amounts. */
  plansChanged(): void;
}>;

/** The configuration in the parts that a reload tells apart; the catalogue is compared by what is in it. */
const partsOf = ({ file: _file, catalogFile: _catalogFile, log, storedResponses, ...parts }: Config) => ({
  ...parts,
  logLevel: log.level,
  logFormat: log.format,
  storesResponses: storedResponses !== null,
  storedResponses,
});
type Parts = ReturnType<typeof partsOf>;

/** Where each part is written, by whether it can change while the server runs. */
const live = {
  stopGraceMs: "server.stop_grace_seconds",
  corsOrigins: "server.cors_origins",
  nodes: "nodes",
  queueMaxWaitMs: "queue",
  search: "search",
  mcp: "mcp",
  storedResponses: "responses",
  logLevel: "log.level",
  metricsToken: "metrics",
  telemetry: "telemetry",
  usageKeepDays: "retention",
  outputTokensDefault: "limits",
  backups: "backups",
} as const;
const fixed: Readonly<Record<Exclude<keyof Parts, keyof typeof live>, string>> = {
  host: "server.host",
  port: "server.port",
  baseUrl: "server.base_url",
  siteUrl: "server.site_url",
  threads: "server.threads",
  dataFolder: "--data",
  storesResponses: "responses",
  console: "console",
  stripe: "stripe",
  logFormat: "log.format",
};

export class Reloader {
  readonly #parts: ReloadParts;
  readonly #atStart: Config;
  #config: Config;
  #loadedAt: Ms;
  /** One at a time: a later signal waits for what the earlier one does. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(config: Config, parts: ReloadParts) {
    this.#atStart = config;
    this.#config = config;
    this.#parts = parts;
    this.#loadedAt = parts.clock.wall();
  }

  /** When the configuration in force was read. */
  get loadedAt(): Ms {
    return this.#loadedAt;
  }

  /** Throws what is wrong with the configuration; then nothing has changed. */
  apply(): Promise<ReloadReport> {
    const report = this.#last.then(() => this.#apply());
    this.#last = report.catch(() => {}); // whoever asked for it is told
    return report;
  }

  /** For SIGHUP and the console: the log tells what became of it, too. */
  async applyAndLog(): Promise<ReloadOutcome> {
    const { log } = this.#parts;
    try {
      const report = await this.apply();
      const { applied, needsRestart } = report;
      log(needsRestart.length > 0 ? "warn" : "info", "configuration applied", {
        changed: applied.join(", ") || "nothing",
        needs_restart: needsRestart.join(", ") || "nothing",
      });
      return report;
    } catch (error) {
      if (!isExpected(error)) throw error;
      const refused = (error as Error).message;
      log("error", "configuration not applied, the old one stays", { reason: refused });
      return { refused };
    }
  }

  async #apply(): Promise<ReloadReport> {
    const { clock, load, catalog, serving, pool, ownedTools, environment, adopting, adopted, plansChanged } =
      this.#parts;
    const loadedAt = clock.wall();
    const config = await load();
    const nextCatalog = await catalogOf(config);
    checkModelIds(config, nextCatalog);
    checkPrograms(config.nodes, environment());

    const before = this.#config;
    const isNewCatalog = textOf(catalog) !== textOf(nextCatalog);
    adopting(config);
    await ownedTools.reconfigure(config);
    const { nodes, arrivals } = serving.replace(config.nodes);
    pool.reconfigure(nodes, config.queueMaxWaitMs, arrivals);
    if (isNewCatalog) {
      catalog.replace(nextCatalog);
      plansChanged();
    }
    await adopted(config);
    this.#loadedAt = loadedAt;
    this.#config = config;
    const needsRestart = differences(fixed, this.#atStart, config);
    const applied = differences(live, before, config).filter((place) => !needsRestart.includes(place));
    return { applied: [...applied, ...(isNewCatalog ? ["catalog"] : [])], needsRestart };
  }
}

const textOf = ({ models, plans, creditPacksTokens }: Pick<LiveCatalog, "models" | "plans" | "creditPacksTokens">) =>
  JSON.stringify([[...models], plans, creditPacksTokens]);

function differences<Key extends keyof Parts>(places: Readonly<Record<Key, string>>, before: Config, after: Config) {
  const [were, are] = [partsOf(before), partsOf(after)];
  return (Object.keys(places) as Key[])
    .filter((key) => JSON.stringify(were[key]) !== JSON.stringify(are[key]))
    .map((key) => places[key]);
}
