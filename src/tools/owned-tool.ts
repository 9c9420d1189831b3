// A tool that the gateway runs itself, in the loop between a model and its answer: web search, or one of an operator's
// MCP servers. Its results are untrusted text: they are fenced and bounded before a model reads them.
import type { AccountId, Call, Tool } from "../types.ts";

/** What a run may know of the request that it serves. */
export type RunContext = Readonly<{
  account: AccountId;
  /** Aborted when the client leaves: the run must stop within a second. */
  gone: AbortSignal;
}>;

/** A document that an answer may cite; `text` is what the model reads of it, `url` is http(s). */
export type Source = Readonly<{ title: string; url: string; text: string }>;

/** What a call came to. An error is an outcome too: the model reads what went wrong and goes on. */
export type ToolOutcome = Readonly<{ text: string; failed: boolean; sources: readonly Source[] }>;

export interface OwnedTool {
  /** As the model sees it. */
  readonly tool: Tool;
  /** Runs one finished call of the model. Never rejects for what the call, a provider or a server did wrong. */
  run(call: Call, context: RunContext): Promise<ToolOutcome>;
}
