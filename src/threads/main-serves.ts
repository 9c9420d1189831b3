// Which requests a relay passes on because only the main thread has what they need: the gateway's own tools, whose
// connections and counts exist once; stored responses, and those that go on without their clients; and the memory that large bodies and fetched media share.
import { needsMedia } from "../tools/media/media-parts.ts";
import type { Ask } from "../core/types.ts";
import type { McpConfig, SearchConfig } from "../config/config.ts";

type Tools = Readonly<{ search: SearchConfig | null; mcp: readonly Pick<McpConfig, "models">[] }>;

/** `ask` is null for a request that has a large body or refers to a stored response. */
export function mainServes(ask: Ask | null, { search, mcp }: Tools): boolean {
  if (ask === null || ask.background === true || needsMedia(ask)) return true;
  if (ask.toolChoice === "none") return false;
  if (search !== null && ask.webSearch !== null) return true;
  // Only the main thread knows whether the account's plan may use a server.
  return ask.format === null && mcp.some(({ models }) => models === null || models.includes(ask.model.id));
}
