// Search services, whose documented answers a local server returns: what is asked, how answers are read, and what
// happens when the service fails. No failure may reveal the query.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { WebSearchConfig } from "../../../src/config/config.ts";
import { searchResultTextMaxLength } from "../../../src/tools/limits.ts";
import { SearchFailed } from "../../../src/tools/search/search-provider.ts";
import {
  searchAnswerMaxBytes,
  searchesAccountMax,
  searchesAtOnceMax,
  WebSearch,
} from "../../../src/tools/search/web-search.ts";

const recorded = (name: string): string =>
  readFileSync(join(import.meta.dir, `../../fixtures/search/${name}.json`), "utf8");
const query = 'how tall is the "tokyo tower" & more? #1';
const never = new AbortController().signal;

let answer: (request: Request) => Response | Promise<Response>;
let asked: { method: string; url: URL; headers: Headers; body: string }[];
let server: Bun.Server<undefined>;
beforeEach(() => {
  asked = [];
  answer = () => new Response("{}");
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { method, url, headers } = request;
      asked.push({ method, url: new URL(url), headers, body: await request.text() });
      return answer(request);
    },
  });
});
afterEach(() => server.stop(true));

const provider = (name: WebSearchConfig["provider"], more: Partial<WebSearchConfig> = {}): WebSearch =>
  new WebSearch({
    provider: name,
    url: server.url.href.replace(/\/$/, ""),
    apiKey: "sesame",
    timeoutMs: 300_000,
    pages: 0,
    ...more,
  });

async function failure(searching: Promise<unknown>): Promise<string> {
  const error = await searching.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SearchFailed);
  const { message } = error as SearchFailed;
  expect(message).not.toContain("tokyo");
  expect(message).not.toContain("sesame");
  return message;
}

describe("SearXNG", () => {
  test("is asked for JSON, and gives each web address once", async () => {
    answer = () => new Response(recorded("searxng"), { headers: { "content-type": "application/json" } });
    const sources = await provider("searxng").search(query, 10, 1, never);
    expect(sources).toEqual([
      {
        title: "Tokyo Tower - Wikipedia",
        url: "https://en.wikipedia.org/wiki/Tokyo_Tower",
        text: "Tokyo Tower is a communications and observation tower in Minato, Tokyo. At 332.9 meters (1,092 ft), it was the tallest structure in Japan until 2012.",
      },
      { title: "TOKYO TOWER | Official", url: "https://www.tokyotower.co.jp/en/", text: "" },
      {
        title: "Tokyo Tower / GO TOKYO",
        url: "https://www.gotokyo.org/en/spot/8/index.html",
        text: "Standing at 333 meters, the tower is a symbol of the city.",
      },
    ]);
    const [{ method, url, headers }] = asked as [(typeof asked)[0]];
    expect([method, url.pathname]).toEqual(["GET", "/search"]);
    expect(Object.fromEntries(url.searchParams)).toEqual({ q: query, format: "json" });
    expect(headers.get("authorization")).toBe("Bearer sesame");
    expect(headers.get("accept-encoding")).toBe("identity");
  });

  test("gives no more than is asked for, although it cannot be told", async () => {
    answer = () => new Response(recorded("searxng"));
    expect(await provider("searxng", { apiKey: null }).search(query, 2, 1, never)).toHaveLength(2);
    expect(asked[0]!.headers.has("authorization")).toBe(false);
  });

  test("that was not told to give JSON is a hint for the operator", async () => {
    answer = () => new Response("<html>", { status: 403 });
    expect(await failure(provider("searxng").search(query, 5, 1, never))).toBe(
      'searxng: it answered with status 403: add "json" to search.formats in its settings.yml',
    );
  });
});

describe("Brave", () => {
  test("is asked with its token, and its HTML becomes text", async () => {
    answer = () => new Response(recorded("brave"));
    expect(await provider("brave").search(query, 5, 1, never)).toEqual([
      {
        title: "Tokyo Tower - Wikipedia",
        url: "https://en.wikipedia.org/wiki/Tokyo_Tower",
        text: 'At 332.9 meters (1,092 ft), it\'s the second-tallest tower in Japan & a symbol of "Tokyo".\nIt is painted white & international orange.\nBuilt in 1958.',
      },
      { title: "Height of the tower <1,000 ft?", url: "https://www.tokyotower.co.jp/en/height", text: "333 m" },
    ]);
    const [{ method, url, headers }] = asked as [(typeof asked)[0]];
    expect([method, url.pathname]).toEqual(["GET", "/web/search"]);
    expect(Object.fromEntries(url.searchParams)).toEqual({ q: query, count: "5", text_decorations: "false" });
    expect(headers.get("x-subscription-token")).toBe("sesame");
  });

  test("that finds nothing has no web results at all, which is no failure", async () => {
    answer = () => Response.json({ type: "search", query: { original: "x" } });
    expect(await provider("brave").search(query, 5, 1, never)).toEqual([]);
  });

  test("takes 50 words and 20 results", async () => {
    answer = () => Response.json({ type: "search" });
    await provider("brave").search("a ".repeat(100), 99, 1, never);
    const { searchParams } = asked[0]!.url;
    expect([searchParams.get("q")!.split(" ").length, searchParams.get("count")]).toEqual([50, "20"]);
  });
});

describe("Tavily", () => {
  test("is asked with its key in the body's language", async () => {
    answer = () => new Response(recorded("tavily"));
    const sources = await provider("tavily").search(query, 5, 1, never);
    expect(sources.map(({ url, text }) => [url, text.length > 20])).toEqual([
      ["https://en.wikipedia.org/wiki/Tokyo_Tower", true],
      ["https://www.gotokyo.org/en/spot/8/index.html", true],
    ]);
    const [{ method, url, headers, body }] = asked as [(typeof asked)[0]];
    expect([method, url.pathname, headers.get("authorization")]).toEqual(["POST", "/search", "Bearer sesame"]);
    expect(JSON.parse(body)).toEqual({ query, max_results: 5, search_depth: "basic" });
  });

  test("whose plan is used up says so to the operator", async () => {
    answer = () => Response.json({ detail: { error: "limit" } }, { status: 432 });
    expect(await failure(provider("tavily").search(query, 5, 1, never))).toContain("quota of its plan");
  });
});

describe.each(["searxng", "brave", "tavily"] as const)("whatever %s answers", (name) => {
  const result = (text: string, url = "https://a.example/") => {
    const results = [{ title: "A", url, content: text, description: text }];
    return Response.json({ results, web: { results } });
  };

  test.each([
    ["an error", () => new Response("no", { status: 500 }), "it answered with status 500"],
    ["a redirect", () => Response.redirect("http://127.0.0.1:1/"), "it answered with status 302"],
    ["a page instead of JSON", () => new Response("<html>tokyo"), "its answer is no JSON"],
    ["a number", () => new Response("5"), "its answer is no JSON object"],
    [
      "another shape",
      () => Response.json({ results: 5, web: { results: "tokyo" } }),
      "its answer could not be understood",
    ],
    [
      "too much",
      () => new Response("x".repeat(searchAnswerMaxBytes + 1)),
      `its answer is larger than ${searchAnswerMaxBytes} bytes`,
    ],
  ])("%s fails without the query", async (_, response, reason) => {
    answer = response;
    expect(await failure(provider(name).search(query, 5, 1, never))).toStartWith(`${name}: ${reason}`);
  });

  test("entries that are no results are left out", async () => {
    const results = [
      null,
      5,
      "x",
      [],
      {},
      { url: 5 },
      { url: "javascript:alert(1)" },
      { url: "http://u:p@a.example/" },
    ];
    answer = () => Response.json({ results, web: { results } });
    expect(await provider(name).search(query, 5, 1, never)).toEqual([]);
  });

  test("a long text is cut, and a title that is missing is the host", async () => {
    answer = () => {
      const results = [{ url: "https://a.example/x", content: "y".repeat(50_000), description: "y".repeat(50_000) }];
      return Response.json({ results, web: { results } });
    };
    const [source] = await provider(name).search(query, 5, 1, never);
    expect(source).toEqual({
      title: "a.example",
      url: "https://a.example/x",
      text: "y".repeat(searchResultTextMaxLength),
    });
  });

  test("a server that is away fails without its address", async () => {
    await server.stop(true);
    expect(await failure(provider(name).search(query, 5, 1, never))).toMatch(/^\w+: it cannot be reached \(\w+\)$/);
  });

  test("silence ends after the time limit", async () => {
    answer = () => new Promise(() => {});
    expect(await failure(provider(name, { timeoutMs: 100 }).search(query, 5, 1, never))).toBe(
      `${name}: it did not answer within 0.1 seconds`,
    );
  });

  test("an answer that stops in the middle ends after the time limit", async () => {
    answer = () => new Response(new ReadableStream({ start: (controller) => controller.enqueue("{") }));
    expect(await failure(provider(name, { timeoutMs: 300 }).search(query, 5, 1, never))).toContain("did not answer");
  });

  test("a client that leaves ends the search and its connection", async () => {
    const closed = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    answer = (request) => {
      request.signal.addEventListener("abort", () => closed.resolve());
      arrived.resolve();
      return new Promise(() => {});
    };
    const client = new AbortController();
    const searching = failure(provider(name).search(query, 5, 1, client.signal));
    await arrived.promise;
    client.abort();
    expect(await searching).toBe(`${name}: the client left`);
    await closed.promise;
  });

  test("an account over its share waits, and another is searched for at once", async () => {
    const release = Promise.withResolvers<void>();
    answer = async () => {
      const { url, body } = asked.at(-1)!;
      if (!(url.href + body).includes("quick")) await release.promise;
      return result("found");
    };
    const search = provider(name);
    const slow = Array.from({ length: searchesAtOnceMax + 1 }, () => search.search("slow", 1, 1, never));
    expect(await search.search("quick", 1, 2, never)).toHaveLength(1);
    expect(asked.length).toBe(searchesAccountMax + 1);
    release.resolve();
    for (const sources of await Promise.all(slow)) expect(sources).toHaveLength(1);
  });

  // the first ones give their turns to the next, and the last has none within its time
  test("one that gets no turn in the time of a search fails", async () => {
    answer = () => new Promise(() => {});
    const search = provider(name, { timeoutMs: 500 });
    const slow = Array.from({ length: 2 * searchesAccountMax }, () => failure(search.search(query, 1, 1, never)));
    expect(await failure(search.search(query, 1, 1, never))).toContain("too many searches");
    await Promise.all(slow);
  });
});
