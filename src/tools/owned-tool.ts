// A tool that the gateway runs itself: web search, or an MCP server's. Its results are fenced, untrusted text.
import type { AccountId, Call, ServerTool, Source, Tool, ToolOutcome } from "../core/types.ts";

export type { Source, ToolOutcome };

/** What a run may know about the request that it serves. */
export type RunContext = Readonly<{
  account: AccountId;
  /** Aborted when the client leaves: the run must stop within a second. */
  cancelSignal: AbortSignal;
}>;

export interface OwnedTool {
  /** As offered to the model. */
  readonly tool: Tool;
  /** How clients see the call; null: as a web search. */
  readonly serverTool: ServerTool | null;
  /** Runs a complete call, whose arguments are a JSON object. Never rejects for a mistake of the call or a server. */
  run(call: Call, context: RunContext): Promise<ToolOutcome>;
}
