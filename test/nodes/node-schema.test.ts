// A client's schema as each engine takes it. What engines refuse was found by asking their own checks and grammars, and in
// recordings: vLLM 0.32 and SGLang 0.5.23 with xgrammar 0.2.8, llguidance, Ollama 0.17.4 with llama.cpp's converter.
import { describe, expect, test } from "bun:test";
import type { EngineKind } from "../../src/nodes/engine-kind.ts";
import { grammarPattern } from "../../src/nodes/grammar-pattern.ts";
import { nodeSchema, toolParameters } from "../../src/nodes/node-schema.ts";
import { toolOf } from "../fixtures/asks.ts";
import { hostileSchemas } from "../fixtures/hostile-schemas.ts";

type Schema = Record<string, unknown>;
const kinds: readonly EngineKind[] = [
  "vllm",
  "sglang",
  "tensorrt-llm",
  "llama.cpp",
  "ollama",
  "lm-studio",
  "tgi",
  "unknown",
];
const llama = ["llama.cpp", "ollama", "lm-studio", "tgi", "unknown"] as const;
const anyType = ["object", "array", "string", "number", "boolean", "null"];
const cleaned = (engine: EngineKind, schema: Schema): unknown => nodeSchema(schema, engine).schema;

describe("what no engine gets", () => {
  const rows: [string, Schema, Schema][] = [
    ["draft names", { $schema: "x", $id: "y", type: "object" }, { type: "object" }],
    ["null keywords", { type: "object", required: null, description: null }, { type: "object" }],
    ["an empty required", { type: "object", required: [] }, { type: "object" }],
    ["lists that are sets", { type: "array", uniqueItems: true, contains: { type: "string" } }, { type: "array" }],
    ["counts of properties", { type: "object", minProperties: 1, maxProperties: 2 }, { type: "object" }],
    ["conditions", { type: "string", if: { type: "string" }, then: { minLength: 3 }, else: {} }, { type: "string" }],
    ["denials", { type: "string", not: { const: "a" } }, { type: "string" }],
    ["formats nobody knows", { type: "string", format: "phone" }, { type: "string" }],
    ["types nobody knows", { type: ["string", "any"] }, { type: ["string"] }],
    ["an enum of nothing", { type: "string", enum: [] }, { type: "string" }],
    ["bounds that leave no room", { type: "integer", minimum: 5, maximum: 1 }, { type: "integer" }],
    [
      "bounds that are no numbers",
      { type: "number", minimum: "5", maximum: { toString: 1, valueOf: 1 } },
      { type: "number" },
    ],
    ["bounds that are both objects", { type: "array", minItems: { valueOf: 1 }, maxItems: [] }, { type: "array" }],
    ["bounds of floats that are none", { type: "number", maximum: 1e300 }, { type: "number" }],
    ["bounds of integers between two", { type: "integer", minimum: 0.5 }, { type: "integer", minimum: 1 }],
    [
      "a property that can have no value",
      { type: "object", properties: { a: false } },
      { type: "object", properties: {} },
    ],
    ["a choice that is none", { anyOf: [false, { type: "string" }] }, { anyOf: [{ type: "string" }] }],
    ["addresses", { $ref: "https://example.org/x.json", type: "string" }, { type: "string" }],
    [
      "draft 4 limits",
      { type: "number", minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false },
      { type: "number", exclusiveMinimum: 1, maximum: 5 },
    ],
    [
      "rules for names",
      { type: "object", additionalProperties: false, patternProperties: { "^x": { type: "string" } } },
      { type: "object", additionalProperties: true },
    ],
  ];
  for (const engine of kinds) {
    test.each(rows)(`${engine}: %s`, (_, given, expected) => expect(cleaned(engine, given)).toEqual(expected));
  }
  test.each(kinds)("%s, deep inside", (engine) => {
    const given = {
      type: "object",
      properties: { a: { type: "array", items: { anyOf: [{ $comment: "x", type: "string" }] } } },
      $defs: { d: { $id: "z", type: "string", uniqueItems: true } },
    };
    expect(cleaned(engine, given)).toEqual({
      type: "object",
      properties: { a: { type: "array", items: { anyOf: [{ type: "string" }] } } },
      $defs: { d: { type: "string" } },
    });
  });
  test.each(kinds)("%s: properties named like keywords, and values, are left alone", (engine) => {
    const schema = {
      type: "object",
      properties: {
        pattern: { type: "string" },
        $schema: { type: "string" },
        not: { type: "boolean" },
        c: { const: null },
      },
      required: ["pattern"],
      default: { $id: 1 },
    };
    expect(cleaned(engine, schema)).toEqual(schema);
  });
});

describe("where engines differ", () => {
  test("steps of numbers are for vLLM, which has a second grammar for them", () => {
    const schema = { type: "number", multipleOf: 0.01 };
    for (const engine of kinds)
      expect(cleaned(engine, schema)).toEqual(engine === "vllm" ? schema : { type: "number" });
  });
  test("SGLang holds a text to one rule", () => {
    const schema = { type: "string", pattern: "^a+$", format: "date", maxLength: 5 };
    expect(cleaned("sglang", schema)).toEqual({ type: "string", pattern: "^a+$" });
    expect(cleaned("vllm", schema)).toEqual(schema);
    expect(cleaned("llama.cpp", schema)).toEqual(schema);
  });
  test("llama.cpp writes repeats out, and refuses many", () => {
    const schema = { type: "string", maxLength: 100_000 };
    for (const engine of llama) expect(cleaned(engine, schema)).toEqual({ type: "string" });
    expect(cleaned("vllm", schema)).toEqual(schema);
  });
  test("to llama.cpp a schema without a rule is a fault, or an object", () => {
    const schema = { type: "object", properties: { a: { description: "any" }, b: true, c: {} } };
    const value = { type: anyType };
    for (const engine of llama) {
      const properties = { a: { description: "any", ...value }, b: value, c: value };
      expect(cleaned(engine, schema)).toEqual({ type: "object", properties });
    }
    expect(cleaned("vllm", schema)).toEqual({
      type: "object",
      properties: { a: { description: "any" }, b: {}, c: {} },
    });
  });
  test("llama.cpp cannot tell other names from names with signs in them", () => {
    const schema = { type: "object", properties: { "a]": { type: "string" } }, additionalProperties: true };
    expect(cleaned("ollama", schema)).not.toHaveProperty("additionalProperties");
    expect(cleaned("ollama", { ...schema, properties: { a: { type: "string" } } })).toHaveProperty(
      "additionalProperties",
    );
  });
  test("lists by place have one form for each", () => {
    const given = { type: "array", items: [{ type: "string" }, { type: "null" }], additionalItems: false };
    const prefixItems = [{ type: "string" }, { type: "null" }];
    expect(cleaned("vllm", given)).toEqual({ type: "array", prefixItems, items: false });
    expect(cleaned("ollama", given)).toEqual({ type: "array", prefixItems });
  });
  test("the demo node takes everything", () => {
    const schema = { type: "string", pattern: "^(?=x)a$" };
    expect(nodeSchema({ $schema: "x", ...schema }, "demo")).toEqual({ schema, isWhole: true });
  });
});

test("whether a rule was left out that answers are checked for", () => {
  const isWhole = (schema: Schema): boolean => nodeSchema(schema, "llama.cpp").isWhole;
  expect(isWhole({ type: "string", pattern: "^a$", description: "x", format: "phone" })).toBe(true);
  expect(isWhole({ type: "object", required: [], additionalProperties: false, $comment: "x" })).toBe(true);
  for (const schema of [
    { pattern: "^(?=x)a$" },
    { uniqueItems: true },
    { maxLength: 100_000 },
    { properties: { a: { not: {} } } },
    { minimum: 2, maximum: 1 },
  ])
    expect(isWhole(schema)).toBe(false);
});

describe("patterns", () => {
  test.each([
    ["^\\d{4}-\\d{2}$", "^[0-9]{4}-[0-9]{2}$"],
    ["^[a-z]+$", "^[a-z]+$"],
    ["^(?:a|b)$", "^(a|b)$"],
    ["^(?<y>a)$", "^(a)$"],
    ["^a+?b$", "^a+b$"],
    ["^a.b$", '^a[^"\\\\\\x00-\\x1F\\x7F]b$'],
    ["^[^,]*$", '^[^\\x2C"\\\\\\x00-\\x1F\\x7F]*$'.replace("\\x2C", ",")],
    ["^[\\w.-]{1,64}$", "^[A-Za-z0-9_\\x2E\\x2D]{1,64}$"],
    ["^a\\.b\\/c$", "^a[\\x2E]b/c$"],
    ["^\u00e9\\u00e9*$", "^[\u00e9][\u00e9]*$"],
    ["[a-z]+", '^[^"\\\\\\x00-\\x1F\\x7F]*([a-z]+)[^"\\\\\\x00-\\x1F\\x7F]*$'],
    ["^a\\$", '^(a[\\x24])[^"\\\\\\x00-\\x1F\\x7F]*$'],
    ["^a]b}c$", "^a[\\x5D]b[\\x7D]c$"], // a stray bracket keeps the converter busy for ever
  ])("%s is %s to llama.cpp", (pattern, gbnf) => expect(grammarPattern(pattern)).toEqual({ regex: pattern, gbnf }));
  test.each(['^"a"$', "^[\\\\/]$", "^[ -~]+$", "^(a|)$", "^$", "^\\n$"])("%s is for others alone", (pattern) =>
    expect(grammarPattern(pattern)).toEqual({ regex: pattern, gbnf: null }),
  );
  test.each([
    "^(?=x)a$",
    "^(?!x)a$",
    "^(?<=x)a$",
    "^(a)\\1$",
    "^\\bfoo\\b$",
    "^\\p{L}$",
    "^*a$",
    "^(*a)$",
    "^a**$",
    "^(a$",
    "^a)$",
    "^[a$",
    "^[]$",
    "^[z-a]$",
    "^[a&&b]$",
    "^[[a]]$",
    "^{2}$",
    "^a{2,1}$",
    "^a{1,100000}$",
    "^(a{1,100}){1,100}$",
    "^(^a|b$)$",
    "^a\\",
    "",
    `^${"a".repeat(2_000)}$`,
  ])("%s is for nobody", (pattern) => expect(grammarPattern(pattern)).toBeNull());

  test("every pattern that llama.cpp gets has nothing in it that ends the process or does not end", () => {
    for (const { schema } of hostileSchemas(60)) {
      for (const [, pattern] of JSON.stringify(cleaned("ollama", schema)).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)) {
        const text = JSON.parse(pattern!) as string;
        expect(text).not.toMatch(/\(\?|\(\)|[(|^][*+?{]|\\[^x"\\]/);
        expect(text).toMatch(/^\^.*\$$/s);
      }
    }
  });
  test("no pattern takes long", () => {
    const before = process.cpuUsage();
    for (const part of ["(", "a*", "[a", "[a]", "\\", "(?:", "{1,9}", "a{9}", "|", "(a|", "\\u"]) {
      grammarPattern(part.repeat(250));
      grammarPattern(part.repeat(100_000));
    }
    const { user, system } = process.cpuUsage(before);
    expect(user + system).toBeLessThan(200_000);
  });
});

describe("parameters of tools", () => {
  const clean = (parameters: Schema): unknown => toolParameters(toolOf("t", { parameters }), "vllm");
  test("are an object", () => {
    expect(clean({})).toEqual({ type: "object", properties: {} });
    expect(clean({ properties: { a: { type: "string" } } })).toEqual({
      type: "object",
      properties: { a: { type: "string" } },
    });
  });
  test("are cleaned like formats", () =>
    expect(clean({ type: "object", properties: { a: { type: "string", pattern: "^(?=x)$" } } })).toEqual({
      type: "object",
      properties: { a: { type: "string" } },
    }));
});
