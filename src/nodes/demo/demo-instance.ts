// Makes one small JSON value that fits a JSON schema, for the demo node's structured answers and tool arguments.
// Supported: type, enum, const, required, properties, items, prefixItems, minItems, minLength, minimum and its kin,
// multipleOf, format, simple patterns, allOf, anyOf, oneOf and local $ref. Not supported: not, if, dependent*,
// contains.
import { isRecord } from "../../core/is-record.ts";
import { textFitting } from "./demo-pattern.ts";

type Schema = Record<string, unknown>;
/** Returns the text of a free string property, or null where any text will do. */
export type Fill = (property: string) => string | null;

/** Below this depth only required parts are made and choices take their simplest branch, so that recursive schemas end. */
const optionalDepthMax = 4;
const depthMax = 64;
/** After this many values, a schema that requires itself twice, or a million items, ends with nulls. */
const valuesMax = 10_000;
const textMax = 10_000;
const anyText = "example";

/** A value that fits `schema`; the same for the same arguments. Null where the schema allows nothing or never ends. */
export function instanceOf(schema: unknown, fill: Fill = () => null): unknown {
  return new InstanceMaker(schema, fill).make(schema, "", 0, 0);
}

class InstanceMaker {
  readonly #root: unknown;
  readonly #fill: Fill;
  #values = 0;

  constructor(root: unknown, fill: Fill) {
    this.#root = root;
    this.#fill = fill;
  }

  /** `variant` makes the items of one list differ (uniqueItems). */
  make(given: unknown, property: string, variant: number, depth: number): unknown {
    this.#values += 1;
    if (depth > depthMax || this.#values > valuesMax) return null;
    if (given === true) return anyText;
    if (!isRecord(given)) return null;
    const schema = this.#flatten(given, depth);
    if ("const" in schema) return schema["const"];
    if (Array.isArray(schema["enum"])) return schema["enum"][variant % schema["enum"].length] ?? null;
    switch (typeOf(schema, depth)) {
      case "object":
        return this.#object(schema, depth);
      case "array":
        return this.#array(schema, property, depth);
      case "string":
        return this.#text(schema, property, variant);
      case "integer":
        return numberFitting(schema, variant, true);
      case "number":
        return numberFitting(schema, variant, false);
      case "boolean":
        return variant % 2 === 0;
      case "null":
        return null;
      default:
        return anyText;
    }
  }

  /** One schema without $ref, allOf, anyOf and oneOf. A choice takes its first branch, or deep down its simplest. */
  #flatten(given: Schema, depth: number): Schema {
    let schema = given;
    for (let step = 0; step < depthMax; step++) {
      const { $ref, allOf, anyOf, oneOf, ...rest } = schema;
      const choices = anyOf ?? oneOf;
      if (typeof $ref === "string") schema = merge(this.#resolve($ref), { ...schema, $ref: undefined });
      else if (Array.isArray(allOf)) schema = allOf.filter(isRecord).reduce(merge, { ...rest, anyOf, oneOf });
      else if (Array.isArray(choices)) schema = merge(rest, choiceOf(choices.filter(isRecord), depth));
      else return schema;
    }
    return {};
  }

  /** Only references into the same document: `#`, `#/$defs/name`. */
  #resolve(reference: string): Schema {
    let at = this.#root;
    for (const step of reference.split("/").slice(1)) {
      at = typeof at === "object" && at !== null ? (at as Schema)[keyOf(step)] : undefined;
    }
    return reference.startsWith("#") && isRecord(at) ? at : {};
  }

  #object(schema: Schema, depth: number): Schema {
    const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
    const names = new Set(Array.isArray(schema["required"]) ? schema["required"].filter(isText) : []);
    if (names.size === 0 && depth < optionalDepthMax) Object.keys(properties).forEach((name) => names.add(name));
    const least = Math.min(numberOr(0, schema["minProperties"]), Math.max(0, valuesMax - this.#values));
    for (const name of Object.keys(properties)) if (names.size < least) names.add(name);
    for (let index = 1; names.size < least; index++) names.add(`key${index}`);
    const others = schema["additionalProperties"] ?? true;
    const object: Schema = {};
    for (const name of names) object[name] = this.make(properties[name] ?? others, name, 0, depth + 1);
    return object;
  }

  #array(schema: Schema, property: string, depth: number): unknown[] {
    const first = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"] : [];
    const wanted = Math.max(numberOr(0, schema["minItems"]), depth < optionalDepthMax ? Math.max(1, first.length) : 0);
    const length = Math.min(wanted, numberOr(wanted, schema["maxItems"]), Math.max(0, valuesMax - this.#values));
    return Array.from({ length }, (_, index) =>
      this.make(first[index] ?? schema["items"] ?? true, property, index, depth + 1),
    );
  }

  #text(schema: Schema, property: string, variant: number): string {
    const { pattern, format } = schema;
    if (typeof pattern === "string") return textFitting(pattern);
    const formatted = typeof format === "string" ? formats[format] : undefined;
    if (formatted !== undefined) return formatted;
    const suffix = variant === 0 ? "" : ` ${variant + 1}`;
    const text = (this.#fill(property) ?? anyText) + suffix;
    return text
      .padEnd(Math.min(numberOr(0, schema["minLength"]), textMax), ".")
      .slice(0, numberOr(textMax, schema["maxLength"]));
  }
}

const formats: Readonly<Record<string, string>> = {
  date: "2026-01-31",
  time: "12:00:00Z",
  "date-time": "2026-01-31T12:00:00Z",
  duration: "PT1H",
  email: "someone@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/",
  uuid: "00000000-0000-4000-8000-000000000000",
};

function keyOf(step: string): string {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return step; // a percent sign that begins no escape: no key matches it
  }
}

const isText = (value: unknown): value is string => typeof value === "string";

/** A schema may have an object where a number belongs, and objects need not convert to numbers. */
const numberOr = (otherwise: number, value: unknown): number => (typeof value === "number" ? value : otherwise);

/** `over` wins, but the properties and required names of both stay. */
function merge(under: Schema, over: Schema): Schema {
  const merged: Schema = { ...under };
  for (const [key, value] of Object.entries(over)) if (value !== undefined) merged[key] = value;
  if (isRecord(under["properties"]) && isRecord(over["properties"])) {
    merged["properties"] = { ...under["properties"], ...over["properties"] };
  }
  if (Array.isArray(under["required"]) && Array.isArray(over["required"])) {
    merged["required"] = [...new Set([...under["required"], ...over["required"]])];
  }
  return merged;
}

/** Deep down, a branch without a reference: `anyOf: [{ $ref: "#" }, { type: "null" }]` ends with null. */
function choiceOf(choices: readonly Schema[], depth: number): Schema {
  const leaf = depth < optionalDepthMax ? undefined : choices.find((choice) => !("$ref" in choice));
  return leaf ?? choices[0] ?? {};
}

function typeOf(schema: Schema, depth: number): unknown {
  const { type } = schema;
  if (Array.isArray(type)) {
    return depth >= optionalDepthMax && type.includes("null") ? "null" : (type.find((one) => one !== "null") ?? "null");
  }
  if (type !== undefined) return type;
  if ("properties" in schema || "required" in schema || "additionalProperties" in schema) return "object";
  if ("items" in schema || "prefixItems" in schema) return "array";
  if ("minimum" in schema || "maximum" in schema || "multipleOf" in schema) return "number";
  return "string";
}

/** The least number >= 1 that fits, or the greatest that fits where 1 is too much. */
function numberFitting(schema: Schema, variant: number, whole: boolean): number {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  const step = typeof multipleOf === "number" && multipleOf > 0 ? multipleOf : whole ? 1 : 0;
  const beyond = step === 0 ? 0.5 : step; // how far an excluded bound is left behind
  const low = Math.max(
    typeof minimum === "number" ? minimum : Number.NEGATIVE_INFINITY,
    typeof exclusiveMinimum === "number" ? exclusiveMinimum + beyond : Number.NEGATIVE_INFINITY,
  );
  const high = Math.min(
    typeof maximum === "number" ? maximum : Number.POSITIVE_INFINITY,
    typeof exclusiveMaximum === "number" ? exclusiveMaximum - beyond : Number.POSITIVE_INFINITY,
  );
  if (low > high) return (numberOr(low, minimum ?? exclusiveMinimum) + numberOr(high, maximum ?? exclusiveMaximum)) / 2;
  const value = Math.min(Math.max(1, low) + variant, high);
  if (step === 0) return value;
  const above = Math.ceil(value / step) * step;
  return above <= high ? above : Math.floor(high / step) * step;
}
