// The Vercel AI SDK in two majors, with its two providers that speak chat-completions.
import { describe, expect, test } from "bun:test";
import type { Account } from "../fixtures/gateway-process.ts";
import { installed, missing } from "../fixtures/optional.ts";
import { useStack } from "../fixtures/stack.ts";

/** The few calls used here; the package's own types are not there in a plain checkout. */
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
  usage: { inputTokens: number; outputTokens: number; totalTokens: number };
  steps: { toolCalls: { toolName: string; input: unknown }[] }[];
  output: unknown;
};
type Provider = { chat?: (model: string) => unknown; chatModel?: (model: string) => unknown };
type ProviderModule = {
  createOpenAI?: (options: object) => Provider;
  createOpenAICompatible?: (options: object) => Provider;
};

type Major = Readonly<{ ai: AiModule | null; compatible: ProviderModule | null; openai: ProviderModule | null }>;

const folder = import.meta.dir;
const majors: Readonly<Record<string, Major>> = {
  "7": {
    ai: await installed<AiModule>("ai", folder),
    compatible: await installed<ProviderModule>("@ai-sdk/openai-compatible", folder),
    openai: await installed<ProviderModule>("@ai-sdk/openai", folder),
  },
  "6": {
    ai: await installed<AiModule>("ai-6", folder),
    compatible: await installed<ProviderModule>("ai-sdk-openai-compatible-6", folder),
    openai: await installed<ProviderModule>("ai-sdk-openai-6", folder),
  },
};
const all = Object.values(majors).every(({ ai }) => ai !== null);
const absent = missing("the AI SDK", all, "run npm ci in test/clients");

const weatherSchema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

const ways = ["openai-compatible", "openai .chat"];
const cases = Object.keys(majors).flatMap((major) => ways.map((kind) => [major, kind] as const));

describe.skipIf(absent).each(cases)("AI SDK %s, %s", (major, kind) => {
  const { ai, compatible, openai } = majors[major]!;
  const stack = useStack();

  function modelOf(account: Account): unknown {
    const options = {
      name: "tollgate",
      baseURL: `${stack.gateway.url}/v1`,
      apiKey: account.api_key,
      includeUsage: true,
    };
    return kind === "openai .chat"
      ? openai?.createOpenAI?.(options).chat?.("core-3")
      : compatible?.createOpenAICompatible?.(options).chatModel?.("core-3");
  }
  const sdk = (): AiModule => {
    if (ai === null) throw new Error("the AI SDK is not installed");
    return ai;
  };
  const prompt = (script: string): string => `hello [[${stack.node.marker(script)}]]`;
  const weather = (asked: unknown[]): object =>
    sdk().tool({
      description: "The weather of a city",
      inputSchema: sdk().jsonSchema(weatherSchema),
      execute: (input: unknown) => (asked.push(input), Promise.resolve("sunny, 21 C")),
    });

  test("generateText reads text, reasoning and usage", async () => {
    const reply = await sdk().generateText({
      model: modelOf(await stack.gateway.account()),
      prompt: prompt("reasoning-text"),
    });
    expect(reply.text).toBe("Hi there!");
    // the openai provider does not know the field
    if (kind === "openai-compatible") expect(reply.reasoningText).toBe("Let me think.");
    expect(reply.finishReason).toBe("stop");
    expect(reply.usage).toMatchObject({ inputTokens: 120, outputTokens: 20, totalTokens: 140 });
  });

  test("streamText reads the same", async () => {
    const result = sdk().streamText({
      model: modelOf(await stack.gateway.account()),
      prompt: prompt("reasoning-text"),
    });
    expect(await result.text).toBe("Hi there!");
    if (kind === "openai-compatible") expect(await result.reasoningText).toBe("Let me think.");
    expect(await result.finishReason).toBe("stop");
    expect(await result.usage).toMatchObject({ inputTokens: 120, outputTokens: 20, totalTokens: 140 });
  });

  test.each(["generate", "stream"])("a tool loop of two rounds, %s", async (way) => {
    const asked: unknown[] = [];
    const options = {
      model: modelOf(await stack.gateway.account()),
      prompt: prompt("one-tool"),
      tools: { get_weather: weather(asked) },
      stopWhen: sdk().stepCountIs(5),
    };
    const text = way === "stream" ? await sdk().streamText(options).text : (await sdk().generateText(options)).text;
    expect(text).toBe("It is sunny in Paris.");
    expect(asked).toEqual([{ city: "Paris" }]);
  });

  test("two parallel tools of a stream", async () => {
    const asked: unknown[] = [];
    const result = sdk().streamText({
      model: modelOf(await stack.gateway.account()),
      prompt: prompt("parallel-tools"),
      tools: { get_weather: weather(asked) },
      stopWhen: sdk().stepCountIs(5),
    });
    expect(await result.text).toBe("Rain and sun.");
    expect(asked).toEqual([{ city: "London" }, { city: "Tokyo" }]);
  });

  test("an object by JSON schema", async () => {
    const reply = await sdk().generateText({
      model: modelOf(await stack.gateway.account()),
      prompt: prompt("json"),
      output: sdk().Output.object({
        schema: sdk().jsonSchema({
          type: "object",
          properties: { title: { type: "string" }, year: { type: "integer" } },
          required: ["title", "year"],
        }),
      }),
    });
    expect(reply.output).toEqual({ title: "Dune", year: 1965 });
  });

  test("a refusal shows its message", async () => {
    const account = { ...(await stack.gateway.account(0)), api_key: `sk-tg-${"x".repeat(43)}` };
    const attempt = sdk().generateText({ model: modelOf(account), prompt: prompt("text") });
    expect(attempt).rejects.toThrow("Invalid API key provided");
    await attempt.catch(() => {});
  });
});
