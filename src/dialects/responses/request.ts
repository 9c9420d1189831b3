// A body of POST /v1/responses -> ResponsesAsk.
import { isRecord } from "../../core/is-record.ts";
import { isRefusal, refuse } from "../../core/refusals.ts";
import type { Ask, Effort, Format, Model, Refusal, Sampling, Turn, WebSearch } from "../../core/types.ts";
import { checkedFormat } from "../request/answer-format.ts";
import type { DialectRequest, Packed, PackedAsk } from "../dialect.ts";
import { Body, type ResponsesAsk, type ResponsesBody } from "./body.ts";
import { summarising, userMessages } from "./compaction.ts";
import { engineFieldsOf, noOthers, oneFormat, readEngineFields } from "../request/engine-fields.ts";
import { BodySchema, malformed, tooDeep } from "../request/field.ts";
import { namedModel } from "../request/named-model.ts";
import { OfferedTools, type ToolSelection } from "./offered-tools.ts";
import { echoOf } from "./response-object.ts";
import { readItems } from "./input.ts";
import { withPreset } from "../request/preset.ts";
import type { Sealer } from "../request/sealed-content.ts";
import { anySearch, searchOf } from "../request/search-request.ts";
import { priorityAsked } from "../request/service-tier.ts";
import { budgetOf, efforts } from "../request/settings.ts";
import { systemText } from "../request/system-text.ts";
import {
  continuesHeader,
  conversationIdOf,
  conversationNotFound,
  isConversationId,
  type Item,
  nothingEarlier,
} from "../stored-responses.ts";

const bodySchema = new BodySchema(Body);
const forwarded = [
  "temperature",
  "top_p",
  "presence_penalty",
  "frequency_penalty",
] as const satisfies readonly (keyof Sampling & keyof ResponsesBody)[];

export const endpoint = "/v1/responses";
/** The only dialect in which the coder tier costs tokens (spec, per-request limits). */
export const coderBilling = "tokens";

type PackedResponsesAsk = Omit<ResponsesAsk, "turns" | "model" | "prepared" | "offered"> &
  Readonly<{ offered: OfferedTools["given"] }>;

/** What is stored passes on as the text in which it is stored. */
export function packRequest(ask: Omit<ResponsesAsk, "turns" | "model">): Packed {
  const { offered, input, echo, ...others } = ask;
  const { entries, webSearch } = offered.given;
  const text = typeof input === "string" ? input : JSON.stringify(input);
  const packed: PackedResponsesAsk = { ...others, offered: offered.given, input: text, echo };
  // Each tool once, including those that tool_choice hides from the model.
  return { ask: packed, settings: { ...others, tools: entries.map(asGiven), webSearch }, echo };
}

/** Roughly as the client wrote it. */
const asGiven = ({ origin, tool }: OfferedTools["given"]["entries"][number]) => ({
  type: origin.kind,
  namespace: origin.namespace ?? undefined,
  name: origin.name,
  description: tool.description ?? undefined,
  parameters: tool.parameters,
  strict: tool.strict ?? undefined,
});

export function unpackRequest(packed: PackedAsk, ask: Ask): ResponsesAsk {
  const own = packed as PackedResponsesAsk;
  return { ...own, ...ask, offered: new OfferedTools(own.offered) };
}

export type RequestContext = Readonly<{
  sealer: Sealer;
  /** False where nothing is stored: then requests cannot refer to responses, and replies say so. */
  storesResponses: boolean;
}>;

export const compactPath = "/v1/responses/compact";

export function readRequest(request: DialectRequest, context: RequestContext): ResponsesAsk | Refusal {
  const alone = request.head.route === compactPath;
  const value = alone ? compactBody(request.body) : request.body;
  const wrong = bodySchema.refusal(value);
  if (wrong !== null) return wrong;
  if (tooDeep(value)) return malformed("The request body nests too deep");
  const { bodyBytes, catalog, earlier, head } = request;
  const continues = head.headers.get(continuesHeader);
  return readChecked(value as ResponsesBody & Item, { ...context, catalog, earlier, bodyBytes, alone, continues });
}

/** A compact body may omit `input` and has no stream. */
const compactBody = (body: unknown): unknown =>
  isRecord(body) ? { ...body, input: body.input ?? [], stream: false } : body;

type CheckedContext = RequestContext &
  Pick<DialectRequest, "catalog" | "earlier" | "bodyBytes"> &
  Readonly<{ alone: boolean; continues: string | null }>;

function readChecked(request: ResponsesBody & Item, context: CheckedContext): ResponsesAsk | Refusal {
  const model = namedModel(context.catalog, request.model);
  if (isRefusal(model)) return model;
  const input = inputItems(request.input ?? []);
  const compacts = context.alone ? "alone" : input.at(-1)?.type === "compaction_trigger" ? "in a response" : null;
  const conversationId = readConversation(request, context, compacts !== null);
  if (isRefusal(conversationId)) return conversationId;
  const id = conversationId ?? request.previous_response_id ?? null;
  if (id === null && request.input == null) return malformed("input is missing: must be a string or an array of items");
  const before = { at: `the items of ${id}`, items: context.earlier?.conversation ?? [] };
  const offered = readTools(request.tools ?? [], before, input);
  if (isRefusal(offered)) return offered;
  const selection = offered.select(request.tool_choice ?? "auto");
  if (isRefusal(selection)) return selection;
  const turns = readTurns(request, before.at, input, model, offered, context);
  if (isRefusal(turns)) return turns;
  const format = readFormat(request.text?.format ?? null, model);
  if (isRefusal(format)) return format;
  const effort = readEffort(request.reasoning?.effort ?? null);
  if (isRefusal(effort)) return effort;
  const beside = readEngineFields(request, model, noOthers, true);
  if (isRefusal(beside)) return beside;
  const oneOfThem = oneFormat(format, beside);
  if (isRefusal(oneOfThem)) return oneOfThem;

  const store = context.storesResponses && (request.store ?? true) && compacts === null;
  if (request.background === true && !store) return unstoredBackground;
  const settings = {
    model,
    turns,
    stop: [],
    effort: effort ?? beside.effort,
    sampling: { ...beside.sampling, ...samplingOf(request) },
    ...engineFieldsOf(beside),
  };
  const budget = budgetOf(request.max_output_tokens, model, coderBilling);
  const ask: ResponsesAsk = {
    endpoint,
    coderBilling,
    ...settings,
    tools: selection.tools,
    toolChoice: selection.toolChoice,
    parallelToolCalls: request.parallel_tool_calls ?? null,
    ...budget,
    format: oneOfThem,
    webSearch: readSearch(request, selection),
    stream: request.stream === true,
    warms: request.generate === false && compacts === null ? true : undefined,
    ...priorityAsked(request.service_tier),
    bodyBytes: context.bodyBytes + (context.earlier?.bytes ?? 0),
    offered,
    echo: echoOf(
      asServed(shownOf(request, context), settings),
      model,
      request.max_output_tokens == null ? null : budget.outputTokensMax,
      store,
    ),
    sealsReasoning: request.include?.includes("reasoning.encrypted_content") ?? false,
    showsSources: request.include?.includes("web_search_call.action.sources") ?? false,
    compacts,
    ...(request.background === true ? { background: true } : {}),
    store,
    previousResponseId: request.previous_response_id ?? null,
    conversationId,
    input: context.alone
      ? userMessages([...before.items, ...input], context.earlier?.items)
      : keptInput(store || conversationId !== null, request.input, input),
  };
  return compacts === null ? ask : summarising(ask);
}

/** With what a preset makes of its settings: a response repeats those that hold. */
function asServed(request: ResponsesBody, settings: Parameters<typeof withPreset>[0]): ResponsesBody {
  if (settings.model.preset === undefined) return request;
  const { sampling, effort } = withPreset(settings);
  const held = Object.fromEntries(forwarded.map((name) => [name, sampling[name]]));
  return { ...request, ...held, reasoning: { ...request.reasoning, effort } };
}

const unstoredBackground = malformed("background: needs a stored response: send store true, and no compaction");

const shownOf = (request: ResponsesBody & Item, { continues }: CheckedContext): ResponsesBody & Item =>
  continues === null ? request : { ...request, previous_response_id: continues };

/** `max_tool_calls` counts calls of built-in tools, not of the client's own functions. */
function readSearch(request: ResponsesBody, { webSearch, tools, forcesSearch }: ToolSelection): WebSearch | null {
  const hosted = webSearch ?? (request.web_search === true ? anySearch : null);
  const search = searchOf(hosted, tools, forcesSearch);
  return search === null ? null : { ...search, usesMax: request.max_tool_calls ?? null };
}

function samplingOf(request: ResponsesBody): Sampling {
  const sampling: Record<string, number> = {};
  for (const name of forwarded) if (request[name] != null) sampling[name] = request[name];
  return sampling;
}

const inputItems = (input: string | readonly Item[]): readonly Item[] =>
  typeof input === "string"
    ? [{ type: "message", role: "user", content: [{ type: "input_text", text: input }] }]
    : input;

/** Its id, or null. */
function readConversation(
  request: ResponsesBody,
  { storesResponses, earlier }: CheckedContext,
  compacts: boolean,
): string | null | Refusal {
  const id = conversationIdOf(request.conversation);
  if (id === null) return null;
  if (!storesResponses) return malformed("conversation: conversations are not kept here; send the items");
  if (request.previous_response_id != null) return malformed("conversation: must not be with previous_response_id");
  if (compacts) return malformed("conversation: is not summed up; send the items, or previous_response_id");
  return isConversationId(id) && earlier?.conversation != null ? id : conversationNotFound(id);
}

function keptInput(isKept: boolean, given: string | readonly Item[] | null | undefined, items: readonly Item[]) {
  if (!isKept) return [];
  // The result of `inputItems` for a text, as JSON at once: half the time of writing the items.
  return typeof given === "string"
    ? `[{"type":"message","role":"user","content":[{"type":"input_text","text":${JSON.stringify(given)}}]}]`
    : items;
}

type GivenTool = Parameters<typeof OfferedTools.read>[0][number];

/** The request's own tools, then those of `additional_tools` items, in order; a request may redefine earlier ones. */
function readTools(tools: readonly Item[], earlier: GivenItems, input: readonly Item[]): OfferedTools | Refusal {
  const before = addedTools(earlier);
  if (isRefusal(before)) return before;
  const added = addedTools({ at: "input", items: input });
  if (isRefusal(added)) return added;
  if (tools.length === 0 && before.length === 0 && added.length === 0) return OfferedTools.none;
  const own = tools.map((definition, index) => ({ at: `tools[${index}]`, definition }));
  // A tool's first definition decides its position, and so the node's cache; its last one decides what it is.
  return OfferedTools.read(before.length === 0 ? [...own, ...added] : [...own, ...before, ...own, ...added]);
}

const noTools: readonly GivenTool[] = [];

type GivenItems = Readonly<{ at: string; items: readonly Item[] }>;

function addedTools({ at: list, items }: GivenItems): readonly GivenTool[] | Refusal {
  if (!items.some(({ type }) => type === "additional_tools")) return noTools;
  const given: GivenTool[] = [];
  for (const [index, item] of items.entries()) {
    if (item.type !== "additional_tools") continue;
    const at = `${list}[${index}].tools`;
    if (!Array.isArray(item.tools)) return malformed(`${at} must be an array`);
    for (const [place, definition] of (item.tools as unknown[]).entries()) {
      if (typeof definition !== "object" || definition === null) return malformed(`${at}[${place}] must be an object`);
      given.push({ at: `${at}[${place}]`, definition: definition as Item });
    }
  }
  return given;
}

function readTurns(
  request: ResponsesBody,
  at: string,
  input: readonly Item[],
  model: Model,
  tools: OfferedTools,
  { sealer, earlier = nothingEarlier, continues }: CheckedContext,
): readonly Turn[] | Refusal {
  const previousId = request.previous_response_id ?? null;
  if (previousId !== null && (earlier.conversation === null || isConversationId(previousId))) {
    return refuse("previous_response_not_found", { id: earlier.missingId ?? previousId });
  }
  // A result whose call is missing cannot continue a response. Whole conversations may have lost calls by trimming.
  const calls = previousId === null && continues === null ? null : new Set<string>();
  const context = { model, tools, sealer, stored: earlier.items, calls };
  const before = readItems(earlier.conversation ?? [], at, context);
  if (isRefusal(before)) return before;
  const now = typeof request.input === "string" ? userTurn(request.input) : readItems(input, "input", context);
  if (isRefusal(now)) return now;
  if (before.length + now.length === 0) return malformed("input must hold at least one message");
  const instructions = systemText(request.instructions ?? "");
  return [...(instructions === "" ? [] : [{ role: "system" as const, content: instructions }]), ...before, ...now];
}

/** How its items are read; most requests have none. */
const userTurn = (content: string): readonly Turn[] => [{ role: "user", content }];

function readEffort(given: unknown): Effort | null | Refusal {
  if (given === null) return null;
  if (typeof given === "string" && Object.hasOwn(efforts, given)) return efforts[given]!;
  return malformed(`reasoning.effort must be one of ${Object.keys(efforts).join(", ")}`);
}

function readFormat(given: unknown, model: Model): Format | null | Refusal {
  const at = "text.format";
  if (given === null) return null;
  if (typeof given !== "object") return malformed(`${at} must be an object`);
  const { type, name, schema, strict } = given as Item;
  if (type === "text") return null;
  if (type === "json_object") return checkedFormat({ at, kind: "json_object" }, model);
  if (type !== "json_schema") return malformed(`${at}.type must be one of text, json_object, json_schema`);
  return checkedFormat({ at, kind: "json_schema", schemaAt: `${at}.schema`, schema, name, strict }, model);
}
