// The error table: every way a request can be refused, with status, type, code and message. A dialect turns a row into
// its own body; nothing else writes an error message for a client.
import type { RatesLeft } from "./rates-left.ts";

export type RefusalRow = Readonly<{
  status: number;
  type: string;
  /** `error.code` in chat-completions and responses; null where the spec has none. */
  code: string | null;
  /** `{name}` is replaced by `detail.name`. */
  message: string;
  /** `retry-after` is sent with `detail.seconds` for "after"; `x-should-retry: false` for "never". */
  retry: "after" | "never" | "client";
  /** The field that `error.param` names; absent: null. */
  param?: string;
  /** Values of `detail` that the error object also has, for programs. */
  facts?: readonly string[];
}>;

const invalid = "invalid_request_error";
const rate = "rate_limit_error";
const busyWords = "Routes are temporarily busy. Please retry.";

export const refusals = {
  invalid_api_key: {
    status: 401,
    type: "authentication_error",
    code: "invalid_api_key",
    message: "Invalid API key provided",
    retry: "never",
  },
  malformed: { status: 400, type: invalid, code: null, message: "{reason}", retry: "client" },
  /** Not counted by flood protection, unlike malformed parameters. */
  unreadable: { status: 400, type: invalid, code: null, message: "{reason}", retry: "client" },
  unknown_model: {
    status: 400,
    type: invalid,
    code: "model_not_found",
    message: "The model `{model}` does not exist. GET /v1/models lists the models.",
    retry: "client",
  },
  model_not_in_plan: {
    status: 403,
    type: "permission_error",
    code: "model_not_allowed",
    message: "The model `{model}` is not part of your plan. GET /v1/models lists the models.",
    retry: "never",
  },
  model_not_for_key: {
    status: 403,
    type: "permission_error",
    code: "model_not_allowed",
    message: "The model `{model}` is not one that the API key `{key}` may use.",
    retry: "never",
  },
  address_not_allowed: {
    status: 403,
    type: "permission_error",
    code: "address_not_allowed",
    message: "This API key may not be used from {address}.",
    retry: "never",
  },
  context_length_exceeded: {
    status: 400,
    type: invalid,
    code: "context_length_exceeded",
    message: "prompt is too long: {tokens} tokens > {maximum} maximum",
    retry: "client",
  },
  /** The words of Anthropic's servers, which their clients parse. */
  context_budget_exceeded: {
    status: 400,
    type: invalid,
    code: "context_length_exceeded",
    message:
      "input length and `max_tokens` exceed context limit: {input} + {budget} > {maximum}, decrease input length or `max_tokens` and try again",
    retry: "client",
  },
  previous_response_not_found: {
    status: 400,
    type: invalid,
    code: "previous_response_not_found",
    message: "Previous response with id '{id}' not found.",
    retry: "client",
    param: "previous_response_id",
  },
  invalid_stream_id: {
    status: 400,
    type: invalid,
    code: "invalid_stream_id",
    message:
      "The 'stream_id' field must be a non-empty string with at most 256 characters and may only contain letters, numbers, underscores, hyphens, and periods.",
    retry: "client",
    param: "stream_id",
  },
  websocket_stream_limit_reached: {
    status: 400,
    type: invalid,
    code: "websocket_stream_limit_reached",
    message:
      "This WebSocket connection has reached its maximum number of distinct stream IDs (32). Reuse an existing stream_id or open a new WebSocket connection.",
    retry: "client",
    param: "stream_id",
  },
  websocket_connection_limit_reached: {
    status: 400,
    type: invalid,
    code: "websocket_connection_limit_reached",
    message:
      "Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.",
    retry: "client",
  },
  /** Ignoring `thread` would drop the conversation: later requests of a thread contain only its newest messages. */
  threads_not_kept: {
    status: 400,
    type: invalid,
    code: null,
    message: "Message threads are not kept here: send the whole conversation in messages, without thread",
    retry: "client",
  },
  not_found: { status: 404, type: "not_found_error", code: null, message: "{reason}", retry: "client" },
  body_too_large: {
    status: 413,
    type: invalid,
    code: "request_too_large",
    message: "Request body larger than 32 MiB",
    retry: "client",
  },
  file_too_large: { status: 413, type: invalid, code: "file_too_large", message: "{reason}", retry: "never" },
  /** The disk, or what files may take of it in all. */
  storage_full: {
    status: 507,
    type: "api_error",
    code: "storage_full",
    message: "There is no room for this on the server's disk right now. Nothing of it was kept.",
    retry: "never",
  },
  text_too_long: { status: 413, type: invalid, code: null, message: "text too long", retry: "client" },
  unsupported_encoding: {
    status: 415,
    type: invalid,
    code: null,
    message: "Send the request body uncompressed, or with one content-encoding: gzip, br, zstd or deflate",
    retry: "client",
  },
  upgrade_required: {
    status: 426,
    type: invalid,
    code: null,
    message: "Connect here with a WebSocket of version 13, or send POST requests",
    retry: "client",
  },
  too_many_requests: {
    status: 429,
    type: rate,
    code: null,
    message: "Too many requests. Retry in {seconds}s.",
    retry: "after",
  },
  /** By a limit of the shop's own, of a plan or a key. */
  rate_limited: {
    status: 429,
    type: rate,
    code: "rate_limit_exceeded",
    message: "Rate limit reached: {limit} {unit} a minute. Retry in {seconds}s.",
    retry: "after",
  },
  quota_exceeded: {
    status: 429,
    type: rate,
    code: "insufficient_quota",
    message: "Quota exceeded. Upgrade your plan at {site_url}/plan",
    retry: "never",
    facts: ["spendable", "requested", "resets_at"],
  },
  /** For a shop's own model with some balance left. The specification's models have the message above. */
  budget_over_quota: {
    status: 429,
    type: rate,
    code: "insufficient_quota",
    message:
      "Quota exceeded: the answer may cost {requested} balance tokens, and {spendable} are free. Send max_tokens of at most {max_tokens}, or upgrade your plan at {site_url}/plan",
    retry: "never",
    facts: ["spendable", "requested", "max_tokens", "resets_at"],
  },
  key_quota_exceeded: {
    status: 429,
    type: rate,
    code: "insufficient_quota",
    message: "Quota exceeded for the API key `{key}`: it may use {limit} balance tokens a {period}.",
    retry: "never",
    facts: ["key", "limit", "spendable", "requested", "resets_at"],
  },
  end_user_quota_exceeded: {
    status: 429,
    type: rate,
    code: "insufficient_quota",
    message:
      "Quota exceeded for the end user `{end_user}` of the API key `{key}`: it may use {limit} balance tokens a {period}.",
    retry: "never",
    facts: ["end_user", "key", "limit", "spendable", "requested", "resets_at"],
  },
  member_quota_exceeded: {
    status: 429,
    type: rate,
    code: "insufficient_quota",
    message: "Quota exceeded for this member of the team, who may use {limit} balance tokens a {period}.",
    retry: "never",
    facts: ["limit", "spendable", "requested", "resets_at"],
  },
  budget_over_member_quota: {
    status: 429,
    type: rate,
    code: "insufficient_quota",
    message:
      "Quota exceeded for this member of the team: the request may cost {requested} balance tokens, and {spendable} of {limit} a {period} are free. {advice}",
    retry: "never",
    facts: ["limit", "spendable", "requested", "max_tokens", "resets_at"],
  },
  budget_over_key_quota: {
    status: 429,
    type: rate,
    code: "insufficient_quota",
    message:
      "Quota exceeded for the API key `{key}`: the request may cost {requested} balance tokens, and {spendable} of its {limit} a {period} are free. {advice}",
    retry: "never",
    facts: ["key", "limit", "spendable", "requested", "max_tokens", "resets_at"],
  },
  budget_over_end_user_quota: {
    status: 429,
    type: rate,
    code: "insufficient_quota",
    message:
      "Quota exceeded for the end user `{end_user}` of the API key `{key}`: the request may cost {requested} balance tokens, and {spendable} of {limit} a {period} are free. {advice}",
    retry: "never",
    facts: ["end_user", "key", "limit", "spendable", "requested", "max_tokens", "resets_at"],
  },
  coder_quota_reached: {
    status: 429,
    type: rate,
    code: "insufficient_quota",
    message: "{model} call quota reached. Upgrade your plan at {site_url}/plan",
    retry: "never",
    facts: ["used", "limit", "resets_at"],
  },
  busy: {
    status: 429,
    type: rate,
    code: null,
    message: busyWords,
    retry: "after",
    facts: ["reason", "position", "expected_first_token_ms"],
  },
  /** For a model of the catalog, whose refusal the specification words: none of its nodes can be reached. */
  busy_unreachable: { status: 429, type: rate, code: null, message: busyWords, retry: "after", facts: ["reason"] },
  /** The same: nodes answer, but none lists what serves it. */
  busy_unlisted: { status: 429, type: rate, code: null, message: busyWords, retry: "after", facts: ["reason"] },
  /** Its x-deadline-ms; another try right away would meet the same line. */
  deadline_unmet: {
    status: 429,
    type: rate,
    code: "deadline_unmet",
    message:
      "The request cannot begin within its x-deadline-ms: it is number {position} in line, and its first token is expected in {expected_first_token_ms} ms. Nothing is charged.",
    retry: "never",
    facts: ["position", "expected_first_token_ms"],
  },
  quota_unverified: {
    status: 503,
    type: "api_error",
    code: null,
    message: "Could not verify your quota right now. Please retry.",
    retry: "client",
  },
  node_failed: {
    status: 500,
    type: "api_error",
    code: null,
    message: "The model stopped answering. Please retry.",
    retry: "client",
  },
  /** For a shop's own model, or one that nodes list: none of its nodes can be reached, and it is unknown when one will be. */
  model_unreachable: {
    status: 503,
    type: "api_error",
    code: "model_unreachable",
    message: "No node that serves the model `{model}` can be reached right now. Please retry later.",
    retry: "client",
    facts: ["reason"],
  },
  /** The same: nodes answer, but none lists it. A retry fails until someone loads it. */
  model_unlisted: {
    status: 503,
    type: "api_error",
    code: "model_unlisted",
    message: "No node has the model `{model}` loaded right now.",
    retry: "never",
    facts: ["reason"],
  },
  /** The nodes that should have it answer with other models. */
  model_unavailable: {
    status: 503,
    type: "api_error",
    code: null,
    message: "The model `{model}` is not loaded on its node right now. Please retry later.",
    retry: "client",
  },
  /** An operator drained all nodes that have it, and the request waited as long as allowed. */
  model_paused: {
    status: 503,
    type: "api_error",
    code: null,
    message: "The model `{model}` is paused for maintenance. Please retry later.",
    retry: "after",
  },
  /** It was already requested again, where nothing of it had been sent. */
  answer_misfit: {
    status: 500,
    type: "api_error",
    code: null,
    message: "The model's answer does not match the requested format. Nothing is charged but what was streamed of it.",
    retry: "never",
  },
  /** It was already requested again, in words: nothing of either answer went out. */
  not_called: {
    status: 500,
    type: "api_error",
    code: null,
    message: "The model answered without the tool call that tool_choice demands. Nothing is charged.",
    retry: "never",
  },
  stopping: {
    status: 503,
    type: "api_error",
    code: null,
    message: "The server is stopping. Please retry.",
    retry: "client",
  },
  internal: {
    status: 500,
    type: "api_error",
    code: null,
    message: "Internal error. Please retry later.",
    retry: "client",
  },
} as const satisfies Record<string, RefusalRow>;

export type RefusalName = keyof typeof refusals;

/** A request that is not served: the name of a row and the values its message needs. */
export type Refusal = Readonly<{
  refusal: RefusalName;
  detail?: Readonly<Record<string, string | number>>;
  /** Where a limit of a minute is the reason. */
  rates?: RatesLeft;
}>;

export const refuse = (refusal: RefusalName, detail?: Refusal["detail"]): Refusal =>
  detail === undefined ? { refusal } : { refusal, detail };

export const isRefusal = (value: unknown): value is Refusal =>
  typeof value === "object" && value !== null && "refusal" in value;

/** The row's message with the refusal's values filled in. */
export function messageOf({ refusal, detail }: Refusal): string {
  return refusals[refusal].message.replace(/\{(\w+)\}/g, (whole, name: string) => String(detail?.[name] ?? whole));
}

/** What an error object has beside its message: members with values for programs. */
export function factsOf({ refusal, detail = {} }: Refusal): Readonly<Record<string, string | number>> {
  const { facts = [] }: RefusalRow = refusals[refusal];
  return Object.fromEntries(facts.flatMap((name) => (detail[name] === undefined ? [] : [[name, detail[name]]])));
}
