// The gateway in front of a real engine (llama.cpp's server) with a real, tiny model.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { collected, eventsOf, expectWellFormed } from "../fixtures/events.ts";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { type SearchService, startSearchService } from "../fixtures/search-service.ts";
import { Engine, engineMissing } from "./engine.ts";

const timeLimit = 120_000;
/** Hosted, because the output budget and the depth reach the node of a hosted model only. */
const model = "open-05-3BIT-REAP";
const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Get the weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
} as const;

describe.skipIf(engineMissing)("with a real engine", () => {
  let engine: Engine;
  let gateway: GatewayProcess;
  let account: Account;
  let client: OpenAI;
  let service: SearchService;
  beforeAll(async () => {
    service = startSearchService();
    engine = await Engine.start(1);
    gateway = await GatewayProcess.start({
      config: `[[nodes]]\nname = "llama"\nurl = "${engine.url}/v1"\nslots = 1\n[nodes.models]\n"*" = "tiny"\n${service.config}`,
    });
    account = await gateway.account();
    client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: account.api_key });
  }, timeLimit);
  afterAll(async () => {
    await gateway.expectNothingReserved();
    await gateway[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
    service[Symbol.dispose]();
  });

  const ask = (content: string, more: object = {}): object => ({
    model,
    temperature: 0,
    messages: [{ role: "user", content }],
    ...more,
  });
  const send = (body: object, signal?: AbortSignal): Promise<Response> =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${account.api_key}` },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });

  test(
    "a streamed answer with its reasoning, well-formed, and charged as the engine counted",
    async () => {
      const reply = await send(ask("Say hello", { stream: true }));
      const events = eventsOf(await reply.text());
      expectWellFormed(events);
      const { content, reasoning, finishReason } = collected(events);
      expect(content).toContain("Hello! How can I help you?");
      expect(reasoning).not.toBe("");
      expect(finishReason).toBe("stop");
      const usage = events.chunks.at(-1)?.usage as { prompt_tokens: number; completion_tokens: number };
      const [row] = await gateway.usage(account.email, 1);
      expect(row).toMatchObject({
        request_id: reply.headers.get("x-request-id") ?? "",
        input: usage.prompt_tokens,
        output: usage.completion_tokens,
        estimated: false,
      });
    },
    timeLimit,
  );

  test(
    "the same answer without streaming",
    async () => {
      const reply = await client.chat.completions.create(ask("Say hello") as never);
      expect(reply).toMatchObject({ choices: [{ finish_reason: "stop" }] });
      expect((reply as OpenAI.ChatCompletion).choices[0]?.message.content).toContain("Hello! How can I help you?");
    },
    timeLimit,
  );

  test(
    "an image, which this model cannot read, is the client's to leave out, in each dialect, and the node stays well",
    async () => {
      const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
      const url = `data:image/png;base64,${png}`;
      const bodies = {
        "chat/completions": { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] },
        messages: {
          max_tokens: 10,
          messages: [
            {
              role: "user",
              content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: png } }],
            },
          ],
        },
        responses: { input: [{ role: "user", content: [{ type: "input_image", image_url: url }] }] },
      };
      for (const [path, body] of Object.entries(bodies)) {
        for (const stream of [true, false]) {
          const reply = await fetch(`${gateway.url}/v1/${path}`, {
            method: "POST",
            headers: { "x-api-key": account.api_key },
            body: JSON.stringify({ model, stream, ...body }),
          });
          expect([path, reply.status]).toEqual([path, 400]);
          const { error } = (await reply.json()) as { error: { type: string; message: string } };
          expect(error).toMatchObject({
            type: "invalid_request_error",
            message: `The model \`${model}\` cannot read images here: leave the image parts of messages out.`,
          });
        }
      }
      expect(gateway.output).toContain("generation refused: status 500: image input is not supported");
      const [node] = await gateway.cli<{ health: string; last_error: unknown }[]>("nodes");
      expect(node).toMatchObject({ health: "well", problem: null, last_error: null, engine: "llama.cpp" });
    },
    timeLimit,
  );

  test(
    "no thought when the depth is off",
    async () => {
      const events = eventsOf(await (await send(ask("Say hello", { stream: true, reasoning_effort: "off" }))).text());
      expect(collected(events).reasoning).toBe("");
      expect(collected(events).content).toContain("Hello");
    },
    timeLimit,
  );

  test(
    "an answer cut by its budget says length",
    async () => {
      const events = eventsOf(await (await send(ask("Count to 50", { stream: true, max_tokens: 8 }))).text());
      expect(collected(events).finishReason).toBe("length");
      expect(events.chunks.at(-1)?.usage?.["completion_tokens"]).toBe(8);
    },
    timeLimit,
  );

  test(
    "a tool call and the answer after its result",
    async () => {
      const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [
        { role: "user", content: "What is the weather in Paris?" },
      ];
      const settings = { model, temperature: 0, tools: [weather as unknown as OpenAI.Chat.ChatCompletionFunctionTool] };
      const first = await client.chat.completions.create({ ...settings, messages });
      const message = first.choices[0]?.message;
      const call = message?.tool_calls?.[0];
      if (message === undefined || call?.type !== "function") throw new Error(`no call: ${JSON.stringify(first)}`);
      expect(first.choices[0]?.finish_reason).toBe("tool_calls");
      expect(call.function.name).toBe("get_weather");
      expect(JSON.parse(call.function.arguments)).toEqual({ city: "Paris" });
      messages.push(message, { role: "tool", tool_call_id: call.id, content: "sunny, 21 C" });
      const second = await client.chat.completions.create({ ...settings, messages });
      expect(second.choices[0]?.message.content).toContain("It is sunny in Paris at 21 degrees.");
    },
    timeLimit,
  );

  test.each(["auto", "required"] as const)(
    "the model searches the web through the gateway and is asked again with the results; tool_choice %s",
    async (tool_choice) => {
      const before = service.queries.length;
      const reply = await send(ask("Search the web for llamas", { web_search: true, tool_choice, max_tokens: 1_000 }));
      const { choices, usage } = (await reply.json()) as OpenAI.Chat.ChatCompletion;
      expect(service.queries.length).toBeGreaterThan(before);
      expect(choices[0]!.message).not.toHaveProperty("tool_calls");
      // What this model makes of the results is nonsense at best: it is too small to read them.
      expect(choices[0]!.finish_reason).toBe("stop");
      const [row] = await gateway.usage(account.email, 1);
      expect(row).toMatchObject({ input: usage!.prompt_tokens, output: usage!.completion_tokens, estimated: false });
      // the second round's prompt holds what was found
      expect(usage!.prompt_tokens).toBeGreaterThan(400);
    },
    timeLimit,
  );

  test(
    "two parallel tool calls, streamed",
    async () => {
      const body = ask("What is the weather in London and Tokyo?", { stream: true, tools: [weather] });
      const events = eventsOf(await (await send(body)).text());
      expectWellFormed(events);
      expect(collected(events).calls.map(({ arguments: json }) => JSON.parse(json))).toEqual([
        { city: "London" },
        { city: "Tokyo" },
      ]);
    },
    timeLimit,
  );

  test(
    "a forced tool is called",
    async () => {
      const choice = { type: "function", function: { name: "get_weather" } };
      const reply = await send(ask("What is the weather in Paris?", { tools: [weather], tool_choice: choice }));
      const { choices } = (await reply.json()) as OpenAI.ChatCompletion;
      expect(choices[0]?.finish_reason).toBe("tool_calls");
      expect(choices[0]?.message.tool_calls?.[0]).toMatchObject({ function: { name: "get_weather" } });
    },
    timeLimit,
  );

  test(
    "a JSON schema is kept to",
    async () => {
      const schema = {
        type: "object",
        properties: { name: { type: "string" }, age: { type: "integer" } },
        required: ["name", "age"],
        additionalProperties: false,
      };
      const reply = await send(
        ask("Give me Ada, age 36, as JSON", {
          max_tokens: 200,
          response_format: { type: "json_schema", json_schema: { name: "person", strict: true, schema } },
        }),
      );
      const { choices } = (await reply.json()) as OpenAI.ChatCompletion;
      expect(JSON.parse(choices[0]?.message.content ?? "")).toEqual({ name: "Ada", age: 36 });
    },
    timeLimit,
  );

  test.each([true, false])(
    "the gateway's own check agrees with the engine's grammar, streamed: %p",
    async (stream) => {
      const schema = {
        type: "object",
        properties: {
          color: { enum: ["red", "green"] },
          sizes: { type: "array", items: { type: "integer" }, minItems: 1, maxItems: 3 },
        },
        required: ["color", "sizes"],
        additionalProperties: false,
      };
      const response_format = { type: "json_schema", json_schema: { name: "thing", strict: true, schema } };
      const reply = await send(ask("Say hello", { stream, max_tokens: 200, response_format }));
      expect(reply.status).toBe(200);
      const answer = stream
        ? collected(eventsOf(await reply.text())).content
        : ((await reply.json()) as OpenAI.ChatCompletion).choices[0]?.message.content;
      expect(["red", "green"]).toContain((JSON.parse(answer ?? "") as { color: string }).color);
    },
    timeLimit,
  );

  test(
    "thinking on and off, with a format and without",
    async () => {
      for (const more of [{}, { response_format: { type: "json_object" } }]) {
        for (const [effort, thinks] of [
          ["high", true],
          ["off", false],
        ] as const) {
          const body = ask("Say hello", { stream: true, reasoning_effort: effort, max_tokens: 200, ...more });
          const { reasoning, content } = collected(eventsOf(await (await send(body)).text()));
          expect(reasoning !== "").toBe(thinks);
          expect(content).not.toContain("think>");
        }
      }
    },
    timeLimit,
  );

  test.each([true, false])(
    "a cancelled request frees the engine's slot within a second, streamed: %p",
    async (stream) => {
      const controller = new AbortController();
      const body = ask("Tell me a long story", {
        stream,
        max_tokens: 8_000,
        temperature: 2,
        logit_bias: await engine.endlessBias(),
      });
      const reading = send(body, controller.signal)
        .then((reply) => reply.text())
        .catch(() => "aborted");
      await eventually("the engine is busy", async () => (await engine.busySlots()) === 1);
      const abortedAt = performance.now();
      controller.abort();
      expect(await reading).toBe("aborted");
      await eventually("the slot is free", async () => (await engine.busySlots()) === 0);
      expect(performance.now() - abortedAt).toBeLessThan(1_000);
      const next = await send(ask("Say hello", { max_tokens: 5 }));
      expect(next.status).toBe(200);
      await next.text();
    },
    timeLimit,
  );
});
