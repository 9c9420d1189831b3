// The messages dialect's content blocks as JSON texts: the model's, the gateway's own, and citations.
import type { Piece, Source, ToolOutcome } from "../../core/types.ts";
import { carried } from "../request/carried-text.ts";

type CallPiece = Extract<Piece, { kind: "call" }>;
type OwnedCall = Extract<Piece, { kind: "owned-call" }>;

/** Without `citations` if there are none: a null there breaks version 6 of the AI SDK. */
export const textBlock = (literal: string, citations: readonly string[] = []): string =>
  citations.length === 0
    ? `{"type":"text","text":${literal}}`
    : `{"type":"text","text":${literal},"citations":[${citations.join(",")}]}`;

export const thinkingBlock = (literal: string, signature = ""): string =>
  `{"type":"thinking","thinking":${literal},"signature":"${signature}"}`;

/** `input` is JSON text of an object. */
export const toolUseBlock = ({ id, name }: CallPiece, input: string): string =>
  `{"type":"tool_use","id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"input":${input}}`;

/** A call to show, with the id by which its result refers to it. */
export type ShownCall = Readonly<{ id: string; isSearch: boolean }>;

/** `place` numbers the owned calls of one reply, whose ids share a stem. */
export const shownCall = ({ tool }: OwnedCall, stem: string, place: number): ShownCall => ({
  id: `${tool === null ? "srvtoolu" : "mcptoolu"}_${stem}_${place}`,
  isSearch: tool === null,
});

/** The block that shows the call; `input` is JSON text of an object. */
export function callBlock({ tool }: OwnedCall, { id }: ShownCall, input: string): string {
  if (tool === null) return `{"type":"server_tool_use","id":"${id}","name":"web_search","input":${input}}`;
  const { name, server } = tool;
  return `{"type":"mcp_tool_use","id":"${id}","name":${JSON.stringify(name)},"server_name":${JSON.stringify(server)},"input":${input}}`;
}

/** The block with its result. Its texts come back with the history, so that a model can read them again. */
export function resultBlock(outcome: ToolOutcome, { id, isSearch }: ShownCall): string {
  return JSON.stringify(
    isSearch
      ? { type: "web_search_tool_result", tool_use_id: id, content: searchContent(outcome) }
      : {
          type: "mcp_tool_result",
          tool_use_id: id,
          is_error: outcome.failed,
          content: [{ type: "text", text: outcome.text }],
        },
  );
}

function searchContent({ failed, overLimit, sources }: ToolOutcome): object {
  if (failed) {
    return { type: "web_search_tool_result_error", error_code: overLimit ? "max_uses_exceeded" : "unavailable" };
  }
  return sources.map(({ url, title, text }) => ({
    type: "web_search_result",
    url,
    title,
    encrypted_content: carried(text),
    page_age: null,
  }));
}

/** Clients show it beside the claim; the dialect's own servers cite at most this much. */
const citedTextMaxLength = 150;

export const citationBody = ({ url, title, text }: Source): string =>
  JSON.stringify({
    type: "web_search_result_location",
    url,
    title,
    encrypted_index: carried(url),
    cited_text: text.slice(0, citedTextMaxLength).toWellFormed(),
  });

/** A text block has the citations of all its text, so text after one begins a new block; `[2]` after `[1]` does not. */
export const continuesCited = (literal: string): boolean => literal.startsWith('"[');
