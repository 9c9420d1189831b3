// Reads what a request brings: the key from its headers and the JSON of its body, both bounded.
import type { Body, Incoming, Parts } from "../gateway.ts";
import { bodyMaxBytes, largeBodyMinBytes } from "../limits.ts";
import { isRefusal, refuse } from "../refusals.ts";
import { type AccountId, type Refusal, StoreUnavailable } from "../types.ts";
import type { BodyTurns } from "./body-turns.ts";
import type { Site } from "./site.ts";

export const incomingOf = (request: Request, requestId: string, site: Site | null): Incoming => ({
  requestId,
  key: keyOf(request.headers),
  signedIn: mayBeSignedIn(request.headers, site) ? () => site!.accountOf(request) : null,
  body: () => readJson(request),
});

/** A key, right or wrong, is never passed over for a cookie. */
const mayBeSignedIn = (headers: Headers, site: Site | null): boolean =>
  site !== null && headers.has("cookie") && !headers.has("authorization") && !headers.has("x-api-key");

/** `Authorization: Bearer` or `x-api-key`, on every endpoint; two different keys are no key. */
export function keyOf(headers: Headers): string | null {
  const authorization = headers.get("authorization");
  const named = headers.get("x-api-key");
  const bearer =
    authorization !== null && /^bearer +/i.test(authorization) ? authorization.replace(/^bearer +/i, "") : null;
  if (bearer !== null && named !== null && bearer !== named) return null;
  return bearer ?? named;
}

/** The account of a route that needs no more than a key, or a page of the site on which somebody is signed in. */
export function accountOf(request: Request, keys: Parts["keys"], site: Site | null): AccountId | Refusal {
  try {
    const key = keyOf(request.headers);
    if (key !== null) return keys.account(key) ?? refuse("invalid_api_key");
    return (mayBeSignedIn(request.headers, site) ? site!.accountOf(request) : null) ?? refuse("invalid_api_key");
  } catch (error) {
    if (error instanceof StoreUnavailable) return refuse("quota_unverified");
    throw error;
  }
}

/**
 * The parsed body, or 413 / 415 / 400. Nothing is kept of a body that is too large. With `turns`, large ones wait for
 * each other.
 */
export async function readJson(request: Request, turns: BodyTurns | null = null): Promise<Body | Refusal> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding !== "" && encoding !== "identity") return refuse("unsupported_encoding");
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > bodyMaxBytes) return refuse("body_too_large");
  const body = await readText(request, declared, turns);
  if (isRefusal(body)) return body;
  try {
    return { json: JSON.parse(body.text), bytes: body.bytes };
  } catch (error) {
    return refuse("unreadable", { reason: `The request body is not valid JSON: ${(error as Error).message}` });
  }
}

type BodyText = Readonly<{ text: string; bytes: number }>;

async function readText(
  request: Request,
  declared: string | null,
  turns: BodyTurns | null,
): Promise<BodyText | Refusal> {
  try {
    const inTurn = turns !== null && (declared === null || Number(declared) >= largeBodyMinBytes);
    if (declared !== null && !inTurn) return { text: await request.text(), bytes: Number(declared) };
    // The runtime puts a body of known length together in three quarters of the time that we take for it.
    const body = declared === null ? await readChunks(request) : await request.bytes();
    if (body === null) return refuse("body_too_large");
    if (inTurn) await turns.next(); // the whole body is there before its turn: a slow client holds nobody up
    return { text: new TextDecoder().decode(body), bytes: body.byteLength };
  } catch {
    // The client left before its body was whole; what is answered now, nobody reads.
    return refuse("unreadable", { reason: "The request body ended early" });
  }
}

/** A body of unknown length, or null as soon as it is over the limit. */
async function readChunks(request: Request): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > bodyMaxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
