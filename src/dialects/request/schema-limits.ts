// Whether a client's JSON Schema is small and self-contained. One walk without recursion stops at the first limit, so
// no schema costs more than a few milliseconds here.

/** A schema beyond these limits is refused before anything is reserved; the vendors' own limits are far lower. */
export const schemaDepthMax = 64;
export const schemaValuesMax = 20_000;
export const schemaTextMaxLength = 256 * 1024;

type Schema = Readonly<Record<string, unknown>>;

/** Keywords whose value is data: what looks like a reference inside is none. */
const dataKeywords: ReadonlySet<string> = new Set(["const", "enum", "default", "examples", "example"]);
/** Keywords whose keys are the client's names, never keywords. */
const nameKeywords: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
]);

/** How to read the keys of an object. */
type Reading = "keywords" | "names" | "data";

const tooMany = `has more than ${schemaValuesMax} values`;

/** What is wrong with the schema, to follow its position in an error message, or null. */
export function schemaFault(schema: Schema): string | null {
  const references: string[] = [];
  const identifiers = new Set<string>();
  let values = 0;
  let length = 0;
  const open: { value: object; depth: number; reading: Reading }[] = [{ value: schema, depth: 1, reading: "keywords" }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth, reading } = next;
    if (depth > schemaDepthMax) return `nests too deep: more than ${schemaDepthMax} levels`;
    // for...in lists a million keys before it returns the first.
    if (Array.isArray(value) && values + value.length > schemaValuesMax) return tooMany;
    for (const key in value) {
      const inner = (value as Schema)[key];
      length += key.length + (typeof inner === "string" ? inner.length : 0);
      if (++values > schemaValuesMax) return tooMany;
      if (length > schemaTextMaxLength) return `is longer than ${schemaTextMaxLength / 1024} KiB`;
      if (typeof inner === "object" && inner !== null) {
        open.push({ value: inner, depth: depth + 1, reading: readingOf(key, value, reading) });
      } else if (reading === "keywords" && typeof inner === "string") {
        if (key === "$ref" || key === "$dynamicRef") references.push(inner);
        else if (identifierPrefix[key] !== undefined) identifiers.add(identifierPrefix[key] + inner);
      }
    }
  }
  const dangling = references.find((reference) => !resolves(reference, schema, identifiers));
  return dangling === undefined ? null : `refers to ${JSON.stringify(dangling.slice(0, 100))}, which is not in it`;
}

/** What a reference to it starts with. */
const identifierPrefix: Readonly<Record<string, string>> = { $id: "", $anchor: "#", $dynamicAnchor: "#" };

function readingOf(key: string, parent: object, reading: Reading): Reading {
  if (reading === "data" || Array.isArray(parent)) return reading;
  if (reading === "names") return "keywords";
  if (dataKeywords.has(key)) return "data";
  return nameKeywords.has(key) ? "names" : "keywords";
}

/**
 * Nothing is ever fetched: a reference must point to a place in the schema, one of its anchors or one of its own ids. A
 * dynamic one must first resolve like a plain one (JSON Schema 2020-12, 8.2.3.2); ajv would resolve others to the root.
 */
function resolves(reference: string, schema: Schema, identifiers: ReadonlySet<string>): boolean {
  if (reference === "#" || identifiers.has(reference)) return true;
  const fragmentAt = reference.indexOf("#");
  // Within a part that has its own id, only compiling the schema shows it.
  if (fragmentAt > 0) return identifiers.has(reference.slice(0, fragmentAt));
  if (!reference.startsWith("#/")) return false;
  let place: unknown = schema;
  for (const step of reference.slice(2).split("/")) {
    const key = decoded(step);
    if (typeof place !== "object" || place === null || key === null || !Object.hasOwn(place, key)) return false;
    place = (place as Schema)[key];
  }
  return true;
}

/** A step of a JSON pointer in a URI fragment; null when it is not one. */
function decoded(step: string): string | null {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return null; // a stray percent sign
  }
}
