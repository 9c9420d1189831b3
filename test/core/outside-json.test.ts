// JSON from outside is scanned before it is parsed: deep and endless shapes are refused, everything else is parsed.
import { expect, test } from "bun:test";
import { jsonDepthMax, jsonScanMinLength } from "../../src/core/limits.ts";
import { parseNodeJson } from "../../src/nodes/json.ts";
import { jsonExcess, JsonScan, jsonTokensMax, parseOutsideJson } from "../../src/core/outside-json.ts";

const filler = `"${"x".repeat(jsonScanMinLength)}"`;
const nested = (depth: number): string => `[${filler},${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}]`;

test("as deep as is allowed is parsed, one more is not", () => {
  expect(jsonExcess(nested(jsonDepthMax))).toBeNull();
  expect(jsonExcess(nested(jsonDepthMax + 1))).toContain("too deep");
  expect(jsonExcess(nested(jsonDepthMax + 1).replaceAll("[", '{"a":'))).toContain("too deep");
  expect(() => parseOutsideJson(nested(jsonDepthMax + 1))).toThrow(SyntaxError);
});

test("as many values as are allowed are parsed, one more is not", () => {
  const list = (tokens: number): string => `[${"1,".repeat(tokens - 1)}1]`;
  expect(jsonExcess(list(jsonTokensMax))).toBeNull();
  expect(jsonExcess(list(jsonTokensMax + 1))).toContain("too many values");
});

test("what stands in strings is no structure", () => {
  const text = JSON.stringify({
    filler,
    a: '[{"'.repeat(50_000),
    b: "\\".repeat(999),
    c: ["\\"],
    d: ',:"'.repeat(700_000),
  });
  const scan = new JsonScan();
  expect(scan.push(text)).toBeNull();
  expect(scan.tokens).toBe(11);
});

test("the largest honest bodies are parsed", () => {
  const url = `data:image/png;base64,${"A".repeat(33_000_000)}`;
  expect(
    jsonExcess(JSON.stringify({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] })),
  ).toBeNull();
  const messages = Array.from({ length: 300_000 }, (_, index) => ({
    role: index % 2 ? "assistant" : "user",
    content: "Hi there.",
  }));
  expect(jsonExcess(JSON.stringify({ messages }))).toBeNull();
});

test("chunks, cut anywhere, are looked through as the whole", () => {
  const text = JSON.stringify({ a: ['"', '\\"', "\\\\", "[[{,:", { b: "\\" }], 'c"': '\\\\"' });
  const whole = new JsonScan();
  whole.push(text);
  for (let first = 0; first <= text.length; first++) {
    for (let second = first; second <= text.length; second++) {
      const scan = new JsonScan();
      for (const chunk of [text.slice(0, first), text.slice(first, second), text.slice(second)]) scan.push(chunk);
      expect(scan.tokens).toBe(whole.tokens);
    }
  }
});

test("a node's NaN and Infinity are null, outside of strings alone", () => {
  expect(parseNodeJson('{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN \\" Infinity","NaN":1}')).toEqual({
    a: null,
    b: [null, null],
    c: 'NaN " Infinity',
    NaN: 1,
  });
  expect(parseNodeJson('{"a":NaN,"b":"')).toBeUndefined();
});

test.each([
  ["a string without an end", (length: number) => `"${'\\"'.repeat(length / 2)}`],
  ["the same behind NaN", (length: number) => `NaN"${'\\"'.repeat(length / 2)}`],
  ["many strings", (length: number) => `NaN${'"a"'.repeat(length / 3)}`],
  ["backslashes", (length: number) => `NaN"${"\\".repeat(length)}`],
  ["quotes", (length: number) => `NaN${'"'.repeat(length)}`],
  ["brackets", (length: number) => "[".repeat(length)],
  ["objects", (length: number) => '{"":'.repeat(length / 4)],
])("1 MB of %s is known to be no JSON in little time", (_, text) => {
  const given = text(1_000_000);
  parseNodeJson(given.slice(0, 100_000)); // compiled
  const from = process.cpuUsage();
  expect(parseNodeJson(given)).toBeUndefined();
  const { user, system } = process.cpuUsage(from);
  expect((user + system) / 1_000).toBeLessThan(200);
});
