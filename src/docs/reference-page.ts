// The API reference: one HTML page made from the OpenAPI description. It works without its script.
import { highlighted } from "./highlighted.ts";
import { escaped, paragraphs, prose } from "./markup.ts";
import type { CodeSample, Method, OpenApiDocument, Operation } from "./openapi-document.ts";
import { type Page, pageOf, type SiteFiles } from "./page-shell.ts";
import { fieldList, resolved, type Schemas, typeWords } from "./schema-view.ts";

type Endpoint = Readonly<{ method: Method; path: string; operation: Operation }>;

export function referencePage(document: OpenApiDocument, files: SiteFiles | null): Page {
  const endpoints = Object.entries(document.paths).flatMap(([path, methods]) =>
    (Object.entries(methods) as [Method, Operation][]).map(([method, operation]) => ({ method, path, operation })),
  );
  const groups = document.tags.map((tag) => ({
    ...tag,
    endpoints: endpoints.filter(({ operation }) => operation.tags[0] === tag.name),
  }));
  const { schemas } = document.components;
  const { info, servers } = document;
  const side = `<ul><li><a href="#start">Start</a></li></ul>
${groups.map(({ name, endpoints }) => `<p>${escaped(name)}</p><ul>${endpoints.map(sideLink).join("")}</ul>`).join("")}
<ul><li><a href="#errors">Errors</a></li></ul>`;
  const content = `<section class="start" id="start">
<h1>${escaped(info.title)} API</h1>
${paragraphs(info.description)}
<dl class="facts"><dt>Address</dt><dd><code>${escaped(servers[0]!.url)}</code></dd><dt>Version</dt><dd>${escaped(info.version)}</dd></dl>
</section>
${groups.map((group) => groupView(group.name, group.description, group.endpoints, schemas)).join("")}
${errorsView(endpoints)}`;
  const place = "API reference";
  return pageOf({ title: place, place, sideLabel: "Endpoints", side, content }, info.title, files);
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

/** Every sample is on the page; without the script they appear one below the other. */
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

/** Every refusal of any endpoint, once, from the examples of the replies. */
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
