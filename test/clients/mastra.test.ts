// Mastra's agents with its own model router: text, thoughts, tools, objects, a long conversation, errors, and a client that leaves.
import { describe, expect, test } from "bun:test";
import { eventually } from "../fixtures/eventually.ts";
import { installed, missing } from "../fixtures/optional.ts";
import { pixelUrl } from "../fixtures/pictures.ts";
import { useStack } from "../fixtures/stack.ts";

// the packages' own types are not there in a plain checkout
type Json = Record<string, any>;
const [agents, tools, zod] = await Promise.all(
  ["@mastra/core/agent", "@mastra/core/tools", "zod"].map((name) => installed<Json>(name, import.meta.dir)),
);
const isThere = agents != null && tools != null && zod != null;
const absent = missing("Mastra", isThere, "run npm ci in test/clients");

describe.skipIf(absent)("Mastra", () => {
  const stack = useStack();
  const { Agent } = agents ?? {};
  const { z } = zod ?? {};
  const agent = async (key?: string, more: object = {}, modelId = "core-3"): Promise<Json> => {
    const apiKey = key ?? (await stack.gateway.account()).api_key;
    const model = { providerId: "tollgate", modelId, url: `${stack.gateway.url}/v1`, apiKey };
    const made = new Agent({ id: "a", name: "a", instructions: "be brief", model, ...more });
    made.__setLogger({ error() {}, warn() {}, info() {}, debug() {}, trackException() {} });
    return made as Json;
  };

  test("text, thoughts and usage, whole and streamed", async () => {
    const whole = await (await agent()).generate("hello [[reasoning-text]]");
    const stream = await (await agent()).stream("hello [[reasoning-text]]");
    for (const reply of [whole, stream]) {
      expect([await reply.text, await reply.reasoningText, await reply.finishReason]).toEqual([
        "Hi there!",
        "Let me think.",
        "stop",
      ]);
      expect(await reply.usage).toMatchObject({ inputTokens: 120, outputTokens: 20, totalTokens: 140 });
    }
  });

  test.each(["generate", "stream"])("tools that it calls and whose results go back, %s", async (way) => {
    const asked: string[] = [];
    const weather = tools!["createTool"]({
      id: "get_weather",
      description: "The weather of a city",
      inputSchema: z.object({ city: z.string() }),
      execute: ({ city }: { city: string }) => (asked.push(city), Promise.resolve({ sky: "sunny" })),
    });
    const answer = await (await agent(undefined, { tools: { weather } }))[way]("hello [[parallel-tools]]");
    expect([await answer.text, asked.sort()]).toEqual(["Rain and sun.", ["London", "Tokyo"]]);
    expect((await answer.totalUsage).totalTokens).toBe(280);
  });

  test("an object, a picture, and a conversation of 200 turns", async () => {
    const schema = z.object({ title: z.string(), year: z.number() });
    for (const jsonPromptInjection of [false, true]) {
      const structuredOutput = { schema, jsonPromptInjection };
      const { object } = await (await agent()).generate("hello [[json]]", { structuredOutput });
      expect(object).toEqual({ title: "Dune", year: 1965 });
    }
    const seen = stack.node.marker("text");
    const content = [
      { type: "text", text: `[[${seen}]]` },
      { type: "image", image: pixelUrl },
    ];
    expect((await (await agent()).generate([{ role: "user", content }])).text).toBe("Hi there!");
    expect(JSON.stringify((await stack.node.requests(seen))[0]!.body)).toContain("data:image/png;base64,");
    const long = stack.node.marker("text");
    const turns = Array.from({ length: 200 }, (_, turn) => ({
      role: turn % 2 === 0 ? "user" : "assistant",
      content: `turn ${turn}`,
    }));
    await (await agent()).generate([...turns, { role: "user", content: `[[${long}]]` }]);
    expect((await stack.node.requests(long))[0]!.body!["messages"]).toHaveLength(202);
  });

  test("errors are told in the gateway's words, and none is charged", async () => {
    const account = await stack.gateway.account();
    const poor = await stack.gateway.account(0);
    const says = async (made: Promise<Json>, prompt: string, options: object = {}): Promise<unknown[]> => {
      const error = await (await made).generate(prompt, options).then(
        () => new Error("none"),
        (error: unknown) => error,
      );
      return [(error as Json)["statusCode"], (error as Error).message];
    };
    const { api_key: key } = account;
    const dear = { modelSettings: { maxOutputTokens: 60_000 } };
    expect(await says(agent("wrong"), "x")).toEqual([401, "Invalid API key provided"]);
    expect(await says(agent(key, {}, "nobody"), "x")).toEqual([
      400,
      expect.stringContaining("`nobody` does not exist"),
    ]);
    expect(await says(agent(poor.api_key), "x", dear)).toEqual([429, expect.stringContaining("Quota exceeded")]);
    expect(await says(agent(key), "[[prompt-too-long]]")).toEqual([400, expect.stringContaining("4096 maximum")]);
    const full = stack.node.marker("status-429");
    expect(await says(agent(key), `[[${full}]]`)).toEqual([429, "Routes are temporarily busy. Please retry."]);
    expect(await stack.node.requests(full)).toHaveLength(1); // it does not retry unless told to
    const reply = await (await agent(key)).stream("[[error-mid-stream]]");
    await reply.consumeStream();
    expect([await reply.finishReason, reply.error.message]).toEqual([
      "error",
      "The model stopped answering. Please retry.",
    ]);
    for (const each of [account, poor]) await stack.gateway.expectUncharged(each);
  });

  test("one that aborts pays for what came", async () => {
    const { api_key, email } = await stack.gateway.account();
    const marker = stack.node.marker("endless");
    const controller = new AbortController();
    const { fullStream } = await (await agent(api_key)).stream(`[[${marker}]]`, { abortSignal: controller.signal });
    for await (const { type } of fullStream as AsyncIterable<Json>) if (type === "text-delta") controller.abort();
    await stack.node.closedAt(marker);
    const [row] = await eventually("it is charged", async () => {
      const rows = await stack.gateway.usage(email);
      return rows.length === 1 ? rows : null;
    });
    expect(row).toMatchObject({ estimated: true });
  });
});
