// JSON schemas that a client may send and that no engine's grammar takes all of.

/**
 * Name, schema, and who sees to it that an answer keeps to it: a grammar, the model alone, which may fail, or nobody,
 * since none can.
 */
export type OddSchema = readonly [name: string, schema: object, keptBy: "grammar" | "model" | "nobody"];

/** `base` is an object's schema; most of these give it one more property. */
export function oddSchemas(base: { properties: object; required: readonly string[] }): readonly OddSchema[] {
  const having = (property: object): object => ({ ...base, properties: { ...base.properties, more: property } });
  const string = (keywords: object): object => having({ type: "string", ...keywords });
  const object = (keywords: object): object => having({ type: "object", ...keywords });
  const schemas: Readonly<Record<string, object>> = {
    "format email": string({ format: "email" }),
    "format date-time": string({ format: "date-time" }),
    "a format that nobody knows": string({ format: "phone" }),
    "pattern with lookahead": string({ pattern: "[a-z]+(?=x)" }),
    "pattern that begins with lookahead": string({ pattern: "^(?=x)a$" }),
    "pattern with a back reference": string({ pattern: "^(a)\\1$" }),
    "pattern with a word's edge": string({ pattern: "^\\bfoo\\b$" }),
    "pattern with digits": string({ pattern: "^\\d{4}-\\d{2}$" }),
    "pattern with a group": string({ pattern: "^(?:a|b)$" }),
    "pattern with a named group": string({ pattern: "^(?<y>a)$" }),
    "pattern with many repeats": string({ pattern: "^[a-z]{1,100000}$" }),
    "maxLength of 100,000": string({ maxLength: 100_000 }),
    uniqueItems: having({ type: "array", items: { type: "integer" }, uniqueItems: true }),
    contains: having({ type: "array", contains: { type: "integer" } }),
    not: having({ not: { type: "string" } }),
    "if and then": having({ if: { type: "string" }, then: { minLength: 3 } }),
    multipleOf: having({ type: "number", multipleOf: 0.01 }),
    "exclusiveMinimum as a boolean": having({ type: "number", minimum: 1, exclusiveMinimum: true }),
    propertyNames: object({ propertyNames: { pattern: "^a" } }),
    patternProperties: object({ patternProperties: { "^x": { type: "string" } } }),
    dependentRequired: object({ dependentRequired: { a: ["b"] } }),
    minProperties: object({ minProperties: 1 }),
    oneOf: having({ oneOf: [{ type: "string" }, { type: "integer" }] }),
    allOf: having({ allOf: [{ type: "string" }, { minLength: 2 }] }),
    "a list of types": having({ type: ["string", "null"] }),
    "an enum of nothing": having({ enum: [] }),
    "a schema within itself": {
      $defs: {
        node: {
          type: "object",
          properties: { children: { type: "array", items: { $ref: "#/$defs/node" } } },
          required: ["children"],
        },
      },
      $ref: "#/$defs/node",
    },
    "an address of its own": {
      $id: "http://example.com/schema",
      type: "object",
      properties: { a: { $ref: "#/definitions/z" } },
      definitions: { z: { type: "string" } },
    },
    "anyOf at its root": {
      anyOf: [
        { type: "object", properties: { a: { type: "string" } } },
        { type: "object", properties: { b: { type: "string" } } },
      ],
    },
    "a dynamic reference to nothing": { $dynamicRef: "#x", type: "object" },
  };
  const beyondGrammars = [
    "pattern with lookahead",
    "pattern that begins with lookahead",
    "pattern with a back reference",
    "pattern with a word's edge",
    "uniqueItems",
    "contains",
    "not",
    "if and then",
    "multipleOf",
    "propertyNames",
    "patternProperties",
    "dependentRequired",
    "minProperties",
  ];
  const impossible = ["an enum of nothing", "a dynamic reference to nothing"];
  return Object.entries(schemas).map(([name, schema]) => [
    name,
    schema,
    impossible.includes(name) ? "nobody" : beyondGrammars.includes(name) ? "model" : "grammar",
  ]);
}
