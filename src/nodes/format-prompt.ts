// Structured output in words, for a node that cannot be held to it: beside tools no engine takes a schema (it would rule
// out every call, or be refused), and an engine that we do not know may ignore one.
import type { Format } from "../core/types.ts";

/** To follow the system message. */
export function formatPrompt(format: Format): string {
  const rule = "Write it as plain JSON alone: no words around it, no code fence.";
  if (format.kind === "json_object") return `Your final answer must be a JSON object. ${rule}`;
  return `Your final answer must be JSON that matches this JSON Schema:\n${JSON.stringify(format.schema)}\n${rule}`;
}
