// Images and files as clients send them, before anything is fetched: which are accepted, refused and left out.
import { describe, expect, test } from "bun:test";
import { readFile, readImage } from "../../../src/dialects/request/media-part.ts";
import { isRefusal, messageOf } from "../../../src/core/refusals.ts";
import { hostedModel } from "../../fixtures/asks.ts";
import { pixelBase64, pixelUrl, png } from "../../fixtures/pictures.ts";

const image = (url: string, model = hostedModel) => {
  const read = readImage(url, "low", "here", model);
  return isRefusal(read) ? messageOf(read) : read;
};
const file = (given: string, name: string | null = null) => {
  const read = readFile(given, name, "here");
  return isRefusal(read) ? messageOf(read) : read;
};
const base64 = (text: string | Uint8Array) => Buffer.from(text as string).toString("base64");

describe("images", () => {
  test.each([["http://pictures.com/a.png"], ["HTTPS://pictures.com/a.png"], [pixelUrl]])(
    "%j is taken as it is",
    (url) => expect(image(url)).toEqual({ kind: "image", url, detail: "low" }),
  );

  test.each([
    [`DATA:image/png;base64,${pixelBase64}`],
    [`data:image/jpeg;base64,${pixelBase64}`],
    [`data:;base64,${pixelBase64}`],
    [`data:image/png;charset=x;base64,${pixelBase64}`],
  ])("%j gets the type that it has", (url) =>
    expect(image(url)).toEqual({ kind: "image", url: pixelUrl, detail: "low" }),
  );

  test.each([["ftp://pictures.com/a.png"], ["file:///etc/passwd"], ["pictures.com/a.png"], [""], ["javascript:1"]])(
    "%j is left out",
    (url) => expect(image(url)).toBeNull(),
  );

  test.each([
    ["data:image/png;base64,AA=="],
    ["data:image/png;base64,"],
    ["data:image/png,abc"],
    ["data:image/svg+xml;base64,PHN2Zy8+"],
  ])("%j is refused", (url) => expect(image(url)).toBe("here must be a PNG, JPEG, GIF or WebP image in base64"));

  test("more than 50 megapixels are refused by the image's own header", () => {
    const url = `data:image/png;base64,${base64(png(10_001, 5_000))}`;
    expect(image(url)).toBe("here: an image may have 50 megapixels, this has 10001 x 5000 pixels");
  });

  test("a model that reads text only refuses all of them", () => {
    for (const url of [pixelUrl, "http://pictures.com/a", "ftp://pictures.com", ""]) {
      expect(image(url, { ...hostedModel, readsImages: false })).toBe(
        "here: the model open-05-3BIT-REAP reads text only, not images",
      );
    }
  });
});

describe("files", () => {
  test("an address is kept for later, as is a PDF", () => {
    const url = "https://pictures.com/a.pdf";
    expect(file(url, "a")).toEqual({ kind: "file", url, name: "a" });
    const pdf = `data:application/pdf;base64,${base64("%PDF-1.4")}`;
    for (const given of [pdf, base64("%PDF-1.4"), `data:;base64,${base64("%PDF-1.4")}`]) {
      expect(file(given)).toEqual({ kind: "file", url: pdf, name: null });
    }
  });

  test.each([
    [`data:text/csv;base64,${base64("a,b")}`],
    [base64("a,b")],
    [`data:application/json;base64,${base64("a,b")}`],
    [`DATA:text/plain;charset=utf-8;BASE64,${base64("a,b")}`],
    ["data:text/csv,a%2Cb"],
    ["data:,a,b"],
    ["data:text/plain;charset=utf-8,a,b"],
    ["data:text/csv,a%2cb"],
  ])("%j is read at once", (given) =>
    expect(file(given, "t.csv")).toEqual({ kind: "text", text: '<document name="t.csv">\na,b\n</document>' }),
  );

  test.each([["ftp://pictures.com/a.pdf"], ["file:///etc/passwd"]])("%j is left out", (url) =>
    expect(file(url)).toBeNull(),
  );

  test("what is no text is refused", () => {
    expect(file(pixelUrl)).toBe("here must be a PDF or a text file");
    expect(file("data:text/plain,%ff")).toBe("here must be a PDF or a text file");
    expect(file("")).toBe("here must be a file in base64, or an http or https address");
  });
});
