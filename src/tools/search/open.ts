// Creates the configured search provider.
import type { SearchConfig } from "../../config/config.ts";
import type { PublicFetch } from "../fetch/public-fetch.ts";
import type { SearchProvider } from "./search-provider.ts";
import { FolderSearch, type FolderSearchParts } from "./folder-search.ts";
import { withPages } from "./pages.ts";
import { WebSearch } from "./web-search.ts";

/** `publicFetch` reads the pages of results, whose addresses strangers chose. */
export type SearchParts = FolderSearchParts & Readonly<{ publicFetch: PublicFetch }>;

/**
 * Null where there is no search. A folder's index is brought up to date in the background: until then search finds what
 * it has. `freed` resolves when no other process updates that index any more. Throws SearchFolderUnusable or
 * DataFolderUnusable, which the operator can fix.
 */
export async function openSearchProvider(
  config: SearchConfig | null,
  parts: SearchParts,
  freed: Promise<unknown> = Promise.resolve(),
): Promise<SearchProvider | null> {
  if (config === null) return null;
  if (config.provider === "local") {
    const search = await FolderSearch.open(config, parts);
    void freed.then(() => search.keepFresh());
    return search;
  }
  const search = new WebSearch(config);
  return config.pages === 0 ? search : withPages(search, config.pages, parts.publicFetch);
}
