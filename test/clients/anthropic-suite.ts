// What every version of the official JavaScript client of the messages dialect must get from the gateway, with nothing
// changed but its base address and key. The client's own retries, parsers and helpers are left on.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { foundPages, type SearchService, startSearchService } from "../fixtures/search-service.ts";
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
/** Absent in versions before 0.137. */
type ToolRunner = (body: object) => PromiseLike<Message>;

/** The few calls used here; the package's own types are not there in a plain checkout. */
type AnthropicClient = {
  apiKey: string;
  messages: {
    create(body: object, options?: object): PromiseLike<Message & AsyncIterable<StreamEvent>>;
    stream(body: object): { finalMessage(): Promise<Message> };
    countTokens(body: object): PromiseLike<{ input_tokens: number }>;
    parse?(body: object): Promise<{ parsed_output: unknown }>;
  };
  beta: { messages: { toolRunner?: ToolRunner } };
  models: {
    list(query?: object): PromiseLike<unknown> & AsyncIterable<{ id: string }>;
    retrieve(id: string): PromiseLike<{ id: string }>;
  };
};
type ApiFailure = Error & { status?: number; error?: unknown; requestID?: string };
type ErrorClass = abstract new (...args: never[]) => ApiFailure;
export type AnthropicModule = {
  Anthropic: new (options: object) => AnthropicClient;
  APIError: ErrorClass;
  AuthenticationError: ErrorClass;
  BadRequestError: ErrorClass;
  InternalServerError: ErrorClass;
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

/** `waits`: also run the test that sits out a flood window, up to a minute. */
export function describeAnthropic(label: string, module: AnthropicModule, waits = false): void {
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
      "a web search gives its blocks and citations, streamed and not, and goes back as it came",
      async () => {
        const { client } = await newClient();
        const tools = [{ type: "web_search_20250305", name: "web_search", max_uses: 3 }];
        const whole = await client.messages.create(prompt("web-search", { tools }));
        const streamed = await client.messages.stream(prompt("web-search", { tools })).finalMessage();
        const withoutIds = ({ content }: Message) =>
          JSON.parse(JSON.stringify(content).replaceAll(/srvtoolu_\w+/g, "x"));
        expect(withoutIds(streamed)).toEqual(withoutIds(whole));
        expect(whole.content).toMatchObject([
          { type: "text", text: "I look. " },
          { type: "server_tool_use", name: "web_search", input: { query: "bun runtime" } },
          { type: "web_search_tool_result", content: foundPages.map(({ url, title }) => ({ url, title })) },
          { type: "text", text: "Bun is fast [1]", citations: [{ url: foundPages[0].url }] },
          { type: "text", text: ". Elysia runs on it [2]", citations: [{ url: foundPages[1].url }] },
          { type: "text", text: "." },
        ]);
        expect([whole.usage["server_tool_use"], streamed.usage["server_tool_use"]] as unknown[]).toEqual([
          { web_search_requests: 1, web_fetch_requests: 0 },
          { web_search_requests: 1, web_fetch_requests: 0 },
        ]);
        const marker = stack.node.marker("text");
        const next = { role: "user", content: `and? [[${marker}]]` };
        const history = [{ role: "user", content: "hello" }, { role: "assistant", content: streamed.content }, next];
        await client.messages.create(asks(marker, { tools, messages: history }));
        const seen = (await stack.node.request(marker)).body!["messages"] as { role: string; content: string }[];
        expect(seen.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
        expect(seen[2]!.content).toContain(foundPages[0].content);
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

    if (label !== "anthropic-0.60") {
      test(
        "the tool runner runs the tool and returns the final answer",
        async () => {
          const { client, sent } = await newClient();
          const asked: string[] = [];
          const run = ({ city }: { city: string }): string => (asked.push(city), "sunny, 21 C");
          const tool = { ...weather, type: "custom", parse: (input: unknown) => input, run };
          const reply = await client.beta.messages.toolRunner!(prompt("one-tool", { tools: [tool] }));
          expect(reply.content).toMatchObject([{ type: "text", text: "It is sunny in Paris." }]);
          expect(asked).toEqual(["Paris"]);
          // version 1 first asks for a conversation that the server keeps, and goes on without
          expect(sent()).toBe(label === "@anthropic-ai/sdk" ? 3 : 2);
        },
        timeLimit,
      );
    }

    test(
      "a forced tool comes back as tool_use though the node said stop",
      async () => {
        const { client } = await newClient();
        const marker = stack.node.marker("forced-tool");
        const other = { name: "other", input_schema: { type: "object" } };
        const reply = await client.messages.create(
          asks(marker, { tools: [weather, other], tool_choice: { type: "tool", name: "get_weather" } }),
        );
        expect(reply.stop_reason).toBe("tool_use");
        expect(reply.content).toMatchObject([{ type: "tool_use", name: "get_weather", input: { city: "Paris" } }]);
        expect(JSON.stringify((await stack.node.request(marker)).body?.["tools"])).not.toContain("other");
      },
      timeLimit,
    );

    test.each(["summarized", "omitted"])(
      "thinking goes back with its signature and reaches the model, display: %s",
      async (display) => {
        const { client } = await newClient();
        const asking = { model: "core-3", thinking: { ...thinking, display } };
        const first = await client.messages.stream(prompt("reasoning-text", asking)).finalMessage();
        const [thought] = first.content;
        expect(thought?.thinking).toBe(display === "omitted" ? "" : "Let me think.");
        const marker = stack.node.marker("text");
        const messages = [
          { role: "user", content: "hello" },
          { role: "assistant", content: first.content },
          { role: "user", content: `and now? [[${marker}]]` },
        ];
        await client.messages.create(asks(marker, { ...asking, messages }));
        expect((await stack.node.request(marker)).body?.["messages"]).toMatchObject([
          { role: "user" },
          { role: "assistant", content: "Hi there!", reasoning_content: "Let me think." },
          { role: "user" },
        ]);
      },
      timeLimit,
    );

    test(
      "an inline image reaches the node",
      async () => {
        const { client } = await newClient();
        const marker = stack.node.marker("text");
        const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";
        const content = [
          { type: "image", source: { type: "base64", media_type: "image/png", data } },
          { type: "text", text: `what is it? [[${marker}]]` },
        ];
        await client.messages.create(asks(marker, { messages: [{ role: "user", content }] }));
        expect(JSON.stringify((await stack.node.request(marker)).body)).toContain(`data:image/png;base64,${data}`);
      },
      timeLimit,
    );

    test(
      "a conversation of a hundred turns arrives whole and in order",
      async () => {
        const { client } = await newClient();
        const marker = stack.node.marker("text");
        const messages = Array.from({ length: 101 }, (_, turn) => {
          const said = turn === 100 ? `and? [[${marker}]]` : `turn ${turn}: ${"word ".repeat(400)}`;
          // clients change from one form to the other between two turns
          const content = turn % 4 === 0 ? [{ type: "text", text: said }] : said;
          return { role: turn % 2 === 0 ? "user" : "assistant", content };
        });
        const reply = await client.messages.create(asks(marker, { messages }));
        expect(reply.content).toMatchObject([{ text: "Hi there!" }]);
        const sent = (await stack.node.request(marker)).body?.["messages"] as { role: string; content: string }[];
        expect(sent.map(({ role }) => role)).toEqual(messages.map(({ role }) => role));
        expect(sent.slice(0, 100).map(({ content }) => content.split(":")[0])).toEqual(
          Array.from({ length: 100 }, (_, turn) => `turn ${turn}`),
        );
      },
      timeLimit,
    );

    test(
      "an answer in the shape of a JSON schema, and what parse() makes of it",
      async () => {
        const { client } = await newClient();
        const schema = {
          type: "object",
          properties: { title: { type: "string" }, year: { type: "integer" } },
          required: ["title", "year"],
          additionalProperties: false,
        };
        const format = { type: "json_schema", schema, parse: JSON.parse };
        const reply = await client.messages.create(prompt("json", { output_config: { format } }));
        expect(JSON.parse(reply.content[0]?.text ?? "")).toEqual({ title: "Dune", year: 1965 });
        const parsed = await client.messages.parse?.(prompt("json", { output_config: { format } }));
        if (parsed !== undefined) expect(parsed.parsed_output).toEqual({ title: "Dune", year: 1965 });
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
        const facts = { spendable: 30_000, requested: 60_000, resets_at: expect.any(Number) };
        expect((error as { error?: unknown }).error).toMatchObject({ error: facts });
        expect(sent()).toBe(1);
      },
      timeLimit,
    );

    test(
      "a body over 32 MiB is refused with its reason, asked once",
      async () => {
        const { client, sent } = await newClient();
        const error = await failure(client.messages.create(asks("a".repeat(33_554_432))));
        expect(error).toBeInstanceOf(module.APIError);
        expect(error).toMatchObject({
          status: 413,
          error: {
            type: "error",
            error: { type: "invalid_request_error", message: "Request body larger than 32 MiB" },
          },
        });
        expect(sent()).toBe(1);
      },
      timeLimit,
    );

    test(
      "a node that keeps failing is an InternalServerError after the client's own two retries",
      async () => {
        const { client, account, sent } = await newClient();
        const error = await failure(client.messages.create(prompt("status-500")));
        expect(error).toBeInstanceOf(module.InternalServerError);
        expect(error).toMatchObject({ status: 500, error: { type: "error", error: { type: "api_error" } } });
        expect(error.requestID).toBeString();
        expect(String(error)).not.toContain("10.1.2.3");
        expect(sent()).toBe(3);
        expect(await stack.gateway.usage(account.email)).toEqual([]);
      },
      timeLimit,
    );

    if (waits) {
      test("the request after a full flood window waits for its end by itself", async () => {
        const { client, sent } = await newClient();
        for (let request = 0; request < 120; request++) await client.messages.create(prompt("text"));
        const reply = await client.messages.create(prompt("text"));
        expect(reply.content).toMatchObject([{ text: "Hi there!" }]);
        expect(sent()).toBe(122); // one 429, whose retry-after was kept
      }, 120_000);
    }

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
      "tokens are counted for free, many requests at once",
      async () => {
        const { client, account } = await newClient();
        const { max_tokens: _, ...body } = prompt("text", { tools: [weather], system: "Be brief." });
        const counts = await Promise.all(Array.from({ length: 24 }, () => client.messages.countTokens(body)));
        expect(counts[0]?.input_tokens).toBeWithin(10, 1_000);
        expect(new Set(counts.map(({ input_tokens }) => input_tokens)).size).toBe(1);
        expect(await stack.gateway.usage(account.email)).toEqual([]);
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
        const paged: string[] = [];
        for await (const model of client.models.list({ limit: 5 })) paged.push(model.id);
        expect(paged).toEqual(ids);
        expect(await client.models.retrieve("core-coder-1")).toMatchObject({
          ...{ id: "core-coder-1", display_name: "core-coder-1" },
          capabilities: { image_input: { supported: false }, thinking: { supported: true } },
        });
        expect(await failure(client.models.retrieve("core-99"))).toBeInstanceOf(module.NotFoundError);
      },
      timeLimit,
    );
  });
}

/** The error that the promise rejects with. */
async function failure(promise: PromiseLike<unknown>): Promise<ApiFailure> {
  try {
    await promise;
  } catch (error) {
    return error as ApiFailure;
  }
  throw new Error("expected an error");
}
