// Reads a request: its address, the key from its headers and the JSON of its body.
import { readBodyJson } from "../bodies/body-json.ts";
import type { LargeBody } from "../bodies/large-bodies.ts";
import type { RequestHead } from "../dialects/dialect.ts";
import type { Body, Incoming, GatewayParts } from "../gateway.ts";
import { endOfTurn } from "../core/end-of-turn.ts";
import { bodyMaxBytes, largeBodyMinBytes, smallBodyTokensMax } from "../core/limits.ts";
import { assert } from "../core/assert.ts";
import { refusedByLimits } from "../core/key-limits.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import type { Soon } from "../core/soon.ts";
import { type AccountId, type Endpoint, noKey, type Principal, type Refusal, StoreUnavailable } from "../core/types.ts";
import { ArrivingBodies, type ArrivingBody, unreadBodies } from "./arriving-bodies.ts";
import type { BodyTurns } from "./body-turns.ts";
import { encodingOf, inflate } from "./compressed-body.ts";
import type { KeyHeaders } from "./key-headers.ts";
import type { Site } from "./site.ts";

/** Bodies from this size on that are only counted are parsed one per turn of the event loop: 256 KiB take 1 ms. */
const bodyTurnMinBytes = 256 * 1024;

assert(bodyTurnMinBytes <= largeBodyMinBytes, "bodies are parsed in turns before they are read elsewhere");

/** A body after inflating: its text, or the bytes of a large one. */
export type RawBody = string | Uint8Array;

/** Where a request arrived: the route's path and the part at its `*`. */
export class ArrivedHead implements RequestHead {
  readonly route: Endpoint;
  readonly id: string;
  readonly headers: Headers;
  readonly #request: Request;

  constructor(request: Request, route: Endpoint, id: string) {
    this.route = route;
    this.id = id;
    this.headers = request.headers;
    this.#request = request;
  }

  /** The runtime builds a request's address only on demand: 5 us of 270. */
  get search(): string {
    const { url } = this.#request;
    const query = url.indexOf("?");
    return query === -1 ? "" : url.slice(query);
  }
}

/** `keepsLarge`: something else reads large bodies, so they are not parsed here. `keep` gets the body as it came. */
export const incomingOf = (
  request: Request,
  head: RequestHead,
  requestId: string,
  keyHeaders: KeyHeaders,
  site: Site | null,
  keepsLarge: boolean,
  address: string | null,
  keep?: (body: RawBody) => void,
): Incoming => ({
  requestId,
  head,
  key: keyHeaders.keyOf(request.headers),
  signedIn: site !== null && keyHeaders.mayBeSignedIn(request.headers) ? () => signedInOf(site, request) : null,
  address,
  body: (account) => readBody(request, account, keepsLarge, null, keep),
});

const principalOf = (account: AccountId | null): Principal | null =>
  account === null ? null : { account, key: noKey, limits: null };

function signedInOf(site: Site, request: Request): Soon<Principal | null> {
  const account = site.accountOf(request);
  return account instanceof Promise ? account.then(principalOf) : principalOf(account);
}

/** The caller of a route that needs only a key, or a page of the site with a signed-in user. */
export async function askerOf(
  request: Request,
  keyHeaders: KeyHeaders,
  { keys, clock }: Pick<GatewayParts, "keys" | "clock">,
  site: Site | null,
  address: string | null,
): Promise<Principal | Refusal> {
  try {
    const key = keyHeaders.keyOf(request.headers);
    if (key !== null) {
      const principal = await keys.principal(key);
      if (principal === null) return refuse("invalid_api_key");
      const { limits } = principal;
      return (limits === null ? null : refusedByLimits(limits, clock.wall(), address)) ?? principal;
    }
    const signedIn = site !== null && keyHeaders.mayBeSignedIn(request.headers) ? signedInOf(site, request) : null;
    return (await signedIn) ?? refuse("invalid_api_key");
  } catch (error) {
    if (error instanceof StoreUnavailable) return refuse("quota_unverified");
    throw error;
  }
}

/** The body, parsed unless large with `keepsLarge`, or 413 / 415 / 400. `turns`: large ones parse one at a time. */
export async function readBody(
  request: Request,
  account: AccountId,
  keepsLarge: boolean,
  turns: BodyTurns | null = null,
  keep?: (body: RawBody) => void,
): Promise<Body | Refusal> {
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > bodyMaxBytes) return refuse("body_too_large");
  unreadBodies.count += 1;
  let body: BodyText | LargeBody | Refusal;
  try {
    body = await readWhole(request, account, declared, keepsLarge, turns);
  } finally {
    unreadBodies.count -= 1;
  }
  if (isRefusal(body)) return body;
  keep?.("body" in body ? body.body : body.text);
  if ("body" in body) return body;
  const json = readBodyJson(body.text, keepsLarge ? smallBodyTokensMax : Number.POSITIVE_INFINITY);
  if (json === null)
    return { body: new TextEncoder().encode(body.text), bytes: body.bytes, cancelSignal: request.signal };
  return isRefusal(json) ? json : { json: json.value, bytes: body.bytes };
}

const arriving = new ArrivingBodies();

type BodyText = Readonly<{ text: string; bytes: number }>;

async function readWhole(
  request: Request,
  account: AccountId,
  declared: string | null,
  keepsLarge: boolean,
  turns: BodyTurns | null,
): Promise<BodyText | LargeBody | Refusal> {
  try {
    const encoding = encodingOf(request.headers);
    if (encoding === "unknown") return refuse("unsupported_encoding");
    const isSmall = declared !== null && encoding === null && Number(declared) < smallBodyBytes(keepsLarge, turns);
    if (isSmall) {
      const text = await request.text();
      await endOfTurn();
      return { text, bytes: Number(declared) };
    }
    using arrival = arriving.enter(account);
    const came = await readBytes(request, declared, arrival);
    if (isRefusal(came)) return came;
    const body = encoding === null ? came : await inflate(came, encoding, account, request.signal, arrival);
    if (isRefusal(body)) return body;
    if (keepsLarge && body.byteLength >= largeBodyMinBytes) {
      return { body, bytes: body.byteLength, cancelSignal: request.signal };
    }
    // The whole body is there before its turn: a slow client delays no one.
    if (turns !== null && body.byteLength >= bodyTurnMinBytes) await turns.next();
    return { text: new TextDecoder().decode(body), bytes: body.byteLength };
  } catch {
    // The client left before its body was complete; no one reads this answer.
    return refuse("unreadable", { reason: "The request body ended early" });
  }
}

/** Smaller bodies are read here, at once. */
function smallBodyBytes(keepsLarge: boolean, turns: BodyTurns | null): number {
  if (turns !== null) return bodyTurnMinBytes;
  return keepsLarge ? largeBodyMinBytes : Number.POSITIVE_INFINITY;
}

/** A body of unknown length is refused as soon as it exceeds the limit. */
async function readBytes(
  request: Request,
  declared: string | null,
  arrival: ArrivingBody,
): Promise<Uint8Array | Refusal> {
  // The runtime assembles a body of known length in three quarters of our time.
  if (declared !== null) return arrival.take(Number(declared)) ?? (await request.bytes());
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > bodyMaxBytes) return refuse("body_too_large");
    const refusal = arrival.take(chunk.byteLength);
    if (refusal !== null) return refusal;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
