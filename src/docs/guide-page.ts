// Renders a chapter of the guide as an HTML page. The Markdown is our own; its samples get this server's address and
// one of its models, so that they work when copied.
import { Marked, type Tokens } from "marked";
import { type Chapter, chapters, titleOf } from "./guide.ts";
import { highlighted } from "./highlighted.ts";
import { escaped } from "./markup.ts";
import type { CodeSample } from "./openapi-document.ts";
import { type Page, pageOf, type SiteFiles } from "./page-shell.ts";

export type GuideFacts = Readonly<{
  name: string;
  /** How clients reach this server. */
  baseUrl: string;
  /** A model that this server has, for samples. */
  model: string;
}>;

/** What the chapters contain; pages replace it with this server's own. */
const written = { baseUrl: "http://127.0.0.1:8400", model: "core-3" };

const languages: Readonly<Record<string, CodeSample["lang"]>> = { sh: "Shell", js: "JavaScript", python: "Python" };

export function guidePage(chapter: Chapter, facts: GuideFacts, files: SiteFiles | null): Page {
  const title = titleOf(chapter);
  const side = `<ul>${chapters.map((each) => sideEntry(each, chapter)).join("")}</ul>`;
  const content = `<div class="guide">${htmlOf(withFacts(chapter, facts))}</div>`;
  return pageOf({ title, place: "Guide", sideLabel: "Chapters", side, content }, facts.name, files);
}

function withFacts({ text, model: inText = written.model }: Chapter, { baseUrl, model }: GuideFacts): string {
  const here = text.replaceAll(written.baseUrl, baseUrl);
  return model === inText ? here : here.replaceAll(new RegExp(`\\b${inText}\\b(?!-)`, "g"), () => model);
}

function sideEntry(chapter: Chapter, shown: Chapter): string {
  const current = chapter === shown ? ' aria-current="page"' : "";
  const headings = chapter === shown ? headingsOf(chapter.text) : [];
  const below = headings.map((heading) => `<li><a class="below" href="#${idOf(heading)}">${plain(heading)}</a></li>`);
  const entry = `<li><a href="/docs/guide/${chapter.id}"${current}>${escaped(titleOf(chapter))}</a></li>`;
  return entry + below.join("");
}

/** The second-level headings; a line of a sample that resembles one does not count. */
const headingsOf = (text: string): string[] =>
  new Marked()
    .lexer(text)
    .filter((token): token is Tokens.Heading => token.type === "heading" && token.depth === 2)
    .map((token) => token.text);

/** The same ids as on pages that show repositories, so that links work in both places. */
const idOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w -]/g, "")
    .replaceAll(" ", "-");

const plain = (heading: string): string => escaped(heading.replaceAll("`", ""));

function htmlOf(text: string): string {
  const marked = new Marked({
    renderer: {
      heading({ text: heading, tokens, depth }) {
        const id = idOf(heading);
        const anchor =
          depth === 1 ? "" : ` <a class="anchor" href="#${id}" aria-label="Link to ${plain(heading)}">#</a>`;
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}${anchor}</h${depth}>\n`;
      },
      code({ text: source, lang = "" }) {
        const language = languages[lang];
        const code = language === undefined ? escaped(source) : highlighted(source, language);
        return `<div class="sample"><button type="button" class="copy">Copy</button><pre tabindex="0"><code>${code}</code></pre></div>\n`;
      },
      table(token) {
        const row = (cells: readonly Tokens.TableCell[], tag: string): string =>
          `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join("")}</tr>`;
        const rows = token.rows.map((cells) => row(cells, "td")).join("");
        return `<div class="scroll" tabindex="0" role="region" aria-label="Table"><table><thead>${row(token.header, "th")}</thead><tbody>${rows}</tbody></table></div>\n`;
      },
      link({ href, tokens }) {
        const inside = this.parser.parseInline(tokens);
        const chapter = /^([a-z-]+)\.md(#.*)?$/.exec(href);
        if (chapter !== null) return `<a href="/docs/guide/${chapter[1]}${chapter[2] ?? ""}">${inside}</a>`;
        // A file of the repository is not on this server.
        return /^(?:https?:|#|\/)/.test(href) ? `<a href="${escaped(href)}">${inside}</a>` : inside;
      },
    },
  });
  return marked.parse(text, { async: false });
}
