// The readable text of a web page: its main part where it says which that is, without scripts, styles and navigation.
import { decodeEntities } from "./html-entities.ts";

export type PageText = Readonly<{ title: string; text: string }>;

/** What holds no text of the page itself. */
const skipped =
  "script, style, noscript, template, svg, math, iframe, object, nav, footer, aside, form, button, select, dialog, " +
  "[hidden], [aria-hidden='true'], [role='navigation'], [role='banner'], [role='contentinfo']";
const blocks =
  "p, div, section, article, main, header, h1, h2, h3, h4, h5, h6, li, dt, dd, tr, table, ul, ol, blockquote, pre, figure, figcaption";
/** A page that marks its main part says the rest is beside the point, unless the part is hardly there. */
const mainMinLength = 200;

/** A page without a main part is read until it gave this many times what is wanted: its main part may come late. */
const readAheadFactor = 10;
/** Of a document, between two turns of the event loop: 2 ms of work, so that no stream of a model waits for a page. */
const sliceBytes = 32 * 1024;

/**
 * Title and text of an HTML document of any quality, at most `lengthMax` characters of text; both are empty where there
 * is none. Rejects where the parser gives up.
 */
export async function pageText(html: string, lengthMax: number): Promise<PageText> {
  const page = new PageReader(lengthMax);
  const rewriter = new HTMLRewriter()
    .on("title", { element: (element) => page.enter("title", element) })
    .on(skipped, { element: (element) => page.enter("skipped", element) })
    .on("main, article, [role='main']", { element: (element) => page.enter("main", element) })
    .on("pre, textarea", { element: (element) => page.enter("literal", element) })
    .on(blocks, { element: (element) => page.block(element) })
    .on("br, hr", { element: () => page.write("\n") })
    .on("td, th", { element: () => page.write(" ") })
    .onDocument({ text: (chunk) => page.textChunk(chunk) });
  // The rewritten document is of no use, but reading it is what drives the rewriter.
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

  /** White space goes at the end, hence twice as much as is wanted. */
  get isFull(): boolean {
    return this.#main.length >= 2 * this.#lengthMax || this.#all.length >= readAheadFactor * this.#lengthMax;
  }

  enter(region: Region, element: HTMLRewriterTypes.Element): void {
    if (element.selfClosing || !element.canHaveContent) return;
    this.#open[region]++;
    element.onEndTag(() => {
      this.#open[region]--;
    });
  }

  block(element: HTMLRewriterTypes.Element): void {
    this.write(element.tagName === "li" ? "\n- " : "\n");
    if (element.canHaveContent && !element.selfClosing) element.onEndTag(() => this.write("\n"));
  }

  textChunk({ text, lastInTextNode }: HTMLRewriterTypes.Text): void {
    if (this.#open.skipped > 0) return;
    this.#node += text;
    if (!lastInTextNode) return;
    const node = decodeEntities(this.#node);
    this.#node = "";
    if (this.#open.title > 0) this.#title ??= node;
    else this.write(this.#open.literal > 0 ? node : node.replace(/\s+/g, " "));
  }

  write(text: string): void {
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

/** At most one empty line between others, no white space at ends of lines; indentation of literal text stays. */
const tidy = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.trimEnd()) // a regular expression for it takes minutes for a million spaces
    .join("\n")
    .replace(/\n (?! )/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
