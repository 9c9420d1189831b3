// Tavily (docs.tavily.com, POST /search). Its `content` holds the passages of a page that match the query.
import type { WebSearchConfig } from "../../config/config.ts";
import { plainResults } from "./answer-fields.ts";
import type { SearchService } from "./search-service.ts";

const publicUrl = "https://api.tavily.com";
const resultsLimit = 20;

export function tavilySearch({ url, apiKey }: WebSearchConfig): SearchService {
  return {
    request: (query, resultsMax) => ({
      url: `${url ?? publicUrl}/search`,
      body: JSON.stringify({ query, max_results: Math.min(resultsMax, resultsLimit), search_depth: "basic" }),
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    }),
    results: plainResults,
    remedy: (status) => {
      if (status === 401) return "is the API key right?";
      return status === 429 || status === 432 || status === 433 ? "the rate or quota of its plan is used up" : null;
    },
  };
}
