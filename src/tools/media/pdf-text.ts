// Extracts a PDF's text page by page, in a process of its own: 600 KB can claim to hold 500 MB of text.
import { getDocumentProxy } from "unpdf";
import { pdfTextMaxLength } from "../limits.ts";

/** A page of text takes a few milliseconds. */
export const pdfPagesMax = 500;

const errorsOnly = 0;

/** The text of the first pages; empty for scanned ones. Rejects where it is no readable PDF (encrypted, broken). */
export async function pdfText(bytes: Uint8Array): Promise<string> {
  const document = await getDocumentProxy(bytes, { verbosity: errorsOnly }); // warnings would end up in the text
  const pages: string[] = [];
  let length = 0;
  for (let number = 1; number <= Math.min(document.numPages, pdfPagesMax) && length < pdfTextMaxLength; number++) {
    const page = await document.getPage(number);
    const { items } = await page.getTextContent();
    const text = items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")).join("");
    page.cleanup();
    pages.push(text);
    length += text.length;
  }
  return pages.join("\n\n").slice(0, pdfTextMaxLength);
}
