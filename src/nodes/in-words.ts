// Prompts that describe what a node cannot enforce: a format beside tools, where no engine takes a schema, a schema
// that its engine refuses, and a required call that it may leave out.
import type { Format, Tool } from "../core/types.ts";

/** Follows the system message. */
export function formatPrompt(format: Format): string {
  const rule = "Write it as plain JSON alone: no words around it, no code fence.";
  if (format.kind === "json_object") return `Your final answer must be a JSON object. ${rule}`;
  return `Your final answer must be JSON that matches this JSON Schema:\n${JSON.stringify(format.schema)}\n${rule}`;
}

/** Follows the system message; the model must call one of `tools`. */
export function callPrompt(tools: readonly Tool[]): string {
  const names = tools.map(({ name }) => name).join(", ");
  const which = tools.length === 1 ? `the tool ${names}` : `one of the tools ${names}`;
  return `You must call ${which} now, with arguments that suit the conversation. Answer with the tool call alone.`;
}

/** The same where the call is the answer's text and the engine gets no tools. */
export function namedCallPrompt(tools: readonly Tool[]): string {
  const described = tools.map(({ name, description, parameters }) =>
    JSON.stringify({ name, ...(description === null ? {} : { description }), parameters }),
  );
  const form = 'Answer with JSON alone: {"name": the tool, "arguments": its arguments}.';
  return `You must call one of these tools now, with arguments that suit the conversation. ${form}\n${described.join("\n")}`;
}
