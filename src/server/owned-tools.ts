// Assembles the tools that the configuration lets the gateway run itself: web search and MCP servers.
import { pdfTextCommand } from "../tools/media/pdf-command.ts";
import type { Accounting } from "../accounting.ts";
import type { Clock } from "../core/clock.ts";
import type { Config } from "../config/config.ts";
import type { Metrics } from "../http/metrics/metrics.ts";
import type { Log } from "../core/log.ts";
import { McpTools } from "../tools/mcp/mcp.ts";
import type { PublicFetch } from "../tools/fetch/public-fetch.ts";
import { SearchFailed, type SearchProvider } from "../tools/search/search-provider.ts";
import { openSearchProvider } from "../tools/search/open.ts";
import { ToolLoop } from "../tools/tool-loop.ts";
import { countedSearch } from "./counted-tools.ts";

type OwnedToolsParts = Readonly<{
  accounting: Pick<Accounting, "searches" | "planOf">;
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
  #mcp: Config["mcp"];
  readonly #dataFolder: string;
  #provider: SearchProvider | null;
  #toolLoop: ToolLoop | undefined;
  /** Ends when the search of before has let go of its index. */
  #freed: Promise<void> = Promise.resolve();
  /** For requests that began under an earlier configuration, too: the search of then may be closed. */
  readonly #searchInForce: SearchProvider = {
    search: (query, resultsMax, cancelSignal) =>
      this.#provider?.search(query, resultsMax, cancelSignal) ??
      Promise.reject(new SearchFailed("search was turned off")),
    close: () => this.#provider?.close() ?? Promise.resolve(),
  };

  private constructor(config: ToolsConfig, provider: SearchProvider | null, parts: OwnedToolsParts) {
    this.#parts = parts;
    this.#servers = new McpTools(config.mcp, parts);
    this.#search = config.search;
    this.#mcp = config.mcp;
    this.#dataFolder = config.dataFolder;
    this.#provider = provider;
    this.#toolLoop = this.#loop();
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
   * Searches with something else from here on. A folder that takes the place of another is in the index when that is let go
   * of and it was read. Throws as `open`; then nothing has changed.
   */
  async useSearch(search: Config["search"]): Promise<void> {
    const before = this.#provider;
    const freed = Promise.withResolvers<void>();
    this.#provider = await openProvider({ search, dataFolder: this.#dataFolder }, this.#parts, freed.promise);
    this.#search = search;
    freed.resolve(before?.close());
    this.#freed = freed.promise;
    this.#toolLoop = this.#loop();
  }

  useServers(servers: Config["mcp"]): void {
    this.#servers.reconfigure(servers);
    this.#mcp = servers;
    this.#toolLoop = this.#loop();
  }

  /** Ends connections, children and indexes. */
  async close(): Promise<void> {
    await Promise.all([this.#freed, this.#provider?.close(), this.#servers.close()]);
  }

  #loop(): ToolLoop | undefined {
    if (this.#search === null && this.#mcp.length === 0) return undefined;
    const { accounting, metrics, clock, log } = this.#parts;
    const { searches, planOf } = accounting;
    return new ToolLoop({
      provider: this.#provider === null ? null : countedSearch(this.#searchInForce, metrics),
      searches,
      serverTools: ({ model }, account) => this.#servers.toolsFor(model, planOf(account).as),
      clock,
      log,
    });
  }
}

const openProvider = (
  { search, dataFolder }: Pick<ToolsConfig, "search" | "dataFolder">,
  { publicFetch, clock, log }: OwnedToolsParts,
  freed?: Promise<void>,
) => openSearchProvider(search, { dataFolder, publicFetch, clock, log, pdfCommand: pdfTextCommand }, freed);
