// Finds the signed-in account by a request's cookie, for the console's API and the playground's calls to /v1, and
// defines a browser's three cookies: its session, known accounts, and a started sign-in.
import type { SessionRecord } from "../account/records.ts";
import type { Office } from "../account/office.ts";
import type { SessionLookup } from "../account/sign-in/sessions.ts";
import type { Clock } from "../core/clock.ts";
import { isSameOrigin } from "../http/same-origin.ts";
import { sessionMaxMs } from "../core/limits.ts";
import { dayMs } from "../core/units.ts";
import { providerSignInMs } from "./oidc/begun-sign-ins.ts";
import type { Soon } from "../core/soon.ts";
import type { AccountId } from "../core/types.ts";
import { consoleHeader } from "./api/console-header.ts";
import type { Visitor } from "./routes/route.ts";

/** A browser stays known for as long as browsers keep a cookie: 400 days at most. */
const knownBrowserMaxMs = 400 * dayMs;

type Parts = Readonly<{ sessions: SessionLookup; office: Office; clock: Clock; baseUrl: string }>;

export class SignedIn {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Null: not signed in. Throws StoreUnavailable. */
  async visitor(headers: Headers): Promise<Visitor | null> {
    const { sessions, office, clock, baseUrl } = this.#parts;
    const token = tokenOf(headers, baseUrl);
    const session = token === null ? null : await sessions.find(token, clock.wall());
    const account = session === null ? null : await office.read(({ accounts }) => accounts.record(session.account));
    return session === null || account === null ? null : { session, account };
  }

  /**
   * The account of a request of our own pages: with our cookie, Origin and header; else null. Browsers send no Origin with a GET
   * of the own site, and always one with another's that has the header. Throws StoreUnavailable.
   */
  account({ headers, method }: Request): Soon<AccountId | null> {
    const { sessions, clock, baseUrl } = this.#parts;
    const isOwn = (method === "GET" && !headers.has("origin")) || isSameOrigin(headers, baseUrl);
    if (headers.get(consoleHeader) !== "1" || !isOwn) return null;
    const token = tokenOf(headers, baseUrl);
    const session = token === null ? null : sessions.find(token, clock.wall());
    return session instanceof Promise ? session.then(accountOf) : accountOf(session);
  }
}

const accountOf = (session: SessionRecord | null): AccountId | null => session?.account ?? null;

type CookieName = "tollgate_session" | "tollgate_browser" | "tollgate_provider";

/** `set-cookie` that signs a browser in. */
export const signInCookie = (token: string, baseUrl: string): string =>
  cookie("tollgate_session", token, sessionMaxMs, baseUrl);

/** `set-cookie` that signs it out. */
export const signOutCookie = (baseUrl: string): string => cookie("tollgate_session", "", 0, baseUrl);

/** `set-cookie` that lets a later sign-in recognize the browser, even after it signed out. */
export const knownBrowserCookie = (kept: string, baseUrl: string): string =>
  cookie("tollgate_browser", kept, knownBrowserMaxMs, baseUrl);

/** What the browser sends as proof of an earlier sign-in, unchecked; null: nothing. */
export const knownBrowserText = (headers: Headers, baseUrl: string): string | null =>
  cookieOf("tollgate_browser", headers, baseUrl);

/** `set-cookie` that keeps a started sign-in with a provider; null removes it. */
export const begunCookie = (begun: string | null, baseUrl: string): string =>
  cookie("tollgate_provider", begun ?? "", begun === null ? 0 : providerSignInMs, baseUrl);

/** What the browser sends as its started sign-in, unchecked. */
export const begunText = (headers: Headers, baseUrl: string): string =>
  cookieOf("tollgate_provider", headers, baseUrl) ?? "";

function cookie(name: CookieName, value: string, maxAgeMs: number, baseUrl: string): string {
  const secure = baseUrl.startsWith("https:") ? "; Secure" : "";
  const maxAge = Math.floor(maxAgeMs / 1000);
  return `${fullName(name, baseUrl)}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure}`;
}

/** Browsers accept a `__Host-` cookie only over https, for this very host and without a domain. */
const fullName = (name: CookieName, baseUrl: string): string =>
  baseUrl.startsWith("https:") ? `__Host-${name}` : name;

function cookieOf(name: CookieName, headers: Headers, baseUrl: string): string | null {
  const cookies = headers.get("cookie");
  return cookies === null ? null : new Bun.CookieMap(cookies).get(fullName(name, baseUrl));
}

const tokenOf = (headers: Headers, baseUrl: string): string | null => cookieOf("tollgate_session", headers, baseUrl);
