// Decides which pages of other sites may call the API and read its replies (CORS): none, unless the operator names
// them. They authenticate with a key, never with a cookie: a reply to a request with a cookie is never opened to them.
import type { Soon } from "../core/soon.ts";
import type { KeyHeaders } from "./key-headers.ts";
import { rateHeaderNames } from "./rate-headers.ts";

/** A browser asks before a page's first request, then not again for this long; Chromium caps it at 2 hours. */
const preflightMaxAgeSeconds = 7_200;

/** Headers of our replies, beside those that every page may read. */
const readableHeaders = [
  "x-request-id",
  "request-id",
  "retry-after",
  "x-should-retry",
  "x-priority",
  "x-fallback-from",
  ...rateHeaderNames,
].join(", ");
const methods = "GET, POST, DELETE";
/** Headers with this prefix belong to the console. */
const ownHeader = /^x-tollgate-/i;

export class CrossOrigin {
  readonly #origins: () => readonly string[];
  readonly #keyHeaders: KeyHeaders;

  /** `origins`: as browsers write them, or only "*" for all; empty: none. It may change. */
  constructor(origins: () => readonly string[], keyHeaders: KeyHeaders) {
    this.#origins = origins;
    this.#keyHeaders = keyHeaders;
  }

  opened(request: Request, reply: Soon<Response>): Soon<Response> {
    if (this.#origins().length === 0 || !request.headers.has("origin")) return reply;
    const origin = this.#allowed(request.headers);
    const open = (response: Response): Response => {
      response.headers.set("vary", "origin");
      if (origin === null) return response;
      response.headers.set("access-control-allow-origin", origin);
      response.headers.set("access-control-expose-headers", readableHeaders);
      return response;
    };
    return reply instanceof Promise ? reply.then(open) : open(reply);
  }

  /** The answer to a browser's preflight; null: this is none, or the page may not call. */
  preflight(request: Request): Response | null {
    const { headers } = request;
    if (request.method !== "OPTIONS" || !headers.has("access-control-request-method")) return null;
    const origin = this.#allowed(headers);
    if (origin === null) return null;
    const wanted = (headers.get("access-control-request-headers") ?? "").split(",").map((name) => name.trim());
    const allowed = wanted.filter((name) => name !== "" && !ownHeader.test(name));
    const reply = new Response(null, {
      status: 204,
      headers: {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": methods,
        "access-control-max-age": String(preflightMaxAgeSeconds),
        vary: "origin, access-control-request-headers, access-control-request-private-network",
      },
    });
    if (allowed.length > 0) reply.headers.set("access-control-allow-headers", allowed.join(", "));
    // A public page's request to a gateway in a private network.
    if (headers.get("access-control-request-private-network") === "true") {
      reply.headers.set("access-control-allow-private-network", "true");
    }
    return reply;
  }

  #allowed(headers: Headers): string | null {
    const origin = headers.get("origin");
    if (origin === null || this.#keyHeaders.mayBeSignedIn(headers)) return null;
    const origins = this.#origins();
    if (origins[0] === "*") return "*";
    return origins.includes(origin) ? origin : null;
  }
}
