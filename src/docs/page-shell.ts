// The frame of every documentation page: head, top bar, side bar, and the style and script inside the page. It loads
// only the console's fonts, and its policy allows nothing else.
import { escaped } from "./markup.ts";
import colors from "./colors.css" with { type: "text" };
import frameStyle from "./frame.css" with { type: "text" };
import script from "./reference.js" with { type: "text" };
import contentStyle from "./reference.css" with { type: "text" };

/** Addresses of what a page takes from the console. */
export type SiteFiles = Readonly<{ textFont: string; codeFont: string; icon: string }>;

export type Page = Readonly<{ html: string; contentSecurityPolicy: string }>;

/** `side` and `content` are HTML, the rest is text. */
export type PageParts = Readonly<{
  title: string;
  /** Beside the name in the top bar. */
  place: string;
  sideLabel: string;
  side: string;
  content: string;
}>;

export function pageOf(
  { title, place, sideLabel, side, content }: PageParts,
  name: string,
  files: SiteFiles | null,
): Page {
  const css = (files === null ? "" : fontFaces(files)) + colors + frameStyle + contentStyle;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} · ${escaped(name)}</title>
${files === null ? "" : `<link rel="icon" href="${escaped(files.icon)}">`}
<style>${css}</style>
<script>${script}</script>
</head>
<body>
<a class="skip-link" href="#content">Skip to the content</a>
<header class="top">
<a class="brand" href="/">${mark}<span>${escaped(name)}</span></a>
<span class="top-title">${escaped(place)}</span>
<nav class="top-links" aria-label="Site"><a href="/docs/guide">Guide</a><a href="/docs">API reference</a><a href="/openapi.json">openapi.json</a><a href="/">Console</a></nav>
</header>
<div class="shell">
<nav class="side" aria-label="${escaped(sideLabel)}"><details open><summary>${escaped(sideLabel)}</summary>
${side}
</details></nav>
<main id="content">
${content}
</main>
</div>
</body>
</html>
`;
  return { html, contentSecurityPolicy: policyFor(css, script) };
}

/** The console's own icon. */
const mark =
  '<svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true"><rect class="mark" width="32" height="32" rx="8"/><path d="M8 24V12a8 8 0 0 1 16 0v12M13.5 24V13a2.5 2.5 0 0 1 5 0v11" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/></svg>';

const fontFaces = ({ textFont, codeFont }: SiteFiles): string =>
  `@font-face{font-family:Inter;src:url("${textFont}") format("woff2");font-weight:400 650;font-display:swap}` +
  `@font-face{font-family:"JetBrains Mono";src:url("${codeFont}") format("woff2");font-display:swap}\n`;

/** Allows only the page's own style and script, by hash, and the fonts. */
function policyFor(css: string, code: string): string {
  const hash = (text: string): string => `'sha256-${new Bun.CryptoHasher("sha256").update(text).digest("base64")}'`;
  return [
    "default-src 'none'",
    "font-src 'self'",
    "img-src 'self'",
    `style-src ${hash(css)}`,
    `script-src ${hash(code)}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}
