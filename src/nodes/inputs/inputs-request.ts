// Writes a node's request for vectors or scores: the bodies of OpenAI's embeddings and of Jina's rerank.
import { type InputsAsk, tokensOf } from "../../core/inputs.ts";
import type { Inputs } from "../../core/types.ts";

/** The inputs as JSON, separated by commas, in a buffer of its own that can move to another thread. */
export const writtenInputs = (ask: InputsAsk): Uint8Array => new TextEncoder().encode(inputsJson(ask));

function inputsJson({ turns, inputs }: Pick<InputsAsk, "turns" | "inputs">): string {
  const areTokens = tokensOf({ inputs }) !== null; // they are already JSON
  return turns.map(({ content }) => (areTokens ? content : JSON.stringify(content))).join(",");
}

/** The path below a node's base address. */
export const pathOf = ({ kind }: Inputs): string => (kind === "vectors" ? "/embeddings" : "/rerank");

export function inputsBody(ask: InputsAsk, nodeModel: string): readonly Buffer[] {
  const { inputs, turns, prepared } = ask;
  const list = prepared?.messages ?? Buffer.from(inputsJson({ turns, inputs }));
  const [name, beside] = inputs.kind === "vectors" ? ["input", ofVectors(inputs)] : ["documents", ofScores(inputs)];
  const start = JSON.stringify({ model: nodeModel, ...beside });
  return [Buffer.from(`${start.slice(0, -1)},"${name}":[`), list, Buffer.from("]}")];
}

/** Nodes write numbers by default. */
const ofVectors = ({ format, dimensions }: Extract<Inputs, { kind: "vectors" }>) => ({
  ...(format === "base64" ? { encoding_format: format } : {}),
  ...(dimensions === null ? {} : { dimensions }),
});

const ofScores = ({ query, best, count }: Extract<Inputs, { kind: "scores" }>) => ({
  query,
  ...(best < count ? { top_n: best } : {}),
  return_documents: false,
});

/** The body of text-embeddings-inference, which knows neither model names nor documents. */
export function bodyOfTextEmbeddingsInference({ inputs, turns, prepared }: InputsAsk): readonly Buffer[] {
  const list = prepared?.messages ?? Buffer.from(inputsJson({ turns, inputs }));
  const start = JSON.stringify({ query: inputs.kind === "scores" ? inputs.query : "" });
  return [Buffer.from(`${start.slice(0, -1)},"texts":[`), list, Buffer.from("]}")];
}
