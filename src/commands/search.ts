// tollgate search QUERY: prints search results as a model reads them.
import { searchResultsMax } from "../core/limits.ts";
import { PublicFetchClient } from "../tools/fetch/public-fetch-client.ts";
import type { SearchProvider } from "../tools/search/search-provider.ts";
import { FolderSearch } from "../tools/search/folder-search.ts";
import { openSearchProvider } from "../tools/search/open.ts";
import { type Invocation, readWhole, textFlag } from "./command.ts";
import { folderSearchParts, searchConfigOf } from "./search-index.ts";

/** A single search needs no queue. */
const noAccount = 0;

export default async function search(invocation: Invocation): Promise<number> {
  const { words, flags } = invocation;
  const asked = textFlag(flags, "results");
  const resultsMax = asked === undefined ? searchResultsMax : readWhole("--results", asked, 1);
  const provider = await openUpToDate(invocation);
  try {
    const sources = await provider.search(words[0]!, resultsMax, noAccount, new AbortController().signal);
    if (flags["json"] === true) console.log(JSON.stringify(sources));
    else if (sources.length === 0) console.log("Nothing was found.");
    for (const { title, url, text } of flags["json"] === true ? [] : sources) {
      console.log(`${title}\n${url}\n${text.replace(/^/gm, "    ")}\n`);
    }
    return 0;
  } finally {
    await provider.close();
  }
}

/** Updates the folder's index first. */
async function openUpToDate(invocation: Invocation): Promise<SearchProvider> {
  const search = await searchConfigOf(invocation);
  const parts = folderSearchParts(invocation);
  if (search.provider !== "local") {
    return (await openSearchProvider(search, { ...parts, publicFetch: new PublicFetchClient() }))!;
  }
  const folder = await FolderSearch.open(search, parts);
  await folder.scan();
  return folder;
}
