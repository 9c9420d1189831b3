// Turns the TypeBox schemas of requests into the JSON Schema that people would write. What is accepted stays the same.
import type { TSchema } from "@sinclair/typebox";
import type { JsonSchema } from "../../docs/openapi-document.ts";

/** TypeBox writes a table with any keys as one pattern for all of them. */
const anyKey = "^(.*)$";

export function plainSchema(schema: TSchema): JsonSchema {
  const { description, minItems, minimum, maximum } = schema;
  const kept = defined({ description, minItems, minimum, maximum });
  const choices = schema["anyOf"] as readonly TSchema[] | undefined;
  if (choices !== undefined) {
    const choice = choiceOf(choices);
    return choice.enum === undefined ? { ...choice, ...kept } : choice; // its words say what is expected
  }
  if (schema["const"] !== undefined) return { enum: [schema["const"]], ...kept };
  const type = schema["type"] as string | undefined;
  switch (type) {
    case "object": {
      const properties = schema["properties"] as Record<string, TSchema> | undefined;
      if (properties === undefined) {
        const values = (schema["patternProperties"] as Record<string, TSchema> | undefined)?.[anyKey];
        const plain = values === undefined ? {} : plainSchema(values);
        return { type, ...(Object.keys(plain).length === 0 ? {} : { additionalProperties: plain }), ...kept };
      }
      const plain = Object.entries(properties).map(([name, property]) => [name, plainSchema(property)] as const);
      return { type, properties: Object.fromEntries(plain), required: schema["required"] ?? [], ...kept };
    }
    case "array":
      return { type, items: plainSchema(schema["items"] as TSchema), ...kept };
    default:
      return { ...(type === undefined ? {} : { type }), ...kept };
  }
}

function choiceOf(choices: readonly TSchema[]): JsonSchema {
  const plain = choices.map(plainSchema);
  const isNull = (choice: JsonSchema): boolean => choice.type === "null";
  const others = plain.filter((choice) => !isNull(choice));
  const nullable = others.length < plain.length;
  const words = others.flatMap((choice) => choice.enum ?? []);
  if (others.every((choice) => choice.enum !== undefined)) return { enum: nullable ? [...words, null] : words };
  const [only] = others;
  if (!nullable || others.length > 1 || typeof only?.type !== "string") {
    return { anyOf: flattened(plain) };
  }
  return { ...only, type: [only.type, "null"] };
}

/** A choice within a choice is one choice. */
const flattened = (choices: readonly JsonSchema[]): readonly JsonSchema[] =>
  choices.flatMap((choice) => choice.anyOf ?? [choice]);

const defined = (values: Readonly<Record<string, unknown>>): JsonSchema =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
