// Reads a call that a model writes as text, where its engine cannot force a tool but can hold answers to a schema.
import { JsonEnd } from "../core/json-end.ts";
import { calledNameMaxLength } from "./limits.ts";
import type { Tool } from "../core/types.ts";
import type { EngineKind } from "./engine-kind.ts";
import { parseNodeJson } from "./json.ts";
import { toolParameters } from "./node-schema.ts";

/** The schema for the answer. A schema that refers to its own parts cannot be nested, so it is left open. */
export function namedCallSchema(tools: readonly Tool[], engine: EngineKind): Record<string, unknown> {
  const calls = tools.map((tool) => {
    const parameters = toolParameters(tool, engine);
    const inner = JSON.stringify(parameters).includes('"$ref"') ? { type: "object" } : parameters;
    return {
      type: "object",
      properties: { name: { const: tool.name }, arguments: inner },
      required: ["name", "arguments"],
      additionalProperties: false,
    };
  });
  return { anyOf: calls };
}

const head =
  /^\s{0,99}\{\s{0,99}"name"\s{0,99}:\s{0,99}("(?:[^"\\]|\\.){0,1024}")\s{0,99},\s{0,99}"arguments"\s{0,99}:\s{0,99}(?=\{)/;
const headMaxLength = 2 * calledNameMaxLength;

export class NamedCall {
  #head = "";
  #name: string | null = null;
  readonly #end = new JsonEnd();

  /** Null until it is known. */
  get name(): string | null {
    return this.#name;
  }

  /** What the text adds to the arguments; nothing after their end counts. */
  push(text: string): string {
    if (this.#name !== null) return this.#argumentsIn(text);
    if (this.#head.length > headMaxLength) return ""; // it is no call
    this.#head += text;
    const found = head.exec(this.#head);
    if (found === null) return "";
    const name = parseNodeJson(found[1]!);
    this.#name = typeof name === "string" ? name : "";
    return this.#argumentsIn(this.#head.slice(found[0].length));
  }

  #argumentsIn(text: string): string {
    return text.slice(0, this.#end.push(text));
  }
}
