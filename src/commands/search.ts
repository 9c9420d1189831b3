// tollgate search QUERY: prints what the configured search finds, as a model would read it.
import { searchResultsMax } from "../core/limits.ts";
import { PublicFetchClient } from "../tools/fetch/public-fetch-client.ts";
import type { SearchProvider } from "../tools/search/search-provider.ts";
import { FolderSearch } from "../tools/search/folder-search.ts";
import { openSearchProvider } from "../tools/search/open.ts";
import { type Invocation, readWhole, textFlag } from "./command.ts";
import { folderSearchParts, searchConfigOf } from "./search-index.ts";

/** Only one search runs here, so that no turns are taken. */
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

/** The folder's index is in line with the folder before it is asked. */
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
