// Counts searches and media fetches for the metrics; the tools themselves know nothing about metrics.
import type { Metrics } from "../http/metrics/metrics.ts";
import type { PublicFetch } from "../tools/fetch/public-fetch.ts";
import { SearchFailed, type SearchProvider } from "../tools/search/search-provider.ts";

export function countedSearch(provider: SearchProvider, metrics: Metrics): SearchProvider {
  return {
    async search(query, resultsMax, account, cancelSignal) {
      try {
        const sources = await provider.search(query, resultsMax, account, cancelSignal);
        metrics.countSearch(sources.length > 0 ? "found" : "nothing");
        return sources;
      } catch (error) {
        if (error instanceof SearchFailed) metrics.countSearch("failed");
        throw error;
      }
    },
    close: () => provider.close(),
  };
}

export function countedFetch(fetch: PublicFetch, metrics: Metrics): PublicFetch {
  return {
    async get(url, options, cancelSignal) {
      try {
        const fetched = await fetch.get(url, options, cancelSignal);
        metrics.countFetch("read", fetched.bytes.length);
        return fetched;
      } catch (error) {
        metrics.countFetch("refused", 0);
        throw error;
      }
    },
  };
}
