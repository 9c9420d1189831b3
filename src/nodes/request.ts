// Ask -> the JSON body that one engine takes. Only fields named here are ever sent: engines obey dangerous ones (grammars,
// slots, plugins), and some refuse every field that they do not know.
import { parseNodeJson, record } from "./json.ts";
import { furtherStopsMaxLength, stopSequencesMax } from "../core/limits.ts";
import { budgetLimitsAnswer } from "../core/answer-budget.ts";
import { forcedTool, sentTools } from "../core/sent-tools.ts";
import type { EngineKind } from "./engine-kind.ts";
import { addEngineFields, type KnowingNode, type KnownSampling } from "./engine-fields.ts";
import { callPrompt, formatPrompt, namedCallPrompt } from "./in-words.ts";
import { namedCallSchema } from "./named-call.ts";
import { nodeSchema, toolParameters } from "./node-schema.ts";
import { prefixCacheFields, type PrefixCacheRule, type PrefixCacheTrait, usualPrefixCache } from "./prefix-cache.ts";
import type { AccountId, Ask, Effort, Format, PreparedTurns, Sampling, Tool, Turn } from "../core/types.ts";

/** What an engine takes beyond the common subset. */
export type EngineTraits = Readonly<{
  /** stream_options.continuous_usage_stats: usage with every event, for answers that are cut. */
  runningUsage: boolean;
  prefixCache: PrefixCacheTrait;
  /**
   * How to force one tool. `native`: the object form. `required`: only that tool, and tool_choice "required".
   * `required-unthinking`: the same with thinking off, because llama-server otherwise writes text until the budget
   * ends. `schema`: the engine ignores tool_choice, so the prompt describes the call and a schema holds the answer to
   * its form; the text becomes the call (see named-call.ts). Models that are held to a tool's arguments alone ramble.
   */
  forcedTool: "native" | "required" | "required-unthinking" | "schema";
  /** It can hold answers to a schema; otherwise the prompt describes the format. */
  formats: boolean;
  jsonObject: boolean;
  /** Whether it ends an answer before a stop sequence. */
  stops: boolean;
  /** It reports which stop sequence ended an answer. */
  saysStop: boolean;
  /** Which fields of a plain completion it supports beside the prompt. Several engines silently ignore them. */
  plain: Readonly<{ suffix: boolean; echo: boolean; echoAlone?: true }>;
  sampling: KnownSampling;
  parallelToolCalls: boolean;
  /**
   * The fields that make it continue a final assistant message instead of beginning a new one; absent: it does so by
   * default, or cannot.
   */
  prefill?: Readonly<Record<string, unknown>>;
  depth: (effort: Effort, nodeModel: string) => Record<string, unknown>;
}>;

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
const fullSampling = { top_k: "top_k", min_p: "min_p", repetition_penalty: "repetition_penalty" } as const;

/** Both switches: model families read one or the other, and these engines ignore what a template does not name. */
const thinking = (on: boolean, settings: unknown = {}) => ({
  chat_template_kwargs: { ...(settings as object), enable_thinking: on, thinking: on },
});
const effortWords = { minimal: "low", low: "low", medium: "medium", high: "high", max: "high" } as const;
const depthByTemplate = (effort: Effort): Record<string, unknown> =>
  effort === "off" ? thinking(false) : { ...thinking(true), reasoning_effort: effortWords[effort] };
const noDepth = (): Record<string, unknown> => ({});

const plain: EngineTraits = {
  runningUsage: false,
  prefixCache: "shared",
  forcedTool: "required",
  formats: true,
  jsonObject: true,
  stops: true,
  saysStop: false,
  plain: { suffix: false, echo: false },
  sampling: {},
  parallelToolCalls: true,
  depth: noDepth,
};

export const engineTraits: Readonly<Record<EngineKind, EngineTraits>> = {
  vllm: {
    ...plain,
    runningUsage: true,
    prefixCache: "salt",
    forcedTool: "native",
    saysStop: true,
    prefill: { continue_final_message: true, add_generation_prompt: false },
    plain: { suffix: true, echo: true, echoAlone: true }, // it says so where the model cannot
    sampling: fullSampling,
    depth: depthByTemplate,
  },
  sglang: {
    ...plain,
    runningUsage: true,
    prefixCache: "salt",
    forcedTool: "native",
    saysStop: true,
    prefill: { continue_final_message: true },
    plain: { suffix: false, echo: true, echoAlone: true }, // a suffix works only where it was started with a completion template
    sampling: fullSampling,
    depth: depthByTemplate,
  },
  // Refuses unknown fields. Some versions also refuse unused template settings.
  "tensorrt-llm": {
    ...plain,
    prefixCache: "salt-if-asked",
    runningUsage: true,
    forcedTool: "native",
    sampling: fullSampling,
    parallelToolCalls: false,
    depth: (effort) => (effort === "off" ? { chat_template_kwargs: { enable_thinking: false } } : {}),
  },
  "llama.cpp": {
    ...plain,
    prefixCache: "unused-if-asked",
    forcedTool: "required-unthinking",
    sampling: { top_k: "top_k", min_p: "min_p", repetition_penalty: "repeat_penalty" },
    depth: depthByTemplate,
  },
  // Answers 400 to an effort for a model that cannot think. Thinks by default where it can. Only gpt-oss has levels.
  ollama: {
    ...plain,
    forcedTool: "schema",
    plain: { suffix: true, echo: false },
    depth: (effort, nodeModel) => {
      if (effort === "off") return { reasoning_effort: "none" };
      return nodeModel.includes("gpt-oss") ? { reasoning_effort: effortWords[effort] } : {};
    },
  },
  "lm-studio": { ...plain, jsonObject: false, sampling: { top_k: "top_k", repetition_penalty: "repeat_penalty" } },
  tgi: { ...plain, forcedTool: "native" },
  // Ignores efforts, formats and forced tools. Writes a stop sequence before it ends there, even inside thoughts.
  transformers: {
    ...plain,
    formats: false,
    stops: false,
    parallelToolCalls: false,
    depth: (effort) =>
      effort === "off"
        ? thinking(false)
        : { chat_template_kwargs: { ...thinking(true).chat_template_kwargs, reasoning_effort: effortWords[effort] } },
  },
  // Forces no tools, reads no calls, and refuses formats other than its own.
  "llama-cpp-python": {
    ...plain,
    forcedTool: "schema",
    plain: { suffix: true, echo: true },
    sampling: { top_k: "top_k", min_p: "min_p", repetition_penalty: "repeat_penalty" },
    parallelToolCalls: false,
  },
  // In front of SGLang or vLLM: what both take, as far as it passes it on. 0.3.2 drops the salt of prompt caches.
  "sglang-router": {
    ...plain,
    plain: { suffix: true, echo: true, echoAlone: true },
    sampling: fullSampling,
    depth: depthByTemplate,
  },
  demo: { ...plain, plain: { suffix: true, echo: false } },
  // OpenAI's own form, which a router may pass on.
  unknown: { ...plain, prefixCache: "salt-if-asked", plain: { suffix: true, echo: true, echoAlone: true } },
};

/** Whether the engine can keep accounts apart in its prefix cache. */
export const keepsApart = (engine: EngineKind): boolean => engineTraits[engine].prefixCache !== "shared";

/** What the reader must know about the answer. */
export type Expected = Readonly<{
  /** The answer's text will be a call that names its tool (see `schema` above). */
  textNamesCall: boolean;
  /** Stop sequences that the node does not get. */
  stops: readonly string[];
}>;

/** `body` is JSON text. */
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
  prefixCache: PrefixCacheRule = usualPrefixCache,
): NodeRequest {
  const { model, messages, rest, expected } = fieldsOf(ask, account, nodeModel, engine, node, prefixCache);
  return { body: JSON.stringify({ model, messages, ...rest }), expected };
}

/** Fields of a request that are not part of its prompt: SGLang's counter rejects a request for a stream. */
const notCounted = new Set(["stream", "stream_options", "max_tokens"]);

/**
 * The body that has the node count the prompt. Account 0 stands for all, because the account changes only the cache.
 */
export function countedBody(
  ask: Ask,
  nodeModel: string,
  engine: EngineKind,
  node: KnowingNode = {},
): readonly Buffer[] {
  const fields = fieldsOf(ask, 0, nodeModel, engine, node, usualPrefixCache);
  const rest = Object.fromEntries(Object.entries(fields.rest).filter(([name]) => !notCounted.has(name)));
  if (ask.prepared !== undefined) return largeBody(ask.prepared, { ...fields, rest });
  return [Buffer.from(JSON.stringify({ model: fields.model, messages: fields.messages, ...rest }))];
}

/** The same for an Ask with prepared turns. */
export function largeNodeRequest(
  ask: Ask & { prepared: PreparedTurns },
  account: AccountId,
  nodeModel: string,
  engine: EngineKind,
  node: KnowingNode = {},
  prefixCache: PrefixCacheRule = usualPrefixCache,
): LargeNodeRequest {
  const fields = fieldsOf(ask, account, nodeModel, engine, node, prefixCache);
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

/** How prepared turns are written; see there. */
export type WrittenMessages = Readonly<{ messages: Uint8Array; systemEnd: number; endsOpen: boolean }>;

/**
 * Prepared turns: their messages in UTF-8, separated by commas (prompts each on its own line), and where the system
 * message's text ends, or -1.
 */
export function writtenTurns(turns: readonly Turn[]): WrittenMessages {
  if (turns[0]?.role === "prompt") {
    const prompts = turns.map((turn) => (turn.role === "prompt" ? promptJson(turn) : ""));
    return { messages: encoder.encode(prompts.join("\n")), systemEnd: -1, endsOpen: false };
  }
  const messages = messagesOf(turns, "");
  const first = messages[0];
  // {"role":"system","content":"..."}: the text ends before its quote and the brace.
  const systemEnd = first?.["role"] === "system" ? Buffer.byteLength(JSON.stringify(first)) - 2 : -1;
  const endsOpen = isBeginning(turns.at(-1));
  return { messages: encoder.encode(JSON.stringify(messages).slice(1, -1)), systemEnd, endsOpen };
}

/** Its arrays have their own buffers, which can move to another thread. */
const encoder = new TextEncoder();

/** As written into a node's request. */
export const promptJson = ({ content, tokens }: Extract<Turn, { role: "prompt" }>): string =>
  JSON.stringify(tokens ?? content);

function fieldsOf(
  ask: Ask,
  account: AccountId,
  nodeModel: string,
  engine: EngineKind,
  { depth: depths = {}, fields }: KnowingNode,
  prefixCache: PrefixCacheRule,
): RequestFields {
  const traits = engineTraits[engine];
  const forced = forcedTool(ask);
  const tools = sentTools(ask);
  const mustCall = forced !== null || (ask.toolChoice === "required" && tools.length > 0);
  // On the second attempt, or where the node refuses the schema, the engine's own way with tools applies.
  const { inWords = nothing } = ask;
  const textNamesCall = mustCall && traits.forcedTool === "schema" && inWords.call !== true && inWords.schema !== true;
  const sendsTools = tools.length > 0 && !textNamesCall;
  const unthinking = mustCall && traits.forcedTool === "required-unthinking";
  const format: Format | null = textNamesCall
    ? { kind: "json_schema", name: "call", schema: namedCallSchema(tools, engine), strict: null }
    : ask.format;

  // Never a schema and tools in one request: the schema would win, or the engine would refuse.
  const constrains = format !== null && traits.formats && !sendsTools && inWords.schema !== true;
  const held = constrains && format.kind === "json_schema" ? nodeSchema(format.schema, engine) : null;
  const isFree = !constrains || engine === "unknown" || held?.isWhole === false;
  const formatWords = format !== null && isFree && !textNamesCall ? formatPrompt(format) : "";
  const callWords = textNamesCall ? namedCallPrompt(tools) : inWords.call === true ? callPrompt(tools) : "";
  const addition = formatWords + (formatWords === "" || callWords === "" ? "" : "\n\n") + callWords;
  const body = streamFields(traits);
  if (budgetLimitsAnswer(ask)) body["max_tokens"] = ask.outputTokensMax;
  const [sentStops, stops] = stopsFor(ask, traits, textNamesCall);
  if (sentStops.length > 0) body["stop"] = sentStops;
  addSampling(body, ask.sampling, traits, sendsTools && engine === "llama.cpp");
  if (sendsTools) {
    // These engines allow a required call any arguments, such as `160` or too few, unless its tool is strict.
    const isStrict = mustCall && (engine === "sglang" || engine === "vllm");
    body["tools"] = tools.map((tool) => nodeTool(tool, engine, inWords.schema === true, isStrict));
    if (forced !== null)
      body["tool_choice"] =
        traits.forcedTool === "native" ? { type: "function", function: { name: forced.name } } : "required";
    else if (ask.toolChoice === "required") body["tool_choice"] = "required";
    // llama-server repeats a call that it is held to.
    const parallel = ask.parallelToolCalls ?? (unthinking && forced !== null ? false : null);
    if (parallel !== null && traits.parallelToolCalls) body["parallel_tool_calls"] = parallel;
  }
  if (constrains) body["response_format"] = responseFormat(format, held?.schema ?? {}, engine, traits);
  // First-party tiers choose their own depth (spec, Behaviours across endpoints).
  if (ask.model.readsDepth && ask.effort !== null)
    Object.assign(body, depths[ask.effort] ?? traits.depth(ask.effort, nodeModel));
  if (traits.prefill !== undefined && continues(ask)) Object.assign(body, traits.prefill);
  addEngineFields(body, ask, engine, fields);
  if (unthinking) Object.assign(body, depths.off ?? thinking(false, body["chat_template_kwargs"]));
  Object.assign(body, prefixCacheFields(traits.prefixCache, prefixCache, account));
  const messages = messagesOf(ask.turns, ask.prepared === undefined ? addition : "");
  if (engine === "llama-cpp-python") for (const message of messages) message["content"] ??= ""; // null is a 400 there
  return { model: nodeModel, messages, rest: body, addition, expected: { textNamesCall, stops } };
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

/** Whether the last turn is the beginning of the answer. */
export const isBeginning = (turn: Turn | undefined): turn is Extract<Turn, { role: "assistant" }> =>
  turn?.role === "assistant" && turn.calls.length === 0 && (turn.content ?? "") !== "";

/** Answers are always requested as a stream. */
export const streamFields = ({ runningUsage }: EngineTraits): Record<string, unknown> => ({
  stream: true,
  stream_options: runningUsage ? { include_usage: true, continuous_usage_stats: true } : { include_usage: true },
});

const noStops = [[], []] as const;

/**
 * The stop sequences that the node gets, and those that the gateway looks for itself: the ones beyond the number that
 * every engine takes, and all of them where the engine does not stop correctly, or does not report which one it was to
 * a client that wants to know.
 */
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

/** `addition` follows the system message, or is one. */
function messagesOf(turns: readonly Turn[], addition: string): Record<string, unknown>[] {
  const messages: Record<string, unknown>[] = [];
  const system: string[] = [];
  let index = 0;
  for (; turns[index]?.role === "system"; index++) {
    const turn = turns[index] as Extract<Turn, { role: "system" }>;
    if (turn.content !== "") system.push(turn.content);
  }
  if (addition !== "") system.push(addition);
  // One system message, and first: many chat templates refuse anything else.
  if (system.length > 0) messages.push({ role: "system", content: system.join("\n\n") });
  for (; index < turns.length; index++) {
    const turn = turns[index]!;
    if (turn.role === "user") messages.push({ role: "user", content: contentOf(turn.content) });
    else messages.push(...messagesOfTurn(turn));
  }
  return messages;
}

function messagesOfTurn(turn: Exclude<Turn, { role: "user" }>): Record<string, unknown>[] {
  switch (turn.role) {
    case "system":
      // Templates also refuse it in the middle of a conversation. The mark lets the model tell it from the user.
      return [{ role: "user", content: `<system>\n${turn.content}\n</system>` }];
    case "prompt":
      return []; // has no place in a conversation
    case "assistant": {
      const message: Record<string, unknown> = {
        role: "assistant",
        content: turn.content ?? (turn.calls.length > 0 ? null : ""),
      };
      if (turn.reasoning !== null && turn.reasoning !== "") message["reasoning_content"] = turn.reasoning;
      if (turn.calls.length > 0)
        message["tool_calls"] = turn.calls.map(({ id, name, arguments: json }) => ({
          id,
          type: "function",
          function: { name, arguments: validArguments(json) },
        }));
      return [message];
    }
    case "tool": {
      const result = { role: "tool", tool_call_id: turn.callId };
      if (typeof turn.content === "string") return [{ ...result, content: turn.content }];
      const texts = turn.content.filter((part) => part.kind === "text").map(({ text }) => text);
      const images = turn.content.filter((part) => part.kind === "image");
      const message = { ...result, content: texts.join("\n") };
      // Engines take only text in a tool's result: its images follow as the user's.
      return images.length === 0 ? [message] : [message, { role: "user", content: contentOf(images) }];
    }
  }
}

/**
 * A string where there is only text, because not every template joins parts. Images go out only as data: URLs, so nodes
 * fetch nothing.
 */
function contentOf(content: Extract<Turn, { role: "user" }>["content"]): string | Record<string, unknown>[] {
  if (typeof content === "string") return content;
  const parts: Record<string, unknown>[] = [];
  const texts: string[] = [];
  let images = 0;
  for (const part of content) {
    if (part.kind === "text") {
      texts.push(part.text);
      parts.push({ type: "text", text: part.text });
    } else if (part.kind === "image" && part.url.startsWith("data:")) {
      images++;
      const detail = part.detail === null ? {} : { detail: part.detail };
      parts.push({ type: "image_url", image_url: { url: part.url, ...detail } });
    }
  }
  return images === 0 ? texts.join("\n") : parts;
}

/** Arguments of an earlier call: llama-server answers 500 to text that is no JSON object. */
function validArguments(json: string): string {
  const value = record(parseNodeJson(json));
  return value === null ? JSON.stringify({ arguments: json }) : json;
}
