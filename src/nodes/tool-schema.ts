// A client's tool parameters -> a JSON schema that every engine takes. Engines compile it into a grammar and refuse the
// whole request over a keyword that they cannot: such keywords go, what the schema means for the model stays.
import { record } from "./json.ts";
import type { Tool } from "../core/types.ts";

/** Say nothing about the value; `$schema` with an older draft makes SGLang's validator refuse the rest. */
const dropped: ReadonlySet<string> = new Set(["$schema", "$id", "$comment", "$anchor", "$vocabulary"]);
/** Maps of names to schemas: their keys are the client's names, never keywords. */
const schemaMaps: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
]);
/** Hold values, not schemas. */
const values: ReadonlySet<string> = new Set(["enum", "const", "default", "examples", "required"]);

/** The tool's parameters as a schema of type object. */
export function toolParameters({ parameters }: Tool): Record<string, unknown> {
  const schema = cleaned(parameters);
  if (schema["type"] === "object" && schema["properties"] !== undefined) return schema;
  return { ...schema, type: "object", properties: record(schema["properties"]) ?? {} };
}

function cleaned(schema: Record<string, unknown>): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (dropped.has(keyword) || isUnusable(keyword, value)) continue;
    result[keyword] = cleanedValue(keyword, value);
  }
  // draft 4 wrote a boolean beside the limit; today it is the limit itself
  for (const [flag, limit] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    if (typeof result[flag] !== "boolean") continue;
    const isExclusive = result[flag] && typeof result[limit] === "number";
    if (isExclusive) result[flag] = result[limit];
    else delete result[flag];
    if (isExclusive) delete result[limit];
  }
  return result;
}

function cleanedValue(keyword: string, value: unknown): unknown {
  if (values.has(keyword)) return value;
  if (Array.isArray(value)) return value.map((item) => (record(item) === null ? item : cleaned(record(item)!)));
  const inner = record(value);
  if (inner === null) return value;
  if (!schemaMaps.has(keyword)) return cleaned(inner);
  return Object.fromEntries(
    Object.entries(inner).map(([name, one]) => [name, record(one) === null ? one : cleaned(record(one)!)]),
  );
}

function isUnusable(keyword: string, value: unknown): boolean {
  switch (keyword) {
    case "pattern":
      // llama-server takes anchored patterns only; grammars know no look-around and no back reference
      return (
        typeof value !== "string" || !value.startsWith("^") || !value.endsWith("$") || /\(\?|\\[1-9bB]/.test(value)
      );
    case "required":
      return !Array.isArray(value) || value.length === 0; // draft 4 forbids the empty list
    default:
      return value === undefined || value === null;
  }
}
