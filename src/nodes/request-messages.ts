// The turns of a conversation as the messages of a node's request.
import { parseNodeJson, record } from "./json.ts";
import type { Turn } from "../core/types.ts";

export type WrittenMessages = Readonly<{ messages: Uint8Array; systemEnd: number; endsOpen: boolean }>;

/** Prepared turns in UTF-8, separated by commas (prompts: one a line), and where the system text ends, or -1. */
export function writtenTurns(turns: readonly Turn[]): WrittenMessages {
  if (turns[0]?.role === "prompt") {
    const prompts = turns.map((turn) => (turn.role === "prompt" ? promptJson(turn) : ""));
    return { messages: encoder.encode(prompts.join("\n")), systemEnd: -1, endsOpen: false };
  }
  const messages = messagesOf(turns, "");
  const first = messages[0];
  // {"role":"system","content":"..."}: the text ends before its quote and the brace.
  const systemEnd = first?.["role"] === "system" ? Buffer.byteLength(JSON.stringify(first)) - 2 : -1;
  const endsOpen = isBeginning(turns.at(-1));
  return { messages: encoder.encode(JSON.stringify(messages).slice(1, -1)), systemEnd, endsOpen };
}

/** Its arrays have their own buffers, which can move to another thread. */
const encoder = new TextEncoder();

export const promptJson = ({ content, tokens }: Extract<Turn, { role: "prompt" }>): string =>
  JSON.stringify(tokens ?? content);

/** Whether the last turn is the beginning of the answer. */
export const isBeginning = (turn: Turn | undefined): turn is Extract<Turn, { role: "assistant" }> =>
  turn?.role === "assistant" && turn.calls.length === 0 && (turn.content ?? "") !== "";

/** `addition` follows the system message, or is one. */
export function messagesOf(turns: readonly Turn[], addition: string): Record<string, unknown>[] {
  const messages: Record<string, unknown>[] = [];
  const system: string[] = [];
  let index = 0;
  for (; turns[index]?.role === "system"; index++) {
    const turn = turns[index] as Extract<Turn, { role: "system" }>;
    if (turn.content !== "") system.push(turn.content);
  }
  if (addition !== "") system.push(addition);
  // One system message, and first: many chat templates refuse anything else.
  if (system.length > 0) messages.push({ role: "system", content: system.join("\n\n") });
  for (; index < turns.length; index++) {
    const turn = turns[index]!;
    if (turn.role === "user") messages.push({ role: "user", content: contentOf(turn.content) });
    else messages.push(...messagesOfTurn(turn));
  }
  return messages;
}

function messagesOfTurn(turn: Exclude<Turn, { role: "user" }>): Record<string, unknown>[] {
  switch (turn.role) {
    case "system":
      // Templates also refuse it in the middle of a conversation. The mark lets the model tell it from the user.
      return [{ role: "user", content: `<system>\n${turn.content}\n</system>` }];
    case "prompt":
      return []; // has no place in a conversation
    case "assistant": {
      const message: Record<string, unknown> = {
        role: "assistant",
        content: turn.content ?? (turn.calls.length > 0 ? null : ""),
      };
      if (turn.reasoning !== null && turn.reasoning !== "") message["reasoning_content"] = turn.reasoning;
      if (turn.calls.length > 0)
        message["tool_calls"] = turn.calls.map(({ id, name, arguments: json }) => ({
          id,
          type: "function",
          function: { name, arguments: validArguments(json) },
        }));
      return [message];
    }
    case "tool": {
      const result = { role: "tool", tool_call_id: turn.callId };
      if (typeof turn.content === "string") return [{ ...result, content: turn.content }];
      const texts = turn.content.filter((part) => part.kind === "text").map(({ text }) => text);
      const images = turn.content.filter((part) => part.kind === "image");
      const message = { ...result, content: texts.join("\n") };
      // Engines take only text in a tool's result: its images follow as the user's.
      return images.length === 0 ? [message] : [message, { role: "user", content: contentOf(images) }];
    }
  }
}

/** A string where there is only text: not every template joins parts. Images go out as data: URLs only. */
function contentOf(content: Extract<Turn, { role: "user" }>["content"]): string | Record<string, unknown>[] {
  if (typeof content === "string") return content;
  const parts: Record<string, unknown>[] = [];
  const texts: string[] = [];
  let media = 0;
  for (const part of content) {
    if (part.kind === "text") {
      texts.push(part.text);
      parts.push({ type: "text", text: part.text });
    } else if (part.kind === "image" && part.url.startsWith("data:")) {
      media++;
      const detail = part.detail === null ? {} : { detail: part.detail };
      parts.push({ type: "image_url", image_url: { url: part.url, ...detail } });
    } else if (part.kind === "audio") {
      media++;
      const data = part.url.slice(part.url.indexOf(",") + 1);
      parts.push({ type: "input_audio", input_audio: { data, format: part.format } });
    }
  }
  return media === 0 ? texts.join("\n") : parts;
}

/** Arguments of an earlier call: llama-server answers 500 to text that is no JSON object. */
function validArguments(json: string): string {
  const value = record(parseNodeJson(json));
  return value === null ? JSON.stringify({ arguments: json }) : json;
}
