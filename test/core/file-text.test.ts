// Which files count as text, and in which encoding.
import { describe, expect, test } from "bun:test";
import { fileAsText, isPdf, textOf } from "../../src/core/file-text.ts";

const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, "utf16le");

describe("text", () => {
  test.each<[string, Uint8Array, string | null, string | null]>([
    ["UTF-8", Buffer.from("a,b\r\n\tc é 漢\n"), null, "a,b\r\n\tc é 漢\n"],
    ["UTF-8 with its mark", Buffer.from("\ufeffa"), null, "a"],
    ["UTF-16 by its mark", utf16("aé"), null, "aé"],
    ["UTF-16, the other way round", utf16("aé").swap16(), null, "aé"],
    ["Latin 1, told", Buffer.from("caf\xe9", "latin1"), "iso-8859-1", "café"],
    ["Latin 1, told of UTF-8", Buffer.from("é"), "iso-8859-1", "é"],
    ["Latin 1, untold", Buffer.from("caf\xe9", "latin1"), null, null],
    ["an encoding that there is not", Buffer.from("caf\xe9", "latin1"), "klingon", null],
    ["control bytes", Buffer.from([0x61, 0, 0x62]), "iso-8859-1", null],
    ["nothing", Buffer.alloc(0), null, ""],
  ])("%s", (_, bytes, charset, text) => expect(textOf(bytes, charset)).toBe(text));
});

test("a PDF is known by its start, also behind a little rubbish", () => {
  expect(isPdf(Buffer.from("%PDF-1.7"))).toBe(true);
  expect(isPdf(Buffer.from(`${"\n".repeat(1_000)}%PDF-1.7`))).toBe(true);
  expect(isPdf(Buffer.from(`${"\n".repeat(2_000)}%PDF-1.7`))).toBe(false);
  expect(isPdf(Buffer.from("PDF"))).toBe(false);
  const within = Buffer.from("xx%PDF-").subarray(3);
  expect(isPdf(within)).toBe(false); // not what stands before it in memory
});

test("a name cannot break out of its place", () => {
  expect(fileAsText(null, "a")).toBe("<document>\na\n</document>");
  expect(fileAsText('a"\n', "b")).toBe('<document name="a\\"\\n">\nb\n</document>');
});
