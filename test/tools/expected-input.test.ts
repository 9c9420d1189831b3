// How much a request is expected to read before a node has counted it: the limit on what parallel requests can overdraw
// depends on it.
import { expect, test } from "bun:test";
import { expectedInput } from "../../src/tools/expected-input.ts";
import { askOf } from "../fixtures/asks.ts";
import { pdf } from "../fixtures/pdf.ts";

const context = 1_000_000;
const ask = askOf({ bodyBytes: 400 });
const model = { ...ask.model, contextTokens: context };

function expected(url: string): number {
  const bodyBytes = 400 + url.length;
  const content = [{ kind: "file", url, name: "a" }] as const;
  return expectedInput({ ...ask, model, bodyBytes, turns: [{ role: "user", content }] });
}

const asUrl = (bytes: Uint8Array, before = ""): string =>
  `data:application/octet-stream;base64,${before}${Buffer.from(bytes).toString("base64")}`;

test("a file that comes with the request has as many tokens as characters", () => {
  const url = asUrl(Buffer.from("short"));
  expect(expected(url)).toBe(400 + url.length);
});

test("a PDF may become a context full of text, whatever its size, as may what an address has", () => {
  expect(expected(asUrl(pdf("Hi")))).toBe(context);
  expect(expected(asUrl(Buffer.concat([Buffer.alloc(1_000, "x"), Buffer.from("%PDF-1.4 ")])))).toBe(context);
  expect(expected("https://example.com/a.txt")).toBe(context);
});

test("a PDF is not hidden behind characters that base64 passes over", () => {
  expect(expected(asUrl(pdf("Hi"), " ".repeat(5_000)))).toBe(context);
});
