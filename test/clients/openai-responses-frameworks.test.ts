// Frameworks that speak the responses dialect unless told otherwise: the OpenAI Agents SDK with tools and a handoff,
// and the AI SDK's OpenAI provider, which has its responses stored and refers to their items from the second turn on.
import { describe, expect, test } from "bun:test";
import * as openai from "openai";
import { installed, missing } from "../fixtures/optional.ts";
import { callArguments, callStart, finish, reasoning, stream, text } from "../fixtures/scripts.ts";
import { foundPages } from "../fixtures/search-service.ts";
import { useStack } from "../fixtures/stack.ts";

/** The few calls used here; the packages' own types are not there in a plain checkout. */
type AgentsModule = {
  Agent: new (options: object) => object;
  OpenAIResponsesModel: new (client: unknown, model: string) => object;
  Runner: new (options: object) => { run(agent: object, input: unknown, options?: object): Promise<RunResult> };
  tool(options: object): object;
};
type RunResult = {
  finalOutput: unknown;
  lastAgent: { name: string };
  lastResponseId: string;
  history: unknown[];
  completed?: Promise<void>;
};
type AiModule = {
  generateText(options: object): Promise<Generated>;
  streamText(options: object): { [Key in keyof Generated]: Promise<Generated[Key]> };
  tool(options: object): object;
  stepCountIs(steps: number): unknown;
  jsonSchema(schema: object): unknown;
  Output: { object(options: object): unknown };
};
type Generated = {
  text: string;
  reasoningText: string | undefined;
  finishReason: string;
  usage: { inputTokens: number; outputTokens: number };
  response: { messages: object[]; id: string };
  responseMessages?: object[];
  output: unknown;
  sources: { url: string; title: string }[];
};
type Provider = ((model: string) => unknown) & { tools: { webSearch(options: object): object } };
type ProviderModule = { createOpenAI(options: object): Provider };

const agents = await installed<AgentsModule>("@openai/agents", import.meta.dir);
const ai = await installed<AiModule>("ai", import.meta.dir);
const provider = await installed<ProviderModule>("@ai-sdk/openai", import.meta.dir);
const remedy = "run npm ci in test/clients";
const noAgents = missing("the Agents SDK", agents !== null, remedy);
const noAiSdk = missing("the AI SDK", ai !== null && provider !== null, remedy);

const stack = useStack({ search: true });

type Message = { role: string; content: unknown };
const messagesOf = async (marker: string): Promise<Message[][]> =>
  (await stack.node.requests(marker)).map(({ body }) => body!["messages"] as Message[]);
const rolesOf = async (marker: string): Promise<string[][]> =>
  (await messagesOf(marker)).map((messages) => messages.map(({ role }) => role));

describe.skipIf(noAgents)("Agents SDK, responses", () => {
  const sdk = agents!;
  const parameters = {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: true,
  };
  const toolNamed = (name: string, asked: unknown[], result: string): object =>
    sdk.tool({
      name,
      description: name,
      strict: false,
      parameters,
      execute: (input: unknown) => (asked.push([name, input]), Promise.resolve(result)),
    });

  test.each([false, true])(
    "an agent calls both its tools, hands over, and the other one answers, streamed: %p",
    async (streamed) => {
      const account = await stack.gateway.account();
      await stack.node.define("agents-handoff", {
        advance: "rounds",
        replies: [
          stream(
            reasoning("Two things."),
            callStart(0, "call_w", "get_weather"),
            callArguments(0, '{"city":"Paris"}'),
            callStart(1, "call_t", "get_time"),
            callArguments(1, '{"city":"Paris"}'),
            finish("tool_calls"),
          ),
          stream(callStart(0, "call_h", "transfer_to_writer"), callArguments(0, "{}"), finish("tool_calls")),
          stream(text("Noon, ", "and sunny."), finish("stop")),
        ],
      });
      const client = new openai.OpenAI({ baseURL: `${stack.gateway.url}/v1`, apiKey: account.api_key });
      const model = new sdk.OpenAIResponsesModel(client, "core-3");
      const asked: unknown[] = [];
      const writer = new sdk.Agent({ name: "writer", instructions: "write", model });
      const reporter = new sdk.Agent({
        name: "reporter",
        instructions: "ask, then hand over",
        model,
        tools: [toolNamed("get_weather", asked, "sunny"), toolNamed("get_time", asked, "noon")],
        handoffs: [writer],
      });
      const marker = stack.node.marker("agents-handoff");
      const runner = new sdk.Runner({ tracingDisabled: true });
      const result = await runner.run(reporter, `report [[${marker}]]`, streamed ? { stream: true } : {});
      await result.completed;
      expect(result.finalOutput).toBe("Noon, and sunny.");
      expect(result.lastAgent.name).toBe("writer");
      expect(asked).toEqual([
        ["get_weather", { city: "Paris" }],
        ["get_time", { city: "Paris" }],
      ]);
      expect(await rolesOf(marker)).toEqual([
        ["system", "user"],
        ["system", "user", "assistant", "tool", "tool"],
        ["system", "user", "assistant", "tool", "tool", "assistant", "tool"],
      ]);

      // the next run continues on the server's side
      const next = await runner.run(writer, "and?", { previousResponseId: result.lastResponseId });
      expect(next.finalOutput).toBe("Noon, and sunny.");
      expect((await rolesOf(marker)).at(-1)?.slice(-2)).toEqual(["assistant", "user"]);
    },
  );
});

describe.skipIf(noAiSdk)("AI SDK 7, responses", () => {
  const sdk = ai!;
  const newModel = async (): Promise<unknown> => {
    const { api_key: apiKey } = await stack.gateway.account();
    return provider!.createOpenAI({ baseURL: `${stack.gateway.url}/v1`, apiKey })("core-3");
  };
  const weather = (asked: unknown[]): object =>
    sdk.tool({
      description: "The weather of a city",
      inputSchema: sdk.jsonSchema({
        type: "object",
        properties: { city: { type: "string" } },
        required: ["city"],
        additionalProperties: false,
      }),
      execute: (input: unknown) => (asked.push(input), Promise.resolve("sunny, 21 C")),
    });

  test.each([false, true])(
    "a web search gives its sources, and the next turn refers to its stored items, streamed: %p",
    async (streamed) => {
      const options = {
        model: await newModel(),
        tools: { web_search: provider!.createOpenAI({ apiKey: "x" }).tools.webSearch({}) },
      };
      const run = async (messages: object[]) => {
        const result = streamed
          ? sdk.streamText({ ...options, messages })
          : await sdk.generateText({ ...options, messages });
        const [said, sources] = [await result.text, await result.sources];
        const added = (await result.responseMessages) ?? (await result.response).messages;
        return { said, sources, added };
      };
      const question = { role: "user", content: `look [[${stack.node.marker("web-search")}]]` };
      const { said, sources, added } = await run([question]);
      expect(said).toEndWith("Elysia runs on it [2].");
      expect(sources).toMatchObject(foundPages.map(({ url }) => ({ url })));
      const marker = stack.node.marker("text");
      const next = await run([question, ...added, { role: "user", content: `and? [[${marker}]]` }]);
      expect(next.said).toBe("Hi there!");
      expect(await rolesOf(marker)).toEqual([["user", "assistant", "tool", "assistant", "user"]]);
    },
  );

  test.each([false, true])("a tool round and a second turn refer to stored items, streamed: %p", async (streamed) => {
    await stack.node.define("ai-sdk-loop", {
      advance: "rounds",
      replies: [
        stream(
          reasoning("I must ask."),
          callStart(0, "call_1", "get_weather"),
          callArguments(0, '{"city":"Paris"}'),
          finish("tool_calls"),
        ),
        stream(text("It is sunny ", "in Paris."), finish("stop")),
        stream(text("You are welcome."), finish("stop")),
      ],
    });
    const model = await newModel();
    const asked: unknown[] = [];
    const marker = stack.node.marker("ai-sdk-loop");
    const question = { role: "user", content: `weather? [[${marker}]]` };
    const options = {
      model,
      tools: { get_weather: weather(asked) },
      stopWhen: sdk.stepCountIs(5),
      // the provider does not know the id, and asks for reasoning only of models that it knows to think
      providerOptions: { openai: { reasoningEffort: "high", forceReasoning: true } },
    };
    const run = async (messages: object[]): Promise<{ text: string; messages: object[] }> => {
      const result = streamed
        ? sdk.streamText({ ...options, messages })
        : await sdk.generateText({ ...options, messages });
      const said = await result.text;
      const added = (await result.responseMessages) ?? (await result.response).messages;
      return { text: said, messages: added };
    };
    const first = await run([question]);
    expect(first.text).toBe("It is sunny in Paris.");
    expect(asked).toEqual([{ city: "Paris" }]);
    const second = await run([question, ...first.messages, { role: "user", content: "thanks" }]);
    expect(second.text).toBe("You are welcome.");
    expect(await rolesOf(marker)).toEqual([
      ["user"],
      ["user", "assistant", "tool"],
      ["user", "assistant", "tool", "assistant", "user"],
    ]);
    const last = (await messagesOf(marker)).at(-1)!;
    expect(JSON.stringify(last[1])).toContain("I must ask.");
    expect(JSON.stringify(last[3])).toContain("It is sunny in Paris.");
  });

  test("text, reasoning, finish reason and usage; a schema's object; errors", async () => {
    const model = await newModel();
    const prompt = (script: string): string => `hello [[${stack.node.marker(script)}]]`;
    const reply = await sdk.generateText({ model, prompt: prompt("reasoning-text") });
    expect(reply).toMatchObject({ text: "Hi there!", reasoningText: "Let me think.", finishReason: "stop" });
    expect(reply.usage).toMatchObject({ inputTokens: 120, outputTokens: 20 });
    const cut = await sdk.generateText({ model, prompt: prompt("length") });
    expect(cut.finishReason).toBe("length");
    const schema = sdk.jsonSchema({
      type: "object",
      properties: { title: { type: "string" }, year: { type: "integer" } },
      required: ["title", "year"],
      additionalProperties: false,
    });
    const structured = await sdk.generateText({
      model,
      prompt: prompt("json"),
      output: sdk.Output.object({ schema }),
    });
    expect(structured.output).toEqual({ title: "Dune", year: 1965 });
    const tooLong = sdk.generateText({ model, prompt: prompt("prompt-too-long") });
    await expect(tooLong).rejects.toMatchObject({ statusCode: 400, isRetryable: false });
  });
});
