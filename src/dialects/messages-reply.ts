// What the messages dialect writes when an answer is complete or refused: the reply, its usage and the error body.
import { messageOf, refusals } from "../refusals.ts";
import type { Model, Refusal, RefusalName, Usage } from "../types.ts";
import type { Answer, AnswerEnd, ReplyIdentity } from "./dialect.ts";
import type { MessagesAsk } from "./messages-request.ts";
import { signatureOf } from "./thinking-signature.ts";

/** The stream collected, as JSON text. */
export function reply(ask: MessagesAsk, identity: ReplyIdentity, answer: Answer, end: AnswerEnd): string {
  const content: string[] = [];
  if (ask.thinking !== "hidden" && answer.reasoning !== null && answer.reasoning !== '""') {
    const [thinking, omitted] = ask.thinking === "omitted" ? ['""', answer.reasoning] : [answer.reasoning, '""'];
    content.push(`{"type":"thinking","thinking":${thinking},"signature":"${signatureOf(JSON.parse(omitted))}"}`);
  }
  if (answer.text !== null && answer.text !== '""') content.push(textBlock(answer.text));
  for (const call of answer.calls) {
    const input = argumentsObject(call.arguments);
    if (input === null && end.reason === "length") continue; // the budget cut it in the middle: no call to be run
    content.push(
      `{"type":"tool_use","id":${JSON.stringify(call.id)},"name":${JSON.stringify(call.name)},"input":${input ?? "{}"}}`,
    );
  }
  if (content.length === 0) content.push(textBlock('""'));
  const { stop_reason, stop_sequence } = stopOf(end);
  return `${messageHead(ask.model, identity)},"content":[${content.join(",")}],"stop_reason":"${stop_reason}","stop_sequence":${JSON.stringify(stop_sequence)},"usage":${JSON.stringify(usageBody(ask.model, end.usage))}}`;
}

/** Without `citations`: a null there breaks version 6 of the AI SDK. */
const textBlock = (literal: string): string => `{"type":"text","text":${literal}}`;

/** The fields of a message that are known from the start; the object is left open. */
export const messageHead = (model: Model, identity: ReplyIdentity): string =>
  `{"id":"msg_${identity.requestId.slice("req_".length)}","type":"message","role":"assistant","model":${JSON.stringify(model.id)}`;

/** The arguments' JSON text if it is an object, as `input` must be one; null if it is not, or not complete. */
export function argumentsObject(literal: string): string | null {
  const text = JSON.parse(literal) as string;
  if (!text.trimEnd().endsWith("}")) return null; // JSON that ends like this is an object
  try {
    JSON.parse(text);
    return text;
  } catch {
    return null; // what a model writes as arguments may be anything; that it does not parse is the answer
  }
}

export function stopOf({ reason, stopSequence }: AnswerEnd): { stop_reason: string; stop_sequence: string | null } {
  switch (reason) {
    case "stop":
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
 * tiers have neither: every client reads a reply without them, and a zero would say that nothing was cached.
 */
export function usageBody(model: Model, usage: Usage): object {
  if (model.tier === "first-party") {
    return { input_tokens: usage.inputFresh + usage.inputCached, output_tokens: usage.output };
  }
  return {
    input_tokens: usage.inputFresh,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.inputCached,
    output_tokens: usage.output,
  };
}

/** What the SDK's tool runners act on: they go on with whole conversations. */
const details: Partial<Record<RefusalName, object>> = {
  threads_not_kept: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
};

/** This dialect's error objects have a type and a message; `code` and `param` belong to the others. */
export function errorBody(refusal: Refusal, requestId: string): string {
  const row = refusals[refusal.refusal];
  const error = { type: row.type, message: messageOf(refusal), details: details[refusal.refusal] };
  return JSON.stringify({ type: "error", error, request_id: requestId });
}
