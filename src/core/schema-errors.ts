// Explains in one plain sentence each where a value does not fit its TypeBox schema. A schema's `description` says what
// is expected ("a whole number from 0 to 65535"); a value whose schema is `writeOnly` is a secret and never shown.
import type { TSchema } from "@sinclair/typebox";
import { Value, type ValueError, ValueErrorType } from "@sinclair/typebox/value";
import { nearest } from "./nearest.ts";

export type SchemaError = Readonly<{
  /** Keys and list positions from the root to the wrong value. */
  path: readonly (string | number)[];
  /** What is wrong with it, to follow its path: "must be ..., is ...", "is missing: ...", "is unknown". */
  problem: string;
}>;

/** Every place where `value` does not fit `schema`, in the schema's order; empty where it fits. */
export function misfitsOf(schema: TSchema, value: unknown): SchemaError[] {
  const misfits = new Map<string, SchemaError>(); // TypeBox reports a missing key twice; the first report is better
  for (const error of Value.Errors(schema, value)) {
    if (!misfits.has(error.path)) misfits.set(error.path, misfitOf(error, value));
  }
  return [...misfits.values()];
}

/** The first of them, without searching for others: a client's body may have a million. Null where it fits. */
export function firstSchemaErrorOf(schema: TSchema, value: unknown): SchemaError | null {
  const error = Value.Errors(schema, value).First();
  return error === undefined ? null : misfitOf(error, value);
}

function misfitOf({ path: pointer, type, schema, value }: ValueError, whole: unknown): SchemaError {
  const path = pathOf(pointer, whole);
  return { path, problem: problemOf(type, schema, value, path) };
}

/** `nodes[1].slots`, with quotes around keys that are not plain words. */
export function formatPath(path: readonly (string | number)[]): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += (text === "" ? "" : ".") + (/^[\w-]+$/.test(step) ? step : JSON.stringify(step));
  }
  return text;
}

const shownMax = 60;

/** A value for an error message: short, and on one line. */
export function show(value: unknown): string {
  const text = beginningOf(value, shownMax);
  return text.length > shownMax ? `${text.slice(0, shownMax)}...` : text;
}

/** JSON text up to about `room` characters: a client's value may be too large or too deep to write whole. */
function beginningOf(value: unknown, room: number): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, Math.max(0, room) + 1));
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? String(value);
  const isList = Array.isArray(value);
  let text = isList ? "[" : "{";
  for (const key in value) {
    if (text.length > room) break;
    if (text.length > 1) text += ",";
    if (!isList) text += `${JSON.stringify(key)}:`;
    text += beginningOf((value as Record<string, unknown>)[key], room - text.length);
  }
  return text + (isList ? "]" : "}");
}

function problemOf(type: ValueErrorType, schema: TSchema, value: unknown, path: SchemaError["path"]): string {
  if (type === ValueErrorType.ObjectAdditionalProperties) {
    const known = Object.keys(schema["properties"] ?? {});
    const meant = nearest(String(path.at(-1)), known);
    return meant === null ? `is unknown; known keys: ${known.join(", ")}` : `is unknown; did you mean "${meant}"?`;
  }
  const { description } = schema;
  // A description for help is a sentence, which says what the value is for.
  const isForHelp = description === undefined || /^[A-Z].*\.$/.test(description);
  const expected = isForHelp ? ruleOf(schema) : description;
  if (type === ValueErrorType.ObjectRequiredProperty) return `is missing: must be ${expected}`;
  return `must be ${expected}${schema.writeOnly === true ? "" : `, is ${show(value)}`}`;
}

/** What a schema asks for, to follow "must be"; `rule` says it where a pattern does. */
function ruleOf(schema: TSchema): string {
  const { rule, const: only, anyOf, type, minimum, maximum, minLength = 0, maxLength, maxItems } = schema;
  if (typeof rule === "string") return rule;
  if (only !== undefined) return show(only);
  if (Array.isArray(anyOf)) return anyOf.map(ruleOf).join(" or ");
  switch (type) {
    case "integer":
      return `a whole number${maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? ` of at least ${minimum}` : ` from ${minimum} to ${maximum}`}`;
    case "string":
      if (maxLength === undefined) return "text";
      return `text of ${minLength === 0 ? "at most" : `${minLength} to`} ${maxLength} characters`;
    case "array":
      return maxItems === undefined ? "a list" : `a list of at most ${maxItems}`;
    case "boolean":
      return "true or false";
    case "null":
      return "null";
    default:
      return type === "object" ? "an object" : `of type ${String(type ?? "another")}`;
  }
}

/** Turns a JSON pointer into steps; list positions become numbers where `value` has lists. */
function pathOf(pointer: string, value: unknown): (string | number)[] {
  const path: (string | number)[] = [];
  let at: unknown = value;
  for (const escaped of pointer.split("/").slice(1)) {
    const key = escaped.replaceAll("~1", "/").replaceAll("~0", "~");
    path.push(Array.isArray(at) ? Number(key) : key);
    at = typeof at === "object" && at !== null ? (at as Record<string, unknown>)[key] : undefined;
  }
  return path;
}
