// Reading image headers, including those that lie or end early.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { imageHeader, type ImageHeader, inlineImageHeader } from "../../src/core/image-header.ts";

const bytes = (...parts: (string | number | number[])[]): Uint8Array =>
  Uint8Array.from(
    parts.flatMap((part) => (typeof part === "string" ? [...part].map((letter) => letter.charCodeAt(0)) : part)),
  );
const big16 = (value: number) => [value >> 8, value & 255];
const little16 = (value: number) => [value & 255, value >> 8];

const png = (width: number, height: number) =>
  bytes(
    0x89,
    "PNG\r\n",
    0x1a,
    "\n",
    [0, 0, 0, 13],
    "IHDR",
    [0, 0],
    big16(width),
    [0, 0],
    big16(height),
    [8, 6, 0, 0, 0],
  );
const segment = (marker: number, length: number) => [
  0xff,
  marker,
  ...big16(length + 2),
  ...Array<number>(length).fill(0),
];
const jpeg = (marker: number, before: number[]) =>
  bytes([0xff, 0xd8], before, [0xff, marker], big16(17), 8, big16(480), big16(640), [3, 1, 0x22, 0]);
const webp = (kind: string, ...rest: number[]) => bytes("RIFF", [0, 0, 0, 0], "WEBP", kind, [0, 0, 0, 0], rest);

const is = (mediaType: ImageHeader["mediaType"]): ImageHeader => ({ mediaType, width: 640, height: 480 });

const files: [string, Uint8Array, ImageHeader | null][] = [
  ["PNG", png(640, 480), is("image/png")],
  ["GIF", bytes("GIF89a", little16(640), little16(480)), is("image/gif")],
  ["JPEG", jpeg(0xc0, []), is("image/jpeg")],
  ["progressive JPEG behind an EXIF block of 60 KB", jpeg(0xc2, segment(0xe1, 60_000)), is("image/jpeg")],
  ["JPEG with a Huffman table first and fill bytes", jpeg(0xc1, [...segment(0xc4, 30), 0xff]), is("image/jpeg")],
  ["lossy WebP", webp("VP8 ", 0, 0, 0, 0x9d, 1, 0x2a, ...little16(640), ...little16(480)), is("image/webp")],
  ["lossless WebP", webp("VP8L", 0x2f, 0x7f, 0xc2, 0x77, 0), is("image/webp")],
  ["extended WebP", webp("VP8X", 0, 0, 0, 0, 0x7f, 2, 0, 0xdf, 1, 0), is("image/webp")],
  ["PNG of no width", png(0, 480), null],
  ["text", bytes("<svg width='10' height='10'/>"), null],
  ["nothing", bytes(), null],
];

describe("sizes", () => {
  test.each(files)("%s", (_what, file, size) => {
    expect(imageHeader(file)).toEqual(size);
    const inline = `data:image/x;base64,${Buffer.from(file).toString("base64")}`;
    expect(inlineImageHeader(inline)).toEqual(size);
  });

  test.each(files)("%s, cut off anywhere: its size or none", (_what, file, size) => {
    for (let end = 0; end < Math.min(file.length, 200); end++)
      expect([null, size]).toContainEqual(imageHeader(file.subarray(0, end)));
  });

  test("any bytes: a size or none, never an error", () => {
    const start = fc.constantFrom(...files.map(([, file]) => [...file.subarray(0, 40)]));
    fc.assert(
      fc.property(start, fc.uint8Array({ maxLength: 100 }), fc.nat(40), (head, rest, kept) => {
        const size = imageHeader(Uint8Array.from([...head.slice(0, kept), ...rest]));
        expect(size === null || (size.width > 0 && size.height > 0)).toBe(true);
      }),
    );
  });

  test.each(["https://example.com/a.png", "data:image/png,abc", "data:image/png;base64", "data:;base64,!!!!", ""])(
    "%j has none",
    (url) => expect(inlineImageHeader(url)).toBeNull(),
  );
});
