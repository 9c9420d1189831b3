// The models' name for a tool of an MCP server, both when it is offered and when its calls come back in a history.
import type { ServerTool } from "./types.ts";

/** Names that every engine accepts: 1 to 64 characters of `a-zA-Z0-9_-` (OpenAI's own rule, which they copied). */
export const toolNameMaxLength = 64;

export const serverToolName = ({ server, name }: ServerTool): string =>
  `${server}__${name}`.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, toolNameMaxLength);
