// What the messages dialect writes when an answer is complete or refused: the reply, its usage and the error body.
import { argumentsObject } from "../reply/call-arguments.ts";
import { factsOf, messageOf, refusals } from "../../core/refusals.ts";
import type { Model, Piece, Refusal, RefusalName, Usage } from "../../core/types.ts";
import type { Answer, AnswerEnd, ReplyIdentity } from "../dialect.ts";
import { callBlock, citationBody, continuesCited, resultBlock, shownCall, type ShownCall } from "./blocks.ts";
import type { MessagesAsk } from "./request.ts";
import { signatureOf } from "./thinking-signature.ts";

/** The stream collected, as JSON text. */
export function reply(ask: MessagesAsk, identity: ReplyIdentity, answer: Answer, end: AnswerEnd): string {
  const content = new Content(ask, stemOf(identity), end);
  for (const piece of answer.pieces) content.add(piece);
  const { stop_reason, stop_sequence } = stopOf(end);
  return `${messageHead(ask.model, identity)},"content":[${content.blocks().join(",")}],"stop_reason":"${stop_reason}","stop_sequence":${JSON.stringify(stop_sequence)},"usage":${JSON.stringify(usageBody(ask.model, end.usage, content.searches))}}`;
}

/** The blocks of a reply that is complete, as JSON texts. */
class Content {
  readonly #ask: MessagesAsk;
  readonly #stem: string;
  readonly #end: AnswerEnd;
  readonly #blocks: string[] = [];
  /** The text block to which text may still be added. */
  #text: { literals: string[]; citations: string[] } | null = null;
  #call: Extract<Piece, { kind: "call" }> | null = null;
  #shown: ShownCall | null = null;
  #ownedCalls = 0;
  searches = 0;

  constructor(ask: MessagesAsk, stem: string, end: AnswerEnd) {
    this.#ask = ask;
    this.#stem = stem;
    this.#end = end;
  }

  blocks(): readonly string[] {
    this.#closeText();
    return this.#blocks.length === 0 ? [textBlock('""', [])] : this.#blocks;
  }

  add(piece: Piece): void {
    switch (piece.kind) {
      case "text":
        return this.#addText(piece.literal);
      case "reasoning":
        if (this.#ask.thinking !== "hidden") this.#push(thinkingBlock(piece.literal, this.#ask.thinking === "omitted"));
        return;
      case "call":
        this.#call = piece;
        return;
      case "call-arguments":
        return this.#addCall(piece.literal);
      case "owned-call":
        this.#shown = shownCall(piece, this.#stem, this.#ownedCalls++);
        return this.#push(callBlock(piece, this.#shown, piece.call.arguments));
      case "owned-result":
        if (this.#shown!.isSearch && !piece.outcome.failed) this.searches++;
        return this.#push(resultBlock(piece.outcome, this.#shown!));
      case "citation":
        this.#text?.citations.push(citationBody(piece.source));
        return;
      default:
        return piece satisfies never;
    }
  }

  #addText(literal: string): void {
    if (this.#text !== null && this.#text.citations.length > 0 && !continuesCited(literal)) this.#closeText();
    this.#text ??= { literals: [], citations: [] };
    this.#text.literals.push(literal.slice(1, -1));
  }

  /** Broken arguments go by the name that Anthropic's documentation gives them; an empty object would be run. */
  #addCall(literal: string): void {
    const { id, name } = this.#call!;
    const input = argumentsObject(literal);
    if (input === null && this.#end.reason === "length") return; // the budget cut it in the middle: no call to be run
    const given = input ?? (isNothing(literal) ? "{}" : `{"INVALID_JSON":${literal}}`);
    this.#push(`{"type":"tool_use","id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"input":${given}}`);
  }

  #push(block: string): void {
    this.#closeText();
    this.#blocks.push(block);
  }

  #closeText(): void {
    if (this.#text === null) return;
    this.#blocks.push(textBlock(`"${this.#text.literals.join("")}"`, this.#text.citations));
    this.#text = null;
  }
}

/** Models write nothing or null for a tool without parameters. */
const isNothing = (literal: string): boolean => /^(?:null)?$/.test((JSON.parse(literal) as string).trim());

/** Without `citations` where there are none: a null there breaks version 6 of the AI SDK. */
const textBlock = (literal: string, citations: readonly string[]): string =>
  citations.length === 0
    ? `{"type":"text","text":${literal}}`
    : `{"type":"text","text":${literal},"citations":[${citations.join(",")}]}`;

function thinkingBlock(literal: string, omitted: boolean): string {
  const signature = signatureOf(omitted ? (JSON.parse(literal) as string) : "");
  return `{"type":"thinking","thinking":${omitted ? '""' : literal},"signature":"${signature}"}`;
}

/** Characters of a request id that go into the ids of the message and its blocks. */
export const stemOf = ({ requestId }: ReplyIdentity): string => requestId.slice("req_".length);

/** The fields of a message that are known from the start; the object is left open. */
export const messageHead = (model: Model, identity: ReplyIdentity): string =>
  `{"id":"msg_${stemOf(identity)}","type":"message","role":"assistant","model":${JSON.stringify(model.id)}`;

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
 * `searches`: web searches that were made.
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

/** What the SDK's tool runners act on: they go on with whole conversations. */
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
