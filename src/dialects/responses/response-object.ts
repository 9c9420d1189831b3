// The response object: a reply's body, and the payload of lifecycle events. The schema requires every key in each.
import type { FinishReason, Model, Refusal, Usage } from "../../core/types.ts";
import { messageOf } from "../../core/refusals.ts";
import type { RefusalName } from "../../core/types.ts";
import type { ReplyIdentity } from "../dialect.ts";
import { tierOf } from "../request/service-tier.ts";
import type { ResponsesAsk, ResponsesBody } from "./body.ts";
import { conversationIdOf, type Item } from "../stored-responses.ts";

/** Characters of a request id that go into the ids of the response and its items. */
export const stemOf = ({ requestId }: ReplyIdentity): string => requestId.slice("req_".length);

/** The end of a response; members are JSON texts. */
type ResponseState = Readonly<{
  status: "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";
  completedSeconds: number | null;
  error: string;
  incompleteDetails: string;
  output: readonly string[];
  usage: string;
  /** A JSON string literal, or null to omit the key. */
  outputText: string | null;
}>;

/** A response object as JSON text, and where in it the value of `output` and the member after it lie. */
export type ResponseText = Readonly<{ whole: string; outputStart: number; outputEnd: number; usageEnd: number }>;

/** The stored parts, cut from the client's text, which costs less than joining again. The answer is stored once. */
export function keptOf({ whole, outputStart, outputEnd, usageEnd }: ResponseText) {
  const settings = `${whole.slice(0, outputStart - outputKey.length)}${whole.slice(outputEnd, usageEnd)}}`;
  return { output: whole.slice(outputStart, outputEnd), settings };
}

const outputKey = ',"output":';

function responseObject(ask: ResponsesAsk, identity: ReplyIdentity, outcome: ResponseState): ResponseText {
  const { status, completedSeconds, error, incompleteDetails, usage, outputText } = outcome;
  const begin = `{"id":"resp_${stemOf(identity)}","object":"response","created_at":${identity.createdSeconds},"completed_at":${completedSeconds},"status":"${status}","error":${error},"incomplete_details":${incompleteDetails}`;
  const text = outputText === null ? "" : `,"output_text":${outputText}`;
  const toOutput = `${begin},${echoed(ask, identity)}${outputKey}`;
  const items = outcome.output.length === 1 ? outcome.output[0] : outcome.output.join(",");
  const toUsage = `${toOutput}[${items}]`;
  const outputEnd = toUsage.length;
  const whole = `${toUsage},"usage":${usage}`;
  return { whole: `${whole}${text}}`, outputStart: toOutput.length, outputEnd, usageEnd: whole.length };
}

/** Instructions before it are a JSON text, in which it would be escaped. */
const echoed = ({ echo }: ResponsesAsk, { priority }: ReplyIdentity): string =>
  priority === undefined ? echo : echo.replace('"service_tier":"default"', `"service_tier":"${tierOf(priority)}"`);

export const responseInProgress = (
  ask: ResponsesAsk,
  identity: ReplyIdentity,
  status: "queued" | "in_progress" = "in_progress",
): ResponseText =>
  responseObject(ask, identity, {
    status,
    completedSeconds: null,
    error: "null",
    incompleteDetails: "null",
    output: [],
    usage: "null",
    outputText: null,
  });

/** `outputText`: the answer's whole text as a JSON string literal. */
export function responseEnded(
  ask: ResponsesAsk,
  identity: ReplyIdentity,
  output: readonly string[],
  outputText: string,
  { reason, usage, nowSeconds }: Readonly<{ reason: FinishReason; usage: Usage; nowSeconds: number }>,
): ResponseText {
  const incomplete = incompleteReason(reason);
  return responseObject(ask, identity, {
    status: incomplete === null ? "completed" : "incomplete",
    completedSeconds: incomplete === null ? nowSeconds : null,
    error: "null",
    incompleteDetails: incomplete === null ? "null" : `{"reason":"${incomplete}"}`,
    output,
    usage: usageBody(usage),
    outputText,
  });
}

/** `refusal`: null where its client cancelled it. */
export function responseFailed(
  ask: ResponsesAsk,
  identity: ReplyIdentity,
  output: readonly string[],
  refusal: Refusal | null,
): ResponseText {
  const error = refusal === null ? null : { code: failureCode(refusal.refusal), message: messageOf(refusal) };
  return responseObject(ask, identity, {
    status: refusal === null ? "cancelled" : "failed",
    completedSeconds: null,
    error: JSON.stringify(error),
    incompleteDetails: "null",
    output,
    usage: "null",
    outputText: null,
  });
}

/** Why an answer is incomplete, or null if it is complete. */
export function incompleteReason(reason: FinishReason): "max_output_tokens" | "content_filter" | null {
  switch (reason) {
    case "length":
      return "max_output_tokens";
    case "content_filter":
      return "content_filter";
    case "stop":
    case "tool_calls":
      return null;
    default:
      return reason satisfies never;
  }
}

/** The codes on which Codex acts; it retries on the last two. */
function failureCode(refusal: RefusalName): string {
  switch (refusal) {
    case "context_length_exceeded":
    case "context_budget_exceeded":
      return "context_length_exceeded";
    case "quota_exceeded":
    case "budget_over_quota":
    case "key_quota_exceeded":
    case "budget_over_key_quota":
    case "end_user_quota_exceeded":
    case "budget_over_end_user_quota":
    case "member_quota_exceeded":
    case "budget_over_member_quota":
    case "coder_quota_reached":
      return "insufficient_quota";
    case "busy":
    case "busy_unreachable":
    case "busy_unlisted":
    case "too_many_requests":
    case "rate_limited":
      return "rate_limit_exceeded";
    default:
      return "server_error";
  }
}

/** Always with details: the schema and the official clients' types require them for every model. */
export function usageBody(usage: Usage): string {
  const input = usage.inputFresh + usage.inputCached;
  const cache = `{"cached_tokens":${usage.inputCached},"cache_write_tokens":${usage.cacheWritten ?? 0}}`;
  return `{"input_tokens":${input},"input_tokens_details":${cache},"output_tokens":${usage.output},"output_tokens_details":{"reasoning_tokens":${usage.reasoning}},"total_tokens":${input + usage.output}}`;
}

// ---------------------------------------------------------------- Echo
// The request's settings in the form that the schema requires, which may differ from the request's

/** The only depths that the schema knows. */
const echoedEfforts: Readonly<Record<string, string>> = {
  off: "none",
  none: "none",
  minimal: "low",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "xhigh",
  max: "xhigh",
};
const echoedSummaries: ReadonlySet<unknown> = new Set(["auto", "concise", "detailed"]);

/** Request fields that are echoed after `model`, where a request with any of them has its own echo instead of the defaults. */
const fieldsBehindModel: ReadonlySet<string> = new Set([
  "background",
  "parallel_tool_calls",
  "previous_response_id",
  "conversation",
  "prompt_cache_key",
  "reasoning",
  "safety_identifier",
  "temperature",
  "text",
  "tool_choice",
  "tools",
  "top_logprobs",
  "top_p",
  "presence_penalty",
  "frequency_penalty",
  "truncation",
  "user",
  "metadata",
] satisfies (keyof ResponsesBody)[]);

/** As members of a JSON object; `budget`: the output budget that the client set, clamped, or null. */
export function echoOf(request: ResponsesBody, { id }: Model, budget: number | null, store: boolean): string {
  for (const field in request) if (fieldsBehindModel.has(field)) return wholeEcho(request, id, budget, store);
  // For most requests: a fifth of the time.
  const { instructions, max_tool_calls: calls } = request;
  return `"instructions":${JSON.stringify(instructions ?? null)},"max_output_tokens":${budget},"max_tool_calls":${calls ?? null},"model":${JSON.stringify(id)},${defaultsBehindModel[`${store}`]}`;
}

function wholeEcho(request: ResponsesBody, model: string, budget: number | null, store: boolean): string {
  const { effort, summary } = request.reasoning ?? {};
  const conversationId = conversationIdOf(request.conversation);
  const echo = {
    instructions: request.instructions ?? null,
    max_output_tokens: budget,
    max_tool_calls: request.max_tool_calls ?? null,
    model,
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: request.previous_response_id ?? null,
    conversation: conversationId === null ? undefined : { id: conversationId },
    prompt_cache_key: request.prompt_cache_key ?? null,
    reasoning: {
      effort: typeof effort === "string" ? echoedEfforts[effort] : null,
      summary: echoedSummaries.has(summary) ? summary : null,
    },
    safety_identifier: request.safety_identifier ?? null,
    service_tier: "default",
    store,
    background: request.background ?? false,
    temperature: request.temperature ?? 1,
    text: { format: formatEcho((request.text?.format ?? null) as Item | null) },
    tool_choice: request.tool_choice ?? "auto",
    tools: (request.tools ?? []).map(toolEcho),
    top_logprobs: request.top_logprobs ?? 0,
    top_p: request.top_p ?? 1,
    presence_penalty: request.presence_penalty ?? 0,
    frequency_penalty: request.frequency_penalty ?? 0,
    truncation: request.truncation ?? "disabled",
    user: request.user ?? null,
    metadata: request.metadata ?? {},
  };
  return JSON.stringify(echo).slice(1, -1);
}

/** The schema of a `json_schema` format must come back as null. */
function formatEcho(format: Item | null): Item {
  if (format?.type !== "json_schema") return { type: format?.type ?? "text" };
  const { name, description, strict } = format;
  return {
    type: "json_schema",
    name: name ?? "answer",
    description: description ?? null,
    schema: null,
    strict: strict === true,
  };
}

const toolEcho = (tool: Item): Item =>
  tool.type === "function"
    ? {
        ...tool,
        description: tool.description ?? null,
        parameters: tool.parameters ?? null,
        strict: tool.strict ?? null,
      }
    : tool;

/** The echo of a request without any of those, by `store`. */
const defaultsBehindModel = { true: defaultEcho(true), false: defaultEcho(false) };

function defaultEcho(store: boolean): string {
  const echo = wholeEcho({ model: "" }, "", null, store);
  return echo.slice(echo.indexOf('"parallel_tool_calls"'));
}
