// Shows the request as code: with curl, and with the official SDKs of the dialect.
import type { Snippet } from "../../parts/code-block.tsx";
import type { DialectName } from "./conversation.ts";
import type { PlaygroundDialect } from "./dialect.ts";
import { python } from "./python-literal.ts";

/** The official Python packages refuse unknown keywords, so these go into extra_body. */
const extraInPython: readonly string[] = ["web_search"];
/** The Anthropic packages require a budget in every request. */
const anthropicBudget = 4_096;
/** Base64 is shown shortened, but copied in full. */
const shownBase64Max = 40;

export type Body = Readonly<Record<string, unknown>>;

export function snippetsOf(
  name: DialectName,
  dialect: PlaygroundDialect,
  body: Body,
  baseUrl: string,
): readonly Snippet[] {
  const snippet = (title: string, language: string, write: (body: Body) => string): Snippet => ({
    name: title,
    language,
    code: write(shortened(body) as Body),
    copied: write(body),
  });
  const curl = snippet("curl", "bash", (shown) => curlOf(name, dialect.endpoint, shown, baseUrl));
  if (name === "messages") {
    return [
      curl,
      snippet("Anthropic JS", "javascript", (shown) => anthropicJs(shown, baseUrl)),
      snippet("Anthropic Python", "python", (shown) => anthropicPython(shown, baseUrl)),
    ];
  }
  return [
    curl,
    snippet("OpenAI JS", "javascript", (shown) => openaiJs(name, shown, baseUrl)),
    snippet("OpenAI Python", "python", (shown) => openaiPython(name, shown, baseUrl)),
  ];
}

function curlOf(name: DialectName, endpoint: string, body: Body, baseUrl: string): string {
  const key =
    name === "messages"
      ? `-H "x-api-key: $TOLLGATE_KEY" -H "anthropic-version: 2023-06-01"`
      : `-H "authorization: Bearer $TOLLGATE_KEY"`;
  const json = JSON.stringify(body, null, 2).replaceAll("'", `'\\''`);
  return `curl -N ${baseUrl}${endpoint} \\
  ${key} \\
  -H "content-type: application/json" \\
  -d '${json}'`;
}

const openaiJs = (name: DialectName, body: Body, baseUrl: string): string =>
  `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${baseUrl}/v1", apiKey: process.env.TOLLGATE_KEY });
const stream = await client.${callOf(name)}(${javascript(body)});
${
  name === "responses"
    ? `for await (const event of stream) {
  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);
}`
    : `for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");`
}`;

const openaiPython = (name: DialectName, body: Body, baseUrl: string): string =>
  `import os
from openai import OpenAI

client = OpenAI(base_url="${baseUrl}/v1", api_key=os.environ["TOLLGATE_KEY"])
stream = client.${callOf(name)}(
${keywords(body)}
)
${
  name === "responses"
    ? `for event in stream:
    if event.type == "response.output_text.delta":
        print(event.delta, end="")`
    : `for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="")`
}`;

const callOf = (name: DialectName): string => (name === "responses" ? "responses.create" : "chat.completions.create");

const anthropicJs = (body: Body, baseUrl: string): string =>
  `import Anthropic from "@anthropic-ai/sdk"; // its base address has no /v1

const client = new Anthropic({ baseURL: "${baseUrl}", apiKey: process.env.TOLLGATE_KEY });
const stream = client.messages.stream(${javascript(forAnthropic(body))});
stream.on("text", (text) => process.stdout.write(text));
await stream.finalMessage();`;

const anthropicPython = (body: Body, baseUrl: string): string =>
  `import os
from anthropic import Anthropic

client = Anthropic(base_url="${baseUrl}", api_key=os.environ["TOLLGATE_KEY"])
with client.messages.stream(
${keywords(forAnthropic(body))}
) as stream:
    for text in stream.text_stream:
        print(text, end="")`;

/** The Anthropic packages' helpers set `stream` themselves. */
const forAnthropic = ({ model, ...body }: Body): Body => {
  const { stream: _stream, ...rest } = body;
  return { model, max_tokens: anthropicBudget, ...rest };
};

/** JSON with plain names unquoted, as people write objects. */
const javascript = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(/^( *)"([A-Za-z_$][\w$]*)":/gm, "$1$2:");

function keywords(body: Body): string {
  const plain = Object.entries(body).filter(([name]) => !extraInPython.includes(name));
  const extra = Object.entries(body).filter(([name]) => extraInPython.includes(name));
  const all = extra.length === 0 ? plain : [...plain, ["extra_body", Object.fromEntries(extra)] as const];
  return all.map(([name, value]) => `    ${name}=${python(value, "    ")},`).join("\n");
}

function shortened(value: unknown): unknown {
  if (typeof value === "string") {
    return /^(?:data:[^,]*;base64,)?[A-Za-z0-9+/=]{200,}$/.test(value) ? `${value.slice(0, shownBase64Max)}…` : value;
  }
  if (Array.isArray(value)) return value.map(shortened);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shortened(item)]));
}
