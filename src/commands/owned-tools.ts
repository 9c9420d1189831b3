// The tools that the configuration lets the gateway run by itself, put together: web search and MCP servers.
import type { Accounting } from "../accounting.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Metrics } from "../http/metrics.ts";
import type { Log } from "../log.ts";
import { McpTools } from "../tools/mcp.ts";
import type { PublicFetch } from "../tools/public-fetch.ts";
import type { SearchProvider } from "../tools/search-provider.ts";
import { openSearchProvider } from "../tools/search/open.ts";
import { ToolLoop } from "../tools/tool-loop.ts";
import { countedSearch } from "./counted-tools.ts";
import { pdfTextCommand } from "./pdf-text.ts";

type OwnedToolsParts = Readonly<{
  accounting: Pick<Accounting, "searches" | "ledger">;
  publicFetch: PublicFetch;
  metrics: Metrics;
  clock: Clock;
  log: Log;
}>;

type ToolsConfig = Pick<Config, "search" | "mcp" | "dataFolder">;

export class OwnedTools {
  readonly #parts: OwnedToolsParts;
  readonly #servers: McpTools;
  #search: Config["search"];
  #provider: SearchProvider | null;
  #toolLoop: ToolLoop | undefined;

  private constructor(config: ToolsConfig, provider: SearchProvider | null, parts: OwnedToolsParts) {
    this.#parts = parts;
    this.#servers = new McpTools(config.mcp, parts);
    this.#search = config.search;
    this.#provider = provider;
    this.#toolLoop = this.#loopFor(config);
  }

  /** Throws what the operator can put right: SearchFolderUnusable or DataFolderUnusable. */
  static async open(config: ToolsConfig, parts: OwnedToolsParts): Promise<OwnedTools> {
    return new OwnedTools(config, await openProvider(config, parts), parts);
  }

  /** Undefined where the configuration names no tool: then no request takes part in it. */
  get toolLoop(): ToolLoop | undefined {
    return this.#toolLoop;
  }

  /**
   * Applies another configuration; requests that have begun go on with the search that they found. False where the search
   * is that of a folder, before or after: its index belongs to one process's one search, and needs a restart.
   */
  async reconfigure(config: ToolsConfig): Promise<boolean> {
    const same = JSON.stringify(config.search) === JSON.stringify(this.#search);
    const isLocal = [config.search, this.#search].some((search) => search?.provider === "local");
    if (!same && !isLocal) {
      this.#provider = await openProvider(config, this.#parts);
      this.#search = config.search;
    }
    this.#servers.reconfigure(config.mcp);
    this.#toolLoop = this.#loopFor({ ...config, search: this.#search });
    return same || !isLocal;
  }

  /** Ends connections, children and indexes. */
  async close(): Promise<void> {
    await Promise.all([this.#provider?.close(), this.#servers.close()]);
  }

  #loopFor({ search, mcp }: Pick<Config, "search" | "mcp">): ToolLoop | undefined {
    if (search === null && mcp.length === 0) return undefined;
    const { accounting, metrics, clock, log } = this.#parts;
    const { searches, ledger } = accounting;
    return new ToolLoop({
      provider: this.#provider === null ? null : countedSearch(this.#provider, metrics),
      searches,
      serverTools: ({ model }, account) => this.#servers.toolsFor(model, ledger.account(account).plan.id),
      clock,
      log,
    });
  }
}

const openProvider = ({ search, dataFolder }: ToolsConfig, { publicFetch, clock, log }: OwnedToolsParts) =>
  openSearchProvider(search, { dataFolder, publicFetch, clock, log, pdfCommand: pdfTextCommand });
