// Builds replies from scratch: every header is ours (a node's headers are never relayed).
import type { Dialect } from "../dialects/dialect.ts";
import { refusals, refuse } from "../core/refusals.ts";
import type { Ask, Refusal } from "../core/types.ts";
import { setRateHeaders } from "./rate-headers.ts";
import { requestAddress } from "./request-address.ts";

/** Each reply copies these. Setting two more names costs half as much as building all headers anew. */
const jsonHeaders = new Headers({ "content-type": "application/json; charset=utf-8" });
const streamHeaders = new Headers({
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
});

function named(headers: Headers, requestId: string): Headers {
  headers.set("x-request-id", requestId);
  headers.set("request-id", requestId);
  return headers;
}

export const jsonReply = (body: string | ReadableStream, requestId: string, status = 200): Response =>
  new Response(body, { status, headers: named(jsonHeaders, requestId) });

/** `type`: of what is no stream of events. */
export function streamReply(body: ReadableStream, requestId: string, type?: string): Response {
  const reply = new Response(body, { headers: named(streamHeaders, requestId) });
  return type === undefined ? reply : typed(reply, type);
}

/** What a node made is nothing else than that, whatever it looks like. */
export function typed(reply: Response, type: string): Response {
  reply.headers.set("content-type", type);
  reply.headers.set("x-content-type-options", "nosniff");
  return reply;
}

/** Clients retry a 429 for minutes unless they learn when to, or that it cannot help. */
export function refusalReply(dialect: Dialect, refusal: Refusal, requestId: string, ask: Ask | null = null): Response {
  const reply = jsonReply(dialect.errorBody(refusal, requestId), requestId, dialect.statusOf(refusal, ask));
  const { retry } = refusals[refusal.refusal];
  if (retry === "after") reply.headers.set("retry-after", String(refusal.detail?.seconds ?? 1));
  if (refusal.rates !== undefined) setRateHeaders(reply.headers, refusal.rates, dialect);
  if (retry === "never") reply.headers.set("x-should-retry", "false");
  return reply;
}

/** The reply at an address where nothing is. */
export function unknownAddressReply(dialect: Dialect, request: Request, requestId: string): Response {
  const asked = `${request.method} ${requestAddress(request).pathname}`;
  const reason = `There is no ${asked} here. The API is under /v1, e.g. POST /v1/chat/completions`;
  return refusalReply(dialect, refuse("not_found", { reason }), requestId);
}

/** Closes the connection without a byte: any status would claim to know whether the request was charged. */
export function brokenReply(): Response {
  return new Response(
    new ReadableStream({ start: (controller) => controller.error(new Error("the connection is broken off")) }),
  );
}
