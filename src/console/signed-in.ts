// Finds out who is signed in by a request's cookie, for the console's API and for the playground's calls to /v1.
import type { Accounts } from "../account/accounts.ts";
import type { Sessions } from "../account/sessions.ts";
import type { Clock } from "../clock.ts";
import { isSameOrigin } from "../http/same-origin.ts";
import { sessionMaxMs } from "../limits.ts";
import type { AccountId } from "../types.ts";
import { consoleHeader } from "./api.ts";
import type { Visitor } from "./route.ts";

type Parts = Readonly<{ sessions: Sessions; accounts: Accounts; clock: Clock; baseUrl: string }>;

export class SignedIn {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Null where nobody is. Throws StoreUnavailable. */
  visitor(headers: Headers): Visitor | null {
    const { sessions, accounts, clock, baseUrl } = this.#parts;
    const token = tokenOf(headers, baseUrl);
    const session = token === null ? null : sessions.find(token, clock.wall());
    const account = session === null ? null : accounts.record(session.account);
    return session === null || account === null ? null : { session, account };
  }

  /**
   * The account that a request without a key spends from: one of the playground, which has the session's cookie, our
   * own Origin and a header that no other site can send along. Null for every other. Throws StoreUnavailable.
   */
  account({ headers }: Request): AccountId | null {
    const { sessions, clock, baseUrl } = this.#parts;
    if (headers.get(consoleHeader) !== "1" || !isSameOrigin(headers, baseUrl)) return null;
    const token = tokenOf(headers, baseUrl);
    return (token === null ? null : sessions.find(token, clock.wall()))?.account ?? null;
  }
}

/** Browsers accept a `__Host-` cookie over https alone, for this very host and without a domain. */
const cookieName = (baseUrl: string): string =>
  baseUrl.startsWith("https:") ? "__Host-tollgate_session" : "tollgate_session";

/** `set-cookie` that signs a browser in. */
export const signInCookie = (token: string, baseUrl: string): string =>
  cookie(token, Math.floor(sessionMaxMs / 1000), baseUrl);

/** `set-cookie` that signs it out. */
export const signOutCookie = (baseUrl: string): string => cookie("", 0, baseUrl);

function cookie(value: string, maxAgeSeconds: number, baseUrl: string): string {
  const secure = baseUrl.startsWith("https:") ? "; Secure" : "";
  return `${cookieName(baseUrl)}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${secure}`;
}

function tokenOf(headers: Headers, baseUrl: string): string | null {
  const cookies = headers.get("cookie");
  return cookies === null ? null : new Bun.CookieMap(cookies).get(cookieName(baseUrl));
}
