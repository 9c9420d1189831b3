// Which JSON Schemas are accepted at all, and what the check costs.
import { describe, expect, test } from "bun:test";
import {
  schemaDepthMax,
  schemaFault,
  schemaTextMaxLength,
  schemaValuesMax,
} from "../../../src/dialects/request/schema-limits.ts";

const nested = (depth: number): Record<string, unknown> => {
  let schema: Record<string, unknown> = { type: "string" };
  for (let level = 1; level < depth; level++) schema = { not: schema };
  return schema;
};
const wide = (values: number): Record<string, unknown> => ({
  enum: Array.from({ length: values - 1 }, (_, index) => index),
});

describe("limits of a schema", () => {
  test.each([
    ["an empty one", {}, null],
    ["as deep as allowed", nested(schemaDepthMax), null],
    ["deeper", nested(schemaDepthMax + 1), "nests too deep: more than 64 levels"],
    ["far deeper than the stack", nested(300_000), "nests too deep: more than 64 levels"],
    ["as wide as allowed", wide(schemaValuesMax), null],
    ["wider", wide(schemaValuesMax + 1), "has more than 20000 values"],
    ["a million values", wide(1_000_000), "has more than 20000 values"],
    ["as long as allowed", { const: "x".repeat(schemaTextMaxLength - 5) }, null],
    ["longer", { const: "x".repeat(schemaTextMaxLength) }, "is longer than 256 KiB"],
    ["long keys", { properties: { ["x".repeat(schemaTextMaxLength)]: {} } }, "is longer than 256 KiB"],
  ])("%s", (_, schema, fault) => {
    expect(schemaFault(schema)).toBe(fault);
  });

  test.each([
    [{ $ref: "#" }],
    [{ $ref: "#/$defs/a", $defs: { a: {} } }],
    [{ items: { $ref: "#/$defs/a~1b%20c~0" }, $defs: { "a/b c~": {} } }],
    [{ items: { $ref: "#/prefixItems/0" }, prefixItems: [{}] }],
    [{ items: { $ref: "#node" }, $defs: { a: { $anchor: "node" } } }],
    [{ $id: "https://a.example/tree", items: { $ref: "https://a.example/tree" } }],
    [{ $defs: { a: { $id: "https://a.example/leaf", $defs: { b: {} } } }, $ref: "https://a.example/leaf#/$defs/b" }],
    [{ properties: { $ref: { type: "string" } } }],
    [{ enum: [{ $ref: "https://elsewhere.example/x" }] }],
    [{ properties: { const: { const: { $ref: "#/nowhere" } } } }],
  ])("%j refers to itself alone", (schema) => {
    expect(schemaFault(schema)).toBeNull();
  });

  test.each([
    [{ $ref: "https://elsewhere.example/x" }, "https://elsewhere.example/x"],
    [{ $ref: "http://169.254.169.254/latest#" }, "http://169.254.169.254/latest#"],
    [{ $ref: "other.json#/$defs/a" }, "other.json#/$defs/a"],
    [{ $ref: "file:///etc/passwd" }, "file:///etc/passwd"],
    [{ $ref: "#/$defs/b", $defs: { a: {} } }, "#/$defs/b"],
    [{ $ref: "#/$defs/toString", $defs: {} }, "#/$defs/toString"],
    [{ $ref: "#/%zz" }, "#/%zz"],
    [{ properties: { properties: { $ref: "#nowhere" } } }, "#nowhere"],
    [{ properties: { enum: { $dynamicRef: "#nowhere" } } }, "#nowhere"],
  ])("%j refers to what is not in it", (schema, reference) => {
    expect(schemaFault(schema)).toBe(`refers to ${JSON.stringify(reference)}, which is not in it`);
  });
});
