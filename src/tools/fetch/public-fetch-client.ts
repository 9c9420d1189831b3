// Fetches addresses that strangers chose. The steps, for the first address and for every redirect:
//
//   1 parse   http(s), an allowed port, no credentials
//   2 look up every address of the name, once
//   3 judge   their bytes; one that is not public refuses all
//   4 dial    exactly a judged address, with the name for `host` and the certificate
//   5 read    bounded in bytes, and with all steps together in time
//
// Nothing of ours or of the client's goes along: no cookies, no keys, no proxy from the environment.
import { publicFetchesAccountMax } from "../limits.ts";
import { assert } from "../../core/assert.ts";
import { AccountTurns } from "../../core/account-turns.ts";
import type { exchange, ExchangeResult } from "./public-exchange.ts";
import { destinationOf, parsePublicUrl, type Resolve, resolvePublicName } from "./public-destination.ts";
import { ExchangeFailed, type Fetched, type FetchOptions, FetchRefused, type PublicFetch } from "./public-fetch.ts";

/** Concurrent fetches of addresses that strangers chose, including pages of search results. */
const publicFetchesMax = 64;
const publicConnectTimeoutMs = 5_000;

assert(publicFetchesAccountMax < publicFetchesMax, "an account leaves turns to others: fetches");

export type PublicFetchOptions = Readonly<{
  turns?: AccountTurns;
  resolve?: Resolve;
  ask?: typeof exchange;
}>;

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Loads with the first address. */
const exchangeOnce: typeof exchange = async (...asked) => (await import("./public-exchange.ts")).exchange(...asked);

export class PublicFetchClient implements PublicFetch {
  readonly #turns: AccountTurns;
  readonly #resolve: Resolve;
  readonly #ask: typeof exchange;

  constructor(options: PublicFetchOptions = {}) {
    this.#turns = options.turns ?? new AccountTurns(publicFetchesMax, publicFetchesAccountMax);
    this.#resolve = options.resolve ?? resolvePublicName;
    this.#ask = options.ask ?? exchangeOnce;
  }

  async get(url: string, options: FetchOptions, cancelSignal: AbortSignal): Promise<Fetched> {
    const deadline = new AbortController();
    const stop = () => deadline.abort();
    const timer = setTimeout(stop, options.timeoutMs);
    cancelSignal.addEventListener("abort", stop);
    if (cancelSignal.aborted) stop();
    try {
      using _turn = await this.#turns.enter(options.account, deadline.signal);
      return await this.#follow(url, options, deadline.signal);
    } catch (error) {
      // Failures of a name server, a connection or a parser look alike to the caller. A bug does not.
      if (error instanceof ExchangeFailed || deadline.signal.aborted) throw new FetchRefused();
      throw error;
    } finally {
      clearTimeout(timer);
      cancelSignal.removeEventListener("abort", stop);
    }
  }

  async #follow(start: string, options: FetchOptions, cancelSignal: AbortSignal): Promise<Fetched> {
    let url = parsePublicUrl(start);
    for (let followed = 0; url !== null && followed <= options.redirectsMax; followed++) {
      const { status, headers, body } = await this.#step(url, options, cancelSignal);
      if (status === 200) return { url: url.href, ...contentTypeOf(headers.get("content-type")), bytes: body };
      const location = redirects.has(status) ? headers.get("location") : undefined;
      url = location === undefined ? null : parsePublicUrl(location, url.href);
    }
    throw new FetchRefused();
  }

  async #step(url: URL, { bytesMax, accept }: FetchOptions, cancelSignal: AbortSignal): Promise<ExchangeResult> {
    const destination = await destinationOf(url, this.#resolve, cancelSignal);
    const limits = { accept, bytesMax, connectTimeoutMs: publicConnectTimeoutMs };
    for (const address of destination?.addresses ?? []) {
      try {
        return await this.#ask(address, destination!, limits, cancelSignal);
      } catch (error) {
        if (!(error instanceof ExchangeFailed && error.unreached) || cancelSignal.aborted) throw error;
      }
    }
    throw new FetchRefused();
  }
}

/** `text/html; charset="UTF-8"` -> text/html, utf-8. */
function contentTypeOf(header = ""): Pick<Fetched, "mediaType" | "charset"> {
  const [type = "", ...parameters] = header.toLowerCase().split(";");
  const charset = parameters.map((parameter) => /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/.exec(parameter)?.[1]);
  return { mediaType: type.trim(), charset: charset.find((value) => value !== undefined) ?? null };
}
