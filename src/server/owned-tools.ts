// Assembles the tools that the configuration lets the gateway run itself: web search and MCP servers. Where it names none,
// nothing of them is loaded (100 KB of sources).
import { pdfTextCommand } from "../tools/media/pdf-command.ts";
import type { Accounting } from "../books/accounting.ts";
import type { Clock } from "../core/clock.ts";
import type { Config } from "../config/config.ts";
import type { Metrics } from "../http/metrics/metrics.ts";
import type { Log } from "../core/log.ts";
import type { McpTools } from "../tools/mcp/mcp.ts";
import type { PublicFetch } from "../tools/fetch/public-fetch.ts";
import { SearchFailed, type SearchProvider } from "../tools/search/search-provider.ts";
import type { ToolLoop } from "../tools/tool-loop.ts";
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
  #servers: McpTools | null = null;
  #search: Config["search"];
  #mcp: Config["mcp"];
  readonly #dataFolder: string;
  #provider: SearchProvider | null = null;
  #toolLoop: ToolLoop | undefined;
  /** Ends when the search of before has let go of its index. */
  #freed: Promise<void> = Promise.resolve();
  /** For requests that began under an earlier configuration, too: the search of then may be closed. */
  readonly #searchInForce: SearchProvider = {
    search: (query, resultsMax, account, cancelSignal) =>
      this.#provider?.search(query, resultsMax, account, cancelSignal) ??
      Promise.reject(new SearchFailed("search was turned off")),
    close: () => this.#provider?.close() ?? Promise.resolve(),
  };

  private constructor(config: ToolsConfig, parts: OwnedToolsParts) {
    this.#parts = parts;
    this.#search = config.search;
    this.#mcp = config.mcp;
    this.#dataFolder = config.dataFolder;
  }

  /** Throws what the operator can put right: SearchFolderUnusable or DataFolderUnusable. */
  static async open(config: ToolsConfig, parts: OwnedToolsParts): Promise<OwnedTools> {
    const tools = new OwnedTools(config, parts);
    tools.#provider = await openProvider(config, parts);
    await tools.useServers(config.mcp);
    return tools;
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
    this.#toolLoop = await this.#loop();
  }

  async useServers(servers: Config["mcp"]): Promise<void> {
    if (servers.length > 0 && this.#servers === null) {
      const { McpTools } = await import("../tools/mcp/mcp.ts");
      this.#servers = new McpTools([], this.#parts);
    }
    this.#servers?.reconfigure(servers);
    this.#mcp = servers;
    this.#toolLoop = await this.#loop();
  }

  async close(): Promise<void> {
    await Promise.all([this.#freed, this.#provider?.close(), this.#servers?.close()]);
  }

  async #loop(): Promise<ToolLoop | undefined> {
    if (this.#search === null && this.#mcp.length === 0) return undefined;
    const { ToolLoop } = await import("../tools/tool-loop.ts");
    const { accounting, metrics, clock, log } = this.#parts;
    const { searches, planOf } = accounting;
    return new ToolLoop({
      provider: this.#provider === null ? null : countedSearch(this.#searchInForce, metrics),
      searches,
      serverTools: ({ model }, account) => this.#servers?.toolsFor(model, planOf(account).as) ?? [],
      clock,
      log,
    });
  }
}

async function openProvider(
  { search, dataFolder }: Pick<ToolsConfig, "search" | "dataFolder">,
  { publicFetch, clock, log }: OwnedToolsParts,
  freed?: Promise<void>,
): Promise<SearchProvider | null> {
  if (search === null) return null;
  const { openSearchProvider } = await import("../tools/search/open.ts");
  return openSearchProvider(search, { dataFolder, publicFetch, clock, log, pdfCommand: pdfTextCommand }, freed);
}
