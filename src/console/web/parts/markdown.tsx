// Draws a model's Markdown as elements, token by token. Nothing of it ever becomes HTML: HTML is shown as text, images
// become links, and links show where they lead. So a model cannot run code here or make the browser load anything.
import { Marked, type Token, type Tokens } from "marked";
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { CodeBlock } from "./code-block.tsx";
import { useDrawnCount } from "./drawn-count.ts";
import { Formula } from "./formula.tsx";
import { blockFormula, type FormulaToken, inlineFormula } from "./formula-markdown.ts";
import { LongText } from "./long-text.tsx";
import { markdownPieces } from "./pieces.ts";

/** A larger table stays text: even a short row of a thousand columns becomes a thousand cells. */
const cellsMax = 2_000;

const markdown = new Marked({
  gfm: true,
  extensions: [blockFormula, inlineFormula],
  tokenizer: {
    table(source) {
      const columns = source.slice(0, source.indexOf("\n")).split("|").length;
      const rows = source.slice(0, blockEnd(source)).split("\n").length;
      return columns * rows > cellsMax ? undefined : false; // false: marked reads it as usual
    },
    // E-mail addresses are no links here: looking for one at each letter takes quadratic time.
    url: (source) => (/^(?:https?:|ftp:|www\.)/i.test(source) ? false : undefined),
    inlineText(source) {
      const raw = source.slice(0, textEnd(source));
      return { type: "text", raw, text: raw, escaped: false };
    },
  },
});

/** Where something other than text may begin. */
const mark = /[\\<![`*_~]|https?:\/\/|ftp:\/\/|www\.|(?<! ) {2,}\n/gi;

function textEnd(source: string): number {
  mark.lastIndex = source.startsWith("`") ? /^`+/.exec(source)![0].length : 1;
  return mark.exec(source)?.index ?? source.length;
}

function blockEnd(source: string): number {
  const end = source.indexOf("\n\n");
  return end === -1 ? source.length : end;
}

/** Deeper nesting is shown as it was written, because both reading and drawing are recursive. */
const nestedMax = 40;
/** The rest is shown as it was written: markup alone could become a million elements. */
const drawnMaxLength = 200_000;

export function Markdown({ text }: { text: string }): VNode {
  const pieces = useMemo(() => markdownPieces(text.slice(0, drawnMaxLength)), [text]);
  const drawn = useDrawnCount(pieces.length, 1);
  return (
    <div class="markdown">
      {pieces
        .slice(0, drawn)
        .map((piece, index) =>
          typeof piece === "string" ? <Piece key={index} text={piece} /> : <CodeBlock key={index} {...piece} />,
        )}
      {text.length > drawnMaxLength && drawn >= pieces.length && (
        <div class="as-written" dir="auto">
          <LongText text={text.slice(drawnMaxLength)} />
        </div>
      )}
    </div>
  );
}

/** Read and drawn again only when it changes: a growing answer changes only at its end. */
const Piece = ({ text }: { text: string }): VNode => useMemo(() => <>{blocks(read(text), 0)}</>, [text]);

/** A line of some thousand dashes, "- - - …", is nested deeper than the reader can go: it stays text. */
function read(text: string): readonly Token[] {
  try {
    return markdown.lexer(text);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return [{ type: "html", raw: text }];
  }
}

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
    default: // HTML, and unknown tokens of a newer reader: as written
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
            <th key={index} scope="col" dir="auto" class={align[index] ?? undefined}>
              {inline(cell.tokens, level + 1)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={index}>
            {row.map((cell, column) => (
              <td key={column} dir="auto" class={align[column] ?? undefined}>
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
        <SafeLink key={key} href={href} shownText={text}>
          {inline(tokens, level + 1)}
        </SafeLink>
      );
    }
    case "image": {
      const { href, text } = token as Tokens.Image;
      return (
        <SafeLink key={key} href={href} shownText={text}>
          Image: {text === "" ? "without a description" : plain(text)}
        </SafeLink>
      );
    }
    default:
      return token.raw;
  }
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };

/** Outside of code, an entity stands for its character. */
const plain = (text: string): string =>
  text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name] ?? "");

type SafeLinkProps = Readonly<{ href: string; shownText: string; children: ComponentChildren }>;

/** A link to the web shows its target and opens in a tab of its own; any other address is shown as text only. */
export function SafeLink({ href, shownText, children }: SafeLinkProps): VNode {
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
      {shownText !== url.href && <span class="link-target"> ({url.host})</span>}
    </span>
  );
}

function webAddress(href: string): URL | null {
  const url = URL.parse(href);
  return url !== null && (url.protocol === "https:" || url.protocol === "http:") ? url : null;
}
