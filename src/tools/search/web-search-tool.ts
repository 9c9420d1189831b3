// Web search as a tool that the gateway runs: its definition for the model, and the result of a call.
import { searchResultsMax } from "../../core/limits.ts";
import type { Log } from "../../core/log.ts";
import type { Soon } from "../../core/soon.ts";
import {
  type AccountId,
  type Call,
  searchFunctionName,
  type Source,
  type Tool,
  type ToolOutcome,
  type WebSearch,
} from "../../core/types.ts";
import type { OwnedTool, RunContext } from "../owned-tool.ts";
import { SearchFailed, type SearchProvider } from "./search-provider.ts";
import { parseOutsideJson } from "../../core/outside-json.ts";

/** Brave's limit; others accept more. */
export const searchQueryMaxLength = 400;

/** If the client filters by domain, this many times more results are requested. */
const filteredFactor = 3;

/** Counts a call of the search service; false: it must not be made. */
export interface SearchCalls {
  call(): Soon<boolean>;
}

export class WebSearchTool implements OwnedTool {
  readonly tool: Tool;
  readonly serverTool = null;
  readonly #request: WebSearch;
  readonly #provider: SearchProvider;
  readonly #calls: SearchCalls;
  readonly #log: Log;
  #uses = 0;
  #found = false;

  /** `clientsTool`: the client's own function under which the model knows the search, or null. */
  constructor(request: WebSearch, clientsTool: Tool | null, provider: SearchProvider, calls: SearchCalls, log: Log) {
    this.tool = clientsTool ?? searchTool(request.location);
    this.#request = request;
    this.#provider = provider;
    this.#calls = calls;
    this.#log = log;
  }

  /** True once a search found something: then it counts for the day. */
  get found(): boolean {
    return this.#found;
  }

  async run(call: Call, { account, cancelSignal }: RunContext): Promise<ToolOutcome> {
    const { query } = parseOutsideJson(call.arguments) as { query?: unknown };
    if (typeof query !== "string" || query.trim() === "") {
      return failure("The argument query must be a text that is not empty.");
    }
    const { usesMax } = this.#request;
    if (usesMax !== null && this.#uses >= usesMax) {
      return { ...failure(noFurther), overLimit: true };
    }
    this.#uses += 1;
    const counted = this.#calls.call();
    if (!(counted instanceof Promise ? await counted : counted)) {
      this.#uses -= 1;
      return failure(noFurther);
    }
    try {
      return this.#outcome(await this.#search(query.trim().slice(0, searchQueryMaxLength), account, cancelSignal));
    } catch (error) {
      if (!(error instanceof SearchFailed)) throw error;
      this.#log("warn", "search failed", { reason: error.message });
      return failure("The search is not available now: answer with what is known, and say so.");
    }
  }

  async #search(query: string, account: AccountId, cancelSignal: AbortSignal): Promise<readonly Source[]> {
    const { allowedDomains, blockedDomains } = this.#request;
    const filtered = allowedDomains.length + blockedDomains.length > 0;
    const wanted = filtered ? searchResultsMax * filteredFactor : searchResultsMax;
    const sources = await this.#provider.search(query, wanted, account, cancelSignal);
    return sources
      .filter(({ url }) => isAllowed(url, this.#request))
      .slice(0, searchResultsMax)
      .map((source) => ({ ...source, url: new URL(source.url).href })); // percent-encodes invalid characters
  }

  #outcome(sources: readonly Source[]): ToolOutcome {
    if (sources.length === 0) return { text: "The search found nothing.", failed: false, sources };
    this.#found = true;
    return { text: "", failed: false, sources };
  }
}

const noFurther = "No further search is allowed: answer with what is known.";
const failure = (text: string): ToolOutcome => ({ text, failed: true, sources: [] });

const searchTool = (location: string | null): Tool => ({
  name: searchFunctionName,
  description:
    "Searches the web. Use it before you answer whatever may have changed since you were trained, or that you are not " +
    "sure of. It gives numbered sources." +
    (location === null ? "" : ` The user is in ${location}: name the place in the query where it matters.`),
  parameters: {
    type: "object",
    properties: { query: { type: "string", description: "What to search for" } },
    required: ["query"],
    additionalProperties: false,
  },
  strict: null,
});

/** A domain allows or blocks itself and its subdomains; with a path, only addresses that begin with it. */
export function isAllowed(
  url: string,
  { allowedDomains, blockedDomains }: Pick<WebSearch, "allowedDomains" | "blockedDomains">,
): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, pathname } = new URL(url);
  if (protocol !== "https:" && protocol !== "http:") return false;
  if (blockedDomains.some(matches)) return false;
  return allowedDomains.length === 0 || allowedDomains.some(matches);

  function matches(given: string): boolean {
    const [domain = "", ...path] = given
      .toLowerCase()
      .replace(/^https?:\/\//, "")
      .replace(/^\*\./, "")
      .split("/");
    const inDomain = hostname === domain || hostname.endsWith(`.${domain}`);
    return inDomain && pathname.toLowerCase().startsWith(`/${path.join("/")}`);
  }
}
