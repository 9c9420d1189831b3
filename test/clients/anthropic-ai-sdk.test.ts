// The Vercel AI SDK with its provider that speaks the messages dialect.
import { describe, expect, test } from "bun:test";
import { installed, missing } from "../fixtures/optional.ts";
import { callArguments, callStart, finish, once } from "../fixtures/scripts.ts";
import { foundPages } from "../fixtures/search-service.ts";
import { useStack } from "../fixtures/stack.ts";

/** The few calls used here; the package's own types are not there in a plain checkout. */
type Generated = {
  text: string;
  reasoningText: string | undefined;
  finishReason: string;
  usage: { inputTokens: number; outputTokens: number; inputTokenDetails?: { cacheReadTokens?: number } };
  output: unknown;
  sources: { url: string; title: string }[];
  response: { messages: object[] };
};
type Streamed = { [Key in keyof Generated]: Promise<Generated[Key]> } & {
  textStream: AsyncIterable<string>;
  fullStream: AsyncIterable<{ type: string; error?: unknown }>;
};
type AiModule = {
  generateText(options: object): Promise<Generated>;
  streamText(options: object): Streamed;
  tool(options: object): object;
  stepCountIs(steps: number): unknown;
  jsonSchema(schema: object): unknown;
  Output: { object(options: object): unknown };
};
type Provider = ((model: string) => unknown) & { tools: { webSearch_20250305(options: object): object } };
type ProviderModule = { createAnthropic(options: object): Provider };

const ai = await installed<AiModule>("ai", import.meta.dir);
const provider = await installed<ProviderModule>("@ai-sdk/anthropic", import.meta.dir);
const present = ai !== null && provider !== null;
const thinking = { anthropic: { thinking: { type: "enabled", budgetTokens: 2_000 } } };

describe.skipIf(missing("@ai-sdk/anthropic", present, "run npm ci in test/clients"))("AI SDK 7, anthropic", () => {
  const stack = useStack({ search: true });

  /** The budget is named, because the provider warns of models that it does not know. */
  async function asks(script: string): Promise<{ model: unknown; prompt: string; maxOutputTokens: number }> {
    const { api_key: apiKey } = await stack.gateway.account();
    const model = provider!.createAnthropic({ baseURL: `${stack.gateway.url}/v1`, apiKey })("open-05-3BIT-REAP");
    return { model, prompt: `hello [[${stack.node.marker(script)}]]`, maxOutputTokens: 2_100 };
  }
  const { generateText, streamText, tool, jsonSchema, stepCountIs, Output } = ai ?? ({} as AiModule);

  test("text, thinking and usage, streamed and not", async () => {
    const whole = await generateText({ ...(await asks("reasoning-text")), providerOptions: thinking });
    const stream = streamText({ ...(await asks("reasoning-text")), providerOptions: thinking });
    expect([await stream.text, await stream.reasoningText, await stream.finishReason]).toEqual([
      "Hi there!",
      "Let me think.",
      "stop",
    ]);
    expect([whole.text, whole.reasoningText, whole.finishReason]).toEqual(["Hi there!", "Let me think.", "stop"]);
    const usage = { inputTokens: 120, outputTokens: 20, inputTokenDetails: { cacheReadTokens: 20 } };
    expect(whole.usage).toMatchObject(usage);
    expect(await stream.usage).toMatchObject(usage);
  });

  test("a web search gives its sources, streamed and not, and goes back with the history", async () => {
    const tools = { web_search: provider!.createAnthropic({ apiKey: "x" }).tools.webSearch_20250305({ maxUses: 3 }) };
    const whole = await generateText({ ...(await asks("web-search")), tools });
    const stream = streamText({ ...(await asks("web-search")), tools });
    for (const result of [whole, stream]) {
      expect(await result.text).toEndWith("Elysia runs on it [2].");
      expect(await result.finishReason).toBe("stop");
      expect((await result.sources).map(({ url }) => url)).toEqual(
        expect.arrayContaining(foundPages.map(({ url }) => url)),
      );
    }
    const { prompt: _, ...next } = await asks("text");
    const marker = stack.node.marker("text");
    const messages = [
      { role: "user", content: "hello" },
      ...whole.response.messages,
      { role: "user", content: `and? [[${marker}]]` },
    ];
    expect((await generateText({ ...next, tools, messages })).text).toBe("Hi there!");
    const seen = (await stack.node.request(marker)).body!["messages"] as { role: string; content: string }[];
    expect(seen.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
    expect(seen[2]!.content).toContain(foundPages[0].content);
  });

  test.each([
    ["one-tool", "It is sunny in Paris.", ["Paris"]],
    ["parallel-tools", "Rain and sun.", ["London", "Tokyo"]],
  ])("a tool loop of two rounds: %s", async (script, answer, cities) => {
    for (const way of ["generate", "stream"]) {
      const asked: { city: string }[] = [];
      const options = {
        ...(await asks(script)),
        tools: {
          get_weather: tool({
            description: "The weather of a city",
            inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }),
            execute: (input: { city: string }) => (asked.push(input), Promise.resolve("sunny, 21 C")),
          }),
        },
        stopWhen: stepCountIs(5),
      };
      expect(way === "stream" ? await streamText(options).text : (await generateText(options)).text).toBe(answer);
      expect(asked.map(({ city }) => city)).toEqual(cities);
    }
  });

  test("an object by JSON schema, which the provider asks for as a forced tool", async () => {
    await stack.node.define(
      "json-tool",
      once(callStart(0, "call_1", "json"), callArguments(0, '{"title":', '"Dune","year":1965}'), finish("tool_calls")),
    );
    const schema = {
      type: "object",
      properties: { title: { type: "string" }, year: { type: "integer" } },
      required: ["title", "year"],
    };
    const output = Output.object({ schema: jsonSchema(schema) });
    expect((await generateText({ ...(await asks("json-tool")), output })).output).toEqual({
      title: "Dune",
      year: 1965,
    });
  });

  test("an inline image reaches the node", async () => {
    const marker = stack.node.marker("text");
    const { prompt: _, ...options } = await asks("text");
    const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";
    const content = [
      { type: "text", text: `what is it? [[${marker}]]` },
      { type: "file", mediaType: "image/png", data },
    ];
    await generateText({ ...options, messages: [{ role: "user", content }] });
    expect(JSON.stringify((await stack.node.request(marker)).body)).toContain(`data:image/png;base64,${data}`);
  });

  test("a node that dies mid-stream leaves the text so far and an error", async () => {
    const stream = streamText({ ...(await asks("dies-rst")), onError: () => {} });
    let text = "";
    const errors: unknown[] = [];
    for await (const part of stream.fullStream) {
      if (part.type === "text-delta") text += (part as { text?: string }).text;
      if (part.type === "error") errors.push(part.error);
    }
    expect(text).toBe("Hi there");
    expect(errors.map(String).join()).toContain("The model stopped answering. Please retry.");
  });

  test("a refusal shows its message", async () => {
    const { prompt } = await asks("text");
    const stranger = provider!.createAnthropic({ baseURL: `${stack.gateway.url}/v1`, apiKey: "sk-tg-unknown" });
    const attempt = generateText({ model: stranger("core-3"), prompt });
    expect(attempt).rejects.toThrow("Invalid API key provided");
    await attempt.catch(() => {});
  });
});
