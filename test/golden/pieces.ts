// Short forms of pieces for tables of answers.
import type { Piece, ServerTool, Source, ToolOutcome } from "../../src/core/types.ts";

export const text = (...fragments: readonly string[]): Piece[] =>
  fragments.map((fragment) => ({ kind: "text", literal: JSON.stringify(fragment), logprobs: null }));
export const reasoning = (...fragments: readonly string[]): Piece[] =>
  fragments.map((fragment) => ({ kind: "reasoning", literal: JSON.stringify(fragment) }));
export const refusal = (...fragments: readonly string[]): Piece[] =>
  fragments.map((fragment) => ({ kind: "refusal", literal: JSON.stringify(fragment), logprobs: null }));
export const call = (index: number, id: string, name: string): Piece => ({ kind: "call", index, id, name });
export const fragments = (index: number, ...parts: readonly string[]): Piece[] =>
  parts.map((part) => ({ kind: "call-arguments", index, literal: JSON.stringify(part) }));

export const search = (query: string): Piece => ({
  kind: "owned-call",
  call: { id: "call_search", name: "web_search", arguments: JSON.stringify({ query }) },
  tool: null,
});
export const serverCall = (tool: ServerTool, given: object): Piece => ({
  kind: "owned-call",
  call: { id: "call_server", name: tool.name, arguments: JSON.stringify(given) },
  tool,
});
export const outcome = (more: Partial<ToolOutcome>): Piece => ({
  kind: "owned-result",
  outcome: { text: "", failed: false, sources: [], ...more },
});
/** The text so far ends with a mark that stands from `start` to `end`. */
export const cites = (source: Source, start: number, end: number): Piece => ({ kind: "citation", source, start, end });
