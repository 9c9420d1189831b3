// The console's replies: JSON that must not be cached, and failures with their status.
import type { ApiError, ApiErrorCode } from "./api/shapes.ts";
import type { Failure } from "./routes/route.ts";

const statuses: Readonly<Record<ApiErrorCode, number>> = {
  invalid_request: 400,
  not_signed_in: 401,
  wrong_credentials: 401,
  forbidden: 403,
  foreign_origin: 403,
  not_found: 404,
  conflict: 409,
  too_many_attempts: 429,
  busy: 503,
  unavailable: 503,
  internal: 500,
};

/** Headers of every reply of the console. */
export const safetyHeaders = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
} as const;

/** Headers of every reply with an account's data. */
export const privateHeaders = { ...safetyHeaders, "cache-control": "no-store" } as const;

/** Shorter replies fit a packet. */
const compressedFromBytes = 1_000;

/** What a page reads, smaller where the browser takes that: on a slow network each kilobyte is felt. */
export function readReply(body: unknown, accepted: string | null): Response {
  const text = JSON.stringify(body);
  if (text.length < compressedFromBytes || accepted?.includes("gzip") !== true) return jsonReply(body);
  return new Response(Bun.gzipSync(text), { headers: { ...jsonHeaders, "content-encoding": "gzip" } });
}

export function jsonReply(body: unknown, cookies: readonly string[] = []): Response {
  const reply = json(body, 200);
  for (const cookie of cookies) reply.headers.append("set-cookie", cookie);
  return reply;
}

export function failureReply({ failure, message, retrySeconds, faults }: Failure): Response {
  const body: ApiError = {
    error: {
      code: failure,
      message,
      ...(retrySeconds === undefined ? {} : { retry_seconds: retrySeconds }),
      ...(faults === undefined ? {} : { faults }),
    },
  };
  return json(body, statuses[failure], retrySeconds === undefined ? {} : { "retry-after": String(retrySeconds) });
}

const jsonHeaders = { ...privateHeaders, "content-type": "application/json; charset=utf-8" };
const json = (body: unknown, status: number, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: { ...jsonHeaders, ...headers },
  });

type FileBody = string | ReadableStream<Uint8Array>;

/** A file that browsers save. */
export const fileReply = (body: FileBody, name: string, type: string): Response =>
  new Response(body, {
    headers: { ...privateHeaders, "content-type": type, "content-disposition": `attachment; filename="${name}"` },
  });

export const csvReply = (csv: FileBody, name: string): Response =>
  fileReply(csv, `${name}.csv`, "text/csv; charset=utf-8");
