// Reads the pages behind a search's first results, under the rules for addresses that strangers chose.
import { searchResultTextMaxLength } from "../limits.ts";
import type { Source } from "../owned-tool.ts";
import { pageText } from "../media/page-text.ts";
import { type Fetched, FetchRefused, type PublicFetch } from "../fetch/public-fetch.ts";
import type { SearchProvider } from "./search-provider.ts";

export const searchPageMaxBytes = 2 * 1024 * 1024;
/** For all pages of a search; results with later pages keep their snippets. */
export const searchPagesTimeoutMs = 5_000;
const searchPageRedirectsMax = 5;

const options = {
  bytesMax: searchPageMaxBytes,
  timeoutMs: searchPagesTimeoutMs,
  redirectsMax: searchPageRedirectsMax,
  accept: "text/html, text/plain;q=0.9",
} as const;

/** The same provider, whose first `pages` results have their page's text where it could be read in time. */
export function withPages(provider: SearchProvider, pages: number, publicFetch: PublicFetch): SearchProvider {
  return {
    search: async (query, resultsMax, account, cancelSignal) => {
      const sources = await provider.search(query, resultsMax, account, cancelSignal);
      const get = (url: string): Promise<Fetched> => publicFetch.get(url, { ...options, account }, cancelSignal);
      return Promise.all(sources.map((source, index) => (index < pages ? withPage(source, get) : source)));
    },
    close: () => provider.close(),
  };
}

type GetPage = (url: string) => Promise<Fetched>;

async function withPage(source: Source, get: GetPage): Promise<Source> {
  const text = await textOfPage(source.url, get);
  if (text === "") return source;
  // The snippet comes first: it is what the page was found for, which may be far down in it.
  const whole = source.text === "" ? text : `${source.text}\n\n${text}`;
  return { ...source, text: whole.slice(0, searchResultTextMaxLength).toWellFormed() };
}

/** "" for a page that cannot be read, is no text or has none. */
async function textOfPage(url: string, get: GetPage): Promise<string> {
  let fetched: Fetched;
  try {
    fetched = await get(url);
  } catch (error) {
    if (error instanceof FetchRefused) return ""; // pages often fail, and the snippet remains
    throw error;
  }
  if (fetched.mediaType === "text/plain") return decode(fetched, null).trim();
  if (fetched.mediaType !== "text/html" && fetched.mediaType !== "application/xhtml+xml") return "";
  const html = decode(fetched, charsetOfMeta(fetched.bytes));
  const page = await pageText(html, searchResultTextMaxLength).catch(() => null); // the parser gave up on it
  return page?.text ?? "";
}

/** Wrong bytes become U+FFFD; an unknown encoding is read as UTF-8. */
function decode({ bytes, charset }: Fetched, named: string | null): string {
  for (const label of [charset, named]) {
    if (label === null) continue;
    try {
      return new TextDecoder(label as "utf-8").decode(bytes);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }
  return new TextDecoder().decode(bytes);
}

/** `<meta charset>` or `<meta http-equiv>`, within a page's first kilobyte (HTML, 4.2.5.4). */
function charsetOfMeta(bytes: Uint8Array): string | null {
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 1024));
  return /<meta[^<>]+charset\s*=\s*["']?([\w-]{1,40})/i.exec(head)?.[1] ?? null;
}
