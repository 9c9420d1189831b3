// Shows a JSON Schema as a list of fields: names, types in words, what they are for, and what they contain.
import type { JsonSchema } from "./openapi-document.ts";
import { escaped, prose } from "./markup.ts";

export type Schemas = Readonly<Record<string, JsonSchema>>;

const prefix = "#/components/schemas/";
/** Deeper than any body of the API; it ends a schema that contains itself. */
const depthMax = 8;

/** What a reference stands for; any other schema stands for itself. */
export function resolved(schema: JsonSchema, schemas: Schemas): JsonSchema {
  if (schema.$ref === undefined) return schema;
  const found = schemas[schema.$ref.slice(prefix.length)];
  if (found === undefined) throw new Error(`there is no schema ${schema.$ref}`);
  return schema.description === undefined ? found : { ...found, description: schema.description };
}

/** The fields of an object as a list; "" for a schema without any. */
export function fieldList(given: JsonSchema, schemas: Schemas, depth = 0): string {
  const schema = resolved(given, schemas);
  const properties = Object.entries(schema.properties ?? {});
  if (properties.length === 0 || depth >= depthMax) return "";
  const required = new Set(schema.required);
  // Required fields come first.
  const order = [
    ...properties.filter(([name]) => required.has(name)),
    ...properties.filter(([name]) => !required.has(name)),
  ];
  const fields = order.map(([name, field]) => fieldView(name, field, required.has(name), schemas, depth));
  return `<dl class="fields">${fields.join("")}</dl>`;
}

function fieldView(name: string, given: JsonSchema, required: boolean, schemas: Schemas, depth: number): string {
  const field = resolved(given, schemas);
  const mark = required ? '<span class="required">required</span>' : "";
  const description = field.description === undefined ? "" : `<p>${prose(field.description)}</p>`;
  return (
    `<dt><code>${escaped(name)}</code> <span class="type">${escaped(typeWords(field, schemas))}</span>${mark}</dt>` +
    `<dd>${description}${choices(field)}${insideView(field, schemas, depth + 1)}</dd>`
  );
}

const shownChoicesMax = 12;

function choices({ enum: words = [] }: JsonSchema): string {
  const shown = words.filter((word) => word !== null);
  if (shown.length < 2 || shown.length > shownChoicesMax) return "";
  return `<p class="choices">${shown.map((word) => `<code>${escaped(JSON.stringify(word))}</code>`).join(" ")}</p>`;
}

/** What a field contains, folded up, because most readers look for one field. */
function insideView(field: JsonSchema, schemas: Schemas, depth: number): string {
  const views = forms(field, schemas)
    .map((form) => ({ form, fields: fieldList(form, schemas, depth) }))
    .filter(({ fields }) => fields !== "");
  if (views.length === 0) return "";
  const titled = views.map(({ form, fields }) => (views.length === 1 ? fields : formView(form, fields, schemas)));
  return `<details><summary>${views.length === 1 ? "Fields" : "Forms"}</summary>${titled.join("")}</details>`;
}

function formView(form: JsonSchema, fields: string, schemas: Schemas): string {
  const type = form.properties?.["type"] ?? form.properties?.["role"];
  const names = type === undefined ? [] : (resolved(type, schemas).enum ?? []);
  const title = names.map((name) => `<code>${escaped(String(name))}</code> `).join("");
  return `<div class="form"><p class="form-name">${title}${prose(form.description ?? "")}</p>${fields}</div>`;
}

/** The objects that a field may contain: itself, an array's items, or each of a choice. */
function forms(given: JsonSchema, schemas: Schemas): readonly JsonSchema[] {
  const schema = resolved(given, schemas);
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap((form) => forms(form, schemas));
  if (schema.items !== undefined) return forms(schema.items, schemas);
  return schema.properties === undefined ? [] : [schema];
}

/** A type in words: "string", "integer from 1 to 20", "array of objects", "string or array". */
export function typeWords(given: JsonSchema, schemas: Schemas): string {
  const schema = resolved(given, schemas);
  if (schema.anyOf !== undefined) {
    return [...new Set(schema.anyOf.map((form) => typeWords(form, schemas)))]
      .filter((word) => word !== "null")
      .join(" or ");
  }
  const types = [schema.type ?? []].flat();
  const [type] = types.length === 1 ? types : types.filter((word) => word !== "null");
  if (schema.enum !== undefined) return enumWords(schema.enum);
  if (type === "array") {
    const inside = schema.items === undefined ? "" : typeWords(schema.items, schemas);
    return inside === "" || inside === "anything" ? "array" : `array of ${plural(inside)}`;
  }
  return `${type ?? "anything"}${rangeWords(schema)}`;
}

function enumWords(words: readonly unknown[]): string {
  const [first, ...rest] = words.filter((word) => word !== null);
  if (first === undefined) return "null";
  return rest.length === 0 ? JSON.stringify(first) : typeof first;
}

const plural = (words: string): string =>
  words
    .split(" or ")
    .map((word) => (/^(?:string|integer|number|object|boolean)$/.test(word) ? `${word}s` : word))
    .join(" or ");

function rangeWords({ minimum, maximum }: JsonSchema): string {
  if (minimum === undefined) return maximum === undefined ? "" : ` up to ${maximum}`;
  return maximum === undefined ? ` from ${minimum}` : ` from ${minimum} to ${maximum}`;
}
