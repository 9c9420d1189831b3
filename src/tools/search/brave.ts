// Brave Search (api-dashboard.search.brave.com, Web Search). Its answers contain HTML with entities.
import type { WebSearchConfig } from "../../config/config.ts";
import { searchResultTextMaxLength } from "../limits.ts";
import { decodeHTML } from "entities/decode";
import { objectsOf, textOf } from "./answer-fields.ts";
import type { SearchService } from "./search-service.ts";

const publicUrl = "https://api.search.brave.com/res/v1";
/** Limits of its parameters; it answers 422 beyond them. */
const wordsMax = 50;
const countMax = 20;

export function braveSearch({ url, apiKey }: WebSearchConfig): SearchService {
  return {
    request: (query, resultsMax) => {
      const parameters = new URLSearchParams({
        q: query.trim().split(/\s+/).slice(0, wordsMax).join(" "),
        count: String(Math.min(resultsMax, countMax)),
        text_decorations: "false",
      });
      return {
        url: `${url ?? publicUrl}/web/search?${parameters}`,
        body: null,
        headers: { "x-subscription-token": apiKey ?? "" },
      };
    },
    results: ({ web }) => {
      // An answer without web results lacks "web" altogether.
      const results = web === undefined ? [] : (web as { results?: unknown } | null)?.results;
      return objectsOf(results).map(({ title, url, description, extra_snippets }) => ({
        title: plain(title),
        url: textOf(url),
        // Some of its plans add excerpts.
        text: [description, ...(Array.isArray(extra_snippets) ? extra_snippets : [])].map(plain).join("\n"),
      }));
    },
    remedy: (status) => {
      if (status === 401 || status === 422) return "is the API key right?";
      return status === 429 ? "the rate or quota of its plan is used up" : null;
    },
  };
}

const plain = (html: unknown): string =>
  decodeHTML(
    textOf(html)
      .slice(0, 2 * searchResultTextMaxLength)
      .replace(/<\/?[a-z][^<>]*>/gi, ""),
  );
