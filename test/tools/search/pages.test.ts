// Search results whose pages are read: which ones, under which rules, and what happens when a page cannot be read.
import { describe, expect, test } from "bun:test";
import { searchResultTextMaxLength } from "../../../src/tools/limits.ts";
import type { Source } from "../../../src/tools/owned-tool.ts";
import {
  type Fetched,
  type FetchOptions,
  FetchRefused,
  type PublicFetch,
} from "../../../src/tools/fetch/public-fetch.ts";
import type { SearchProvider } from "../../../src/tools/search/search-provider.ts";
import { searchPageMaxBytes, searchPagesTimeoutMs, withPages } from "../../../src/tools/search/pages.ts";

const sources: readonly Source[] = [1, 2, 3].map((number) => ({
  title: `Page ${number}`,
  url: `https://${number}.example/`,
  text: `snippet ${number}`,
}));
const never = new AbortController().signal;
const provider: SearchProvider = { search: async () => sources, close: async () => {} };

const page = (body: string | Uint8Array, mediaType = "text/html", charset: string | null = null): Fetched => ({
  url: "https://elsewhere.example/",
  mediaType,
  charset,
  bytes: typeof body === "string" ? new TextEncoder().encode(body) : body,
});

async function textWith(fetched: Fetched | Error): Promise<string> {
  const publicFetch: PublicFetch = {
    get: async () => {
      if (fetched instanceof Error) throw fetched;
      return fetched;
    },
  };
  const [first] = await withPages(provider, 1, publicFetch).search("q", 3, 1, never);
  return first!.text;
}

describe("the pages of a search's results", () => {
  test("are read for the first ones alone, under the rules for strangers' addresses", async () => {
    const fetched: [string, FetchOptions, AbortSignal][] = [];
    const publicFetch: PublicFetch = {
      get: async (url, options, cancelSignal) => {
        fetched.push([url, options, cancelSignal]);
        return page(`<p>whole ${url}`);
      },
    };
    const client = new AbortController().signal;
    const found = await withPages(provider, 2, publicFetch).search("q", 3, 7, client);
    expect(found).toEqual([
      { ...sources[0]!, text: "snippet 1\n\nwhole https://1.example/" },
      { ...sources[1]!, text: "snippet 2\n\nwhole https://2.example/" },
      sources[2]!,
    ]);
    expect(fetched.map(([url]) => url)).toEqual(["https://1.example/", "https://2.example/"]);
    const [, { account, bytesMax, timeoutMs }, cancelSignal] = fetched[0]!;
    expect([account, bytesMax, timeoutMs]).toEqual([7, searchPageMaxBytes, searchPagesTimeoutMs]);
    expect(cancelSignal).toBe(client);
  });

  test.each<[string, Fetched | Error]>([
    ["is refused", new FetchRefused()],
    ["is an image", page("GIF89a", "image/gif")],
    ["has no text", page("<nav>Menu</nav>")],
    ["is empty", page("")],
  ])("one that %s leaves its snippet", async (_, fetched) => {
    expect(await textWith(fetched)).toBe("snippet 1");
  });

  test("a fault of the program is not taken for a page that is away", async () => {
    expect(textWith(new TypeError("a bug"))).rejects.toThrow("a bug");
  });

  test.each<[string, Fetched, string]>([
    ["by its header", page(Buffer.from("<p>caf\xe9", "latin1"), "text/html", "iso-8859-1"), "café"],
    ["by its meta element", page(Buffer.from('<meta charset="windows-1252"><p>caf\xe9', "latin1")), "café"],
    ["UTF-8 where nobody knows it", page("<p>café", "text/html", "x-unheard-of"), "café"],
    ["with wrong bytes", page(Buffer.from("<p>caf\xe9", "latin1")), "caf\ufffd"],
    ["of plain text", page("caf<é>\n", "text/plain", "utf-8"), "caf<é>"],
  ])("the encoding is read: %s", async (_, fetched, text) => {
    expect(await textWith(fetched)).toBe(`snippet 1\n\n${text}`);
  });

  test("long ones are cut", async () => {
    expect((await textWith(page(`<p>${"word ".repeat(10_000)}`))).length).toBe(searchResultTextMaxLength);
  });
});
