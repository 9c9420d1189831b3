// The list of an answer is taken apart the same way however its bytes come.
import { describe, expect, test } from "bun:test";
import {
  inputAnswerMaxBytes,
  inputsAnswerFrameMaxLength,
  ListScanner,
} from "../../../src/nodes/inputs/list-scanner.ts";

function scan(text: string, sizes: readonly number[] = []): { items: string[]; frame: string; fault: string | null } {
  const items: string[] = [];
  const scanner = new ListScanner((item) => items.push(item) > 0);
  const bytes = Buffer.from(text);
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    const end = Math.min(bytes.length, at + size);
    // As sockets give it: a view into a buffer that is used again.
    const read = Buffer.concat([Buffer.from('{["'), bytes.subarray(at, end), Buffer.from('"]}')]);
    scanner.push(read, 3, 3 + end - at);
    read.fill(0x58);
    at = end;
  }
  return { items, frame: scanner.frame, fault: scanner.fault };
}

const answers = [
  ['{"object":"list","data":[{"index":0,"embedding":[1,2]},{"index":1}],"usage":{"a":[1]}}', 2],
  ['{"usage":{"data":[1]}, "results" :\n[ {"s":"]}\\"\\\\","é":1} , {"index":1} ] }', 2],
  ['{"data":[{"s":"a\\n"},{"t":"\\u0022]"}],"u":"\\t"}', 2],
  ['[{"index":1,"score":0.5},{"index":0,"score":0.25}]', 2],
  ['{"data":[],"x":[{"y":1}]}', 0],
] as const;

test.each(answers)("%s, at every split in two", (text, count) => {
  const whole = scan(text);
  expect([whole.items.length, whole.fault]).toEqual([count, null]);
  const frame = JSON.parse(whole.frame) as Record<string, unknown>;
  const rest = JSON.parse(text) as Record<string, unknown>;
  for (const item of whole.items) JSON.parse(item);
  if (Array.isArray(rest)) expect(frame).toEqual([] as never);
  else expect(frame).toEqual({ ...rest, ["data" in rest ? "data" : "results"]: [] });
  for (let at = 0; at <= Buffer.byteLength(text); at++) expect(scan(text, [at])).toEqual(whole);
  expect(scan(text, Array(Buffer.byteLength(text)).fill(1))).toEqual(whole);
});

describe("is refused:", () => {
  test.each(['{"data":[1]}', '{"data":["a"]}', '{"data":[[1]]}', '{"data":[null]}'])("%s", (text) => {
    expect(scan(text).fault).not.toBeNull();
  });

  test("an item, a frame and a depth without end, however they come", () => {
    const long = `{"data":[{"a":"${"x".repeat(inputAnswerMaxBytes)}`;
    const frame = `{"a":"${"x".repeat(inputsAnswerFrameMaxLength)}`;
    const deep = `{"data":[{"a":${"[".repeat(200)}`;
    for (const text of [long, frame, deep]) {
      for (const sizes of [[], Array(100).fill(4_096)]) expect(scan(text, sizes as number[]).fault).not.toBeNull();
    }
  });
});
