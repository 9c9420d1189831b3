// Draws a model's Markdown as elements. Nothing of it ever becomes HTML: its tokens are drawn one by one, HTML in it is
// shown as text, images become links, and links say where they lead. So a model cannot run code here or make the
// browser load anything.
import { Marked, type Token, type Tokens, type TokensList } from "marked";
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { CodeBlock } from "./code-block.tsx";
import { Formula } from "./formula.tsx";
import { blockFormula, type FormulaToken, inlineFormula } from "./formula-markdown.ts";

const markdown = new Marked({ gfm: true, extensions: [blockFormula, inlineFormula] });

/** What is nested deeper is shown as it was written: both reading and drawing go down by calling themselves. */
const nestedMax = 40;

export function Markdown({ text }: { text: string }): VNode {
  const tokens = useMemo(() => read(text), [text]);
  const links = JSON.stringify(tokens.links);
  return (
    <div class="markdown">
      {tokens.map((token, index) => (
        <Block key={index} token={token} links={links} />
      ))}
    </div>
  );
}

/** A line such as "- - - …" of some thousand dashes is nested deeper than the reader can go: the text stays a text. */
function read(text: string): TokensList {
  try {
    return markdown.lexer(text);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return Object.assign([{ type: "html", raw: text }], { links: {} });
  }
}

/** Drawn again only when it changed: an answer that is being written grows at its end alone. */
const Block = ({ token, links }: { token: Token; links: string }): VNode =>
  useMemo(() => <>{block(token, 0, 0)}</>, [token.type, token.raw, links]);

const blocks = (tokens: readonly Token[], level: number): ComponentChildren =>
  tokens.map((token, index) => block(token, index, level));

function block(token: Token, key: number, level: number): ComponentChildren {
  if (level > nestedMax) return token.raw;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return heading(token as Tokens.Heading, key, level);
    case "paragraph":
      return (
        <p key={key} dir="auto">
          {inline((token as Tokens.Paragraph).tokens, level + 1)}
        </p>
      );
    case "text": {
      const { tokens, text } = token as Tokens.Text;
      return tokens === undefined ? plain(text) : <span key={key}>{inline(tokens, level + 1)}</span>;
    }
    case "code": {
      const { text, lang } = token as Tokens.Code;
      return <CodeBlock key={key} code={text} language={(lang ?? "").split(/\s/)[0] ?? ""} />;
    }
    case "blockquote":
      return (
        <blockquote key={key} dir="auto">
          {blocks((token as Tokens.Blockquote).tokens, level + 1)}
        </blockquote>
      );
    case "list":
      return list(token as Tokens.List, key, level);
    case "table":
      return table(token as Tokens.Table, key, level);
    case "hr":
      return <hr key={key} />;
    case "formula":
      return <p key={key}>{formula(token as FormulaToken, 0)}</p>;
    default: // HTML, and what this version of the reader does not know: as it was written
      return (
        <p key={key} dir="auto">
          {token.raw}
        </p>
      );
  }
}

/** Below the page's own headings. */
function heading({ depth, tokens }: Tokens.Heading, key: number, level: number): VNode {
  const children = inline(tokens, level + 1);
  const Level = depth <= 1 ? "h2" : "h3";
  return (
    <Level key={key} dir="auto">
      {children}
    </Level>
  );
}

function list({ ordered, start, items }: Tokens.List, key: number, level: number): VNode {
  const children = items.map((item, index) => (
    <li key={index} dir="auto">
      {item.task && <input type="checkbox" checked={item.checked === true} disabled aria-label="Task" />}
      {blocks(
        item.tokens.filter(({ type }) => type !== "checkbox"),
        level + 1,
      )}
    </li>
  ));
  if (!ordered) return <ul key={key}>{children}</ul>;
  return (
    <ol key={key} start={start === "" ? 1 : start}>
      {children}
    </ol>
  );
}

const table = ({ header, rows, align }: Tokens.Table, key: number, level: number): VNode => (
  <div key={key} class="table-scroll" tabIndex={0} role="group" aria-label="Table">
    <table>
      <thead>
        <tr>
          {header.map((cell, index) => (
            <th key={index} scope="col" dir="auto" class={align[index] === "right" ? "right" : undefined}>
              {inline(cell.tokens, level + 1)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={index}>
            {row.map((cell, column) => (
              <td key={column} dir="auto" class={align[column] === "right" ? "right" : undefined}>
                {inline(cell.tokens, level + 1)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

const formula = ({ tex, display, raw }: FormulaToken, key: number): VNode => (
  <Formula key={key} tex={tex} display={display} source={raw.trim()} />
);

const inline = (tokens: readonly Token[], level: number): ComponentChildren =>
  tokens.map((token, index) => span(token, index, level));

function span(token: Token, key: number, level: number): ComponentChildren {
  if (level > nestedMax) return token.raw;
  switch (token.type) {
    case "text":
    case "escape": {
      const { tokens, text } = token as Tokens.Text;
      return tokens === undefined ? plain(text) : inline(tokens, level + 1);
    }
    case "strong":
      return <strong key={key}>{inline((token as Tokens.Strong).tokens, level + 1)}</strong>;
    case "em":
      return <em key={key}>{inline((token as Tokens.Em).tokens, level + 1)}</em>;
    case "del":
      return <del key={key}>{inline((token as Tokens.Del).tokens, level + 1)}</del>;
    case "codespan":
      return <code key={key}>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br key={key} />;
    case "formula":
      return formula(token as FormulaToken, key);
    case "link": {
      const { href, tokens, text } = token as Tokens.Link;
      return (
        <SafeLink key={key} href={href} told={text}>
          {inline(tokens, level + 1)}
        </SafeLink>
      );
    }
    case "image": {
      const { href, text } = token as Tokens.Image;
      return (
        <SafeLink key={key} href={href} told={text}>
          Image: {text === "" ? "without a description" : plain(text)}
        </SafeLink>
      );
    }
    default:
      return token.raw;
  }
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };

/** In a text, though not in code, an entity stands for its character. */
const plain = (text: string): string =>
  text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name] ?? "");

type SafeLinkProps = Readonly<{ href: string; told: string; children: ComponentChildren }>;

/**
 * A link to the web that shows its target and opens beside the console, which it learns nothing about. Any other
 * address (javascript:, data:, of this server) is shown as text only.
 */
export function SafeLink({ href, told, children }: SafeLinkProps): VNode {
  const url = webAddress(href);
  if (url === null) {
    return (
      <span>
        {children} <span class="link-target">({href})</span>
      </span>
    );
  }
  return (
    <span>
      <a href={url.href} target="_blank" rel="noopener noreferrer nofollow" title={url.href}>
        {children}
      </a>
      {told !== url.href && <span class="link-target"> ({url.host})</span>}
    </span>
  );
}

function webAddress(href: string): URL | null {
  const url = URL.parse(href);
  return url !== null && (url.protocol === "https:" || url.protocol === "http:") ? url : null;
}
