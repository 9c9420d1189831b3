// Splits a file of the operator's folder into passages of about half a page: an answer needs one of them, not the book.
import { basename, extname } from "node:path";
import { pageText } from "../media/page-text.ts";

/** Characters of one file; a book has 1,000,000. Search does not find text beyond it. */
const searchFileTextMaxLength = 4_000_000;
/** Search finds passages of half a page: long enough to answer, short enough to rank. */
const searchPassageLength = 1_500;

export type FileText = Readonly<{ title: string; passages: readonly string[] }>;
/** Why search cannot find a file. */
export type Skipped = Readonly<{ skipped: string }>;
/** The text of a PDF, or null where none can be read. */
export type ReadPdf = (bytes: Uint8Array) => Promise<string | null>;

type Kind = "markdown" | "html" | "text" | "pdf";

const kinds: Readonly<Record<string, Kind>> = {
  ".md": "markdown",
  ".markdown": "markdown",
  ".mdx": "markdown",
  ".html": "html",
  ".htm": "html",
  ".xhtml": "html",
  ".txt": "text",
  ".text": "text",
  ".rst": "text",
  ".adoc": "text",
  ".pdf": "pdf",
};
const titleMaxLength = 300;

/** Null: not a kind of file that is searched. */
export const kindOf = (path: string): Kind | null => kinds[extname(path).toLowerCase()] ?? null;

/** Never rejects for a file's content. */
export async function fileText(path: string, bytes: Uint8Array, readPdf: ReadPdf): Promise<FileText | Skipped> {
  const { title, text } = await read(path, bytes, readPdf);
  const passages = passagesOf(text.slice(0, searchFileTextMaxLength));
  if (passages.length === 0) return { skipped: "no text can be read from it" };
  const name = basename(path, extname(path));
  return { title: (title === "" ? name : title).slice(0, titleMaxLength).toWellFormed(), passages };
}

const nothing = { title: "", text: "" };

async function read(
  path: string,
  bytes: Uint8Array,
  readPdf: ReadPdf,
): Promise<Readonly<{ title: string; text: string }>> {
  const kind = kindOf(path);
  if (kind === "pdf") return { title: "", text: (await readPdf(bytes)) ?? "" };
  const text = decode(bytes);
  if (text === null) return nothing;
  switch (kind) {
    case "html":
      return pageText(text, searchFileTextMaxLength).catch(() => nothing); // the parser gave up on it
    case "markdown":
      return markdown(text);
    case "text":
    case null:
      return { title: "", text };
    default:
      return kind satisfies never;
  }
}

/** UTF-8, or UTF-16 where it says so, with wrong bytes as U+FFFD; null where it is no text. */
function decode(bytes: Uint8Array): string | null {
  const mark = (bytes[0] ?? 0) * 256 + (bytes[1] ?? 0);
  if (mark === 0xfffe) return new TextDecoder("utf-16le").decode(bytes);
  if (mark === 0xfeff) return new TextDecoder("utf-16be" as "utf-16le").decode(bytes);
  return bytes.subarray(0, 8192).includes(0) ? null : new TextDecoder().decode(bytes);
}

/** The title of the front matter, otherwise the first heading. Markup stays: models read it as well as people do. */
function markdown(whole: string): { title: string; text: string } {
  const frontMatter = /^---\r?\n([\s\S]{0,20000}?)\r?\n---\s*(?:\r?\n|$)/.exec(whole);
  const text = whole.slice(frontMatter?.[0].length ?? 0);
  const named = /^title:[ \t]*(["']?)(.{1,300}?)\1[ \t]*$/m.exec(frontMatter?.[1] ?? "")?.[2];
  const heading = /^#{1,6}[ \t]+(.{1,300}?)(?:[ \t]+#+)?[ \t]*$/m.exec(text.slice(0, 20_000))?.[1];
  return { title: (named ?? heading ?? "").trim(), text };
}

/** Joins whole paragraphs while they fit; cuts longer ones at the last space. */
function passagesOf(text: string): string[] {
  const passages: string[] = [];
  let passage = "";
  const flush = (): void => {
    const trimmed = passage.trim();
    if (trimmed !== "") passages.push(trimmed);
    passage = "";
  };
  for (const paragraph of text.replaceAll("\0", "").split(/\r?\n[ \t]*\r?\n/)) {
    if (passage.length + paragraph.length > searchPassageLength) flush();
    let rest = paragraph;
    while (rest.length > searchPassageLength) {
      const cut = cutAt(rest);
      passages.push(rest.slice(0, cut).trim());
      rest = rest.slice(cut);
    }
    passage += `${rest}\n\n`;
  }
  flush();
  return passages.filter((piece) => piece !== "");
}

/** Where to cut a long paragraph: after white space in the second half, otherwise anywhere but within a character. */
function cutAt(text: string): number {
  const space = text.slice(0, searchPassageLength).search(/\s\S*$/);
  if (space > searchPassageLength / 2) return space + 1;
  const last = text.charCodeAt(searchPassageLength - 1);
  return last >= 0xd800 && last <= 0xdbff ? searchPassageLength - 1 : searchPassageLength;
}
