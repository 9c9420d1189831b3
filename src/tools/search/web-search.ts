// Searches with a web service: one request, limited in time and size, whose answer is not trusted.
import type { WebSearchConfig } from "../../config/config.ts";
import { boundedText } from "../../core/bounded-text.ts";
import { AccountTurns } from "../../core/account-turns.ts";
import { searchResultTextMaxLength } from "../limits.ts";
import { assert } from "../../core/assert.ts";
import type { AccountId } from "../../core/types.ts";
import type { Source } from "../owned-tool.ts";
import { SearchFailed, type SearchProvider } from "./search-provider.ts";
import { braveSearch } from "./brave.ts";
import type { SearchService, ServiceRequest, ServiceResult } from "./search-service.ts";
import { searxngSearch } from "./searxng.ts";
import { tavilySearch } from "./tavily.ts";
import { parseOutsideJson } from "../../core/outside-json.ts";

/** An answer of a search service; 20 results with their snippets are 100 KB. */
export const searchAnswerMaxBytes = 2 * 1024 * 1024;
/** Concurrent searches; others wait their turn, at most as long as a search may take. */
export const searchesAtOnceMax = 64;
export const searchesAccountMax = 16;

assert(searchesAccountMax < searchesAtOnceMax, "an account leaves turns to others: searches");

const serviceOf = {
  searxng: searxngSearch,
  brave: braveSearch,
  tavily: tavilySearch,
} satisfies Record<WebSearchConfig["provider"], (config: WebSearchConfig) => SearchService>;

const titleMaxLength = 300;
const urlMaxLength = 2_000;

export class WebSearch implements SearchProvider {
  readonly #config: WebSearchConfig;
  readonly #service: SearchService;
  readonly #turns = new AccountTurns(searchesAtOnceMax, searchesAccountMax);

  constructor(config: WebSearchConfig) {
    this.#config = config;
    this.#service = serviceOf[config.provider](config);
  }

  async search(
    query: string,
    resultsMax: number,
    account: AccountId,
    cancelSignal: AbortSignal,
  ): Promise<readonly Source[]> {
    using _turn = await this.#turn(account, cancelSignal);
    try {
      const answer = await this.#ask(this.#service.request(query, resultsMax), cancelSignal);
      return sourcesOf(this.#service.results(answer), resultsMax);
    } catch (error) {
      if (error instanceof SearchFailed) throw error;
      throw this.#failed(this.#reasonOf(error as Error, cancelSignal), { cause: error });
    }
  }

  async close(): Promise<void> {}

  async #turn(account: AccountId, cancelSignal: AbortSignal): Promise<Disposable> {
    const over = AbortSignal.any([cancelSignal, AbortSignal.timeout(this.#config.timeoutMs)]);
    const turn = await this.#turns.enter(account, over).catch(() => null);
    if (turn !== null) return turn;
    throw this.#failed(cancelSignal.aborted ? "the client left" : "too many searches run already");
  }

  /** No proxy, no redirects and nothing compressed: the operator named the address, and an inflated body is unbounded. */
  async #ask({ url, body, headers }: ServiceRequest, cancelSignal: AbortSignal): Promise<Record<string, unknown>> {
    const response = await fetch(url, {
      method: body === null ? "GET" : "POST",
      body,
      headers: { accept: "application/json", "accept-encoding": "identity", ...headers },
      signal: AbortSignal.any([cancelSignal, AbortSignal.timeout(this.#config.timeoutMs)]),
      redirect: "manual",
      decompress: false,
      proxy: false,
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      const remedy = this.#service.remedy(response.status);
      throw this.#failed(`it answered with status ${response.status}${remedy === null ? "" : `: ${remedy}`}`);
    }
    const text = await boundedText(response, searchAnswerMaxBytes);
    if (text === null) throw this.#failed(`its answer is larger than ${searchAnswerMaxBytes} bytes`);
    const answer: unknown = parseOutsideJson(text);
    if (typeof answer !== "object" || answer === null) throw this.#failed("its answer is no JSON object");
    return answer as Record<string, unknown>;
  }

  #reasonOf(error: Error, cancelSignal: AbortSignal): string {
    if (cancelSignal.aborted) return "the client left";
    if (error.name === "TimeoutError") return `it did not answer within ${this.#config.timeoutMs / 1000} seconds`;
    if (error instanceof SyntaxError) return "its answer is no JSON";
    // Messages of connection errors end with the requested address, which contains the query.
    return "code" in error ? `it cannot be reached (${String(error.code)})` : "its answer could not be understood";
  }

  #failed(reason: string, options?: ErrorOptions): SearchFailed {
    return new SearchFailed(`${this.#config.provider}: ${reason}`, options);
  }
}

/** Each address once, only http and https, everything bounded. */
function sourcesOf(results: readonly ServiceResult[], resultsMax: number): Source[] {
  const sources = new Map<string, Source>();
  for (const { title, url, text } of results) {
    if (sources.size >= resultsMax) break;
    const address = readAddress(url);
    if (address === null || sources.has(address)) continue;
    const line = title.replace(/\s+/g, " ").trim();
    sources.set(address, {
      title: (line === "" ? new URL(address).hostname : line).slice(0, titleMaxLength).toWellFormed(),
      url: address,
      text: text.trim().slice(0, searchResultTextMaxLength).toWellFormed(),
    });
  }
  return [...sources.values()];
}

function readAddress(url: string): string | null {
  if (url.length > urlMaxLength || !URL.canParse(url)) return null;
  const { protocol, username, password, href } = new URL(url);
  const isWeb = protocol === "http:" || protocol === "https:";
  return isWeb && username === "" && password === "" && href.length <= urlMaxLength ? href : null;
}
