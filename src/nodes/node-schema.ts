// A client's JSON schema -> one that a node's engine takes. Engines compile it into a grammar and refuse the whole request
// over a keyword that they cannot read. One ends its process on some patterns. Rules that an engine cannot enforce are left
// out of the grammar; answers are still checked against the client's own schema.
//
// Sources: recordings of each engine, and its code. vLLM has xgrammar, and llguidance for what that refuses
// (v1/structured_output/backend_xgrammar.py). SGLang has xgrammar alone, behind a list of what it would not enforce
// (constrained/json_schema_validation.py). llama.cpp, and with it Ollama and LM Studio, has its own converter, or
// llguidance where built so (common/json-schema-to-grammar.cpp).
import { grammarRepeatsMax } from "./limits.ts";
import type { Tool } from "../core/types.ts";
import type { EngineKind } from "./engine-kind.ts";
import { grammarPattern } from "./grammar-pattern.ts";
import { record } from "./json.ts";

/** What an engine's grammar takes beyond the common subset. */
type Grammar = Readonly<{
  /** Patterns as regular expressions; otherwise in llama.cpp's form. */
  regex: boolean;
  multipleOf: boolean;
  /** A text may combine a pattern, a format and length bounds. */
  manyTextRules: boolean;
  /** An empty schema means any value; llama.cpp takes it as an object, or fails. */
  emptyIsAny: boolean;
  repeatsMax: number;
}>;

const xgrammar: Grammar = {
  regex: true,
  multipleOf: false,
  manyTextRules: false,
  emptyIsAny: true,
  repeatsMax: 2 ** 31 - 1,
};
const llamaCpp: Grammar = {
  regex: false,
  multipleOf: false,
  manyTextRules: true,
  emptyIsAny: false,
  repeatsMax: grammarRepeatsMax,
};
const least: Grammar = { ...llamaCpp, manyTextRules: false };

/** Null: takes everything. */
const grammars: Readonly<Record<EngineKind, Grammar | null>> = {
  vllm: { ...xgrammar, multipleOf: true, manyTextRules: true },
  sglang: xgrammar,
  "tensorrt-llm": xgrammar,
  "llama.cpp": llamaCpp,
  ollama: llamaCpp,
  "lm-studio": llamaCpp,
  tgi: least,
  unknown: least,
  "llama-cpp-python": least,
  "sglang-router": xgrammar,
  transformers: null,
  demo: null,
};

/** Keywords that say nothing about the value. `$schema` with an older draft makes SGLang's validator refuse the rest. */
const silent: ReadonlySet<string> = new Set([
  "$schema",
  "$id",
  "$comment",
  "$anchor",
  "$dynamicAnchor",
  "$recursiveAnchor",
  "$vocabulary",
]);
/** Rules that some engines refuse and no other engine enforces. */
const unheld: ReadonlySet<string> = new Set([
  "uniqueItems",
  "contains",
  "minContains",
  "maxContains",
  "minProperties",
  "maxProperties",
  "propertyNames",
  "patternProperties",
  "unevaluatedItems",
  "unevaluatedProperties",
  "dependentRequired",
  "dependentSchemas",
  "dependencies",
  "not",
  "if",
  "then",
  "else",
  "$dynamicRef",
  "$recursiveRef",
]);
const types: ReadonlySet<unknown> = new Set(["object", "array", "string", "number", "integer", "boolean", "null"]);
const anyType = ["object", "array", "string", "number", "boolean", "null"];
/** For texts; xgrammar and llguidance know the same ones. */
const formats: ReadonlySet<unknown> = new Set([
  "date",
  "date-time",
  "duration",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "json-pointer",
  "relative-json-pointer",
  "time",
  "uri",
  "uri-reference",
  "uri-template",
  "uuid",
]);
/** Keywords that llama.cpp turns into a rule. It rejects a schema with none of them. */
const shapes = [
  "type",
  "enum",
  "const",
  "$ref",
  "anyOf",
  "oneOf",
  "allOf",
  "properties",
  "items",
  "prefixItems",
  "pattern",
];
/** Lower and upper bounds that must leave room for a value. */
const bounds = [
  ["minimum", "maximum"],
  ["minLength", "maxLength"],
  ["minItems", "maxItems"],
] as const;
const integerRounding: Readonly<Record<string, (value: number) => number>> = {
  minimum: Math.ceil,
  exclusiveMinimum: Math.floor,
  maximum: Math.floor,
  exclusiveMaximum: Math.ceil,
};

type Schema = Record<string, unknown>;

/** The schema as the engine takes it. `isWhole`: no rule that answers are checked for was left out. */
export function nodeSchema(
  schema: Readonly<Schema>,
  engine: EngineKind,
): Readonly<{ schema: Schema; isWhole: boolean }> {
  const grammar = grammars[engine];
  if (grammar === null) {
    const { $schema: _, ...rest } = schema;
    return { schema: rest, isWhole: true };
  }
  const cleaner = new Cleaner(grammar);
  return { schema: cleaner.clean(schema), isWhole: cleaner.isWhole };
}

/** The tool's parameters as a schema of type object. */
export function toolParameters({ parameters }: Tool, engine: EngineKind): Schema {
  const { schema } = nodeSchema(parameters, engine);
  if (schema["type"] === "object" && schema["properties"] !== undefined) return schema;
  return { ...schema, type: "object", properties: record(schema["properties"]) ?? {} };
}

class Cleaner {
  isWhole = true;
  readonly #grammar: Grammar;

  constructor(grammar: Grammar) {
    this.#grammar = grammar;
  }

  clean(given: Readonly<Schema>): Schema {
    const schema = withTuple(given);
    const result: Schema = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (silent.has(keyword) || value === undefined || (value === null && keyword !== "const")) continue;
      const kept = this.#value(keyword, value, schema);
      if (kept !== undefined) result[this.#name(keyword, schema)] = kept;
      else this.isWhole = this.isWhole && isEmptyRule(keyword, value);
    }
    this.#numbers(result);
    this.#contradictions(result);
    if (!this.#grammar.manyTextRules) this.#oneTextRule(result);
    if (schema["patternProperties"] !== undefined) result["additionalProperties"] = true; // to make room for them
    this.#object(result);
    if (!this.#grammar.emptyIsAny && !shapes.some((keyword) => keyword in result) && !isClosed(result)) {
      result["type"] = anyType;
    }
    return result;
  }

  /** llguidance refuses a `oneOf` with overlapping schemas. The converter treats it like `anyOf`. */
  #name(keyword: string, schema: Readonly<Schema>): string {
    return keyword === "oneOf" && !this.#grammar.emptyIsAny && !("anyOf" in schema) ? "anyOf" : keyword;
  }

  /** The value to keep, or undefined where the keyword goes. */
  #value(keyword: string, value: unknown, schema: Readonly<Schema>): unknown {
    if (unheld.has(keyword)) return undefined;
    switch (keyword) {
      case "$ref":
        // Anchors and addresses of other documents cannot be resolved here.
        return typeof value === "string" && (value === "#" || value.startsWith("#/")) ? value : undefined;
      case "type": {
        if (!Array.isArray(value)) return types.has(value) ? value : undefined;
        const known = value.filter((type) => types.has(type));
        return known.length === 0 ? undefined : known;
      }
      case "enum":
        return Array.isArray(value) && value.length > 0 ? value : undefined;
      case "required":
        return Array.isArray(value) && value.length > 0 ? value : undefined; // draft 4 forbids the empty list
      case "pattern":
        return typeof value === "string" ? this.#pattern(value) : undefined;
      case "format":
        return formats.has(value) ? value : undefined;
      case "multipleOf":
        return this.#grammar.multipleOf && typeof value === "number" && value > 0 ? value : undefined;
      case "minLength":
      case "maxLength":
      case "minItems":
      case "maxItems":
        return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= this.#grammar.repeatsMax
          ? value
          : undefined;
      case "minimum":
      case "maximum":
      case "exclusiveMinimum":
      case "exclusiveMaximum":
        return typeof value === "boolean" || (typeof value === "number" && Math.abs(value) <= Number.MAX_SAFE_INTEGER)
          ? value
          : undefined;
      case "properties":
      case "$defs":
      case "definitions":
        return this.#map(value, keyword === "properties");
      case "additionalProperties":
        return this.#additional(value);
      case "items":
        return this.#items(value, schema);
      case "prefixItems":
        return this.#list(value);
      case "allOf":
      case "anyOf":
      case "oneOf":
        return this.#list(value, keyword !== "allOf");
      default:
        return value; // says nothing about the value, or is the client's own
    }
  }

  #pattern(pattern: string): string | undefined {
    const found = grammarPattern(pattern);
    return (this.#grammar.regex ? found?.regex : found?.gbnf) ?? undefined;
  }

  #schema(value: unknown): Schema | boolean {
    const schema = record(value);
    if (schema !== null) return this.clean(schema);
    return this.#grammar.emptyIsAny ? {} : { type: anyType };
  }

  #list(value: unknown, dropsImpossible = false): unknown {
    if (!Array.isArray(value)) return undefined;
    const kept = dropsImpossible ? value.filter((each) => each !== false) : value;
    return kept.length === 0 ? undefined : kept.map((each) => this.#schema(each));
  }

  /** Keys are the client's names, never keywords. A property without a possible value is dropped. */
  #map(value: unknown, dropsImpossible: boolean): unknown {
    const named = record(value);
    if (named === null) return undefined;
    const kept = Object.entries(named).filter(([, each]) => !dropsImpossible || each !== false);
    return Object.fromEntries(kept.map(([name, each]) => [name, this.#schema(each)]));
  }

  #additional(value: unknown): unknown {
    const schema = record(value);
    if (schema === null) return typeof value === "boolean" ? value : undefined;
    return Object.keys(schema).length === 0 ? true : this.clean(schema);
  }

  #items(value: unknown, { prefixItems }: Readonly<Schema>): unknown {
    if (prefixItems !== undefined && !this.#grammar.emptyIsAny) return undefined; // llama.cpp reads only one of the two
    if (typeof value === "boolean") return value || !this.#grammar.emptyIsAny ? undefined : false;
    return this.#schema(value);
  }

  #numbers(result: Schema): void {
    // Draft 4 has a boolean beside the limit. Today the exclusive limit is a number itself.
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
    if (result["type"] !== "integer") return;
    for (const [keyword, round] of Object.entries(integerRounding)) {
      if (typeof result[keyword] === "number") result[keyword] = round(result[keyword]);
    }
  }

  #contradictions(result: Schema): void {
    for (const [least, most] of bounds) {
      const [low, high] = [result[least], result[most]];
      if (typeof low !== "number" || typeof high !== "number" || low <= high) continue;
      this.isWhole = false;
      delete result[least];
      delete result[most];
    }
  }

  #oneTextRule(result: Schema): void {
    const rules = [["pattern"], ["format"], ["minLength", "maxLength"]];
    const given = rules.filter((keywords) => keywords.some((keyword) => keyword in result));
    for (const keyword of given.slice(1).flat()) {
      if (keyword !== "format" && keyword in result) this.isWhole = false;
      delete result[keyword];
    }
  }

  /** llama.cpp writes property names unescaped into character classes to tell them from others. */
  #object(result: Schema): void {
    if (this.#grammar.emptyIsAny || result["additionalProperties"] === undefined) return;
    const names = Object.keys(record(result["properties"]) ?? {});
    if (result["additionalProperties"] !== false && !names.every((name) => /^\w+$/.test(name))) {
      delete result["additionalProperties"];
    }
  }
}

/** Drafts before 2020 have the tuple in `items`, and the rest in `additionalItems`. */
function withTuple(schema: Readonly<Schema>): Readonly<Schema> {
  const { items, additionalItems, ...rest } = schema;
  if (!Array.isArray(items)) return schema;
  return { ...rest, prefixItems: items, ...(additionalItems === undefined ? {} : { items: additionalItems }) };
}

/** A rule that excludes nothing, or that answers are not checked for. */
function isEmptyRule(keyword: string, value: unknown): boolean {
  if (keyword === "format") return true;
  if (keyword === "required" || keyword === "enum") return Array.isArray(value) && value.length === 0;
  if (keyword === "uniqueItems") return value === false;
  if (keyword === "items") return value === true;
  return false;
}

/** Objects without named properties, which are also a rule to llama.cpp. */
const isClosed = ({ additionalProperties: other }: Schema): boolean => other !== undefined && other !== true;
