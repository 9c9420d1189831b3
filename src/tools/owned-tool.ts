// A tool that the gateway runs itself, between a model and its answer: web search, or a tool of an operator's MCP
// server. Its results are untrusted text: they are fenced and bounded before a model reads them.
import type { AccountId, Call, ServerTool, Source, Tool, ToolOutcome } from "../core/types.ts";

export type { Source, ToolOutcome };

/** What a run may know of the request that it serves. */
export type RunContext = Readonly<{
  account: AccountId;
  /** Aborted when the client leaves: the run must stop within a second. */
  cancelSignal: AbortSignal;
}>;

export interface OwnedTool {
  /** As the model sees it. */
  readonly tool: Tool;
  /** How the call is shown to clients; null: as a web search. */
  readonly serverTool: ServerTool | null;
  /**
   * Runs one finished call of the model; its arguments are JSON text of an object. Never rejects for what the call, a
   * provider or a server did wrong.
   */
  run(call: Call, context: RunContext): Promise<ToolOutcome>;
}
