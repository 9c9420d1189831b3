// What a request brings: keys in either header, bodies of every framing and size.
import { describe, expect, test } from "bun:test";
import {
  brotliCompressSync as brotli,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from "node:zlib";
import { readBody } from "../../src/http/incoming.ts";
import { KeyHeaders } from "../../src/http/key-headers.ts";
import { bodyMaxBytes } from "../../src/core/limits.ts";
import { isRefusal } from "../../src/core/refusals.ts";

/** At its usual best, 4 MB take seconds. */
const brotliCompressSync = (text: string | Buffer): Buffer =>
  brotli(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });

describe("the key", () => {
  test.each([
    [{}, null],
    [{ authorization: "Bearer abc" }, "abc"],
    [{ authorization: "bearer   abc" }, "abc"],
    [{ authorization: "Basic abc" }, null],
    [{ authorization: "Bearer" }, null],
    [{ "x-api-key": "abc" }, "abc"],
    [{ "x-api-key": "abc", authorization: "Bearer abc" }, "abc"],
    [{ "x-api-key": "abc", authorization: "Bearer other" }, null],
    [{ "x-api-key": "abc", authorization: "Basic dXNlcg==" }, "abc"],
  ])("of %p is %p", (headers, key) => {
    expect(new KeyHeaders(["x-api-key"]).keyOf(new Headers(headers as Record<string, string>))).toBe(key);
  });
});

describe("the body", () => {
  const read = (
    body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
    headers: Record<string, string> = {},
    keepsLarge = false,
  ) => readBody(new Request("http://test/", { method: "POST", body, headers }), 1, keepsLarge);
  const chunked = (chunks: Uint8Array[]) =>
    new ReadableStream<Uint8Array>({
      pull(controller) {
        const chunk = chunks.shift();
        if (chunk === undefined) controller.close();
        else controller.enqueue(chunk);
      },
    });
  const megabytes = (count: number) => Array.from({ length: count }, () => new Uint8Array(1 << 20).fill(32));

  test("is parsed, with its size in bytes", async () => {
    expect(await read('{"a":"ä"}', { "content-length": "10" })).toEqual({ json: { a: "ä" }, bytes: 10 });
  });

  test("without a length is joined over characters that were split", async () => {
    const bytes = new TextEncoder().encode('{"a":"ä"}');
    expect(await read(chunked([bytes.slice(0, 7), bytes.slice(7)]))).toEqual({ json: { a: "ä" }, bytes: 10 });
  });

  test("that is not JSON says why and where to look", async () => {
    expect(await read("{", { "content-length": "1" })).toMatchObject({
      refusal: "unreadable",
      detail: { reason: expect.stringContaining("not valid JSON") },
    });
    expect(await read("", { "content-length": "0" })).toMatchObject({ refusal: "unreadable" });
  });

  test("of 32 MiB is read, one byte more is refused, whether the length is told or not", async () => {
    const last = new TextEncoder().encode("1");
    const filled = () => [...megabytes(31), new Uint8Array((1 << 20) - 1).fill(32)];
    expect(await read(chunked([...filled(), last]))).toEqual({ json: 1, bytes: bodyMaxBytes });
    expect(await read(chunked([...filled(), last, last]))).toEqual({ refusal: "body_too_large" });
    expect(await read("1", { "content-length": String(bodyMaxBytes + 1) })).toEqual({ refusal: "body_too_large" });
  });

  describe("that is compressed", () => {
    const ways = {
      gzip: gzipSync,
      "x-gzip": gzipSync,
      GZIP: gzipSync,
      deflate: deflateSync,
      br: brotliCompressSync,
      zstd: zstdCompressSync,
    } as const;
    const encodings = Object.keys(ways) as (keyof typeof ways)[];
    const readable = { model: "core-3", messages: Array.from({ length: 400 }, (_, at) => `message ${at} of many`) };
    const reasonOf = (refused: Awaited<ReturnType<typeof read>>): string =>
      isRefusal(refused) ? `${refused.refusal}: ${String(refused.detail?.["reason"] ?? "")}` : "read";

    test.each(encodings)("by %s is what it was before, of known length and in chunks", async (encoding) => {
      const json = JSON.stringify(readable);
      const body = new Uint8Array(ways[encoding](json));
      expect(body.byteLength).toBeLessThan(json.length / 2);
      for (const sent of [body, chunked([body.slice(0, 9), body.slice(9)])]) {
        expect(await read(sent, { "content-encoding": encoding })).toEqual({ json: readable, bytes: json.length });
      }
    });

    test("by deflate without its header, which some clients send", async () => {
      const body = new Uint8Array(deflateRawSync('{"a":1}'));
      expect(await read(body, { "content-encoding": "deflate" })).toEqual({ json: { a: 1 }, bytes: 7 });
    });

    test("not at all is read as it is", async () => {
      for (const encoding of ["identity", ""]) {
        expect(await read("1", { "content-encoding": encoding, "content-length": "1" })).toEqual({ json: 1, bytes: 1 });
      }
    });

    test("in several ways, or in one that nobody reads here, is refused", async () => {
      for (const encoding of ["gzip, br", "compress", "aws-chunked", "gzip;q=1", "__proto__", "constructor"]) {
        expect(await read("x", { "content-encoding": encoding })).toEqual({ refusal: "unsupported_encoding" });
      }
    });

    test.each(encodings)("by %s and damaged says so", async (encoding) => {
      const whole = new Uint8Array(ways[encoding](JSON.stringify(readable)));
      const damaged = { cut: whole.slice(0, -7), half: whole.slice(0, whole.length / 2), none: new Uint8Array(0) };
      for (const body of [...Object.values(damaged), new TextEncoder().encode('{"model":"not compressed"}')]) {
        expect(reasonOf(await read(body, { "content-encoding": encoding }))).toMatch(
          /^unreadable: The request body (?:is not valid (?:gzip|deflate|br|zstd|JSON): |is empty, or its zstd data end early)/,
        );
      }
    });

    test.each(encodings)("by %s is 32 MiB at most when it is inflated", async (encoding) => {
      // Random digits are compressed to less than half, and so are beyond no ratio.
      const digits = Buffer.from(crypto.getRandomValues(new Uint8Array(1 << 19))).toString("hex");
      const large = (bytes: number) => Buffer.alloc(bytes, digits);
      const fits = await read(new Uint8Array(ways[encoding](large(4 << 20))), { "content-encoding": encoding }, true);
      expect(fits).toMatchObject({ bytes: 4 << 20, body: expect.any(Uint8Array) });
      if (encoding !== "gzip") return; // the limit is the same code for all, and packing so much takes seconds
      const over = new Uint8Array(gzipSync(large(bodyMaxBytes + 1), { level: 1 }));
      expect(await read(over, { "content-encoding": "gzip" }, true)).toEqual({ refusal: "body_too_large" });
    });

    /** 256 MiB of spaces; each way packs them once, since that takes most of a second. */
    const bombs = new Map<unknown, Uint8Array<ArrayBuffer>>();
    const bombOf = (pack: (body: Buffer) => Uint8Array): Uint8Array<ArrayBuffer> =>
      bombs.getOrInsertComputed(pack, () => new Uint8Array(pack(Buffer.alloc(256 << 20, " "))));

    test.each(encodings)(
      "by %s a thousandfold is refused before it is inflated, for next to no time",
      async (encoding) => {
        const bomb = bombOf(ways[encoding]);
        const before = process.cpuUsage();
        const refusals = await Promise.all(
          Array.from({ length: 8 }, () => read(bomb, { "content-encoding": encoding }, true)),
        );
        const { user, system } = process.cpuUsage(before);
        for (const refused of refusals) {
          expect(reasonOf(refused)).toMatch(/inflates to more than 100 times its size|^body_too_large/);
        }
        expect((user + system) / 1000 / refusals.length).toBeLessThan(400); // ms each; all of it takes 300 ms and more
      },
    );

    test("of repeated text is no bomb while it is small", async () => {
      const body = new Uint8Array(zstdCompressSync(JSON.stringify("a ".repeat(400_000))));
      expect(await read(body, { "content-encoding": "zstd" })).toMatchObject({ bytes: 800_002 });
    });

    test("by zstd with a window of more than 8 MiB is refused, since the window is memory", async () => {
      const frame = new Uint8Array([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x09, 0x00, 0x00, 0x31]); // 2 GiB; the text "1"
      expect(reasonOf(await read(frame, { "content-encoding": "zstd" }))).toMatch(/^unreadable: .* not valid zstd: /);
      frame[5] = 0x58; // 2 MiB
      expect(await read(frame, { "content-encoding": "zstd" })).toEqual({ json: 1, bytes: 1 });
    });

    test("waits for its turn, and not at all for a client that left", async () => {
      const body = new Uint8Array(gzipSync("1"));
      const leave = new AbortController();
      leave.abort();
      const request = new Request("http://test/", {
        method: "POST",
        body,
        headers: { "content-encoding": "gzip" },
        signal: leave.signal,
      });
      expect(reasonOf(await readBody(request, 1, false))).toMatch(/^unreadable/);
      const many = Array.from({ length: 50 }, () => read(body, { "content-encoding": "gzip" }));
      expect(await Promise.all(many)).toEqual(Array(50).fill({ json: 1, bytes: 1 }));
    });
  });
});
