// What the embeddings dialect reads: a request body -> Ask.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { inputsMax } from "../../core/limits.ts";
import { isRefusal } from "../../core/refusals.ts";
import type { Ask, Refusal } from "../../core/types.ts";
import type { DialectRequest } from "../dialect.ts";
import { BodySchema, malformed, oneOf, optional, text, wholeBetween } from "../request/field.ts";
import { askOfInputs } from "../request/inputs.ts";
import { namedModel } from "../request/named-model.ts";

/** No model produces longer vectors. */
const vectorDimensionsMax = 65_536;

export const endpoint = "/v1/embeddings";

const expected = "a string, an array of strings, an array of tokens or an array of arrays of tokens";

const Body = Type.Object({
  model: text,
  // Checked by hand: a schema with four alternatives would scan the longest of them four times.
  input: Type.Union(
    [
      Type.String(),
      Type.Array(Type.Union([Type.String(), Type.Integer(), Type.Array(Type.Integer())]), {
        minItems: 1,
        description: `${expected}; none is empty`,
      }),
    ],
    { description: expected },
  ),
  encoding_format: optional(oneOf("float", "base64")),
  dimensions: optional(wholeBetween(1, vectorDimensionsMax)),
  user: optional(text),
});
type Body = Static<typeof Body>;
export const embeddingsBody: TSchema = Body;

const Envelope = Type.Object({ ...Body.properties, input: Type.Unknown({ description: expected }) });
const envelope = new BodySchema(Envelope);

export function read({ body, bodyBytes, catalog }: DialectRequest): Ask | Refusal {
  const wrong = envelope.refusal(body);
  if (wrong !== null) return wrong;
  const request = body as Omit<Body, "input"> & Readonly<{ input: unknown }>;
  const model = namedModel(catalog, request.model, "embedding");
  if (isRefusal(model)) return model;
  const read = readInput(request.input);
  if (isRefusal(read)) return read;
  const { texts, tokens } = read;
  const { encoding_format, dimensions = null } = request;
  const format = encoding_format === "base64" ? "base64" : "float";
  const inputs = { kind: "vectors", count: texts.length, tokens, format, dimensions } as const;
  return askOfInputs(endpoint, model, { inputs }, texts, bodyBytes);
}

/** `tokens`: the sum over all inputs, where they are lists of tokens; their texts are then those lists as JSON. */
type Read = Readonly<{ texts: readonly string[]; tokens: number | null }>;

function readInput(input: unknown): Read | Refusal {
  if (typeof input === "string") return input === "" ? empty("input") : { texts: [input], tokens: null };
  if (!Array.isArray(input)) return malformed(`input must be ${expected}`);
  if (input.length === 0) return empty("input");
  if (typeof input[0] === "number") return readTokenLists([input], () => "input");
  if (input.length > inputsMax) return malformed(`input must have at most ${inputsMax} items`);
  if (Array.isArray(input[0])) return readTokenLists(input, (index) => `input[${index}]`);
  for (const [index, item] of input.entries()) {
    if (typeof item !== "string") {
      return malformed(`input[${index}] must be a string${index === 0 ? " or tokens" : ", as those before it are"}`);
    }
    if (item === "") return empty(`input[${index}]`);
  }
  return { texts: input as string[], tokens: null };
}

function readTokenLists(lists: readonly unknown[], pathOf: (index: number) => string): Read | Refusal {
  let tokens = 0;
  for (const [index, list] of lists.entries()) {
    if (!Array.isArray(list)) return malformed(`${pathOf(index)} must be an array of tokens, as those before it are`);
    if (list.length === 0) return empty(pathOf(index));
    if (!list.every((token) => Number.isSafeInteger(token) && token >= 0)) {
      return malformed(`${pathOf(index)} must be an array of tokens, whole numbers from 0`);
    }
    tokens += list.length;
  }
  return { texts: lists.map((list) => JSON.stringify(list)), tokens };
}

const empty = (path: string): Refusal => malformed(`${path} must not be empty`);
