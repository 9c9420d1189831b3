// What every major version of the official JavaScript client must get from the gateway, with nothing changed but its
// base address and key. The client's own retries, parsers and helpers are left on: they are what is being tested.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type OpenAIClient from "openai";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { foundPages, type SearchService, startSearchService } from "../fixtures/search-service.ts";
import { Stack } from "../fixtures/stack.ts";

export type OpenAIModule = typeof import("openai");
type ChatHelpers = Pick<OpenAIClient["chat"]["completions"], "stream" | "runTools" | "parse">;
type Message = OpenAIClient.Chat.ChatCompletionMessageParam;

const weatherTool = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    },
  },
} as const;

const timeLimit = 30_000;

/** `waits`: also run the test that sits out a flood window, up to a minute. */
export function describeOpenAI(label: string, { OpenAI }: OpenAIModule, waits = false): void {
  describe(label, () => {
    let service: SearchService;
    let stack: Stack;
    beforeAll(async () => {
      service = startSearchService();
      stack = await Stack.start({ config: service.config });
    }, timeLimit);
    afterAll(async () => {
      await stack[Symbol.asyncDispose]();
      service[Symbol.dispose]();
    });
    afterEach(() => stack.gateway.expectNothingReserved(), timeLimit);

    /** A client of a new account, and the number of HTTP requests that it made. */
    async function newClient(credit?: number): Promise<{ client: OpenAIClient; account: Account; sent: () => number }> {
      const account = await stack.gateway.account(credit);
      let requests = 0;
      const counting = (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
        requests++;
        return fetch(input, init);
      };
      const client = new OpenAI({
        baseURL: `${stack.gateway.url}/v1`,
        apiKey: account.api_key,
        fetch: Object.assign(counting, fetch),
      });
      return { client, account, sent: () => requests };
    }
    // versions before 5 keep these under `beta`
    const helpers = (client: OpenAIClient): ChatHelpers =>
      "stream" in client.chat.completions
        ? client.chat.completions
        : (client as unknown as { beta: { chat: { completions: ChatHelpers } } }).beta.chat.completions;

    const says = (script: string): { marker: string; messages: Message[] } => {
      const marker = stack.node.marker(script);
      return { marker, messages: [{ role: "user", content: `hello [[${marker}]]` }] };
    };
    const prompt = (script: string): { messages: Message[] } => ({ messages: says(script).messages });

    test(
      "a web search gives annotations, streamed and not",
      async () => {
        const { client } = await newClient();
        const request = { model: "core-3", web_search: true } as const;
        const whole = (await client.chat.completions.create({ ...request, ...prompt("web-search") })).choices[0]!
          .message;
        expect(whole.content).toBe("I look. \n\nBun is fast [1]. Elysia runs on it [2].");
        expect(whole.annotations).toMatchObject(
          foundPages.map(({ url, title }) => ({ type: "url_citation", url_citation: { url, title } })),
        );
        for (const { url_citation: at } of whole.annotations!) {
          expect(whole.content!.slice(at.start_index, at.end_index)).toMatch(/^\[[12]\]$/);
        }
        const streamed = helpers(client).stream({ ...request, stream: true, ...prompt("web-search") });
        const message = (await streamed.finalChatCompletion()).choices[0]!.message;
        expect(message.content).toBe(whole.content);
        expect(message.annotations).toEqual(whole.annotations);
      },
      timeLimit,
    );

    test(
      "plain text, with usage and a request id",
      async () => {
        const { client } = await newClient();
        const reply = await client.chat.completions.create({ model: "open-05-3BIT-REAP", ...prompt("text") });
        expect(reply.object).toBe("chat.completion");
        expect(reply.model).toBe("open-05-3BIT-REAP");
        expect(reply.choices[0]?.message.content).toBe("Hi there!");
        expect(reply.choices[0]?.finish_reason).toBe("stop");
        expect(reply.usage).toEqual({
          prompt_tokens: 120,
          completion_tokens: 20,
          total_tokens: 140,
          prompt_tokens_details: { cached_tokens: 20 },
          completion_tokens_details: { reasoning_tokens: 5 },
        });
        expect(reply._request_id).toBeString();
      },
      timeLimit,
    );

    test(
      "a stream read chunk by chunk, usage last",
      async () => {
        const { client } = await newClient();
        const stream = await client.chat.completions.create({
          model: "core-3",
          stream: true,
          ...prompt("reasoning-text"),
        });
        let content = "";
        let reasoning = "";
        let usage: unknown = null;
        for await (const chunk of stream) {
          const { delta } = chunk.choices[0]!; // as tutorials do: each chunk has a choice
          content += delta.content ?? "";
          reasoning += (delta as { reasoning_content?: string }).reasoning_content ?? "";
          usage = chunk.usage ?? usage;
        }
        expect({ content, reasoning }).toEqual({ content: "Hi there!", reasoning: "Let me think." });
        expect(usage).toMatchObject({ prompt_tokens: 120, completion_tokens: 20, total_tokens: 140 });
      },
      timeLimit,
    );

    test(
      "the .stream() helper puts the answer together",
      async () => {
        const { client } = await newClient();
        const runner = helpers(client).stream({
          model: "core-3",
          stream_options: { include_usage: true },
          ...prompt("text"),
        });
        const reply = await runner.finalChatCompletion();
        expect(reply.choices[0]?.message.content).toBe("Hi there!");
        expect(reply.choices[0]?.finish_reason).toBe("stop");
        expect(reply.usage?.total_tokens).toBe(140);
      },
      timeLimit,
    );

    test(
      "reasoning of a reply that is not streamed",
      async () => {
        const { client } = await newClient();
        const reply = await client.chat.completions.create({
          model: "core-3",
          reasoning_effort: "high",
          ...prompt("reasoning-text"),
        });
        expect(reply.choices[0]?.message).toMatchObject({ content: "Hi there!", reasoning_content: "Let me think." });
      },
      timeLimit,
    );

    test(
      "runTools runs the tool and returns the final answer",
      async () => {
        const { client, sent } = await newClient();
        const asked: string[] = [];
        const runner = helpers(client).runTools({
          model: "core-3",
          ...prompt("one-tool"),
          tools: [
            {
              type: "function",
              function: {
                name: "get_weather",
                description: "The weather of a city",
                parameters: weatherTool.function.parameters as unknown as Record<string, unknown>,
                parse: JSON.parse,
                function: ({ city }: { city: string }) => {
                  asked.push(city);
                  return "sunny, 21 C";
                },
              },
            },
          ],
        } as never) as { finalContent(): Promise<string | null> };
        expect(await runner.finalContent()).toBe("It is sunny in Paris.");
        expect(asked).toEqual(["Paris"]);
        expect(sent()).toBe(2);
      },
      timeLimit,
    );

    test(
      "a forced tool comes back as tool_calls though the node said stop",
      async () => {
        const { client } = await newClient();
        const { messages } = says("forced-tool");
        const reply = await client.chat.completions.create({
          model: "core-3",
          messages,
          tools: [weatherTool as unknown as OpenAIClient.Chat.ChatCompletionFunctionTool],
          tool_choice: { type: "function", function: { name: "get_weather" } },
        });
        expect(reply.choices[0]?.finish_reason).toBe("tool_calls");
        expect(reply.choices[0]?.message.content).toBeNull();
        expect(reply.choices[0]?.message.tool_calls).toMatchObject([
          { type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } },
        ]);
      },
      timeLimit,
    );

    test.each([false, true])(
      "two parallel tools whose fragments interleave, streamed: %p",
      async (streamed) => {
        const { client } = await newClient();
        const request = {
          model: "core-3",
          ...prompt("parallel-tools"),
          tools: [weatherTool as unknown as OpenAIClient.Chat.ChatCompletionFunctionTool],
        };
        const reply = streamed
          ? await helpers(client).stream(request).finalChatCompletion()
          : await client.chat.completions.create(request);
        const calls = reply.choices[0]?.message.tool_calls ?? [];
        expect(calls.map((call) => (call as { function: unknown }).function)).toMatchObject([
          { name: "get_weather", arguments: '{"city":"London"}' },
          { name: "get_weather", arguments: '{"city":"Tokyo"}' },
        ]);
        expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
        expect(reply.choices[0]?.finish_reason).toBe("tool_calls");
      },
      timeLimit,
    );

    test(
      "an answer that hits the budget says length",
      async () => {
        const { client } = await newClient();
        const reply = await client.chat.completions.create({
          model: "core-3",
          max_tokens: 20,
          ...prompt("length"),
        });
        expect(reply.choices[0]?.finish_reason).toBe("length");
      },
      timeLimit,
    );

    test(
      "stop sequences reach the node of a hosted model",
      async () => {
        const { client } = await newClient();
        const { marker, messages } = says("text");
        await client.chat.completions.create({ model: "open-05-3BIT-REAP", messages, stop: ["END", "", "STOP"] });
        expect((await stack.node.request(marker)).body).toMatchObject({ stop: ["END", "STOP"] });
      },
      timeLimit,
    );

    test(
      "JSON mode and a JSON schema that parse() reads",
      async () => {
        const { client } = await newClient();
        const object = await client.chat.completions.create({
          model: "core-3",
          response_format: { type: "json_object" },
          ...prompt("json"),
        });
        expect(JSON.parse(object.choices[0]?.message.content ?? "")).toEqual({ title: "Dune", year: 1965 });
        const schema = {
          type: "object",
          properties: { title: { type: "string" }, year: { type: "integer" } },
          required: ["title", "year"],
          additionalProperties: false,
        };
        const parsed = await helpers(client).parse({
          model: "core-3",
          response_format: {
            type: "json_schema",
            json_schema: { name: "book", strict: true, schema },
            // what the client's zod helper adds
            $brand: "auto-parseable-response-format",
            $parseRaw: JSON.parse,
          } as never,
          ...prompt("json"),
        });
        expect(parsed.choices[0]?.message.parsed as unknown).toEqual({ title: "Dune", year: 1965 });
      },
      timeLimit,
    );

    test(
      "a wrong key is the client's AuthenticationError after one request",
      async () => {
        const { client, sent } = await newClient();
        client.apiKey = `sk-tg-${"x".repeat(43)}`;
        const error = await failure(client.chat.completions.create({ model: "core-3", ...prompt("text") }));
        expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
        expect(error).toMatchObject({ status: 401, code: "invalid_api_key", type: "authentication_error" });
        expect(String(error)).toContain("Invalid API key provided");
        expect(sent()).toBe(1);
      },
      timeLimit,
    );

    test(
      "malformed requests and unknown models are BadRequestErrors after one request",
      async () => {
        const { client, sent } = await newClient();
        const unknown = await failure(client.chat.completions.create({ model: "core-99", messages: [] }));
        expect(unknown).toBeInstanceOf(OpenAI.BadRequestError);
        const malformed = await failure(client.chat.completions.create({ model: "core-3", messages: "hi" as never }));
        expect(malformed).toBeInstanceOf(OpenAI.BadRequestError);
        expect((malformed as InstanceType<OpenAIModule["BadRequestError"]>).type).toBe("invalid_request_error");
        expect(sent()).toBe(2);
      },
      timeLimit,
    );

    test(
      "an empty balance is a RateLimitError with the plan page's address, asked once",
      async () => {
        const { client, sent } = await newClient(0);
        const error = await failure(
          client.chat.completions.create({ model: "core-3", max_tokens: 60_000, ...prompt("text") }),
        );
        expect(error).toBeInstanceOf(OpenAI.RateLimitError);
        expect(error).toMatchObject({ status: 429, type: "rate_limit_error", code: "insufficient_quota" });
        expect(String(error)).toMatch(/Quota exceeded\. Upgrade your plan at http\S+\/plan/);
        const facts = { spendable: 30_000, requested: 60_000, resets_at: expect.any(Number) };
        expect((error as InstanceType<typeof OpenAI.APIError>).error).toMatchObject(facts);
        expect(sent()).toBe(1);
      },
      timeLimit,
    );

    test(
      "a prompt beyond the context window is a BadRequestError with its code",
      async () => {
        const { client } = await newClient();
        const error = await failure(client.chat.completions.create({ model: "core-3", ...prompt("prompt-too-long") }));
        expect(error).toBeInstanceOf(OpenAI.BadRequestError);
        expect(error).toMatchObject({ code: "context_length_exceeded" });
      },
      timeLimit,
    );

    test(
      "a node's failure is tried again by the client and then answered",
      async () => {
        const { client, sent } = await newClient();
        const reply = await client.chat.completions.create({ model: "core-3", ...prompt("second-try") });
        expect(reply.choices[0]?.message.content).toBe("Hi there!");
        expect(sent()).toBe(2);
      },
      timeLimit,
    );

    test(
      "a node that dies mid-stream raises an error that shows nothing of the node",
      async () => {
        const { client } = await newClient();
        const stream = await client.chat.completions.create({
          model: "core-3",
          stream: true,
          ...prompt("dies-rst"),
        });
        let content = "";
        const error = await failure(
          (async () => {
            for await (const chunk of stream) content += chunk.choices[0]?.delta.content ?? "";
          })(),
        );
        expect(content).toBe("Hi there");
        expect(error).toBeInstanceOf(OpenAI.APIError);
        expect(String(error)).not.toContain("127.0.0.1");
      },
      timeLimit,
    );

    test(
      "an abort stops the node within a second, is charged, and frees the reservation",
      async () => {
        const { client, account } = await newClient();
        const { marker, messages } = says("endless");
        const controller = new AbortController();
        const stream = await client.chat.completions.create(
          { model: "core-3", stream: true, messages },
          { signal: controller.signal },
        );
        let chunks = 0;
        let abortedAt = 0;
        await failure(
          (async () => {
            for await (const chunk of stream) {
              if (chunk.choices[0]?.delta.content && ++chunks === 5) {
                abortedAt = Date.now();
                controller.abort();
              }
            }
            throw new Error("ended after the abort"); // the iteration of some versions ends instead of throwing
          })(),
        );
        expect((await stack.node.closedAt(marker)) - abortedAt).toBeLessThan(1_000);
        const row = await eventually("the abort is charged", async () => {
          const [newest] = await stack.gateway.usage(account.email);
          return newest ?? null;
        });
        expect(row.output).toBeGreaterThanOrEqual(5);
        expect(row.billed_tokens).toBeGreaterThan(0);
        expect(row.estimated).toBe(true);
        expect((await stack.gateway.show(account.email)).reserved).toBe(0);
      },
      timeLimit,
    );

    test(
      "models can be listed to the end and retrieved",
      async () => {
        const { client } = await newClient();
        const ids: string[] = [];
        for await (const model of client.models.list()) ids.push(model.id);
        expect(ids).toHaveLength(21);
        expect(ids).toContain("open-12-W8A16");
        expect(await client.models.retrieve("core-coder-1")).toMatchObject({
          id: "core-coder-1",
          context_window: 131_072,
          capabilities: { vision: false, tools: true },
        });
        expect(await failure(client.models.retrieve("core-99"))).toBeInstanceOf(OpenAI.NotFoundError);
      },
      timeLimit,
    );

    if (waits)
      test("after flood protection the client waits and succeeds by itself", async () => {
        const { client, account, sent } = await newClient();
        const { messages } = says("text");
        for (let i = 0; i < 120; i++) {
          const reply = await fetch(`${stack.gateway.url}/v1/chat/completions`, {
            method: "POST",
            headers: { authorization: `Bearer ${account.api_key}` },
            body: JSON.stringify({ model: "core-3", messages }),
          });
          expect(reply.status).toBe(200);
          await reply.text();
        }
        const reply = await client.chat.completions.create({ model: "core-3", messages });
        expect(reply.choices[0]?.message.content).toBe("Hi there!");
        expect(sent()).toBe(2);
      }, 120_000);
  });
}

/** The error that the promise rejects with. */
async function failure(promise: PromiseLike<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error("expected an error");
}
