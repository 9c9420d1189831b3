// The console's replies: JSON that must not be cached, and failures with their status.
import type { ApiError, ApiErrorCode } from "./api.ts";
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

/** Of every reply of the console. */
export const safetyHeaders = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
} as const;

/** Of every reply that shows an account's data. */
export const privateHeaders = { ...safetyHeaders, "cache-control": "no-store" } as const;

/** With these cookies for the browser. */
export function withCookies(reply: Response, ...cookies: readonly string[]): Response {
  for (const cookie of cookies) reply.headers.append("set-cookie", cookie);
  return reply;
}

export const jsonReply = (body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: { ...privateHeaders, "content-type": "application/json; charset=utf-8", ...headers },
  });

export function failureReply({ failure, message, retrySeconds }: Failure): Response {
  const body: ApiError = {
    error: { code: failure, message, ...(retrySeconds === undefined ? {} : { retry_seconds: retrySeconds }) },
  };
  const headers: Record<string, string> = retrySeconds === undefined ? {} : { "retry-after": String(retrySeconds) };
  return jsonReply(body, statuses[failure], headers);
}
