// What the chat-completions dialect reads: a request body -> ChatAsk.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { isRefusal } from "../../core/refusals.ts";
import {
  type Ask,
  type Call,
  type Format,
  type Model,
  type Part,
  type Refusal,
  type Sampling,
  searchFunctionName,
  type Tool,
  type ToolChoice,
  type Turn,
  type WebSearch,
} from "../../core/types.ts";
import type { DialectRequest } from "../dialect.ts";
import { answersField, readAnswers } from "../request/answers.ts";
import { checkedFormat } from "../request/answer-format.ts";
import { engineFieldsOf, noOthers, oneFormat, readEngineFields } from "../request/engine-fields.ts";
import {
  BodySchema,
  flag,
  malformed,
  oneOf,
  optional,
  record,
  text,
  textOrNothing,
  tooDeep,
  whole,
  wholeBetween,
} from "../request/field.ts";
import { readFile, readAudio, readImage, readStored } from "../request/media-part.ts";
import { namedModel } from "../request/named-model.ts";
import { hostedToolNotRun, leftOut } from "../request/not-served.ts";
import { anySearch, readSearchTool, searchOf } from "../request/search-request.ts";
import { samplingFields, samplingNames } from "../request/sampling.ts";
import { priorityAsked, serviceTier } from "../request/service-tier.ts";
import { budgetOf, efforts, stopSequences } from "../request/settings.ts";
import { systemText } from "../request/system-text.ts";

export const endpoint = "/v1/chat/completions";
export const coderBilling = "calls";

// ---------------------------------------------------------------- Body schema
// Other fields are accepted and ignored, because clients send fields that other servers know.

const Message = Type.Object(
  {
    role: oneOf("system", "developer", "user", "assistant", "tool", "function"),
    content: Type.Optional(Type.Unknown()),
  },
  { description: "an object with role and content" },
);

const Body = Type.Object({
  model: text,
  messages: Type.Array(Message, { minItems: 1, description: "a non-empty array of messages" }),
  max_tokens: optional(whole),
  max_completion_tokens: optional(whole),
  stream: optional(flag),
  stream_options: optional(
    Type.Object({ include_usage: optional(flag) }, { description: "an object of options, such as include_usage" }),
  ),
  tools: optional(Type.Array(record, { description: "an array of tools" })),
  tool_choice: optional(Type.Union([Type.String(), record], { description: "a string or an object" })),
  functions: optional(Type.Array(record, { maxItems: 0, description: "left out: functions are given in tools" })),
  function_call: optional(
    Type.Union([Type.Literal("none"), Type.Literal("auto")], { description: "left out: tool_choice names a tool" }),
  ),
  parallel_tool_calls: optional(flag),
  service_tier: serviceTier,
  response_format: optional(record),
  reasoning_effort: optional(oneOf(...Object.keys(efforts))),
  web_search: optional(flag),
  web_search_options: optional(record),
  stop: optional(
    Type.Union([Type.String(), Type.Array(Type.String())], { description: "a string or an array of strings" }),
  ),
  n: answersField,
  ...samplingFields,
  logprobs: optional(flag),
  top_logprobs: optional(wholeBetween(0, 20)),
  modalities: optional(Type.Array(Type.Literal("text"), { description: '["text"]: answers are text' })),
  audio: leftOut("answers are text"),
  moderation: leftOut("nothing is moderated here"),
});
type Body = Static<typeof Body>;
export const chatCompletionsBody: TSchema = Body;

const bodySchema = new BodySchema(Body);
const forwarded = [...samplingNames, "logprobs", "top_logprobs"] as const satisfies readonly (keyof Sampling &
  keyof Body)[];

// ---------------------------------------------------------------- Request: body -> Ask

/** `usageApart`: the client wants the stream's usage in a separate chunk without choices. */
export type ChatAsk = Ask & Readonly<{ usageApart: boolean }>;

export function read({ body: value, bodyBytes, catalog }: DialectRequest): ChatAsk | Refusal {
  const wrong = bodySchema.refusal(value);
  if (wrong !== null) return wrong;
  const request = value as Body;
  const model = namedModel(catalog, request.model);
  if (isRefusal(model)) return model;
  const answers = readAnswers(model, 1, request.n ?? 1, "n");
  if (isRefusal(answers)) return answers;

  const turns = readTurns(request.messages, model);
  if (isRefusal(turns)) return turns;
  const tools = readTools(request.tools ?? []);
  if (isRefusal(tools)) return tools;
  const hostedSearch = switchedSearch(request) ?? tools.webSearch;
  const choice = readToolChoice(request.tool_choice ?? "auto", tools.functions, hostedSearch !== null);
  if (isRefusal(choice)) return choice;
  const format = readFormat(request.response_format ?? null, model);
  if (isRefusal(format)) return format;
  const beside = readEngineFields(request, model, noOthers, true);
  if (isRefusal(beside)) return beside;
  const oneOfThem = oneFormat(format, beside);
  if (isRefusal(oneOfThem)) return oneOfThem;
  const stop = stopSequences(request.stop, model, "stop");
  if (isRefusal(stop)) return stop;
  if (request.top_logprobs != null && request.logprobs !== true) return malformed("top_logprobs needs logprobs: true");

  const sampling: Record<string, unknown> = {};
  for (const name of forwarded) if (request[name] != null) sampling[name] = request[name];

  return {
    endpoint,
    coderBilling,
    model,
    turns,
    ...(answers === undefined ? {} : { answers }),
    tools: choice.tools,
    toolChoice: choice.toolChoice,
    parallelToolCalls: request.parallel_tool_calls ?? null,
    stop,
    ...budgetOf(request.max_tokens ?? request.max_completion_tokens, model, coderBilling),
    effort: request.reasoning_effort == null ? beside.effort : efforts[request.reasoning_effort]!,
    format: oneOfThem,
    webSearch: searchOf(hostedSearch, choice.tools, choice.forcesSearch),
    stream: request.stream === true,
    sampling: sampling as Sampling,
    ...engineFieldsOf(beside),
    ...priorityAsked(request.service_tier),
    bodyBytes,
    usageApart: request.stream_options?.include_usage === true,
  };
}

/** `web_search: true`, or the switch of other servers, which has more options. */
function switchedSearch({ web_search, web_search_options }: Body): WebSearch | null {
  if (web_search_options != null) return readSearchTool(web_search_options);
  return web_search === true ? anySearch : null;
}

type Message = Readonly<Record<string, unknown> & { role: string }>;

function readTurns(messages: readonly Message[], model: Model): readonly Turn[] | Refusal {
  const turns: Turn[] = [];
  for (const [index, message] of messages.entries()) {
    const turn = readTurn(message, `messages[${index}]`, model);
    if (isRefusal(turn)) return turn;
    turns.push(turn);
  }
  return turns;
}

function readTurn(message: Message, at: string, model: Model): Turn | Refusal {
  const parts = readParts(message.content ?? null, `${at}.content`, model);
  if (isRefusal(parts)) return parts;
  switch (message.role) {
    case "user":
      if (message.content == null) return malformed(`${at}.content is required`);
      return { role: "user", content: parts };
    case "assistant": {
      const calls = readCalls(message, at);
      if (isRefusal(calls)) return calls;
      const reasoning = message.reasoning_content ?? message.reasoning ?? null;
      return {
        role: "assistant",
        content: message.content == null ? textOrNothing(message.refusal) || null : plain(parts),
        reasoning: typeof reasoning === "string" ? reasoning : null,
        calls,
      };
    }
    case "tool":
    case "function": {
      const callId = message.role === "tool" ? message.tool_call_id : message.name;
      const field = message.role === "tool" ? "tool_call_id" : "name";
      if (typeof callId !== "string") return malformed(`${at}.${field} must be a string`);
      return { role: "tool", callId, content: parts };
    }
    default: // system and developer, anywhere in the conversation
      return { role: "system", content: systemText(plain(parts)) };
  }
}

type Content = string | readonly Part[];

function readParts(content: unknown, at: string, model: Model): Content | Refusal {
  if (content === null) return "";
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return malformed(`${at} must be a string or an array of parts`);
  const parts: Part[] = [];
  for (const [index, part] of content.entries() as IterableIterator<[number, Record<string, any> | null]>) {
    const name = `${at}[${index}]`;
    switch (part?.type) {
      case "text":
        if (typeof part.text !== "string") return malformed(`${name}.text must be a string`);
        parts.push({ kind: "text", text: part.text });
        break;
      case "refusal":
        if (typeof part.refusal !== "string") return malformed(`${name}.refusal must be a string`);
        parts.push({ kind: "text", text: part.refusal });
        break;
      case "image_url": {
        const image = part.image_url;
        const url = typeof image === "string" ? image : image?.url;
        if (typeof url !== "string") return malformed(`${name}.image_url.url must be a string`);
        const detail = typeof image?.detail === "string" ? image.detail : null;
        const read = readImage(url, detail, name, model);
        if (isRefusal(read)) return read;
        if (read !== null) parts.push(read);
        break;
      }
      case "file": {
        const file = part.file;
        const filename = typeof file?.filename === "string" ? file.filename : null;
        const isStored = typeof file?.file_data !== "string" && file?.file_id != null;
        if (!isStored && typeof file?.file_data !== "string") {
          return malformed(`${name}.file.file_data must be a string`);
        }
        const read = isStored
          ? readStored("file", file.file_id, filename, `${name}.file.file_id`, model)
          : readFile(file.file_data, filename, name);
        if (isRefusal(read)) return read;
        if (read !== null) parts.push(read);
        break;
      }
      case "input_audio": {
        const read = readAudio(part.input_audio, `${name}.input_audio`, model);
        if (isRefusal(read)) return read;
        parts.push(read);
        break;
      }
      default:
        return malformed(`${name}.type must be one of text, image_url, input_audio, file`);
    }
  }
  return parts;
}

const plain = (content: Content): string =>
  typeof content === "string" ? content : content.map((part) => (part.kind === "text" ? part.text : "")).join("");

function readCalls(message: Message, at: string): readonly Call[] | Refusal {
  const calls: Call[] = [];
  const legacy = message.function_call as Record<string, unknown> | null | undefined;
  if (legacy != null) {
    const name = textOrNothing(legacy.name);
    calls.push({ id: name, name, arguments: textOrNothing(legacy.arguments ?? "{}") });
  }
  const given = message.tool_calls ?? [];
  if (!Array.isArray(given)) return malformed(`${at}.tool_calls must be an array`);
  for (const [index, call] of given.entries() as IterableIterator<[number, Record<string, any> | null]>) {
    const name = `${at}.tool_calls[${index}]`;
    if (typeof call?.id !== "string") return malformed(`${name}.id must be a string`);
    if (typeof call.function?.name !== "string") return malformed(`${name}.function.name must be a string`);
    const given = call.function.arguments ?? "{}";
    calls.push({
      id: call.id,
      name: call.function.name,
      arguments: typeof given === "string" ? given : JSON.stringify(given),
    });
  }
  return calls;
}

/** A hosted web search switches ours on. */
function readTools(
  given: readonly Record<string, unknown>[],
): { functions: readonly Tool[]; webSearch: WebSearch | null } | Refusal {
  const functions: Tool[] = [];
  let webSearch: WebSearch | null = null;
  for (const [index, tool] of given.entries()) {
    const at = `tools[${index}]`;
    if (typeof tool.type === "string" && tool.type.startsWith("web_search")) webSearch = readSearchTool(tool);
    if (tool.type === "custom") return malformed(`${at}.type must be function: custom tools are not offered here`);
    const refusal = hostedToolNotRun(tool, at);
    if (refusal !== null) return refusal;
    if (tool.type !== "function") continue;
    const definition = tool.function as Record<string, unknown> | null | undefined;
    if (typeof definition?.name !== "string" || definition.name === "")
      return malformed(`${at}.function.name must be a non-empty string`);
    const parameters = definition.parameters ?? { type: "object", properties: {} };
    if (typeof parameters !== "object" || Array.isArray(parameters))
      return malformed(`${at}.function.parameters must be a JSON Schema object`);
    if (tooDeep(parameters)) return malformed(`${at}.function.parameters nests too deep`);
    functions.push({
      name: definition.name,
      description: typeof definition.description === "string" ? definition.description : null,
      parameters: parameters as Record<string, unknown>,
      strict: typeof definition.strict === "boolean" ? definition.strict : null,
    });
  }
  return { functions, webSearch };
}

type Choice = Readonly<{ tools: readonly Tool[]; toolChoice: ToolChoice; forcesSearch?: boolean }>;

/** `searches`: the built-in web search is also offered and may be forced. */
function readToolChoice(given: unknown, tools: readonly Tool[], searches: boolean): Choice | Refusal {
  if (given === "auto" || given === "none") return { tools, toolChoice: given };
  if (given === "required") {
    if (tools.length > 0) return { tools, toolChoice: "required" };
    return searches ? { tools, toolChoice: "auto", forcesSearch: true } : malformed("tool_choice required needs tools");
  }
  const choice = given as Record<string, any>;
  if (choice.type === "function") return readNamedTool(choice.function?.name, tools, searches);
  if (choice.type === "allowed_tools") {
    const names = choice.allowed_tools?.tools;
    if (!Array.isArray(names)) return malformed("tool_choice.allowed_tools.tools must be an array");
    const allowed = new Set(names.map((tool) => tool?.function?.name ?? tool?.name));
    return readToolChoice(
      choice.allowed_tools.mode ?? "auto",
      tools.filter((tool) => allowed.has(tool.name)),
      searches,
    );
  }
  return malformed('tool_choice must be "none", "auto", "required" or {"type":"function","function":{"name":...}}');
}

function readNamedTool(name: unknown, tools: readonly Tool[], searches: boolean): Choice | Refusal {
  const at = "tool_choice.function.name";
  if (typeof name !== "string") return malformed(`${at} must be a string`);
  if (tools.some((tool) => tool.name === name)) return { tools, toolChoice: { named: name } };
  if (searches && name === searchFunctionName) return { tools, toolChoice: "auto", forcesSearch: true };
  return malformed(`${at}: there is no tool named ${name} in tools`);
}

function readFormat(given: Record<string, any> | null, model: Model): Format | null | Refusal {
  const at = "response_format";
  if (given === null || given.type === "text") return null;
  if (given.type === "json_object") return checkedFormat({ at, kind: "json_object" }, model);
  if (given.type !== "json_schema") return malformed(`${at}.type must be one of text, json_object, json_schema`);
  const { schema, name, strict } = given.json_schema ?? {};
  return checkedFormat({ at, kind: "json_schema", schemaAt: `${at}.json_schema.schema`, schema, name, strict }, model);
}
