// The Vercel AI SDK in two majors, with its providers for every dialect: text, thoughts, tools, searches, objects, errors.
import { beforeAll, describe, expect, test } from "bun:test";
import { type DialectName, hosted, weather } from "../fixtures/dialects.ts";
import { installed, missing } from "../fixtures/optional.ts";
import { pixelBase64, pixelUrl } from "../fixtures/pictures.ts";
import { callArguments, callStart, finish, once, reasoning, stream, text } from "../fixtures/scripts.ts";
import { foundPages } from "../fixtures/search-service.ts";
import { useStack } from "../fixtures/stack.ts";

// the packages' own types are not there in a plain checkout
type Json = Record<string, any>;
type Account = Readonly<{ baseURL: string; apiKey: string }>;
/** One of its providers. */
type Provider = Readonly<{
  dialect: DialectName;
  packages: Readonly<Record<string, string>>;
  model(module: Json, account: Account): unknown;
  /** What makes it ask for thoughts that it shows; null where it does not know the field. */
  thinks: Json | null;
  /** Its own tool of a search; null where it has none. */
  search: ((module: Json) => Json) | null;
  objectScript: string;
}>;

const openai = { 7: "@ai-sdk/openai", 6: "ai-sdk-openai-6" };
const providers: Readonly<Record<string, Provider>> = {
  "openai-compatible": {
    dialect: "chat",
    packages: { 7: "@ai-sdk/openai-compatible", 6: "ai-sdk-openai-compatible-6" },
    model: ({ createOpenAICompatible }, account) =>
      createOpenAICompatible({ name: "tollgate", includeUsage: true, ...account }).chatModel(hosted),
    thinks: {},
    search: null,
    objectScript: "json",
  },
  "openai .chat": {
    dialect: "chat",
    packages: openai,
    model: ({ createOpenAI }, account) => createOpenAI(account).chat(hosted),
    thinks: null,
    search: null,
    objectScript: "json",
  },
  openai: {
    dialect: "responses",
    packages: openai,
    model: ({ createOpenAI }, account) => createOpenAI(account)(hosted),
    // it does not know the model, and asks for reasoning only of models that it knows to think
    thinks: { openai: { reasoningEffort: "high", forceReasoning: true } },
    search: ({ createOpenAI }) => createOpenAI({ apiKey: "x" }).tools.webSearch({}),
    objectScript: "json",
  },
  anthropic: {
    dialect: "messages",
    packages: { 7: "@ai-sdk/anthropic", 6: "ai-sdk-anthropic-6" },
    model: ({ createAnthropic }, account) => createAnthropic(account)(hosted),
    thinks: { anthropic: { thinking: { type: "enabled", budgetTokens: 2_000 } } },
    search: ({ createAnthropic }) => createAnthropic({ apiKey: "x" }).tools.webSearch_20250305({ maxUses: 3 }),
    objectScript: "json-tool", // it asks for an object as a forced tool
  },
};
const module = (name: string): Promise<Json | null> => installed<Json>(name, import.meta.dir);
const rows = await Promise.all(
  Object.entries({ 7: "ai", 6: "ai-6" }).flatMap(([major, name]) =>
    Object.entries(providers).map(async ([kind, provider]) => {
      const packages = await Promise.all([module(name), module(provider.packages[major]!)]);
      return [major, kind, provider, packages] as const;
    }),
  ),
);
const present = rows.every(([, , , packages]) => packages.every((each) => each !== null));
const absent = missing("the AI SDK", present, "run npm ci in test/clients");

const stack = useStack({ search: true });
beforeAll(async () => {
  const object = callArguments(0, '{"title":', '"Dune","year":1965}');
  await stack.node.define("json-tool", once(callStart(0, "call_1", "json"), object, finish("tool_calls")));
  const asking = [callStart(0, "call_1", "get_weather"), ...callArguments(0, '{"city":"Paris"}')];
  await stack.node.define("thoughtful", {
    advance: "rounds",
    replies: [
      stream(reasoning("I must ask."), asking, finish("tool_calls")),
      stream(text("It is sunny ", "in Paris."), finish("stop")),
      stream(text("You are welcome."), finish("stop")),
    ],
  });
});

describe.skipIf(absent).each(rows)("AI SDK %s, %s", (_, __, provider, [sdk, own]) => {
  const { generateText, streamText, tool, jsonSchema, stepCountIs, Output } = sdk ?? {};

  /** Options of a request; the budget is named, because a provider warns of models that it does not know. */
  async function asks(key?: string): Promise<Json> {
    const apiKey = key ?? (await stack.gateway.account()).api_key;
    return { model: provider.model(own!, { baseURL: `${stack.gateway.url}/v1`, apiKey }), maxOutputTokens: 2_100 };
  }
  const prompt = (script: string): { prompt: string } => ({ prompt: `hello [[${stack.node.marker(script)}]]` });
  /** The same of a result and of a stream's promises. */
  async function run(way: string, options: Json): Promise<Json> {
    const result = way === "stream" ? streamText({ ...options, onError: () => {} }) : await generateText(options);
    const fields = ["text", "reasoningText", "finishReason", "usage", "sources", "responseMessages", "response"];
    return Object.fromEntries(await Promise.all(fields.map(async (field) => [field, await result[field]])));
  }
  const added = ({ responseMessages, response }: Json): object[] => responseMessages ?? response.messages;
  const weatherTool = (asked: unknown[]): Json => ({
    get_weather: tool({
      description: weather["description"],
      inputSchema: jsonSchema(weather.parameters),
      execute: ({ city }: { city: string }) => (asked.push(city), Promise.resolve("sunny, 21 C")),
    }),
  });
  const messagesOf = async (marker: string): Promise<Json[][]> =>
    (await stack.node.requests(marker)).map(({ body }) => body!["messages"] as Json[]);

  describe.each(["generate", "stream"])("%s", (way) => {
    test("text, thoughts, usage, and why it ended", async () => {
      const thinking = provider.thinks === null ? {} : { providerOptions: provider.thinks };
      const reply = await run(way, { ...(await asks()), ...prompt("reasoning-text"), ...thinking });
      expect(reply).toMatchObject({ text: "Hi there!", finishReason: "stop" });
      if (provider.thinks !== null) expect(reply["reasoningText"]).toBe("Let me think.");
      expect(reply["usage"]).toMatchObject({ inputTokens: 120, outputTokens: 20, totalTokens: 140 });
      expect(reply["usage"].inputTokenDetails.cacheReadTokens).toBe(20);
      const cut = await run(way, { ...(await asks()), ...prompt("length") });
      expect(cut["finishReason"]).toBe("length");
    });

    test.each([
      ["one-tool", "It is sunny in Paris.", ["Paris"]],
      ["parallel-tools", "Rain and sun.", ["London", "Tokyo"]],
    ])("a tool loop of two rounds: %s", async (script, answer, cities) => {
      const asked: string[] = [];
      const options = { ...(await asks()), ...prompt(script), tools: weatherTool(asked), stopWhen: stepCountIs(5) };
      expect((await run(way, options))["text"]).toBe(answer);
      expect(asked).toEqual(cities);
    });

    test("a tool round and a second turn bring back what was said, and thought where the provider knows thoughts", async () => {
      const asked: string[] = [];
      const thinking = provider.thinks === null ? {} : { providerOptions: provider.thinks };
      const options = { ...(await asks()), ...thinking, tools: weatherTool(asked), stopWhen: stepCountIs(5) };
      const marker = stack.node.marker("thoughtful");
      const question = { role: "user", content: `weather? [[${marker}]]` };
      const first = await run(way, { ...options, messages: [question] });
      expect(first["text"]).toBe("It is sunny in Paris.");
      const thanks = { role: "user", content: "thanks" };
      const second = await run(way, { ...options, messages: [question, ...added(first), thanks] });
      expect(second["text"]).toBe("You are welcome.");
      const bodies = await messagesOf(marker);
      expect(bodies.map((messages) => messages.map(({ role }) => role))).toEqual([
        ["user"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "user"],
      ]);
      const last = bodies.at(-1)!;
      if (provider.thinks !== null) expect(JSON.stringify(last[1])).toContain("I must ask.");
      expect(JSON.stringify(last[3])).toContain("It is sunny in Paris.");
    });

    if (provider.search !== null)
      test("a web search gives its sources, and goes back with the history", async () => {
        const tools = { web_search: provider.search!(own!) };
        const question = { role: "user", content: `look [[${stack.node.marker("web-search")}]]` };
        const options = { ...(await asks()), tools }; // items of a response are stored for an account
        const reply = await run(way, { ...options, messages: [question] });
        expect(reply["text"]).toEndWith("Elysia runs on it [2].");
        expect(reply["finishReason"]).toBe("stop");
        const sources = reply["sources"].map(({ url }: Json) => url);
        expect(sources).toEqual(expect.arrayContaining(foundPages.map(({ url }) => url)));
        const marker = stack.node.marker("text");
        const messages = [question, ...added(reply), { role: "user", content: `and? [[${marker}]]` }];
        expect((await run(way, { ...options, messages }))["text"]).toBe("Hi there!");
        const [seen] = await messagesOf(marker);
        expect(seen!.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
        // an item of a response has the addresses alone
        const { content, url } = foundPages[0];
        expect(seen![2]!["content"]).toContain(provider.dialect === "messages" ? content : url);
      });
  });

  test("an object by JSON schema", async () => {
    const schema = {
      type: "object",
      properties: { title: { type: "string" }, year: { type: "integer" } },
      required: ["title", "year"],
      additionalProperties: false,
    };
    const output = Output.object({ schema: jsonSchema(schema) });
    const { output: object } = await generateText({ ...(await asks()), ...prompt(provider.objectScript), output });
    expect(object).toEqual({ title: "Dune", year: 1965 });
  });

  test("an inline image reaches the node", async () => {
    const marker = stack.node.marker("text");
    const content = [
      { type: "text", text: `what is it? [[${marker}]]` },
      { type: "file", mediaType: "image/png", data: pixelBase64 },
    ];
    await generateText({ ...(await asks()), messages: [{ role: "user", content }] });
    expect(JSON.stringify((await stack.node.request(marker)).body)).toContain(pixelUrl);
  });

  test("a node that dies mid-stream leaves the text so far and an error", async () => {
    const reply = streamText({ ...(await asks()), ...prompt("dies-rst"), onError: () => {} });
    let said = "";
    const errors: unknown[] = [];
    for await (const part of reply.fullStream) {
      if (part.type === "text-delta") said += part.text;
      if (part.type === "error") errors.push(part.error);
    }
    expect(said).toBe("Hi there");
    expect(errors.map((error) => `${String(error)} ${JSON.stringify(error)}`).join()).toContain(
      "The model stopped answering. Please retry.",
    );
  });

  test("a refusal shows its message, and is not tried again where that is of no use", async () => {
    const stranger = generateText({ ...(await asks("sk-tg-unknown")), ...prompt("text") });
    await expect(stranger).rejects.toThrow("Invalid API key provided");
    const tooLong = generateText({ ...(await asks()), ...prompt("prompt-too-long") });
    await expect(tooLong).rejects.toMatchObject({ statusCode: 400, isRetryable: false });
  });
});
