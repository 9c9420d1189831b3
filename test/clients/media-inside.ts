// Official clients send images and files by address and inline, in three dialects; the node shows what it was given.
// This file is run by media.test.ts within a network namespace, in which pictures.com is a server of the test's own.
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type Anthropic from "@anthropic-ai/sdk";
import type OpenAIClient from "openai";
import { runToEnd } from "../fixtures/children.ts";
import { NameServer } from "../fixtures/name-server.ts";
import { installed, missing } from "../fixtures/optional.ts";
import { pdf } from "../fixtures/pdf.ts";
import { pixelBase64, pixelUrl } from "../fixtures/pictures.ts";
import { PublicServer } from "../fixtures/public-server.ts";
import { useStack } from "../fixtures/stack.ts";

const imageAddress = "https://pictures.com/image";
const pdfAddress = "https://pictures.com/hello.pdf";
const pdfBase64 = pdf("Hello").toString("base64");
const pdfUrl = `data:application/pdf;base64,${pdfBase64}`;
const model = "core-3";

let nameServer: NameServer;
let web: PublicServer;
const stack = useStack(async () => {
  nameServer = await NameServer.start((name, type) =>
    name === "pictures.com" ? { addresses: type === "A" ? ["8.8.4.4"] : [] } : undefined,
  );
  web = new PublicServer([80], [443]);
  return {};
});
afterAll(async () => {
  web[Symbol.dispose]();
  await nameServer[Symbol.asyncDispose]();
});

/** How many images and read PDFs the node was given; that no address went to it. */
async function given(marker: string): Promise<{ images: number; pdfs: number }> {
  const body = JSON.stringify((await stack.node.request(marker)).body);
  expect(body).not.toContain("pictures.com/image");
  const count = (part: string) => body.split(JSON.stringify(part).slice(1, -1)).length - 1;
  return { images: count(pixelUrl), pdfs: count("\nHello\n</document>") };
}

type OpenAIModule = { OpenAI: new (options: object) => OpenAIClient };
const openaiVersions = ["openai", "openai-6", "openai-5", "openai-4"];

describe.each(openaiVersions)("%s", (name) => {
  const absent = missing(name, existsSync(join(import.meta.dir, "node_modules", name)), "run npm ci in test/clients");

  async function client(): Promise<OpenAIClient> {
    const { OpenAI } = (await installed<OpenAIModule>(name, import.meta.dir))!;
    const { api_key } = await stack.gateway.account();
    return new OpenAI({ baseURL: `${stack.gateway.url}/v1`, apiKey: api_key });
  }

  test.skipIf(absent)("chat completions", async () => {
    const marker = stack.node.marker("text");
    const content: OpenAIClient.Chat.ChatCompletionContentPart[] = [
      { type: "text", text: `what is it? [[${marker}]]` },
      { type: "image_url", image_url: { url: imageAddress, detail: "high" } },
      { type: "image_url", image_url: { url: pixelUrl } },
      { type: "file", file: { filename: "a.pdf", file_data: pdfUrl } },
    ];
    const stream = await (
      await client()
    ).chat.completions.create({ model, stream: true, messages: [{ role: "user", content }] });
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
    expect(text).toBe("Hi there!");
    expect(await given(marker)).toEqual({ images: 2, pdfs: 1 });
  });

  test.skipIf(absent)("responses, in a message and in a tool's result", async () => {
    const marker = stack.node.marker("text");
    const content = [
      { type: "input_text", text: `what is it? [[${marker}]]` },
      { type: "input_image", image_url: imageAddress, detail: "auto" },
      { type: "input_image", image_url: pixelUrl, detail: "auto" },
      { type: "input_file", filename: "a.pdf", file_data: pdfUrl },
      { type: "input_file", file_url: pdfAddress },
    ];
    const input = [
      { type: "message", role: "user", content },
      { type: "function_call", call_id: "c1", name: "look", arguments: "{}" },
      { type: "function_call_output", call_id: "c1", output: content.slice(1) },
    ];
    const reply = await (await client()).responses.create({ model, input: input as never });
    expect(reply.output_text).toBe("Hi there!");
    expect(await given(marker)).toEqual({ images: 4, pdfs: 4 });
  });
});

type AnthropicModule = { default: new (options: object) => Anthropic };
const anthropicVersions = ["@anthropic-ai/sdk", "anthropic-0.137", "anthropic-0.60"];

test
  .skipIf(missing("@anthropic-ai/sdk", existsSync(join(import.meta.dir, "node_modules/@anthropic-ai")), "npm ci"))
  .each(anthropicVersions)("%s, in a message and in a tool's result", async (name) => {
  const { default: Client } = (await installed<AnthropicModule>(name, import.meta.dir))!;
  const { api_key } = await stack.gateway.account();
  const client = new Client({ baseURL: stack.gateway.url, apiKey: api_key });
  const marker = stack.node.marker("text");
  const media = [
    { type: "image", source: { type: "url", url: imageAddress } },
    { type: "image", source: { type: "base64", media_type: "image/png", data: pixelBase64 } },
    { type: "document", source: { type: "url", url: pdfAddress }, title: "T", citations: { enabled: true } },
    { type: "document", source: { type: "base64", media_type: "application/pdf", data: pdfBase64 } },
  ];
  const messages = [
    { role: "user", content: [...media, { type: "text", text: `what is it? [[${marker}]]` }] },
    { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "look", input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: media }] },
  ];
  const stream = client.messages.stream({ model, max_tokens: 100, messages: messages as never });
  expect(await stream.finalText()).toBe("Hi there!");
  expect(await given(marker)).toEqual({ images: 4, pdfs: 4 });
});

// ---------------------------------------------------------------------------------------------------------------
// The AI SDK fetches what a provider does not take by address; these do.
// ---------------------------------------------------------------------------------------------------------------

type AiModule = { generateText(options: object): Promise<{ text: string }> };
type Language = (name: string) => unknown;
type ProviderModule = Readonly<Record<string, (options: object) => Record<string, Language> & Language>>;

const ways: readonly (readonly [ai: string, provider: string, maker: string, way: string | null])[] = [
  ["ai", "@ai-sdk/openai", "createOpenAI", "chat"],
  ["ai", "@ai-sdk/openai", "createOpenAI", "responses"],
  ["ai", "@ai-sdk/openai-compatible", "createOpenAICompatible", "chatModel"],
  ["ai", "@ai-sdk/anthropic", "createAnthropic", null],
  ["ai-6", "ai-sdk-openai-6", "createOpenAI", "chat"],
  ["ai-6", "ai-sdk-openai-6", "createOpenAI", "responses"],
];

test
  .skipIf(missing("the AI SDK", existsSync(join(import.meta.dir, "node_modules/ai")), "run npm ci in test/clients"))
  .each(ways)("%s with %s, %s %s", async (name, providerName, maker, way) => {
  const { generateText } = (await installed<AiModule>(name, import.meta.dir))!;
  const make = (await installed<ProviderModule>(providerName, import.meta.dir))![maker]!;
  const { api_key } = await stack.gateway.account();
  const provider = make({ baseURL: `${stack.gateway.url}/v1`, apiKey: api_key, name: "tollgate" });
  const marker = stack.node.marker("text");
  const content = [
    { type: "text", text: `what is it? [[${marker}]]` },
    { type: "image", image: new URL(imageAddress) },
    { type: "image", image: pixelBase64, mediaType: "image/png" },
    { type: "file", data: pdfBase64, mediaType: "application/pdf", filename: "a.pdf" },
  ];
  const language = way === null ? provider(model) : provider[way]!(model);
  expect((await generateText({ model: language, messages: [{ role: "user", content }] })).text).toBe("Hi there!");
  expect(await given(marker)).toEqual({ images: 2, pdfs: 1 });
});

// ---------------------------------------------------------------------------------------------------------------
// Python
// ---------------------------------------------------------------------------------------------------------------

const python = process.env["TOLLGATE_PYTHON"] ?? join(import.meta.dir, ".venv/bin/python");

test.skipIf(missing("the Python clients", existsSync(python), "make test/clients/.venv with requirements.txt"))(
  "Python: openai chat and responses, anthropic",
  async () => {
    const { api_key } = await stack.gateway.account();
    const markers = ["chat", "responses", "messages"].map((way) => [way, stack.node.marker("text")] as const);
    const setup = { base: stack.gateway.url, key: api_key, imageAddress, pdfAddress, pixelBase64, pdfBase64 };
    const stdin = JSON.stringify({ ...setup, markers: Object.fromEntries(markers) });
    const { code, stdout, stderr } = await runToEnd([python, join(import.meta.dir, "media_python.py")], { stdin });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(JSON.parse(stdout)).toEqual(["Hi there!", "Hi there!", "Hi there!"]);
    for (const [way, marker] of markers) {
      expect([way, await given(marker)]).toEqual([way, { images: 2, pdfs: way === "chat" ? 1 : 2 }]);
    }
  },
);
