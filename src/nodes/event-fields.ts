// The fields of a chat-completion event in the places where engines put them.
import type { FinishReason } from "../core/types.ts";

export function isError(event: Record<string, unknown>): boolean {
  return isPresent(event["error"]) || event["object"] === "error";
}

export function isFirst(choice: Record<string, unknown>): boolean {
  return choice["index"] === undefined || choice["index"] === null || choice["index"] === 0;
}

export function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

export function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}

export function isNothing(calls: unknown): boolean {
  return !isPresent(calls) || (Array.isArray(calls) && calls.length === 0);
}

/** llama-server, SGLang, TensorRT-LLM and transformers use reasoning_content; vLLM, Ollama and LM Studio use reasoning. */
export function reasoningOf(delta: Record<string, unknown>): string {
  const { reasoning_content: long, reasoning: short } = delta;
  if (isText(long)) return long;
  return isText(short) ? short : "";
}

/** Trusts the calls that the node made, not its finish reason, on whether there were any. */
export function finishReason(reason: string, called: boolean): FinishReason {
  switch (reason) {
    case "length":
    case "max_tokens":
      return "length";
    case "content_filter":
      return "content_filter";
    default:
      return called ? "tool_calls" : "stop";
  }
}
