// What the messages dialect writes around content: the message, its usage and stop reason, and the error body.
import { factsOf, messageOf, refusals } from "../../core/refusals.ts";
import type { Model, Refusal, RefusalName, Usage } from "../../core/types.ts";
import type { AnswerEnd, ReplyIdentity } from "../dialect.ts";
import type { LiteralText } from "../reply/literal-text.ts";

/** Characters of a request id that go into the ids of the message and its blocks. */
export const stemOf = ({ requestId }: ReplyIdentity): string => requestId.slice("req_".length);

/** A message: complete, or at its beginning without content. `content` are JSON texts. */
export function messageBody(
  model: Model,
  identity: ReplyIdentity,
  content: readonly string[],
  { stop_reason, stop_sequence, stop_details }: Stop,
  usage: object,
): string {
  const details = stop_details === undefined ? "" : `,"stop_details":${JSON.stringify(stop_details)}`;
  const stop = `"stop_reason":${JSON.stringify(stop_reason)},"stop_sequence":${JSON.stringify(stop_sequence)}${details}`;
  return `{"id":"msg_${stemOf(identity)}","type":"message","role":"assistant","model":${JSON.stringify(model.id)},"content":[${content.join(",")}],${stop},"usage":${JSON.stringify(usage)}}`;
}

type Stop = Readonly<{ stop_reason: string | null; stop_sequence: string | null; stop_details?: object }>;
export const notStopped: Stop = { stop_reason: null, stop_sequence: null };

/** `refusal`: what the model said where it refused. */
export function stopOf({ reason, stopSequence }: AnswerEnd, refusal: LiteralText): Stop {
  switch (reason) {
    case "stop":
      if (!refusal.empty) {
        const stop_details = { type: "refusal", category: null, explanation: JSON.parse(refusal.literal) as string };
        return { stop_reason: "refusal", stop_sequence: null, stop_details };
      }
      return { stop_reason: stopSequence === null ? "end_turn" : "stop_sequence", stop_sequence: stopSequence };
    case "length":
      return { stop_reason: "max_tokens", stop_sequence: null };
    case "tool_calls":
      return { stop_reason: "tool_use", stop_sequence: null };
    case "content_filter":
      return { stop_reason: "refusal", stop_sequence: null };
    default:
      return reason satisfies never;
  }
}

/**
 * Hosted models add the cache fields, and their input_tokens is the uncached input (spec, usage table). First-party
 * tiers have neither: every client accepts a reply without them, and a zero would mean that nothing was cached.
 * `searches`: the web searches that were made.
 */
export function usageBody(model: Model, usage: Usage, searches = 0): object {
  const server_tool_use = searches === 0 ? undefined : { web_search_requests: searches, web_fetch_requests: 0 };
  if (model.tier === "first-party") {
    return {
      input_tokens: usage.inputFresh + usage.inputCached,
      output_tokens: usage.output,
      server_tool_use,
    };
  }
  return {
    input_tokens: usage.inputFresh,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.inputCached,
    output_tokens: usage.output,
    server_tool_use,
  };
}

/** The SDK's tool runners act on these: they continue with whole conversations. */
const details: Partial<Record<RefusalName, object>> = {
  threads_not_kept: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
};

/** This dialect's error objects have a type and a message; `code` and `param` belong to the others. */
export function errorBody(refusal: Refusal, requestId: string): string {
  const row = refusals[refusal.refusal];
  const error = {
    type: row.type,
    message: messageOf(refusal),
    details: details[refusal.refusal],
    ...factsOf(refusal),
  };
  return JSON.stringify({ type: "error", error, request_id: requestId });
}
