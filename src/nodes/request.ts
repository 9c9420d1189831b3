// Ask -> the JSON body for one engine. Only fields named here are sent: engines obey dangerous ones (slots, plugins).
import { furtherStopsMaxLength, stopSequencesMax } from "../core/limits.ts";
import { budgetLimitsAnswer } from "../core/answer-budget.ts";
import { forcedTool, sentTools } from "../core/sent-tools.ts";
import type { EngineKind } from "./engine-kind.ts";
import { addEngineFields, type KnowingNode } from "./engine-fields.ts";
import { type EngineTraits, engineTraits, streamFields, thinking } from "./engine-traits.ts";
import { callPrompt, formatPrompt, namedCallPrompt } from "./in-words.ts";
import { namedCallSchema } from "./named-call.ts";
import { nodeSchema, toolParameters } from "./node-schema.ts";
import { type EngineShare, shareFields, usualShare } from "./prefix-cache.ts";
import { isBeginning, messagesOf } from "./request-messages.ts";
import type { AccountId, Ask, Format, PreparedTurns, Sampling, Tool } from "../core/types.ts";
/** What the reader must know about the answer. */
export type Expected = Readonly<{
  /** The answer's text will be a call that names its tool (see `schema` above). */
  textNamesCall: boolean;
  stops: readonly string[];
}>;

export type NodeRequest = Readonly<{ body: string; expected: Expected }>;

/** A node's request for a large body: the same JSON text in UTF-8, in parts, so that nothing is copied. */
export type LargeNodeRequest = Readonly<{ body: readonly Buffer[]; expected: Expected }>;

type RequestFields = Readonly<{
  model: string;
  messages: readonly Readonly<Record<string, unknown>>[];
  /** All other fields, in the order in which they are sent. */
  rest: Readonly<Record<string, unknown>>;
  /** Follows the system message of prepared turns, or is one. */
  addition: string;
  expected: Expected;
}>;

/** The request for a node that calls the model `nodeModel`; `node` has the operator's list of what its engine knows. */
export function nodeRequest(
  ask: Ask,
  account: AccountId,
  nodeModel: string,
  engine: EngineKind,
  node: KnowingNode = {},
  share: EngineShare = usualShare,
): NodeRequest {
  const { model, messages, rest, expected } = fieldsOf(ask, account, nodeModel, engine, node, share);
  return { body: JSON.stringify({ model, messages, ...rest }), expected };
}

/** Fields of a request that are not part of its prompt: SGLang's counter rejects a request for a stream. */
const notCounted = new Set(["stream", "stream_options", "max_tokens"]);

/** The body that has the node count the prompt. Account 0 stands for all, because the account changes only the cache. */
export function countedBody(
  ask: Ask,
  nodeModel: string,
  engine: EngineKind,
  node: KnowingNode = {},
): readonly Buffer[] {
  const fields = fieldsOf(ask, 0, nodeModel, engine, node, usualShare);
  const rest = Object.fromEntries(Object.entries(fields.rest).filter(([name]) => !notCounted.has(name)));
  if (ask.prepared !== undefined) return largeBody(ask.prepared, { ...fields, rest });
  return [Buffer.from(JSON.stringify({ model: fields.model, messages: fields.messages, ...rest }))];
}

export function largeNodeRequest(
  ask: Ask & { prepared: PreparedTurns },
  account: AccountId,
  nodeModel: string,
  engine: EngineKind,
  node: KnowingNode = {},
  share: EngineShare = usualShare,
): LargeNodeRequest {
  const fields = fieldsOf(ask, account, nodeModel, engine, node, share);
  return { body: largeBody(ask.prepared, fields), expected: fields.expected };
}

function largeBody(
  { messages: prepared, systemEnd }: PreparedTurns,
  { model, messages, rest, addition }: RequestFields,
): readonly Buffer[] {
  const parts: Buffer[] = [Buffer.from(`{"model":${JSON.stringify(model)},"messages":[`)];
  let follows = false;
  const addMessages = (...written: readonly Buffer[]): void => {
    if (follows) parts.push(comma);
    parts.push(...written);
    follows = true;
  };
  const hasSystem = systemEnd >= 0;
  if (addition !== "" && !hasSystem) addMessages(Buffer.from(JSON.stringify({ role: "system", content: addition })));
  if (addition !== "" && hasSystem) {
    const inserted = JSON.stringify(`\n\n${addition}`).slice(1, -1);
    addMessages(prepared.subarray(0, systemEnd), Buffer.from(inserted), prepared.subarray(systemEnd));
  } else if (prepared.length > 0) addMessages(prepared);
  for (const message of messages) addMessages(Buffer.from(JSON.stringify(message)));
  const restJson = JSON.stringify(rest);
  parts.push(Buffer.from(restJson === "{}" ? "]}" : `],${restJson.slice(1)}`));
  return parts;
}

const comma = Buffer.from(",");
function fieldsOf(
  ask: Ask,
  account: AccountId,
  nodeModel: string,
  engine: EngineKind,
  { depth: depths = {}, fields }: KnowingNode,
  share: EngineShare,
): RequestFields {
  const traits = engineTraits[engine];
  const enforced = enforcementOf(ask, engine, traits);
  const { textNamesCall, sendsTools, unthinking, constrains, format, addition } = enforced;
  const body = streamFields(traits);
  if (budgetLimitsAnswer(ask)) body["max_tokens"] = ask.outputTokensMax;
  const [sentStops, stops] = stopsFor(ask, traits, textNamesCall);
  if (sentStops.length > 0) body["stop"] = sentStops;
  addSampling(body, ask.sampling, traits, sendsTools && engine === "llama.cpp");
  if (sendsTools) addTools(body, ask, engine, enforced);
  if (constrains) body["response_format"] = responseFormat(format!, enforced.schema, engine, traits);
  // First-party tiers choose their own depth (spec, Behaviours across endpoints).
  if (ask.model.readsDepth && ask.effort !== null)
    Object.assign(body, depths[ask.effort] ?? traits.depth(ask.effort, nodeModel));
  if (traits.prefill !== undefined && continues(ask)) Object.assign(body, traits.prefill);
  addEngineFields(body, ask, engine, fields);
  if (unthinking) Object.assign(body, depths.off ?? thinking(false, body["chat_template_kwargs"]));
  Object.assign(body, shareFields(traits.prefixCache, share, account));
  const messages = messagesOf(ask.turns, ask.prepared === undefined ? addition : "");
  if (engine === "llama-cpp-python") for (const message of messages) message["content"] ??= ""; // null is a 400 there
  return { model: nodeModel, messages, rest: body, addition, expected: { textNamesCall, stops } };
}

/** What of a request's format and tools the engine enforces. The prompt describes the rest. */
type Enforcement = Readonly<{
  tools: readonly Tool[];
  forced: Tool | null;
  mustCall: boolean;
  textNamesCall: boolean;
  sendsTools: boolean;
  /** Thinking must be off. */
  unthinking: boolean;
  format: Format | null;
  /** The engine holds the answer to the format, whose schema it takes as `schema`. */
  constrains: boolean;
  schema: Record<string, unknown>;
  /** What the prompt describes. */
  addition: string;
}>;

function enforcementOf(ask: Ask, engine: EngineKind, traits: EngineTraits): Enforcement {
  const forced = forcedTool(ask);
  const tools = sentTools(ask);
  const mustCall = forced !== null || (ask.toolChoice === "required" && tools.length > 0);
  // On the second attempt, or where the node refuses the schema, the engine's own way with tools applies.
  const { inWords = nothing } = ask;
  const textNamesCall = mustCall && traits.forcedTool === "schema" && inWords.call !== true && inWords.schema !== true;
  const sendsTools = tools.length > 0 && !textNamesCall;
  const format: Format | null = textNamesCall
    ? { kind: "json_schema", name: "call", schema: namedCallSchema(tools, engine), strict: null }
    : ask.format;
  // Never a schema and tools in one request: the schema would win, or the engine would refuse.
  const constrains = format !== null && traits.formats && !sendsTools && inWords.schema !== true;
  const held = constrains && format.kind === "json_schema" ? nodeSchema(format.schema, engine) : null;
  const isFree = !constrains || engine === "unknown" || held?.isWhole === false;
  const formatWords = format !== null && isFree && !textNamesCall ? formatPrompt(format) : "";
  const callWords = textNamesCall ? namedCallPrompt(tools) : inWords.call === true ? callPrompt(tools) : "";
  return {
    tools,
    forced,
    mustCall,
    textNamesCall,
    sendsTools,
    unthinking: mustCall && traits.forcedTool === "required-unthinking",
    format,
    constrains,
    schema: held?.schema ?? {},
    addition: formatWords + (formatWords === "" || callWords === "" ? "" : "\n\n") + callWords,
  };
}

function addTools(
  body: Record<string, unknown>,
  { inWords = nothing, toolChoice, parallelToolCalls }: Ask,
  engine: EngineKind,
  { tools, forced, mustCall, unthinking }: Enforcement,
): void {
  const traits = engineTraits[engine];
  // These engines allow a required call any arguments, such as `160` or too few, unless its tool is strict.
  const isStrict = mustCall && (engine === "sglang" || engine === "vllm");
  body["tools"] = tools.map((tool) => nodeTool(tool, engine, inWords.schema === true, isStrict));
  if (forced !== null)
    body["tool_choice"] =
      traits.forcedTool === "native" ? { type: "function", function: { name: forced.name } } : "required";
  else if (toolChoice === "required") body["tool_choice"] = "required";
  // llama-server repeats a call that it is held to.
  const parallel = parallelToolCalls ?? (unthinking && forced !== null ? false : null);
  if (parallel !== null && traits.parallelToolCalls) body["parallel_tool_calls"] = parallel;
}

const nothing: NonNullable<Ask["inWords"]> = {};

/** Whether the last message is the beginning of the answer, unless the client says otherwise. */
function continues({ turns, prepared, engineFields = [] }: Ask): boolean {
  const last = turns.at(-1);
  if (engineFields.some(({ name }) => name === "continue_final_message" || name === "add_generation_prompt"))
    return false;
  if (last === undefined) return prepared?.endsOpen === true;
  return isBeginning(last);
}
const noStops = [[], []] as const;

/** Stop sequences for the node, and for the gateway: too many for engines, or handled wrongly by this one. */
export function stopsFor(
  { endpoint, stop }: Ask,
  { stops, saysStop }: EngineTraits,
  textIsCall: boolean,
): readonly [sent: readonly string[], ours: readonly string[]] {
  if (stop.length === 0) return noStops;
  const fits = stop.reduce((length, sequence) => length + sequence.length, 0) <= furtherStopsMaxLength;
  const isNamed = endpoint === "/v1/messages" && !saysStop;
  if ((isNamed || !stops) && !textIsCall && fits) return [[], stop];
  return [stop.slice(0, stopSequencesMax), textIsCall ? [] : stop.slice(stopSequencesMax)];
}

/** `inWords`: the node refused a schema, so it gets none and the prompt describes it. */
function nodeTool(tool: Tool, engine: EngineKind, inWords: boolean, isStrict: boolean): Record<string, unknown> {
  const described: Record<string, unknown> = { name: tool.name };
  const words = inWords ? `JSON Schema of the arguments: ${JSON.stringify(tool.parameters)}` : null;
  const description = [tool.description, words].filter((text) => text !== null).join("\n\n");
  if (tool.description !== null || inWords) described["description"] = description;
  described["parameters"] = inWords ? anyArguments : toolParameters(tool, engine);
  if ((isStrict || tool.strict === true) && !inWords) described["strict"] = true;
  return { type: "function", function: described };
}

const anyArguments = { type: "object", properties: {}, additionalProperties: true };

const commonSampling: readonly (keyof Sampling)[] = [
  "temperature",
  "top_p",
  "presence_penalty",
  "frequency_penalty",
  "seed",
  "logit_bias",
  "logprobs",
  "top_logprobs",
];

export function addSampling(
  body: Record<string, unknown>,
  sampling: Sampling,
  traits: EngineTraits,
  dropLogprobs: boolean,
): void {
  for (const field of commonSampling) {
    // llama-server refuses log probabilities beside tools in a stream.
    if (dropLogprobs && (field === "logprobs" || field === "top_logprobs")) continue;
    if (sampling[field] !== undefined) body[field] = sampling[field];
  }
  for (const field in traits.sampling) {
    const given = sampling[field as keyof Sampling];
    if (given !== undefined) body[traits.sampling[field as keyof Sampling]!] = given;
  }
}

/** `schema` is the format's schema as the engine takes it. */
function responseFormat(
  format: Format,
  schema: Record<string, unknown>,
  engine: EngineKind,
  traits: EngineTraits,
): Record<string, unknown> {
  const anyObject = { type: "object" };
  if (format.kind === "json_object") {
    if (engine === "tgi") return { type: "json_object", value: anyObject };
    if (traits.jsonObject) return { type: "json_object" };
    return { type: "json_schema", json_schema: { name: "answer", schema: anyObject } };
  }
  if (engine === "tgi") return { type: "json_schema", value: { name: format.name, schema } };
  if (engine === "llama-cpp-python") return { type: "json_object", schema };
  const strict = format.strict === null ? {} : { strict: format.strict };
  return { type: "json_schema", json_schema: { name: format.name, schema, ...strict } };
}
