// Short forms for the JSON Schemas of replies. The gateway writes replies itself, so no TypeBox schema describes them.
import type { JsonSchema } from "../../docs/openapi-document.ts";

export const text = (description?: string): JsonSchema => described({ type: "string" }, description);
export const whole = (description?: string): JsonSchema => described({ type: "integer" }, description);
export const flag = (description?: string): JsonSchema => described({ type: "boolean" }, description);
export const only = (...values: (string | number | boolean | null)[]): JsonSchema => ({ enum: values });
export const list = (items: JsonSchema, description?: string): JsonSchema =>
  described({ type: "array", items }, description);
export const anything = (description?: string): JsonSchema => described({}, description);
export const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });
export const either = (...anyOf: readonly JsonSchema[]): JsonSchema => ({ anyOf });
export const orNull = (schema: JsonSchema): JsonSchema =>
  typeof schema.type === "string" ? { ...schema, type: [schema.type, "null"] } : { anyOf: [schema, { type: "null" }] };

/** An object that always has the named members, except those whose name ends in `?`; members may be added over time. */
export function object(members: Readonly<Record<string, JsonSchema>>, description?: string): JsonSchema {
  const entries = Object.entries(members);
  const required = entries.map(([name]) => name).filter((name) => !name.endsWith("?"));
  const properties = Object.fromEntries(entries.map(([name, schema]) => [name.replace(/\?$/, ""), schema]));
  return described({ type: "object", properties, required }, description);
}

/** A member that came with a line of prose. */
export const described = (schema: JsonSchema, description: string | undefined): JsonSchema =>
  description === undefined ? schema : { ...schema, description };
