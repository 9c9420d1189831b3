// Reading structured output in all three dialects: whether the model supports it, and whether the schema will do.
import type { Format, Model, Refusal } from "../../core/types.ts";
import { malformed } from "./field.ts";
import { schemaFault } from "./schema-limits.ts";

/** What a dialect found; `at` is the field. */
export type GivenFormat =
  | Readonly<{ at: string; kind: "json_object" }>
  | Readonly<{ at: string; kind: "json_schema"; schemaAt: string; schema: unknown; name: unknown; strict: unknown }>;

/** The checked format, or a refusal that names the field. */
export function checkedFormat(given: GivenFormat, model: Pick<Model, "id" | "structuredOutput">): Format | Refusal {
  const { at, kind } = given;
  if (model.structuredOutput !== "json_schema" && model.structuredOutput !== kind) {
    return malformed(`${at}: the model ${model.id} does not support ${kind}`);
  }
  if (kind === "json_object") return { kind };
  const { schemaAt, schema, name, strict } = given;
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) {
    return malformed(`${schemaAt} must be a JSON Schema object`);
  }
  const fault = schemaFault(schema as Record<string, unknown>);
  if (fault !== null) return malformed(`${schemaAt} ${fault}`);
  return {
    kind,
    name: typeof name === "string" ? name : "answer",
    schema: schema as Record<string, unknown>,
    strict: typeof strict === "boolean" ? strict : null,
  };
}
