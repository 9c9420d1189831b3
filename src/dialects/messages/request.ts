// What the messages dialect reads: a request body -> MessagesAsk.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { isRefusal, refuse } from "../../core/refusals.ts";
import {
  type Ask,
  type Call,
  type Effort,
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
import { isRecord } from "../../core/is-record.ts";
import { serverToolName } from "../../core/server-tool-name.ts";
import type { DialectRequest } from "../dialect.ts";
import { checkedFormat } from "../request/answer-format.ts";
import { textCarriedIn } from "../request/carried-text.ts";
import { engineFieldsOf, oneFormat, readEngineFields } from "../request/engine-fields.ts";
import {
  BodySchema,
  flag,
  malformed,
  numberBetween,
  oneOf,
  optional,
  record,
  text,
  textOrNothing,
  tooDeep,
  whole,
} from "../request/field.ts";
import { readFile, readImage, readStored, refusesImages } from "../request/media-part.ts";
import { namedModel } from "../request/named-model.ts";
import { hostedToolNotRun, leftOut, nothingToCall } from "../request/not-served.ts";
import { anySearch, readSearchTool, searchOf } from "../request/search-request.ts";
import { budgetOf, effortOfBudget, efforts, stopSequences } from "../request/settings.ts";
import { systemText } from "../request/system-text.ts";
import { thinkingIn } from "./thinking-signature.ts";

export const endpoint = "/v1/messages";
export const coderBilling = "calls";

export type MessagesAsk = Ask &
  Readonly<{
    /** Only clients that ask for thinking get it; `omitted` is a block without text that carries it in its signature. */
    thinking: "hidden" | "shown" | "omitted";
    /** An estimate of the prompt's size until the node has counted it. */
    inputTokensEstimate: number;
  }>;

// ---------------------------------------------------------------- Body schema
// Other fields are accepted and ignored, because clients send every beta that they know.

const Content = Type.Union([Type.String(), Type.Array(Type.Object({ type: text }))], {
  description: "a string or an array of content blocks, each with its type",
});

const Message = Type.Object(
  { role: oneOf("user", "assistant", "system", "developer"), content: Content },
  { description: "an object with role and content" },
);

const Body = Type.Object({
  model: text,
  max_tokens: optional(whole),
  messages: Type.Array(Message, { minItems: 1, description: "a non-empty array of messages" }),
  system: optional(Content),
  tools: optional(Type.Array(record, { description: "an array of tools" })),
  tool_choice: optional(
    Type.Object(
      {
        type: oneOf("auto", "any", "tool", "none"),
        name: optional(text),
        disable_parallel_tool_use: optional(flag),
      },
      { description: "an object with type auto, any, tool or none" },
    ),
  ),
  thinking: optional(
    Type.Object(
      { type: text, budget_tokens: optional(whole), display: optional(text) },
      { description: "an object with type enabled, adaptive or disabled" },
    ),
  ),
  output_config: optional(
    Type.Object(
      { effort: optional(oneOf(...Object.keys(efforts))), format: optional(record) },
      { description: "an object with effort and format" },
    ),
  ),
  /** A beta of 2025 had here what is `output_config.format` now. */
  output_format: optional(record),
  stop_sequences: optional(Type.Array(Type.String(), { description: "an array of strings" })),
  stream: optional(flag),
  mcp_servers: optional(
    Type.Array(record, { maxItems: 0, description: "left out: servers are not connected to for a request" }),
  ),
  container: leftOut("code is not run here, and there are no skills"),
  compaction: leftOut("ask for a summary in messages"),
  /** A conversation that the server keeps (the SDK's tool runners ask for one since 1.11, Python 2.11). */
  thread: optional(record),
  web_search: optional(flag),
  // The dialect's own servers stop at 1; nodes accept 2, and the other dialects send it.
  temperature: optional(numberBetween(0, 2)),
  top_p: optional(numberBetween(0, 1)),
  top_k: optional(whole),
});
type Body = Static<typeof Body>;
export const messagesBody: TSchema = Body;

const bodySchema = new BodySchema(Body);
const ownFields = new Set(Object.keys(Body.properties));
const forwarded = ["temperature", "top_p", "top_k"] as const satisfies readonly (keyof Sampling & keyof Body)[];

// ---------------------------------------------------------------- Request: body -> Ask

export function read({ body: value, bodyBytes, catalog }: DialectRequest): MessagesAsk | Refusal {
  const wrong = bodySchema.refusal(value);
  if (wrong !== null) return wrong;
  const request = value as Body;
  const model = namedModel(catalog, request.model);
  if (isRefusal(model)) return model;
  if (request.thread != null) return refuse("threads_not_kept");

  const turns = readTurns(request.system ?? "", request.messages, model);
  if (isRefusal(turns)) return turns;
  const tools = readTools(request.tools ?? []);
  if (isRefusal(tools)) return tools;
  const search = tools.webSearch ?? (request.web_search === true ? anySearch : null);
  const choice = readToolChoice(request.tool_choice ?? null, tools);
  if (isRefusal(choice)) return choice;
  const format = readFormat(request, model);
  if (isRefusal(format)) return format;
  const beside = readEngineFields(request, model, ownFields, true);
  if (isRefusal(beside)) return beside;
  const oneOfThem = oneFormat(format, beside);
  if (isRefusal(oneOfThem)) return oneOfThem;
  const stop = stopSequences(request.stop_sequences, model, "stop_sequences");
  if (isRefusal(stop)) return stop;

  const serial = request.tool_choice?.disable_parallel_tool_use ?? null;
  const sampling: Record<string, unknown> = { ...beside.sampling };
  for (const name of forwarded) if (request[name] != null) sampling[name] = request[name];

  return {
    endpoint,
    coderBilling,
    model,
    turns,
    tools: tools.functions,
    toolChoice: choice.toolChoice,
    parallelToolCalls: serial === null ? null : !serial,
    stop,
    ...budgetOf(request.max_tokens, model, coderBilling),
    effort: effortOf(request) ?? beside.effort,
    format: oneOfThem,
    webSearch: searchOf(search, tools.functions, choice.forcesSearch),
    stream: request.stream === true,
    sampling: sampling as Sampling,
    ...engineFieldsOf(beside),
    bodyBytes,
    thinking: thinkingOf(request),
    inputTokensEstimate: estimateInputTokens(turns, model, bodyBytes),
  };
}

/** About four bytes a token, except in inline images and files, which are base64 in the body. */
function estimateInputTokens(turns: readonly Turn[], model: Model, bodyBytes: number): number {
  let mediaBytes = 0;
  for (const { content } of turns) {
    if (content === null || typeof content === "string") continue;
    for (const part of content) if (part.kind !== "text") mediaBytes += part.url.length;
  }
  return Math.min(Math.max(Math.ceil((bodyBytes - mediaBytes) / 4), 1), model.contextTokens);
}

// ---------------------------------------------------------------- Thinking and depth

function thinkingOf({ thinking }: Body): MessagesAsk["thinking"] {
  if (thinking == null || thinking.type === "disabled") return "hidden";
  return thinking.display === "omitted" ? "omitted" : "shown";
}

/** In this order: thinking switched off, the depth as a word, the depth as a budget, the model's own choice. */
function effortOf({ thinking, output_config }: Body): Effort | null {
  if (thinking?.type === "disabled") return "off";
  if (output_config?.effort != null) return efforts[output_config.effort]!;
  return thinking?.budget_tokens == null ? null : effortOfBudget(thinking.budget_tokens);
}

// ---------------------------------------------------------------- Conversation
// A string is read like one text block, so that a message gives the same prompt in either form: clients switch between
// the forms from turn to turn, and a different prompt would miss the prefix cache.

type Block = Readonly<Record<string, unknown> & { type: string }>;

const blocksOf = (content: Static<typeof Content>): readonly Block[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

function readTurns(
  system: Static<typeof Content>,
  messages: readonly Static<typeof Message>[],
  model: Model,
): readonly Turn[] | Refusal {
  const turns: Turn[] = [];
  let wrong = addSystem(turns, blocksOf(system), "system");
  for (let index = 0; index < messages.length && wrong === null; index++) {
    const { role, content } = messages[index]!;
    const blocks = blocksOf(content);
    const at = `messages[${index}].content`;
    if (role === "user") wrong = addUser(turns, blocks, at, model);
    else if (role === "assistant") wrong = addAssistant(turns, blocks, at);
    else wrong = addSystem(turns, blocks, at);
  }
  return wrong ?? turns;
}

function addSystem(turns: Turn[], blocks: readonly Block[], at: string): Refusal | null {
  const texts: string[] = [];
  for (const [index, block] of blocks.entries()) {
    if (block.type !== "text") continue;
    if (typeof block.text !== "string") return malformed(`${at}[${index}].text must be a string`);
    const kept = systemText(block.text);
    if (kept !== "") texts.push(kept);
  }
  if (texts.length > 0) turns.push({ role: "system", content: texts.join("\n") });
  return null;
}

/** Tool results come first, because they answer the assistant's previous turn; the rest is one user turn. */
function addUser(turns: Turn[], blocks: readonly Block[], at: string, model: Model): Refusal | null {
  const parts: Part[] = [];
  let results = 0;
  for (const [index, block] of blocks.entries()) {
    const name = `${at}[${index}]`;
    if (block.type === "tool_result") {
      const turn = readToolResult(block, name, model);
      if (isRefusal(turn)) return turn;
      turns.push(turn);
      results++;
      continue;
    }
    const read = readBlock(block, name, model);
    if (isRefusal(read)) return read;
    parts.push(...read);
  }
  if (parts.length > 0 || results === 0) turns.push({ role: "user", content: contentOf(parts) });
  return null;
}

function readToolResult(block: Block, at: string, model: Model): Turn | Refusal {
  if (typeof block.tool_use_id !== "string") return malformed(`${at}.tool_use_id must be a string`);
  const parts = readParts(block.content, `${at}.content`, model, readBlock);
  if (isRefusal(parts)) return parts;
  const marked = block.is_error === true ? [textPart("Error:"), ...parts] : parts;
  return { role: "tool", callId: block.tool_use_id, content: contentOf(marked) };
}

type AssistantTurn = { role: "assistant"; content: string | null; reasoning: string | null; calls: Call[] };

/** One turn, texts joined unchanged as one model's words; a server tool's use becomes a call and a tool turn. */
function addAssistant(turns: Turn[], blocks: readonly Block[], at: string): Refusal | null {
  let turn: AssistantTurn = { role: "assistant", content: null, reasoning: null, calls: [] };
  const serverCalls = new Map<unknown, Call>();
  for (const [index, block] of blocks.entries()) {
    const name = `${at}[${index}]`;
    switch (block.type) {
      case "text":
        if (typeof block.text !== "string") return malformed(`${name}.text must be a string`);
        turn.content = (turn.content ?? "") + block.text;
        break;
      case "compaction": // another server's summary of the conversation so far
        turn.content = (turn.content ?? "") + textOrNothing(block.content);
        break;
      case "thinking": {
        if (typeof block.thinking !== "string") return malformed(`${name}.thinking must be a string`);
        const thinking = block.thinking === "" ? thinkingIn(block.signature) : block.thinking;
        if (thinking !== "") turn.reasoning = (turn.reasoning ?? "") + thinking;
        break;
      }
      case "tool_use":
      case "server_tool_use":
      case "mcp_tool_use": {
        const call = readCall(block, name);
        if (isRefusal(call)) return call;
        if (block.type === "tool_use") turn.calls.push(call);
        else if (block.type === "server_tool_use") serverCalls.set(call.id, call);
        else
          serverCalls.set(call.id, {
            ...call,
            name: serverToolName({ server: textOrNothing(block.server_name), name: call.name }),
          });
        break;
      }
      default: {
        const call = block.type.endsWith("_tool_result") ? serverCalls.get(block.tool_use_id) : undefined;
        if (call === undefined) break; // redacted thinking, and blocks that this gateway does not know
        if (tooDeep(block.content)) return malformed(`${name}.content nests too deep`);
        turn.calls.push(call);
        turns.push(turn, { role: "tool", callId: call.id, content: serverResultText(block.content) });
        turn = { role: "assistant", content: null, reasoning: null, calls: [] };
      }
    }
  }
  const empty = turn.content === null && turn.reasoning === null && turn.calls.length === 0;
  if (empty && turns.at(-1)?.role === "tool" && serverCalls.size > 0) return null; // it ended with a server tool's result
  if (turn.calls.length === 0) turn.content ??= "";
  turns.push(turn);
  return null;
}

function readCall(block: Block, at: string): Call | Refusal {
  if (typeof block.id !== "string") return malformed(`${at}.id must be a string`);
  if (typeof block.name !== "string") return malformed(`${at}.name must be a string`);
  const input = block.input ?? {};
  if (!isRecord(input)) return malformed(`${at}.input must be an object`);
  if (tooDeep(input)) return malformed(`${at}.input nests too deep`);
  return { id: block.id, name: block.name, arguments: JSON.stringify(input) };
}

/** For search results, the text that our own servers put into them; only the others can read what they encrypted. */
function serverResultText(content: unknown): string {
  const entries: readonly unknown[] = Array.isArray(content) ? content : [content];
  return entries.map(entryText).join("\n\n");

  function entryText(entry: unknown): string {
    if (typeof entry === "string") return entry;
    if (isRecord(entry) && typeof entry.text === "string") return entry.text;
    if (isRecord(entry) && entry.type === "web_search_result") {
      const lines = [entry.title, entry.url, textCarriedIn(entry.encrypted_content)];
      return lines.filter((line) => typeof line === "string" && line !== "").join("\n");
    }
    return JSON.stringify(entry ?? null);
  }
}

// ---------------------------------------------------------------- Content blocks
// A block of an unknown type is left out: new betas bring new ones, and refusing a client's whole session for one of
// them is worse than not reading the block.

type BlockReader = (block: Block, at: string, model: Model) => readonly Part[] | Refusal;

const textPart = (value: string): Part => ({ kind: "text", text: value });

/** Text alone becomes one string, one paragraph per part, so that every node's template makes the same prompt of it. */
const contentOf = (parts: readonly Part[]): string | readonly Part[] =>
  parts.every((part) => part.kind === "text") ? parts.map(({ text }) => text).join("\n") : parts;

function readParts(content: unknown, at: string, model: Model, reader: BlockReader): readonly Part[] | Refusal {
  if (content == null) return [];
  if (typeof content === "string") return [textPart(content)];
  if (!Array.isArray(content)) return malformed(`${at} must be a string or an array of content blocks`);
  const parts: Part[] = [];
  for (const [index, block] of content.entries() as IterableIterator<[number, unknown]>) {
    const name = `${at}[${index}]`;
    if (!isRecord(block) || typeof block.type !== "string") return malformed(`${name} must be an object with a type`);
    const read = reader(block as Block, name, model);
    if (isRefusal(read)) return read;
    parts.push(...read);
  }
  return parts;
}

/** Text and images, the only blocks allowed inside a document, so nesting ends here. */
function readLeaf(block: Block, at: string, model: Model): readonly Part[] | Refusal {
  if (block.type === "text") {
    return typeof block.text === "string" ? [textPart(block.text)] : malformed(`${at}.text must be a string`);
  }
  return block.type === "image" ? readImageBlock(block.source, at, model) : [];
}

function readBlock(block: Block, at: string, model: Model): readonly Part[] | Refusal {
  switch (block.type) {
    case "document":
      return readDocument(block, at, model);
    case "search_result": {
      const parts = readParts(block.content, `${at}.content`, model, readLeaf);
      return isRefusal(parts) ? parts : [...headings(block.title, block.source), ...parts];
    }
    case "tool_reference": // the result of a client's tool search; the tool itself is among the tools from now on
      return [textPart(`The tool ${textOrNothing(block.tool_name)} is available now.`)];
    case "container_upload":
      return malformed(`${at}.file_id: nothing runs in a container here; send the file as a document or an image`);
    default:
      return readLeaf(block, at, model);
  }
}

function readImageBlock(source: unknown, at: string, model: Model): readonly Part[] | Refusal {
  if (!model.readsImages) return refusesImages(at, model);
  if (!isRecord(source)) return malformed(`${at}.source must be an object`);
  if (source.type === "file") return partsOf(readStored("image", source.file_id, null, `${at}.source.file_id`, model));
  const url = sourceUrl(source, `${at}.source`);
  if (isRefusal(url)) return url;
  return url === null ? [] : partsOf(readImage(url, null, at, model));
}

/** The address or data URL of a source; null for an unknown type. */
function sourceUrl(source: Readonly<Record<string, unknown>>, at: string): string | null | Refusal {
  if (source.type === "url")
    return typeof source.url === "string" ? source.url : malformed(`${at}.url must be a string`);
  if (source.type !== "base64") return null;
  if (typeof source.media_type !== "string") return malformed(`${at}.media_type must be a string`);
  if (typeof source.data !== "string") return malformed(`${at}.data must be a string`);
  return `data:${source.media_type};base64,${source.data}`;
}

/** Its title and context precede it. Citations are not generated; only its text matters. */
function readDocument(block: Block, at: string, model: Model): readonly Part[] | Refusal {
  const { source } = block;
  if (!isRecord(source)) return malformed(`${at}.source must be an object`);
  if (source.type === "text" || source.type === "content") {
    const [field, content] = source.type === "text" ? ["data", source.data] : ["content", source.content];
    const parts = readParts(content, `${at}.source.${field}`, model, readLeaf);
    return isRefusal(parts) ? parts : [...headings(block.title, block.context), ...parts];
  }
  const names = [block.title, block.context].filter((name) => typeof name === "string" && name !== "");
  const title = names.length === 0 ? null : names.join(": ");
  if (source.type === "file") return partsOf(readStored("file", source.file_id, title, `${at}.source.file_id`, model));
  const url = sourceUrl(source, `${at}.source`);
  if (isRefusal(url)) return url;
  return url === null ? [] : partsOf(readFile(url, title, at));
}

const partsOf = (read: Part | null | Refusal): readonly Part[] | Refusal =>
  isRefusal(read) ? read : read === null ? [] : [read];

const headings = (...lines: readonly unknown[]): readonly Part[] =>
  lines.filter((line) => typeof line === "string" && line !== "").map((line) => textPart(line as string));

// ---------------------------------------------------------------- Tools and structured output

type Tools = Readonly<{ functions: readonly Tool[]; serverTools: ReadonlySet<unknown>; webSearch: WebSearch | null }>;

/** Tools without a type, or `custom`, are the client's. Web search switches ours on; other types are left out. */
function readTools(given: readonly Record<string, unknown>[]): Tools | Refusal {
  const functions: Tool[] = [];
  const serverTools = new Set<unknown>();
  let webSearch: WebSearch | null = null;
  for (const [index, tool] of given.entries()) {
    const at = `tools[${index}]`;
    if (tool.type != null && tool.type !== "custom") {
      const refusal = hostedToolNotRun(tool, at);
      if (refusal !== null) return refusal;
      serverTools.add(tool.name);
      // Only texts convert safely: JSON may bring its own toString, which throws.
      if (typeof tool.type === "string" && tool.type.startsWith("web_search_")) webSearch = readSearchTool(tool);
      continue;
    }
    if (typeof tool.name !== "string" || tool.name === "") return malformed(`${at}.name must be a non-empty string`);
    const parameters = tool.input_schema ?? { type: "object", properties: {} };
    if (!isRecord(parameters)) return malformed(`${at}.input_schema must be a JSON Schema object`);
    if (tooDeep(parameters)) return malformed(`${at}.input_schema nests too deep`);
    functions.push({
      name: tool.name,
      description: typeof tool.description === "string" ? tool.description : null,
      parameters,
      strict: typeof tool.strict === "boolean" ? tool.strict : null,
    });
  }
  return { functions, serverTools, webSearch };
}

type Choice = Readonly<{ toolChoice: ToolChoice; forcesSearch?: boolean }>;

/** Of the server tools only the web search can be forced, because the others are not run here. */
function readToolChoice(
  choice: (Body["tool_choice"] & {}) | null,
  { functions, serverTools, webSearch }: Tools,
): Choice | Refusal {
  switch (choice?.type) {
    case "none":
      return { toolChoice: "none" };
    case "any":
      if (functions.length > 0) return { toolChoice: "required" };
      if (webSearch !== null) return { toolChoice: "auto", forcesSearch: true };
      if (serverTools.size > 0) return nothingToCall("any");
      return malformed("tool_choice any needs tools");
    case "tool":
      if (choice.name == null) return malformed("tool_choice.name must be a string");
      if (functions.some((tool) => tool.name === choice.name)) return { toolChoice: { named: choice.name } };
      if (webSearch !== null && choice.name === searchFunctionName) return { toolChoice: "auto", forcesSearch: true };
      if (serverTools.has(choice.name)) return nothingToCall(JSON.stringify(choice.name));
      return malformed(`tool_choice.name: there is no tool named ${choice.name} in tools`);
    default:
      return { toolChoice: "auto" };
  }
}

function readFormat({ output_config, output_format }: Body, model: Model): Format | null | Refusal {
  const at = output_config?.format != null ? "output_config.format" : "output_format";
  const given = output_config?.format ?? output_format ?? null;
  if (given === null) return null;
  if (given.type !== "json_schema") return malformed(`${at}.type must be json_schema`);
  const { schema } = given;
  return checkedFormat({ at, kind: "json_schema", schemaAt: `${at}.schema`, schema, name: null, strict: true }, model);
}
