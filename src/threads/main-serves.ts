// Which requests a relay passes on because only the main thread has what they need: the gateway's own tools, whose
// connections and counts exist once, what was stored earlier, and the memory that large bodies and fetched media share.
import { needsMedia } from "../tools/media/media-parts.ts";
import type { Ask } from "../core/types.ts";
import type { Rules } from "./messages.ts";

/** `ask` is null for a request with a large body, or that refers to a stored response. */
export function mainServes(ask: Ask | null, { searches, mcp }: Pick<Rules, "searches" | "mcp">): boolean {
  if (ask === null || needsMedia(ask)) return true;
  if (ask.toolChoice === "none") return false;
  if (searches && ask.webSearch !== null) return true;
  // Whether the account's plan may use a server, the main thread knows.
  return ask.format === null && mcp.some(({ models }) => models === null || models.includes(ask.model.id));
}
