// Validates an answer against a client's JSON Schema, which may take forever: only in a process that can be killed.
import Ajv, { type ErrorObject, type Options, type ValidateFunction } from "ajv";
import Ajv2020 from "ajv/dist/2020.js";
import { isRecord } from "../../core/is-record.ts";
import { parseOutsideJson } from "../../core/outside-json.ts";
import { linearPattern } from "./linear-pattern.ts";

/** `misfit`: no JSON, or against the schema; `unusable`: an invalid schema. `reason` names a rule, never a value. */
export type Verdict =
  | Readonly<{ verdict: "fits" }>
  | Readonly<{ verdict: "misfit"; reason: string }>
  | Readonly<{ verdict: "unusable"; reason: string }>;

/** Compiled schemas to keep: agents send the same one repeatedly, and compiling takes milliseconds. */
const compiledMax = 32;
const reasonMaxLength = 300;

/** The check needs more time than allowed: a pattern that only the engine itself can run may take forever. */
export class TooSlow extends Error {}

const optionsWith = (patternOf: (pattern: string) => Pattern): Options => ({
  // Clients' schemas contain vendor keywords. An unknown one says nothing about the value.
  strict: false,
  logger: false,
  // JSON Schema since 2019 calls `format` an annotation, and nodes know different ones.
  validateFormats: false,
  // A schema runs once or a few times: optimizing its code takes longer than it saves.
  code: { optimize: false, regExp: Object.assign(patternOf, { code: "patternOf" }) },
});

export type AnswerValidatorOptions = Readonly<{
  /** Runs even patterns that may take forever; otherwise throws `TooSlow` for their schemas. */
  runsAnyPattern: boolean;
}>;

export class AnswerValidator {
  readonly #drafts: Readonly<Record<"2020-12" | "7", Draft>>;
  /** By the schema's text, least recently used first. */
  readonly #compiled = new Map<string, ValidateFunction | Verdict>();

  constructor({ runsAnyPattern }: AnswerValidatorOptions) {
    const options = optionsWith((pattern) => patternOf(pattern, runsAnyPattern));
    // Each schema is compiled alone, so that one client's $id cannot affect the next.
    const alone: Options = { ...options, meta: false, validateSchema: false };
    this.#drafts = {
      "2020-12": { meta: new Ajv2020(options), start: () => new Ajv2020(alone) },
      "7": { meta: new Ajv(options), start: () => new Ajv(alone) },
    };
    for (const { meta } of Object.values(this.#drafts)) void meta.validateSchema({});
  }

  /** The verdict on the schema alone, given as JSON text. */
  schema(schemaText: string): Verdict {
    const compiled = this.#compile(schemaText);
    return typeof compiled === "function" ? { verdict: "fits" } : compiled;
  }

  /** The verdict on an answer's text; without a schema, any JSON fits. */
  answer(schemaText: string | null, text: string): Verdict {
    let value: unknown;
    try {
      value = parseOutsideJson(text);
    } catch (error) {
      return { verdict: "misfit", reason: shortened(`it is not valid JSON: ${(error as Error).message}`) };
    }
    if (schemaText === null) return { verdict: "fits" };
    const validate = this.#compile(schemaText);
    if (typeof validate !== "function") return validate;
    try {
      if (validate(value) === true) return { verdict: "fits" };
    } catch (error) {
      return unusable((error as Error).message); // a schema that refers to itself without end
    }
    return { verdict: "misfit", reason: shortened(wordsOf(validate.errors?.[0], "the value")) };
  }

  #compile(schemaText: string): ValidateFunction | Verdict {
    const known = this.#compiled.get(schemaText);
    if (known !== undefined) this.#compiled.delete(schemaText);
    const compiled = known ?? this.#compileAnew(schemaText);
    this.#compiled.set(schemaText, compiled);
    if (this.#compiled.size > compiledMax) this.#compiled.delete(this.#compiled.keys().next().value!);
    return compiled;
  }

  /** Uses the draft that it names; without one, or if it is invalid there, 2020-12, draft 7 or draft 4, in this order. */
  #compileAnew(schemaText: string): ValidateFunction | Verdict {
    const { $schema, ...schema } = JSON.parse(schemaText) as Record<string, unknown>;
    const older = typeof $schema === "string" && /draft-0?[3467]\b/.test($schema);
    const first = compiledBy(this.#drafts[older ? "7" : "2020-12"], schema);
    if (typeof first === "function") return first;
    const seventh = older ? first : compiledBy(this.#drafts["7"], schema);
    if (typeof seventh === "function") return seventh;
    const fourth = compiledBy(this.#drafts["7"], ofDraft4(schema));
    return typeof fourth === "function" ? fourth : first;
  }
}

const exclusiveLimits = [
  ["exclusiveMinimum", "minimum"],
  ["exclusiveMaximum", "maximum"],
] as const;

/** Draft 4, and with it OpenAPI 3.0, has a boolean for an exclusive limit. Today the keyword has the limit itself. */
function ofDraft4(schema: Record<string, unknown>): Record<string, unknown> {
  return JSON.parse(JSON.stringify(schema), (_, value: unknown) => {
    if (!isRecord(value)) return value;
    for (const [flag, limit] of exclusiveLimits) {
      if (typeof value[flag] !== "boolean" || typeof value[limit] !== "number") continue;
      if (value[flag]) value[flag] = value[limit];
      else delete value[flag];
    }
    return value;
  }) as Record<string, unknown>;
}

/** `meta` validates schemas of the draft; `start` creates a compiler. */
type Draft = Readonly<{ meta: Ajv; start: () => Ajv }>;

function compiledBy({ meta, start }: Draft, schema: Record<string, unknown>): ValidateFunction | Verdict {
  try {
    if (meta.validateSchema(schema) !== true) return unusable(wordsOf(meta.errors?.[0], "the schema"));
    return start().compile(schema);
  } catch (error) {
    if (error instanceof TooSlow) throw error;
    return unusable((error as Error).message);
  }
}

const unusable = (reason: string): Verdict => ({ verdict: "unusable", reason: shortened(reason) });

/** `toString` distinguishes it from others. */
type Pattern = { test(text: string): boolean; toString(): string };

/** A client's pattern: as Unicode, otherwise as browsers read it. One that no JavaScript engine can read matches everything. */
function patternOf(pattern: string, runsAny: boolean): Pattern {
  for (const flags of ["u", ""] as const) {
    try {
      const linear = linearPattern(pattern, flags);
      if (linear !== null) return linear;
      if (!runsAny) throw new TooSlow();
      return new RegExp(pattern, flags);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      // Written for another engine (with Python's named groups, for example); the next reading is tried.
    }
  }
  return matchesAll;
}

const matchesAll: Pattern = { test: () => true, toString: () => "any" };

function wordsOf(error: ErrorObject | undefined, whole: string): string {
  if (error === undefined) return `${whole} does not match`;
  const place = error.instancePath === "" ? whole : error.instancePath;
  const { additionalProperty, allowedValues } = error.params as Record<string, unknown>;
  if (typeof additionalProperty === "string") return `${place} must not have the property "${additionalProperty}"`;
  if (Array.isArray(allowedValues)) return `${place} must be one of ${JSON.stringify(allowedValues)}`;
  return `${place} ${error.message ?? "does not match the schema"}`;
}

const shortened = (words: string): string =>
  words.length <= reasonMaxLength ? words : `${words.slice(0, reasonMaxLength)}...`;
