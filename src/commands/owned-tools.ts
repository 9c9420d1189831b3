// The tools that the configuration lets the gateway run by itself, put together: web search and MCP servers.
import type { Accounting } from "../accounting.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Metrics } from "../http/metrics.ts";
import type { Log } from "../log.ts";
import { McpTools } from "../tools/mcp.ts";
import type { PublicFetch } from "../tools/public-fetch.ts";
import { openSearchProvider } from "../tools/search/open.ts";
import { ToolLoop } from "../tools/tool-loop.ts";
import { countedSearch } from "./counted-tools.ts";
import { pdfTextCommand } from "./pdf-text.ts";

export type OwnedTools = Readonly<{
  /** Undefined where the configuration names no tool: then no request takes part in it. */
  toolLoop?: ToolLoop;
  /** Ends connections, children and indexes. */
  close(): Promise<void>;
}>;

type OwnedToolsParts = Readonly<{
  accounting: Pick<Accounting, "searches" | "ledger">;
  publicFetch: PublicFetch;
  metrics: Metrics;
  clock: Clock;
  log: Log;
}>;

/** Throws what the operator can put right: SearchFolderUnusable or DataFolderUnusable. */
export async function openOwnedTools(
  { search, mcp, dataFolder }: Pick<Config, "search" | "mcp" | "dataFolder">,
  { accounting, publicFetch, metrics, clock, log }: OwnedToolsParts,
): Promise<OwnedTools> {
  if (search === null && mcp.length === 0) return { close: async () => {} };
  const { searches, ledger } = accounting;
  const provider = await openSearchProvider(search, {
    dataFolder,
    publicFetch,
    clock,
    log,
    pdfCommand: pdfTextCommand,
  });
  const servers = new McpTools(mcp, { clock, log });
  return {
    toolLoop: new ToolLoop({
      provider: provider === null ? null : countedSearch(provider, metrics),
      searches,
      serverTools: ({ model }, account) => servers.toolsFor(model, ledger.account(account).plan.id),
      clock,
      log,
    }),
    async close() {
      await Promise.all([provider?.close(), servers.close()]);
    },
  };
}
