// A count made beforehand equals the same request's usage, with a real engine and its own template.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { Engine, engineMissing } from "./engine.ts";

const timeLimit = 120_000;
const model = "open-05-3BIT-REAP";
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const weather = { name: "get_weather", description: "Get the weather of a city" };
const called = { city: "Paris" };

/** By what they show, the same request in both dialects. */
const requests = {
  "one message": {
    messages: { messages: [{ role: "user", content: "Say hello" }] },
    responses: { input: "Say hello" },
  },
  "instructions and several turns": {
    messages: {
      system: "You are a terse assistant. 日本語も可。",
      messages: [
        { role: "user", content: "Say hello" },
        { role: "assistant", content: "Hello! How can I help you?" },
        { role: "user", content: [{ type: "text", text: "Count to 3 😀\n\n\tthen stop" }] },
      ],
    },
    responses: {
      instructions: "You are a terse assistant. 日本語も可。",
      input: [
        { role: "user", content: "Say hello" },
        { role: "assistant", content: "Hello! How can I help you?" },
        { role: "user", content: "Count to 3 😀\n\n\tthen stop" },
      ],
    },
  },
  "a tool, its call and its result": {
    messages: {
      tools: [{ ...weather, input_schema: schema }],
      messages: [
        { role: "user", content: "What is the weather in Paris?" },
        { role: "assistant", content: [{ type: "tool_use", id: "call_1", name: weather.name, input: called }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "sunny, 21 C" }] },
      ],
    },
    responses: {
      tools: [{ type: "function", ...weather, parameters: schema, strict: null }],
      input: [
        { role: "user", content: "What is the weather in Paris?" },
        { type: "function_call", call_id: "call_1", name: weather.name, arguments: JSON.stringify(called) },
        { type: "function_call_output", call_id: "call_1", output: "sunny, 21 C" },
      ],
    },
  },
} as const;

describe.skipIf(engineMissing)("a count beforehand", () => {
  let engine: Engine;
  let gateway: GatewayProcess;
  let account: Account;
  beforeAll(async () => {
    engine = await Engine.start(1);
    gateway = await GatewayProcess.start({
      config: `[[nodes]]\nname = "llama"\nurl = "${engine.url}/v1"\nslots = 1\n[nodes.models]\n"*" = "tiny"\n`,
    });
    account = await gateway.account();
    // Until the gateway knows what counts there, it estimates.
    await eventually("the engine is known", async () => /Node llama at \S+: llama/.test(gateway.output));
  }, timeLimit);
  afterAll(async () => {
    await gateway.expectNothingReserved();
    await gateway[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const ask = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const reply = await fetch(`${gateway.url}${path}`, {
      method: "POST",
      headers: { "x-api-key": account.api_key },
      body: JSON.stringify({ model, ...body }),
    });
    expect(reply.status).toBe(200);
    return (await reply.json()) as Record<string, unknown>;
  };

  test.each(Object.entries(requests))(
    "is the usage of the request: %s",
    async (_what, { messages, responses }) => {
      const counts = [
        await ask("/v1/messages/count_tokens", messages),
        await ask("/v1/responses/input_tokens", responses),
      ];
      const message = await ask("/v1/messages", { ...messages, max_tokens: 4 });
      const usage = message["usage"] as { input_tokens: number; cache_read_input_tokens: number };
      const response = await ask("/v1/responses", { ...responses, max_output_tokens: 4 });
      expect(counts).toEqual([
        { input_tokens: usage.input_tokens + usage.cache_read_input_tokens },
        {
          object: "response.input_tokens",
          input_tokens: (response["usage"] as { input_tokens: number }).input_tokens,
        },
      ]);
    },
    timeLimit,
  );

  test(
    "is what a client that leaves is charged for its input, before the engine has said any usage",
    async () => {
      const { messages } = requests["a tool, its call and its result"].messages;
      const counted = await ask("/v1/messages/count_tokens", { messages: messages.slice(0, 1) });
      const leaving = await gateway.account();
      const controller = new AbortController();
      const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": leaving.api_key },
        body: JSON.stringify({
          model,
          messages: messages.slice(0, 1),
          stream: true,
          max_tokens: 8_000,
          temperature: 2,
          logit_bias: await engine.endlessBias(),
        }),
        signal: controller.signal,
      });
      await reply.body!.getReader().read();
      controller.abort();
      const [row] = await eventually("the charge", async () => {
        const rows = await gateway.usage(leaving.email, 1);
        return rows.length > 0 && rows;
      });
      expect(row).toMatchObject({ estimated: true, input: counted["input_tokens"] });
    },
    timeLimit,
  );

  test(
    "says that it is exact",
    async () => {
      const counted = await ask("/v1/tokenize", requests["one message"].messages);
      expect(counted).toMatchObject({ exact: true, tokenizer: "model" });
      const text = await ask("/v1/tokenize", { text: "Say hello" });
      expect(text).toMatchObject({ exact: true, tokenizer: "model" });
      expect(Number(text["count"])).toBeLessThan(Number(counted["count"]));
    },
    timeLimit,
  );
});
