// TypeBox types of single fields. Each `description` says what is expected; error messages are made from it.
import { type TSchema, Type } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { jsonDepthMax } from "../../core/limits.ts";
import { formatPath, firstSchemaErrorOf } from "../../core/schema-errors.ts";
import { refuse } from "../../core/refusals.ts";
import type { Refusal } from "../../core/types.ts";

/** SDKs send null for omitted fields, so every optional field may be null. */
export const optional = <Schema extends TSchema>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()], { description: schema.description ?? "of another type" }));

export const text = Type.String({ description: "a string" });
export const flag = Type.Boolean({ description: "true or false" });
export const whole = Type.Integer({ description: "a whole number" });
export const record = Type.Record(Type.String(), Type.Unknown(), { description: "an object" });
export const numberBetween = (minimum: number, maximum: number) =>
  Type.Number({ minimum, maximum, description: `a number from ${minimum} to ${maximum}` });
export const wholeBetween = (minimum: number, maximum: number) =>
  Type.Integer({ minimum, maximum, description: `a whole number from ${minimum} to ${maximum}` });
export const oneOf = (...values: string[]) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { description: `one of ${values.join(", ")}` },
  );

export const malformed = (reason: string): Refusal => refuse("malformed", { reason });

/** Compiling one takes about 5 ms: compiling all would make a start a tenth longer. */
const uncompiled = new Set<BodySchema<TSchema>>();

/** A schema checked by compiled code; the slow walk that finds the words for an error runs only for a wrong body. */
export class BodySchema<Schema extends TSchema> {
  readonly #schema: Schema;
  #check: TypeCheck<Schema> | null = null;

  constructor(schema: Schema) {
    this.#schema = schema;
    uncompiled.add(this);
  }

  compiled(): TypeCheck<Schema> {
    uncompiled.delete(this);
    return (this.#check = TypeCompiler.Compile(this.#schema));
  }

  /** Null if the body fits, otherwise a refusal that names the first wrong field. */
  refusal(body: unknown): Refusal | null {
    const check = this.#check ?? this.compiled();
    if (check.Check(body)) return null;
    const error = firstSchemaErrorOf(this.#schema, body);
    if (error === null || error.path.length === 0) return malformed("The request body must be a JSON object");
    return malformed(`${formatPath(error.path)} ${error.problem}`);
  }
}

/** A request that waited for the server to listen should wait only for its own schema. */
const compileDelayMs = 250;

/** Compiles one schema a turn, so that requests come between. For a server that listens. */
export function compileBodySchemas(): void {
  setTimeout(compileNext, compileDelayMs).unref();
}

function compileNext(): void {
  const [next] = uncompiled;
  if (next === undefined) return;
  next.compiled();
  setImmediate(compileNext);
}

/** A text, or "" for anything else: converting an object may throw, because JSON can bring its own toString. */
export const textOrNothing = (value: unknown): string => (typeof value === "string" ? value : "");

/** True if the value nests deeper than `jsonDepthMax`; JSON.stringify overflows the stack on such values. */
export function tooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depth >= jsonDepthMax) return true;
  for (const key in value) if (tooDeep((value as Record<string, unknown>)[key], depth + 1)) return true;
  return false;
}
