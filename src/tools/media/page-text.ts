// Extracts the readable text of a web page: its main part if it names one, without scripts, styles and navigation.
import { decodeHTML } from "entities/decode";

export type PageText = Readonly<{ title: string; text: string }>;

/** Elements without text of the page itself. */
const skippedTags = new Set(
  "script style noscript template svg math iframe object nav footer aside form button select dialog".split(" "),
);
const skippedRoles = new Set(["navigation", "banner", "contentinfo", "search"]);
/** Elements that begin and end a line. */
const blockTags = new Set(
  (
    "p div section article main header h1 h2 h3 h4 h5 h6 li dt dd tr table ul ol dl blockquote pre figure figcaption " +
    "address details summary fieldset"
  ).split(" "),
);
/** A page that marks its main part declares the rest unimportant, unless the main part is nearly empty. */
const mainMinLength = 200;

/** A page without a main part is read until it has this many times the wanted text, because its main part may come late. */
const readAheadFactor = 10;
/** Bytes of a document between two turns of the event loop: 2 ms of work, so that no model's stream waits for a page. */
const sliceBytes = 16 * 1024;

/** Title and text of any HTML, at most `lengthMax` characters; empty where there is none. Rejects if parsing fails. */
export async function pageText(html: string, lengthMax: number): Promise<PageText> {
  const page = new PageReader(lengthMax);
  const rewriter = new HTMLRewriter()
    .on("*", { element: (element) => page.element(element) })
    .onDocument({ text: (chunk) => page.text(chunk) });
  // The rewritten document is not needed, but reading it drives the rewriter.
  const body = rewriter.transform(new Response(slicesOf(html))).body;
  if (body !== null) for await (const _ of body) if (page.isFull) break;
  return page.result();
}

function slicesOf(html: string): ReadableStream<Uint8Array> {
  const bytes = Buffer.from(html);
  let at = 0;
  return new ReadableStream(
    {
      async pull(controller) {
        await new Promise(setImmediate);
        if (at >= bytes.length) return controller.close();
        controller.enqueue(bytes.subarray(at, (at += sliceBytes)));
      },
    },
    { highWaterMark: 0 },
  );
}

type Region = "title" | "skipped" | "main" | "literal";

function regionOf(element: HTMLRewriterTypes.Element): Region | null {
  const { tagName } = element;
  if (skippedTags.has(tagName) || element.hasAttribute("hidden")) return "skipped";
  if (element.getAttribute("aria-hidden") === "true") return "skipped";
  const role = element.getAttribute("role");
  if (role !== null && skippedRoles.has(role)) return "skipped";
  if (tagName === "main" || tagName === "article" || role === "main") return "main";
  if (tagName === "pre" || tagName === "textarea") return "literal";
  return tagName === "title" ? "title" : null;
}

class PageReader {
  readonly #lengthMax: number;
  /** How many elements of each kind are open. */
  readonly #open: Record<Region, number> = { title: 0, skipped: 0, main: 0, literal: 0 };
  #title: string | null = null;
  /** A text node, which comes in chunks that may end within a character reference. */
  #node = "";
  #all = "";
  #main = "";

  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax;
  }

  /** White space is removed at the end, so twice the wanted length is collected. */
  get isFull(): boolean {
    return this.#main.length >= 2 * this.#lengthMax || this.#all.length >= readAheadFactor * this.#lengthMax;
  }

  element(element: HTMLRewriterTypes.Element): void {
    const { tagName } = element;
    const region = regionOf(element);
    const isBlock = blockTags.has(tagName);
    if (isBlock || tagName === "br" || tagName === "hr") this.#write(tagName === "li" ? "\n- " : "\n");
    else if (tagName === "td" || tagName === "th") this.#write(" ");
    if ((region === null && !isBlock) || element.selfClosing || !element.canHaveContent) return;
    if (region !== null) this.#open[region]++;
    // One handler does everything: of several for the same element, Bun 1.4.5 calls only the last.
    element.onEndTag(() => {
      if (region !== null) this.#open[region]--;
      if (isBlock) this.#write("\n");
    });
  }

  text({ text, lastInTextNode }: HTMLRewriterTypes.Text): void {
    if (this.#open.skipped > 0) return;
    this.#node += text;
    if (!lastInTextNode) return;
    const node = decodeHTML(this.#node);
    this.#node = "";
    if (this.#open.title > 0) this.#title ??= node;
    else this.#write(this.#open.literal > 0 ? node : node.replace(/\s+/g, " "));
  }

  #write(text: string): void {
    if (this.#open.skipped > 0) return;
    this.#all += text;
    if (this.#open.main > 0) this.#main += text;
  }

  result(): PageText {
    const main = tidy(this.#main);
    const text = main.length >= mainMinLength ? main : tidy(this.#all);
    return { title: oneLine(this.#title ?? ""), text: text.slice(0, this.#lengthMax).toWellFormed() };
  }
}

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();

/** At most one empty line in a row, and no white space at line ends; indentation of literal text stays. */
const tidy = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.trimEnd()) // a regular expression takes minutes for a million spaces
    .join("\n")
    .replace(/\n (?! )/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
