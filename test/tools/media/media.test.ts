// Images and files of a request become data and text, at most four at a time, within the available room.
import { afterEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { mediaFetchesAtOnceMax } from "../../../src/tools/limits.ts";
import { fileAsText } from "../../../src/core/file-text.ts";
import {
  Media,
  mediaAccountHeldBytesMax,
  mediaFetchBytesMax,
  mediaFetchesMax,
  mediaImagesMaxLength,
  mediaRequestBytesMax,
  mediaTextMaxLength,
} from "../../../src/tools/media/media.ts";
import { needsMedia } from "../../../src/tools/media/media-parts.ts";
import { PdfReader } from "../../../src/tools/media/pdf-reader.ts";
import {
  type Fetched,
  type FetchOptions,
  FetchRefused,
  type PublicFetch,
} from "../../../src/tools/fetch/public-fetch.ts";
import type { Ask, Part, Turn } from "../../../src/core/types.ts";
import { askOf, preparedOf } from "../../fixtures/asks.ts";
import { pdf } from "../../fixtures/pdf.ts";
import { pixel, pixelUrl, png } from "../../fixtures/pictures.ts";

const stays = new AbortController().signal;
const timeLimit = 120_000;
const pdfLimitMs = 100_000; // one reader is a process from the sources: a busy machine needs longer than the usual limit

/** Answers by address; remembers what was asked and how many at once. */
class FakeWeb implements PublicFetch {
  readonly asked: (FetchOptions & { url: string })[] = [];
  atOnceMax = 0;
  #atOnce = 0;
  answer: (url: string) => Partial<Fetched> | Error | Promise<Partial<Fetched>> = () => ({ bytes: pixel });

  async get(url: string, options: FetchOptions, cancelSignal: AbortSignal): Promise<Fetched> {
    this.asked.push({ ...options, url });
    this.atOnceMax = Math.max(this.atOnceMax, ++this.#atOnce);
    try {
      await Bun.sleep(0);
      const answer = await this.answer(url);
      if (answer instanceof Error) throw answer;
      if (cancelSignal.aborted || (answer.bytes?.length ?? 0) > options.bytesMax) throw new FetchRefused();
      return { url, mediaType: "", charset: null, bytes: pixel, ...answer };
    } finally {
      this.#atOnce--;
    }
  }
}

let web = new FakeWeb();
const media = new Media(
  { get: (url, options, cancelSignal) => web.get(url, options, cancelSignal) },
  new PdfReader([process.execPath, join(import.meta.dir, "../../../src/main.ts"), "pdf-text"], {
    timeoutMs: pdfLimitMs,
  }),
);
afterEach(() => {
  web = new FakeWeb();
  expect(media.heldBytes).toBe(0);
});

const image = (url: string): Part => ({ kind: "image", url, detail: null });
const file = (url: string, name: string | null = null): Part => ({ kind: "file", url, name });
const said = (text: string): Part => ({ kind: "text", text });
const asks = (...content: Part[]): Ask => askOf({ turns: [{ role: "user", content }] });

/** The parts of the only turn when all is ready. */
async function ready(ask: Ask, cancelSignal = stays): Promise<readonly Part[]> {
  using result = await media.ready(ask, 1, cancelSignal);
  expect(needsMedia(result.ask)).toBe(false);
  return result.ask.turns[0]!.content as readonly Part[];
}

describe("what needs to be fetched or read", () => {
  test.each<[string, Turn, boolean]>([
    ["text", { role: "user", content: "text" }, false],
    ["an inline image", { role: "user", content: [said("a"), image(pixelUrl)] }, false],
    ["an assistant's silence", { role: "assistant", content: null, reasoning: null, calls: [] }, false],
    ["an address", { role: "user", content: [image("http://pictures.com/a")] }, true],
    ["a file", { role: "user", content: [file("data:application/pdf;base64,JVBERi0=")] }, true],
    ["a tool's address", { role: "tool", callId: "c", content: [image("https://pictures.com/a")] }, true],
  ])("%s", (_, turn, needed) => expect(needsMedia(askOf({ turns: [turn] }))).toBe(needed));
});

describe("images", () => {
  test("become data with the type that they have, in their places", async () => {
    const parts = await ready(asks(said("a"), image("http://pictures.com/1"), said("b"), image(pixelUrl)));
    expect(parts).toEqual([said("a"), image(pixelUrl), said("b"), image(pixelUrl)]);
  });

  test("keep how closely each is to be looked at, also those of one address", async () => {
    const [low, high] = ["low", "high"].map(
      (detail) => ({ kind: "image", url: "http://pictures.com/1", detail }) as const,
    );
    const parts = await ready(asks(low!, high!));
    expect(parts).toEqual([
      { kind: "image", url: pixelUrl, detail: "low" },
      { kind: "image", url: pixelUrl, detail: "high" },
    ]);
    expect(web.asked).toHaveLength(1);
  });

  test.each<[string, Partial<Fetched> | Error]>([
    ["an address that gives nothing", new FetchRefused()],
    ["text", { bytes: Buffer.from("<svg/>"), mediaType: "image/png" }],
    ["nothing at all", { bytes: Buffer.alloc(0) }],
    ["50.005 megapixels", { bytes: png(10_001, 5_000) }],
  ])("%s is left out", async (_, answer) => {
    web.answer = () => answer;
    expect(await ready(asks(said("a"), image("http://pictures.com/1")))).toEqual([said("a")]);
  });

  test("50 megapixels are not too many", async () => {
    web.answer = () => ({ bytes: png(10_000, 5_000) });
    expect(await ready(asks(image("http://pictures.com/1")))).toHaveLength(1);
  });

  test("a fault of ours is one", async () => {
    web.answer = () => new TypeError("a bug");
    expect(media.ready(asks(image("http://pictures.com/1")), 1, stays)).rejects.toThrow("a bug");
  });

  test("what an address weighs now counts for the estimate of its tokens, as if it had come inline", async () => {
    const url = "http://pictures.com/1";
    using result = await media.ready({ ...asks(image(url)), bodyBytes: 1_000 }, 1, stays);
    expect(result.ask.bodyBytes).toBe(1_000 - url.length + pixelUrl.length);
  });
});

describe("files", () => {
  test("a file's text counts in bytes for the estimate of its tokens, as if it had stood in the body", async () => {
    const text = "བོད་ཡིག";
    const url = `data:text/plain;base64,${Buffer.from(text).toString("base64")}`;
    using result = await media.ready({ ...asks({ kind: "file", url, name: null }), bodyBytes: 1_000 }, 1, stays);
    expect(result.ask.bodyBytes).toBe(1_000 - url.length + Buffer.byteLength(fileAsText(null, text)));
  });

  test("text is read in its encoding and marked off with its name", async () => {
    web.answer = () => ({ bytes: Buffer.from("caf\xe9", "latin1"), charset: "iso-8859-1" });
    expect(await ready(asks(file("http://pictures.com/a/menu.txt?b"), file("http://pictures.com/c", "named")))).toEqual(
      [said('<document name="menu.txt">\ncafé\n</document>'), said('<document name="named">\ncafé\n</document>')],
    );
  });

  test(
    "PDFs are read, by address and inline",
    async () => {
      const bytes = pdf("Hello");
      web.answer = () => ({ bytes });
      const inline = `data:application/pdf;base64,${bytes.toString("base64")}`;
      expect(await ready(asks(file("http://pictures.com/a.pdf"), file(inline)))).toEqual([
        said('<document name="a.pdf">\nHello\n</document>'),
        said("<document>\nHello\n</document>"),
      ]);
      expect(web.asked).toHaveLength(1);
    },
    timeLimit,
  );

  test("what is neither is left out", async () => {
    web.answer = () => ({ bytes: pixel });
    expect(await ready(asks(file("http://pictures.com/a.png")))).toEqual([]);
  });
});

describe("limits", () => {
  const addresses = (count: number) =>
    Array.from({ length: count }, (_, index) => image(`http://pictures.com/${index}`));

  test("at most four at a time, a hundred in all, each address once", async () => {
    expect(await ready(asks(...addresses(1_000)))).toHaveLength(mediaFetchesMax);
    expect(web.atOnceMax).toBe(mediaFetchesAtOnceMax);
    web = new FakeWeb();
    expect(await ready(asks(...addresses(3), ...addresses(3)))).toHaveLength(6);
    expect(web.asked).toHaveLength(3);
  });

  test("32 MiB together: the rest is neither given nor asked for", async () => {
    web.answer = () => ({ bytes: png(1, 1, 6 * 1024 * 1024) });
    expect(await ready(asks(...addresses(20)))).toHaveLength(5);
    expect(web.asked.length).toBeLessThanOrEqual(5 + mediaFetchesAtOnceMax);
    web = new FakeWeb();
    web.answer = () => ({ bytes: png(1, 1, mediaFetchBytesMax) });
    expect(await ready(asks(...addresses(4)))).toHaveLength(mediaRequestBytesMax / mediaFetchBytesMax);
  });

  const textBytes = Buffer.alloc(1_000_000, "a");

  test("a part has room for itself in all its places, or is left out of all", async () => {
    const bytes = png(1, 1, mediaFetchBytesMax);
    const times = Math.floor(mediaImagesMaxLength / ((bytes.length * 4) / 3 + 100));
    const timesText = Math.floor(mediaTextMaxLength / (textBytes.length + 100));
    const places = (count: number, part: Part): Part[] => Array.from({ length: count }, () => part);
    web.answer = () => ({ bytes });
    expect(await ready(asks(...places(times, image("http://pictures.com/1"))))).toHaveLength(times);
    expect(await ready(asks(...places(times + 1, image("http://pictures.com/1")), said("a")))).toEqual([said("a")]);
    web.answer = () => ({ bytes: textBytes });
    expect(await ready(asks(...places(timesText, file("http://pictures.com/a"))))).toHaveLength(timesText);
    expect(await ready(asks(...places(timesText + 1, file("http://pictures.com/a")), said("b")))).toEqual([said("b")]);
    // Together, too: what was read first has its places.
    const both = asks(...places(timesText, file("http://pictures.com/a")), ...places(2, file("http://pictures.com/b")));
    expect([2, timesText]).toContain((await ready(both)).length);
  });

  test("of a large body, too, where what stands before the turns is known by its parts", async () => {
    web.answer = () => ({ bytes: textBytes });
    const asked: string[][] = [];
    const prepared = preparedOf({
      unready: [
        { part: { kind: "file", url: "http://pictures.com/a", name: null }, places: 11 },
        { part: { kind: "file", url: "http://pictures.com/b", name: null }, places: 9 },
      ],
      withMedia(found) {
        asked.push([...found.keys()]);
        return Promise.resolve({ turns: preparedOf(), bodyBytes: 0 });
      },
    });
    using result = await media.ready(askOf({ prepared, turns: [] }), 1, stays);
    expect(asked).toEqual([["file null http://pictures.com/b"]]);
    expect(needsMedia(result.ask)).toBe(false);
  });

  test("what a part takes in all its places is held: of a file its text, of an image its bytes and what is repeated", async () => {
    web.answer = () => ({ bytes: textBytes });
    const parts = [file("http://pictures.com/a"), file("http://pictures.com/a")];
    {
      using result = await media.ready(asks(...parts), 1, stays);
      const [{ text }] = result.ask.turns[0]!.content as [Extract<Part, { kind: "text" }>];
      expect(text.length).toBeGreaterThan(1_000_000);
      expect(media.heldBytes).toBe(2 * text.length);
    }
    web = new FakeWeb();
    const repeated = Array.from({ length: 3 }, () => image("http://pictures.com/1"));
    using _ = await media.ready(asks(...repeated), 1, stays);
    expect(media.heldBytes).toBe(pixel.length + 2 * pixelUrl.length);
  });

  test("open requests of one account hold a bounded share, and give it back", async () => {
    web.answer = () => ({ bytes: png(1, 1, mediaFetchBytesMax) });
    const open = [];
    for (let request = 0; request < 8; request++) open.push(await media.ready(asks(...addresses(4)), 1, stays));
    expect(media.heldBytes).toBe(mediaAccountHeldBytesMax);
    using other = await media.ready(asks(...addresses(1)), 2, stays);
    expect(other.ask.turns[0]!.content).toHaveLength(1);
    for (const request of open) request[Symbol.dispose]();
    expect(media.heldBytes).toBe(mediaFetchBytesMax);
  });

  test("it ends with the client: nothing more is fetched, and what came is what there is", async () => {
    const cancelSignal = new AbortController();
    web.answer = (url) => {
      if (url.endsWith("/5")) cancelSignal.abort();
      return { bytes: pixel };
    };
    await ready(asks(...addresses(50)), cancelSignal.signal);
    expect(web.asked.length).toBeLessThan(14);
    web = new FakeWeb();
    expect(await ready(asks(...addresses(5)), AbortSignal.abort())).toEqual([]);
    expect(web.asked).toEqual([]);
  });
});
