// Server-sent events at any split of the bytes, with everything that engines add to them.
import { describe, expect, test } from "bun:test";
import { EventParser, nodeEventLinesMax, nodeLineMaxBytes } from "../../../src/nodes/client/events.ts";
import { cut } from "../../fixtures/read-answer.ts";

function parse(reads: readonly Uint8Array[]): { events: string[]; errors: number; tooLong: number } {
  const seen = { events: [] as string[], errors: 0, tooLong: 0 };
  const parser = new EventParser({
    event: (payload, namedError) => {
      seen.events.push(payload);
      if (namedError) seen.errors++;
    },
    tooLong: () => {
      seen.tooLong++;
    },
  });
  for (const read of reads) parser.feed(Buffer.from(read), 0, read.length);
  parser.finish();
  return seen;
}

describe("the same events at every split", () => {
  const rows: [string, string | Uint8Array, string[]][] = [
    ["line feeds", 'data: {"a":1}\n\ndata: {"b":2}\n\n', ['{"a":1}', '{"b":2}']],
    ["carriage returns alone", 'data: {"a":1}\r\rdata: {"b":2}\r\r', ['{"a":1}', '{"b":2}']],
    [
      "every line end",
      "data: a\rdata: b\r\ndata: c\n\r\ndata: d\r\n\ndata: e\n\rdata: f\r\r\n",
      ["a\nb\nc", "d", "e", "f"],
    ],
    ["carriage returns", 'data: {"a":1}\r\n\r\ndata: {"b":2}\r\n\r\n', ['{"a":1}', '{"b":2}']],
    ["no space", 'data:{"a":1}\n\n', ['{"a":1}']],
    ["one of two spaces", "data:  x\n\n", [" x"]],
    ["a space at the end (TensorRT-LLM)", 'data: {"a":1} \n\n', ['{"a":1} ']],
    ["a byte order mark", '\ufeffdata: {"a":1}\n\n', ['{"a":1}']],
    ["a byte order mark within text stays", "data: a\ufeffb\n\n", ["a\ufeffb"]],
    ["comments", ":\n\n: ping\n\ndata: x\n:\n\n", ["x"]],
    ["several data lines", "data: a\ndata: b\ndata:\n\n", ["a\nb\n"]],
    ["other fields", "id: 1\nretry: 5\nevent: message\ndata: x\n\n", ["x"]],
    ["no blank line at the end", "data: x\n\ndata: y\n", ["x", "y"]],
    ["no line end at the end", "data: x\n\ndata: y", ["x", "y"]],
    ["many bytes in a character", "data: é你😀\u2028\n\n", ["é你😀\u2028"]],
    ["NUL", "data: a\u0000b\n\n", ["a\u0000b"]],
    [
      "invalid UTF-8",
      Buffer.from([...Buffer.from("data: a"), 0xff, 0xc3, ...Buffer.from("b\n\n")]),
      ["a\ufffd\ufffdb"],
    ],
    [
      "half a character at a line's end",
      Buffer.from([...Buffer.from("data: a"), 0xf0, 0x9f, ...Buffer.from("\n\n")]),
      ["a\ufffd"],
    ],
    [
      "a lone surrogate's bytes",
      Buffer.from([...Buffer.from("data: "), 0xed, 0xa0, 0x80, ...Buffer.from("\n\n")]),
      ["\ufffd\ufffd\ufffd"],
    ],
    ["nothing", "", []],
    ["blank lines", "\n\n\r\n\n", []],
  ];
  for (const [name, text, expected] of rows)
    test(name, () => {
      const bytes = Buffer.from(text as string);
      expect(parse([bytes]).events).toEqual(expected);
      for (let at = 0; at <= bytes.length; at++) expect(parse(cut(bytes, at)).events).toEqual(expected);
      expect(parse([...bytes].map((byte) => Buffer.from([byte]))).events).toEqual(expected);
    });
});

test("event: error is told, for the next event only", () => {
  expect(parse([Buffer.from("event: error\ndata: x\n\ndata: y\n\n")])).toEqual({
    events: ["x", "y"],
    errors: 1,
    tooLong: 0,
  });
});

describe("the line limit", () => {
  const long = Buffer.alloc(1024 * 1024, 97);
  test("a line without end is given up at 4 MiB, in bounded memory", () => {
    let givenUp = 0;
    const parser = new EventParser({ event() {}, tooLong: () => void givenUp++ });
    for (let part = 0; part < 5; part++) parser.feed(long, 0, long.length);
    expect(givenUp).toBe(1);
    for (let part = 0; part < 60; part++) parser.feed(long, 0, long.length);
    parser.finish();
    expect(givenUp).toBe(1);
  });
  test("many data lines of one event together", () => {
    const line = Buffer.from(`data: ${long.toString()}\n`);
    expect(parse(Array.from({ length: 6 }, () => line))).toEqual({ events: [], errors: 0, tooLong: 1 });
  });
  test("a long line below it is an event", () => {
    const payload = "a".repeat(nodeLineMaxBytes - 100);
    expect(parse(cut(Buffer.from(`data: ${payload}\n\n`), 1_000_000, 3_000_000)).events).toEqual([payload]);
  });
  test("in one read", () => {
    const payload = "a".repeat(nodeLineMaxBytes + 1);
    expect(parse([Buffer.from(`data: ${payload}\n\n`)])).toEqual({ events: [], errors: 0, tooLong: 1 });
  });

  test("an event of too many lines is given up, and one of some thousand is not", () => {
    const lines = (count: number) => [Buffer.from(`${"data:\n".repeat(count)}\n`)];
    expect(parse(lines(5_000))).toEqual({ events: ["\n".repeat(4_999)], errors: 0, tooLong: 0 });
    expect(parse(lines(nodeEventLinesMax + 1))).toEqual({ events: [], errors: 0, tooLong: 1 });
  });
});
