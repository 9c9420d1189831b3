// HTTP/1.1 responses, strictly: whatever two readers could understand differently is an error.
import { describe, expect, test } from "bun:test";
import { ResponseParser } from "../../../src/nodes/client/framing.ts";
import { cut } from "../../fixtures/read-answer.ts";

type Seen = { status: number; body: string; ended: number; malformed: string | null; reusable: boolean };

function parse(reads: readonly (string | Buffer)[], close = false): Seen {
  const seen: Seen = { status: 0, body: "", ended: 0, malformed: null, reusable: false };
  const parser = new ResponseParser({
    head: (status) => {
      seen.status = status;
    },
    body: (bytes, start, end) => {
      seen.body += bytes.toString("latin1", start, end);
    },
    end: () => {
      seen.ended++;
    },
    malformed: (reason) => {
      seen.malformed = reason;
    },
  });
  for (const read of reads) parser.feed(Buffer.from(read as string));
  if (close) parser.closed();
  seen.reusable = parser.reusable;
  return seen;
}

const head = (headers: string): string => `HTTP/1.1 200 OK\r\n${headers}\r\n\r\n`;
const chunked = head("Transfer-Encoding: chunked");

describe("whole responses, at every split", () => {
  const rows: [string, string, Partial<Seen>][] = [
    ["content-length", `${head("Content-Length: 5")}hello`, { body: "hello", reusable: true }],
    ["an empty body", head("Content-Length: 0"), { body: "", reusable: true }],
    ["chunked", `${chunked}5\r\nhello\r\n3\r\n, w\r\n0\r\n\r\n`, { body: "hello, w", reusable: true }],
    ["a chunk extension", `${chunked}5;a=b\r\nhello\r\n0\r\n\r\n`, { body: "hello", reusable: true }],
    ["upper-case chunk sizes", `${chunked}A\r\n0123456789\r\n0\r\n\r\n`, { body: "0123456789", reusable: true }],
    ["trailers", `${chunked}1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n`, { body: "x", reusable: true }],
    ["connection: close", `${head("Content-Length: 2\r\nConnection: close")}ok`, { body: "ok", reusable: false }],
    ["HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", { body: "ok", reusable: false }],
    ["no reason phrase", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", { body: "ok", reusable: true }],
    [
      "100 before the reply",
      `HTTP/1.1 100 Continue\r\n\r\n${head("Content-Length: 2")}ok`,
      { body: "ok", reusable: true },
    ],
    [
      "103 before the reply",
      `HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${head("Content-Length: 2")}ok`,
      { body: "ok" },
    ],
    ["204", "HTTP/1.1 204 No Content\r\n\r\n", { status: 204, body: "", reusable: true }],
    [
      "identity encoding",
      `${head("Content-Encoding: identity\r\nContent-Length: 2")}ok`,
      { body: "ok", reusable: true },
    ],
    ["surplus after content-length", `${head("Content-Length: 2")}okHTTP/1.1 200 OK`, { body: "ok", reusable: false }],
    ["surplus after chunks", `${chunked}2\r\nok\r\n0\r\n\r\nx`, { body: "ok", reusable: false }],
    ["surplus after an empty body", `${head("Content-Length: 0")}x`, { body: "", reusable: false }],
  ];
  for (const [name, bytes, expected] of rows)
    test(name, () => {
      const whole = Buffer.from(bytes);
      for (let at = 0; at <= whole.length; at++) {
        const seen = parse(cut(whole, at));
        expect(seen).toMatchObject({ status: 200, ...expected, ended: 1, malformed: null });
      }
    });
});

describe("a body until the close", () => {
  test("ends with the connection", () => {
    expect(parse([head("Connection: close"), "some", "thing"], true)).toMatchObject({
      body: "something",
      ended: 1,
      reusable: false,
    });
  });
  test("has not ended before", () => {
    expect(parse([head("Connection: close"), "some"])).toMatchObject({ ended: 0, reusable: false });
  });
});

describe("closed too early is an error", () => {
  const rows: [string, string][] = [
    ["nothing", ""],
    ["within the head", "HTTP/1.1 200 OK\r\nConte"],
    ["within a fixed body", `${head("Content-Length: 5")}hel`],
    ["within a chunk", `${chunked}5\r\nhel`],
    ["after a chunk, without the last one", `${chunked}5\r\nhello\r\n`],
    ["within the trailers", `${chunked}0\r\nA: b\r\n`],
  ];
  for (const [name, bytes] of rows)
    test(name, () =>
      expect(parse([bytes], true)).toMatchObject({ ended: 0, malformed: expect.any(String), reusable: false }),
    );
});

describe("refused", () => {
  const rows: [string, string][] = [
    ["both lengths", head("Content-Length: 5\r\nTransfer-Encoding: chunked")],
    ["two content-lengths", head("Content-Length: 5\r\nContent-Length: 5")],
    ["a list of content-lengths", head("Content-Length: 5, 5")],
    ["a negative content-length", head("Content-Length: -1")],
    ["a signed content-length", head("Content-Length: +5")],
    ["a hexadecimal content-length", head("Content-Length: 0x5")],
    ["an empty content-length", head("Content-Length: ")],
    ["two transfer-encodings", head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked")],
    ["an unknown transfer-encoding", head("Transfer-Encoding: gzip, chunked")],
    ["chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"],
    ["gzip", head("Content-Encoding: gzip\r\nContent-Length: 5")],
    ["br", head("Content-Encoding: br\r\nContent-Length: 5")],
    ["101", "HTTP/1.1 101 Switching Protocols\r\n\r\n"],
    ["HTTP/2", "HTTP/2 200 OK\r\n\r\n"],
    ["no HTTP", "SSH-2.0-OpenSSH_9.2\r\n\r\n"],
    ["a status of two digits", "HTTP/1.1 20 OK\r\n\r\n"],
    ["a header without a colon", head("Content-Length")],
    ["a space before the colon", head("Content-Length : 5")],
    ["a folded header", head("A: b\r\n c")],
    ["a control byte in a value", head("A: b\u0000c")],
    ["a bare line feed", "HTTP/1.1 200 OK\r\nA: b\nContent-Length: 5\r\n\r\n"],
    ["an empty chunk size", `${chunked}\r\nhello\r\n`],
    ["a negative chunk size", `${chunked}-5\r\nhello\r\n`],
    ["a chunk size with 0x", `${chunked}0x5\r\nhello\r\n`],
    ["an endless chunk size", `${chunked}000000005\r\nhello\r\n`],
    ["a chunk size ended by a line feed", `${chunked}5\nhello\r\n`],
    ["a chunk longer than its size", `${chunked}4\r\nhello\r\n`],
    ["a chunk shorter than its size", `${chunked}6\r\nhello\r\n0\r\n\r\n`],
    ["an endless chunk extension", `${chunked}5;${"a".repeat(300)}\r\nhello\r\n`],
    ["a control byte in a chunk extension", `${chunked}5;a\u0001\r\nhello\r\n`],
    ["headers over 64 KiB", head(`A: ${"b".repeat(70_000)}`)],
    ["headers without end", `HTTP/1.1 200 OK\r\nA: ${"b".repeat(70_000)}`],
    ["trailers over 64 KiB", `${chunked}0\r\nA: ${"b".repeat(70_000)}`],
  ];
  for (const [name, bytes] of rows)
    test(name, () => {
      const seen = parse([bytes]);
      expect(seen).toMatchObject({ ended: 0, malformed: expect.any(String), reusable: false });
      expect(parse([...Buffer.from(bytes)].map((byte) => Buffer.from([byte]))).malformed).not.toBeNull();
    });
});
