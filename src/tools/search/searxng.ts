// SearXNG, which the operator runs (docs.searxng.org, Search API). It cannot limit the number of results.
import type { WebSearchConfig } from "../../config/config.ts";
import { plainResults } from "./answer-fields.ts";
import type { SearchService } from "./search-service.ts";

export function searxngSearch({ url, apiKey }: WebSearchConfig): SearchService {
  // SearXNG itself has no keys, but a proxy before it may.
  const headers: Record<string, string> = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
  return {
    request: (query) => ({
      url: `${url}/search?${new URLSearchParams({ q: query, format: "json" })}`,
      body: null,
      headers,
    }),
    results: plainResults,
    remedy: (status) => {
      if (status === 403) return 'add "json" to search.formats in its settings.yml';
      return status === 429 ? "its limiter refuses; set server.limiter to false in its settings.yml" : null;
    },
  };
}
