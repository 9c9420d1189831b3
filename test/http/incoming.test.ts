// What a request brings: keys in either header, bodies of every framing and size.
import { describe, expect, test } from "bun:test";
import { keyOf, readBody } from "../../src/http/incoming.ts";
import { bodyMaxBytes } from "../../src/limits.ts";

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
    expect(keyOf(new Headers(headers as Record<string, string>))).toBe(key);
  });
});

describe("the body", () => {
  const read = (body: string | ReadableStream<Uint8Array>, headers: Record<string, string> = {}) =>
    readBody(new Request("http://test/", { method: "POST", body, headers }), false);
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

  test("that is compressed is refused, so that nothing can be inflated here", async () => {
    expect(await read("x", { "content-encoding": "gzip" })).toEqual({ refusal: "unsupported_encoding" });
    expect(await read("1", { "content-encoding": "identity", "content-length": "1" })).toEqual({ json: 1, bytes: 1 });
  });
});
