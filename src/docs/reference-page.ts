// The API reference: one HTML page made of the OpenAPI description, with its style and script inside. It loads nothing
// but the console's fonts, and reads well without the script.
import { highlighted } from "./highlighted.ts";
import { escaped, paragraphs, prose } from "./markup.ts";
import type { CodeSample, Method, OpenApiDocument, Operation } from "./openapi-document.ts";
import script from "./reference.js" with { type: "text" };
import style from "./reference.css" with { type: "text" };
import { fieldList, resolved, type Schemas, typeWords } from "./schema-view.ts";

/** Addresses of what the page has from the console. */
export type SiteFiles = Readonly<{ textFont: string; codeFont: string; icon: string }>;

export type ReferencePage = Readonly<{ html: string; contentSecurityPolicy: string }>;

type Endpoint = Readonly<{ method: Method; path: string; operation: Operation }>;

export function referencePage(document: OpenApiDocument, files: SiteFiles | null): ReferencePage {
  const css = (files === null ? "" : fontFaces(files)) + style;
  const endpoints = Object.entries(document.paths).flatMap(([path, methods]) =>
    (Object.entries(methods) as [Method, Operation][]).map(([method, operation]) => ({ method, path, operation })),
  );
  const groups = document.tags.map((tag) => ({
    ...tag,
    endpoints: endpoints.filter(({ operation }) => operation.tags[0] === tag.name),
  }));
  const { schemas } = document.components;
  const { info, servers } = document;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference · ${escaped(info.title)}</title>
${files === null ? "" : `<link rel="icon" href="${escaped(files.icon)}">`}
<style>${css}</style>
<script>${script}</script>
</head>
<body>
<a class="skip-link" href="#content">Skip to the content</a>
<header class="top">
<a class="brand" href="/">${mark}<span>${escaped(info.title)}</span></a>
<span class="top-title">API reference</span>
<nav class="top-links" aria-label="Site"><a href="/openapi.json">openapi.json</a><a href="/">Console</a></nav>
</header>
<div class="shell">
<nav class="side" aria-label="Endpoints"><details open><summary>Endpoints</summary>
<ul><li><a href="#start">Start</a></li></ul>
${groups.map(({ name, endpoints }) => `<p>${escaped(name)}</p><ul>${endpoints.map(sideLink).join("")}</ul>`).join("")}
<ul><li><a href="#errors">Errors</a></li></ul>
</details></nav>
<main id="content">
<section class="start" id="start">
<h1>${escaped(info.title)} API</h1>
${paragraphs(info.description)}
<dl class="facts"><dt>Address</dt><dd><code>${escaped(servers[0]!.url)}</code></dd><dt>Version</dt><dd>${escaped(info.version)}</dd></dl>
</section>
${groups.map((group) => groupView(group.name, group.description, group.endpoints, schemas)).join("")}
${errorsView(endpoints)}
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

/** Nothing runs and nothing is loaded but what the page itself has, by its hash, and the fonts. */
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

const sideLink = ({ method, operation }: Endpoint): string =>
  `<li><a href="#${operation.operationId}"><span class="method ${method}">${method}</span>${escaped(operation.summary)}</a></li>`;

function groupView(name: string, description: string, endpoints: readonly Endpoint[], schemas: Schemas): string {
  return `<section class="group"><h2>${escaped(name)}</h2><p class="quiet">${prose(description)}</p>${endpoints
    .map((endpoint) => endpointView(endpoint, schemas))
    .join("")}</section>`;
}

function endpointView({ method, path, operation }: Endpoint, schemas: Schemas): string {
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
  const answered = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));
  const replySchema = answered?.[1].content?.["application/json"]?.schema;
  const parts = [
    parametersView(operation, schemas),
    body === undefined ? "" : `<h4>Body</h4>${noteOf(resolved(body, schemas).description)}${fieldList(body, schemas)}`,
    replySchema === undefined ? "" : foldedView("Reply", fieldList(replySchema, schemas)),
    eventsView(operation, schemas),
    statusView(operation),
  ];
  return `<article id="${operation.operationId}">
<div class="words">
<h3>${escaped(operation.summary)} <a class="anchor" href="#${operation.operationId}" aria-label="Link to ${escaped(operation.summary)}">#</a></h3>
<p class="address"><span class="method ${method}">${method}</span><code>${escaped(path)}</code></p>
${paragraphs(operation.description)}
${parts.join("\n")}
</div>
<div class="code">${samplesView(operation)}</div>
</article>`;
}

const noteOf = (description: string | undefined): string =>
  description === undefined ? "" : `<p class="quiet">${prose(description)}</p>`;

const foldedView = (title: string, content: string): string =>
  content === "" ? "" : `<details class="fold"><summary><h4>${escaped(title)}</h4></summary>${content}</details>`;

function parametersView({ parameters = [] }: Operation, schemas: Schemas): string {
  if (parameters.length === 0) return "";
  const rows = parameters.map(
    ({ name, in: place, required, description, schema }) =>
      `<dt><code>${escaped(name)}</code> <span class="type">${escaped(typeWords(schema, schemas))}, in the ${place}</span>${
        required ? '<span class="required">required</span>' : ""
      }</dt><dd><p>${prose(description)}</p></dd>`,
  );
  return `<h4>Parameters</h4><dl class="fields">${rows.join("")}</dl>`;
}

function eventsView(operation: Operation, schemas: Schemas): string {
  const events = Object.entries(operation["x-events"] ?? {});
  const rows = events.map(
    ([name, { description, schema }]) =>
      `<dt><code>${escaped(name)}</code></dt><dd><p>${prose(description)}</p>${foldedView("Fields", fieldList(schema, schemas))}</dd>`,
  );
  return events.length === 0 ? "" : foldedView("Events of the stream", `<dl class="fields">${rows.join("")}</dl>`);
}

function statusView({ responses }: Operation): string {
  const rows = Object.entries(responses).map(
    ([status, { description }]) =>
      `<tr><td><span class="status s${status[0]}">${status}</span></td><td>${prose(description)}</td></tr>`,
  );
  return foldedView("Statuses", `<table>${rows.join("")}</table>`);
}

/** Every sample is on the page; without the script they stand one below the other. */
function samplesView({ operationId, "x-codeSamples": samples = [] }: Operation): string {
  if (samples.length === 0) return "";
  const buttons = samples.map(
    ({ label }, index) =>
      `<button type="button" role="tab" id="${operationId}-tab-${index}" aria-controls="${operationId}-code-${index}" data-label="${escaped(label)}">${escaped(label)}</button>`,
  );
  const panels = samples.map((sample, index) => sampleView(operationId, index, sample));
  return `<div class="samples"><div class="tabs" role="tablist" aria-label="Language">${buttons.join("")}</div>${panels.join("")}</div>`;
}

const sampleView = (id: string, index: number, { lang, label, source }: CodeSample): string =>
  `<div class="sample" role="tabpanel" id="${id}-code-${index}" aria-labelledby="${id}-tab-${index}" data-label="${escaped(label)}">` +
  `<button type="button" class="copy">Copy</button><pre tabindex="0"><code>${highlighted(source, lang)}</code></pre></div>`;

/** Every refusal that any endpoint describes, once, from the examples of the replies. */
function errorsView(endpoints: readonly Endpoint[]): string {
  const rows = new Map<string, string>();
  for (const { operation } of endpoints) {
    for (const [status, { content }] of Object.entries(operation.responses)) {
      for (const [name, { value }] of Object.entries(content?.["application/json"]?.examples ?? {})) {
        if (!status.startsWith("2") && !rows.has(name)) rows.set(name, errorRow(status, value));
      }
    }
  }
  const sorted = [...rows.values()].sort();
  return `<section class="group" id="errors"><h2>Errors</h2>
<p class="quiet">The body of an error is <code>{"error": {"type", "message", "code", "param"}}</code>; on the messages dialect it is <code>{"type": "error", "error": {"type", "message"}}</code>.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Errors"><table><thead><tr><th>Status</th><th>Type</th><th>Code</th><th>Message</th></tr></thead><tbody>${sorted.join("")}</tbody></table></div></section>`;
}

function errorRow(status: string, value: unknown): string {
  const { type, code, message } = (value as { error: { type: string; code?: string | null; message: string } }).error;
  return `<tr><td><span class="status s${status[0]}">${status}</span></td><td><code>${escaped(type)}</code></td><td>${
    code == null ? "" : `<code>${escaped(code)}</code>`
  }</td><td>${escaped(message)}</td></tr>`;
}
