// The demo node's instances: small values that fit a schema, and texts that match a pattern.
import { describe, expect, test } from "bun:test";
import { instanceOf } from "../../../src/nodes/demo/demo-instance.ts";
import { textFitting } from "../../../src/nodes/demo/demo-pattern.ts";

describe("an instance", () => {
  /** It has no value as a number or a text: coercing it throws. */
  const strange = { toString: 1, valueOf: 1 };
  const tree = {
    $ref: "#/$defs/tree",
    $defs: {
      tree: {
        type: "object",
        required: ["value", "left"],
        properties: { value: { type: "integer" }, left: { anyOf: [{ $ref: "#/$defs/tree" }, { type: "null" }] } },
      },
    },
  };
  const rows: [string, unknown, unknown][] = [
    ["nothing said", {}, "example"],
    ["anything allowed", true, "example"],
    ["a constant", { const: { a: [1] } }, { a: [1] }],
    ["an enumeration", { type: "string", enum: ["red", "blue"] }, "red"],
    ["a nullable type", { type: ["null", "integer"] }, 1],
    ["a boolean", { type: "boolean" }, true],
    ["a minimum", { type: "integer", minimum: 18 }, 18],
    ["an excluded minimum", { type: "integer", exclusiveMinimum: 18 }, 19],
    ["a maximum below one", { type: "number", maximum: -2 }, -2],
    ["a narrow open range", { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 0.5 }, 0.25],
    ["a step", { type: "integer", minimum: 7, multipleOf: 5 }, 10],
    ["a least length", { type: "string", minLength: 9 }, "example.."],
    ["a greatest length", { type: "string", maxLength: 2 }, "ex"],
    ["a date", { type: "string", format: "date" }, "2026-01-31"],
    ["required properties only", { type: "object", required: ["a"], properties: { a: {}, b: {} } }, { a: "example" }],
    ["properties where none is required", { properties: { a: { type: "null" }, b: { const: 1 } } }, { a: null, b: 1 }],
    ["a required property without a schema", { type: "object", required: ["x"] }, { x: "example" }],
    ["a least count of properties", { type: "object", minProperties: 2 }, { key1: "example", key2: "example" }],
    ["a list", { type: "array", items: { type: "integer" } }, [1]],
    ["a least count of items", { type: "array", items: { type: "integer" }, minItems: 3 }, [1, 2, 3]],
    ["no items", { type: "array", maxItems: 0 }, []],
    ["items that differ", { type: "array", items: { type: "string" }, minItems: 2 }, ["example", "example 2"]],
    ["a tuple", { prefixItems: [{ type: "integer" }, { type: "boolean" }] }, [1, false]],
    ["a local reference", { $ref: "#/$defs/a%20b", $defs: { "a b": { type: "integer" } } }, 1],
    [
      "a reference beside other words",
      { properties: { a: { $ref: "#/$defs/n", description: "d" } }, $defs: { n: { type: "integer", minimum: 4 } } },
      { a: 4 },
    ],
    [
      "all of several",
      {
        allOf: [
          { required: ["a"], properties: { a: { type: "integer" } } },
          { required: ["b"], properties: { b: { type: "boolean" } } },
        ],
      },
      { a: 1, b: true },
    ],
    ["any of several", { anyOf: [{ type: "integer" }, { type: "string" }] }, 1],
    ["nothing allowed", false, null],
    ["a number's bound that is an object", { minItems: strange, maxItems: strange, prefixItems: [true] }, ["example"]],
    ["a text's bound that is an object", { type: "string", minLength: strange, maxLength: strange }, "example"],
    ["a range of which an end is an object", { type: "number", minimum: strange, maximum: 0.5 }, 0.5],
    ["no room above an end that is an object", { minimum: strange, exclusiveMinimum: 3, maximum: 2 }, 2.75],
    ["names that are objects", { type: "object", minProperties: strange, required: [strange, "a"] }, { a: "example" }],
    ["a reference with half an escape", { $ref: "#/%" }, "example"],
    ["a reference to nowhere", { $ref: "#/$defs/gone" }, "example"],
  ];
  test.each(rows)("fits %s", (_, schema, value) => {
    expect(instanceOf(schema)).toEqual(value);
  });

  test("ends where a schema holds itself", () => {
    let depth = 0;
    type Node = { value: number; left: Node | null };
    for (let node = instanceOf(tree) as Node | null; node !== null; node = node.left) {
      expect(node.value).toBe(1);
      depth += 1;
    }
    expect(depth).toBeGreaterThan(0);
    expect(depth).toBeLessThan(10);
  });

  test("ends where a schema requires itself for ever", () => {
    const endless = { type: "object", required: ["a"], properties: { a: { $ref: "#" } } };
    expect(JSON.stringify(instanceOf(endless))).toStartWith('{"a":{"a":');
  });

  test.each([
    { required: ["a", "b"], properties: { a: { $ref: "#" }, b: { $ref: "#" } } },
    { type: "array", minItems: 1e9, items: { type: "array", minItems: 1e9 } },
    { minProperties: 1e9 },
    { type: "string", minLength: 1e12 },
  ])("stays small for the hostile %j", (schema) => {
    expect(JSON.stringify(instanceOf(schema)).length).toBeLessThan(1_000_000);
  });

  test("takes the text of a free property from the caller", () => {
    const schema = { required: ["city", "unit"], properties: { city: { type: "string" }, unit: { enum: ["C", "F"] } } };
    expect(instanceOf(schema, (property) => (property === "city" ? "Paris" : null))).toEqual({
      city: "Paris",
      unit: "C",
    });
  });
});

describe("a text for a pattern", () => {
  const patterns = [
    "^[a-z]+$",
    "^\\d{3}-\\d{4}$",
    "^[A-Z]{2}\\d+$",
    "^(foo|bar)baz$",
    "^(?:\\+\\d{1,3} )?[0-9]{4,}$",
    "^[^a]$",
    "^[^a-z]b?$",
    "^\\w+@\\w+\\.(com|org)$",
    "^#[0-9a-fA-F]{6}$",
    "^a{2}?b$",
    "^\\u0041\\x42$",
    "^\\p{Lu}x$",
    "^(?<year>\\d{4})$",
    "plain",
    "",
  ];
  test.each(patterns)("matches %s", (pattern) => {
    expect(textFitting(pattern)).toMatch(new RegExp(pattern, "u"));
  });

  test.each(["(", "[", "\\", "a{", "(?<", "((x{999999999}){999999999}){999999999}", "(".repeat(2_000)])(
    "comes to an end for the broken or hostile %j",
    (pattern) => {
      expect(textFitting(pattern).length).toBeLessThanOrEqual(10_000);
    },
  );
});
