// How many tokens the inputs of a request for vectors or scores may have, estimated before a model has read them.
import { tokensAroundInput } from "./limits.ts";
import type { Ask, Inputs } from "./types.ts";

/** The most tokens per byte of an input: some scripts are decomposed before they are read. */
const inputTokensPerByteMax = 2;
/** For inputs: English has 4 bytes a token, Chinese 3; dense code, digits and rare scripts have 2, and seldom 1. */
const expectedBytesPerToken = 2;

export type InputsAsk = Ask & Readonly<{ inputs: Inputs }>;
export const hasInputs = (ask: Ask): ask is InputsAsk => ask.inputs !== undefined;

type Given = Pick<Ask, "bodyBytes" | "model"> & Readonly<{ inputs: Inputs }>;

/** Everything that the model reads: the query with each of its documents. */
export const bytesRead = ({ bodyBytes, inputs }: Pick<Given, "bodyBytes" | "inputs">): number =>
  bodyBytes + (inputs.kind === "scores" ? (inputs.count - 1) * Buffer.byteLength(inputs.query) : 0);

/** Too many rather than too few: what to reserve. */
export const expectedTokens = (given: Given): number =>
  withinContext(given, (tokensOf(given) ?? Math.ceil(bytesRead(given) / expectedBytesPerToken)) + around(given));

/** A larger report is implausible. */
export const mostTokens = (given: Given): number =>
  withinContext(given, (tokensOf(given) ?? bytesRead(given) * inputTokensPerByteMax) + around(given));

/** Where they came as tokens. */
export const tokensOf = ({ inputs }: Pick<Given, "inputs">): number | null =>
  inputs.kind === "vectors" ? inputs.tokens : null;

/** No input can have more than its model reads at once. */
export const withinContext = ({ inputs, model }: Pick<Given, "inputs" | "model">, tokens: number): number =>
  Math.min(tokens, inputs.count * model.contextTokens);

const around = ({ inputs }: Given): number => inputs.count * tokensAroundInput;
