// What every version of the official JavaScript client of the messages dialect must get from the gateway, with nothing
// changed but its base address and key. The client's own retries, parsers and helpers are left on.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { Stack } from "../fixtures/stack.ts";

type Block = { type: string; text?: string; thinking?: string; signature?: string } & Record<string, unknown>;
type Message = {
  id: string;
  type: string;
  role: string;
  model: string;
  content: Block[];
  stop_reason: string | null;
  stop_sequence: string | null;
  usage: Record<string, number>;
  _request_id?: string;
};
type StreamEvent = { type: string; delta?: { text?: string } };

/** The few calls used here; the package's own types are not there in a plain checkout. */
type AnthropicClient = {
  apiKey: string;
  messages: {
    create(body: object, options?: object): PromiseLike<Message & AsyncIterable<StreamEvent>>;
    stream(body: object): { finalMessage(): Promise<Message> };
  };
  models: {
    list(): PromiseLike<unknown> & AsyncIterable<{ id: string }>;
    retrieve(id: string): PromiseLike<{ id: string }>;
  };
};
type ErrorClass = abstract new (...args: never[]) => Error & { status?: number; error?: unknown; requestID?: string };
export type AnthropicModule = {
  Anthropic: new (options: object) => AnthropicClient;
  APIError: ErrorClass;
  AuthenticationError: ErrorClass;
  BadRequestError: ErrorClass;
  NotFoundError: ErrorClass;
  RateLimitError: ErrorClass;
};

const weather = {
  name: "get_weather",
  description: "The weather of a city",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const hosted = "open-05-3BIT-REAP";
const timeLimit = 30_000;

export function describeAnthropic(label: string, module: AnthropicModule): void {
  describe(label, () => {
    let stack: Stack;
    beforeAll(async () => {
      stack = await Stack.start();
    }, timeLimit);
    afterAll(() => stack[Symbol.asyncDispose]());
    afterEach(() => stack.gateway.expectNothingReserved(), timeLimit);

    /** A client of a new account, and the number of HTTP requests that it made. */
    async function newClient(credit?: number, key?: string) {
      const account: Account = await stack.gateway.account(credit);
      let requests = 0;
      const counting = (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
        requests++;
        return fetch(input, init);
      };
      const client = new module.Anthropic({
        baseURL: stack.gateway.url,
        apiKey: key ?? account.api_key,
        fetch: counting,
      });
      return { client, account, sent: () => requests };
    }
    const asks = (marker: string, more: object = {}) => ({
      model: hosted,
      max_tokens: 2_100,
      messages: [{ role: "user", content: `hello [[${marker}]]` }],
      ...more,
    });
    const prompt = (script: string, more: object = {}) => asks(stack.node.marker(script), more);
    const thinking = { type: "enabled", budget_tokens: 2_000 };

    test(
      "plain text, with usage and a request id",
      async () => {
        const { client } = await newClient();
        const reply = await client.messages.create(prompt("reasoning-text"));
        expect(reply).toMatchObject({
          type: "message",
          role: "assistant",
          model: hosted,
          content: [{ type: "text", text: "Hi there!" }], // thinking was not asked for
          stop_reason: "end_turn",
          stop_sequence: null,
          usage: { input_tokens: 100, cache_read_input_tokens: 20, cache_creation_input_tokens: 0, output_tokens: 20 },
        });
        expect(reply._request_id).toBeString();
      },
      timeLimit,
    );

    test(
      "a first-party tier's usage is the total",
      async () => {
        const { client } = await newClient();
        const reply = await client.messages.create(prompt("text", { model: "core-3" }));
        expect(reply.usage).toEqual({ input_tokens: 120, output_tokens: 20 });
      },
      timeLimit,
    );

    test(
      "a stream read event by event",
      async () => {
        const { client } = await newClient();
        const stream = await client.messages.create(prompt("text", { stream: true }));
        const types: string[] = [];
        let text = "";
        for await (const event of stream) {
          types.push(event.type);
          text += event.delta?.text ?? "";
        }
        expect(text).toBe("Hi there!");
        expect([types[0], types.at(-1)]).toEqual(["message_start", "message_stop"]);
      },
      timeLimit,
    );

    test(
      "the .stream() helper and create() put the same answer together, thinking first",
      async () => {
        const { client } = await newClient();
        const streamed = await client.messages.stream(prompt("reasoning-text", { thinking })).finalMessage();
        const whole = await client.messages.create(prompt("reasoning-text", { thinking }));
        expect(streamed.content).toMatchObject([
          { type: "thinking", thinking: "Let me think.", signature: expect.stringMatching(/./) },
          { type: "text", text: "Hi there!" },
        ]);
        for (const field of ["content", "stop_reason", "stop_sequence", "usage"] as const) {
          expect(streamed[field]).toEqual(whole[field] as never);
        }
      },
      timeLimit,
    );

    test(
      "a tool loop: the answer goes back as it came, with the result",
      async () => {
        const { client } = await newClient();
        const marker = stack.node.marker("one-tool");
        const first = await client.messages.stream(asks(marker, { tools: [weather] })).finalMessage();
        expect(first.stop_reason).toBe("tool_use");
        const use = first.content.find(({ type }) => type === "tool_use");
        expect(use).toMatchObject({ name: "get_weather", input: { city: "Paris" } });
        const second = await client.messages.create(
          asks(marker, {
            tools: [weather],
            messages: [
              { role: "user", content: `hello [[${marker}]]` },
              { role: "assistant", content: first.content },
              { role: "user", content: [{ type: "tool_result", tool_use_id: use?.["id"], content: "sunny, 21 C" }] },
            ],
          }),
        );
        expect(second.content).toMatchObject([{ type: "text", text: "It is sunny in Paris." }]);
      },
      timeLimit,
    );

    test.each([false, true])(
      "two parallel tools whose fragments interleave, streamed: %p",
      async (streamed) => {
        const { client } = await newClient();
        const request = prompt("parallel-tools", { tools: [weather] });
        const reply = streamed
          ? await client.messages.stream(request).finalMessage()
          : await client.messages.create(request);
        expect(reply.content).toMatchObject([
          { type: "tool_use", name: "get_weather", input: { city: "London" } },
          { type: "tool_use", name: "get_weather", input: { city: "Tokyo" } },
        ]);
        expect(new Set(reply.content.map((block) => block["id"])).size).toBe(2);
        expect(reply.stop_reason).toBe("tool_use");
      },
      timeLimit,
    );

    test(
      "an answer that hits the budget says max_tokens",
      async () => {
        const { client } = await newClient();
        const reply = await client.messages.create(prompt("length", { max_tokens: 20 }));
        expect(reply.stop_reason).toBe("max_tokens");
      },
      timeLimit,
    );

    test(
      "stop sequences and the conversation reach the node",
      async () => {
        const { client } = await newClient();
        const marker = stack.node.marker("text");
        await client.messages.create(
          asks(marker, { system: [{ type: "text", text: "Be brief." }], stop_sequences: ["END", "", "STOP"] }),
        );
        expect((await stack.node.request(marker)).body).toMatchObject({
          stop: ["END", "STOP"],
          messages: [
            { role: "system", content: "Be brief." },
            { role: "user", content: `hello [[${marker}]]` },
          ],
        });
      },
      timeLimit,
    );

    test(
      "a wrong key is the client's AuthenticationError after one request",
      async () => {
        const { client, sent } = await newClient(0, `sk-tg-${"x".repeat(43)}`);
        const error = await failure(client.messages.create(prompt("text")));
        expect(error).toBeInstanceOf(module.AuthenticationError);
        expect(error).toMatchObject({
          status: 401,
          error: { type: "error", error: { type: "authentication_error", message: "Invalid API key provided" } },
        });
        expect(sent()).toBe(1);
      },
      timeLimit,
    );

    test(
      "malformed requests and unknown models are BadRequestErrors after one request",
      async () => {
        const { client, sent } = await newClient();
        const unknown = await failure(client.messages.create(prompt("text", { model: "core-99" })));
        expect(unknown).toBeInstanceOf(module.BadRequestError);
        const malformed = await failure(client.messages.create(prompt("text", { messages: "hi" })));
        expect(malformed).toBeInstanceOf(module.BadRequestError);
        expect(malformed).toMatchObject({ error: { type: "error", error: { type: "invalid_request_error" } } });
        expect(sent()).toBe(2);
      },
      timeLimit,
    );

    test(
      "an empty balance is a RateLimitError with the plan page's address, asked once",
      async () => {
        const { client, sent } = await newClient(0);
        const error = await failure(client.messages.stream(prompt("text", { max_tokens: 60_000 })).finalMessage());
        expect(error).toBeInstanceOf(module.RateLimitError);
        expect(String(error)).toMatch(/Quota exceeded\. Upgrade your plan at http\S+\/plan/);
        expect(sent()).toBe(1);
      },
      timeLimit,
    );

    test(
      "a prompt beyond the context window says so in the words that agents compact on",
      async () => {
        const { client } = await newClient();
        const error = await failure(client.messages.create(prompt("prompt-too-long")));
        expect(error).toBeInstanceOf(module.BadRequestError);
        expect(String(error)).toMatch(/prompt is too long: \d+ tokens > \d+ maximum/);
      },
      timeLimit,
    );

    test(
      "a node's failure is tried again by the client and then answered",
      async () => {
        const { client, sent } = await newClient();
        const reply = await client.messages.create(prompt("second-try"));
        expect(reply.content).toMatchObject([{ text: "Hi there!" }]);
        expect(sent()).toBe(2);
      },
      timeLimit,
    );

    test(
      "a node that dies mid-stream raises an error that shows nothing of the node",
      async () => {
        const { client } = await newClient();
        const stream = await client.messages.create(prompt("dies-rst", { stream: true }));
        let text = "";
        const error = await failure(
          (async () => {
            for await (const event of stream) text += event.delta?.text ?? "";
          })(),
        );
        expect(text).toBe("Hi there");
        expect(error).toBeInstanceOf(module.APIError);
        expect(String(error)).not.toContain("127.0.0.1");
      },
      timeLimit,
    );

    test(
      "an abort stops the node within a second and is charged",
      async () => {
        const { client, account } = await newClient();
        const marker = stack.node.marker("endless");
        const controller = new AbortController();
        const stream = await client.messages.create(asks(marker, { stream: true }), { signal: controller.signal });
        let deltas = 0;
        let abortedAt = 0;
        await failure(
          (async () => {
            for await (const event of stream) {
              if (event.delta?.text !== undefined && ++deltas === 5) {
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
        expect(row).toMatchObject({ endpoint: "/v1/messages", estimated: true });
        expect(row.billed_tokens).toBeGreaterThan(0);
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
        expect(await client.models.retrieve("core-coder-1")).toMatchObject({ id: "core-coder-1" });
        expect(await failure(client.models.retrieve("core-99"))).toBeInstanceOf(module.NotFoundError);
      },
      timeLimit,
    );
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
