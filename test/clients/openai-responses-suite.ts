// What every major version of the official JavaScript client must get from POST /v1/responses and what belongs to it:
// its helpers, parsers and retries are left on, because they are what is being tested.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type OpenAIClient from "openai";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { callArguments, callStart, finish, reasoning, stream, text } from "../fixtures/scripts.ts";
import { foundPages, type SearchService, startSearchService } from "../fixtures/search-service.ts";
import { Stack } from "../fixtures/stack.ts";
import type { OpenAIModule } from "./openai-suite.ts";

type Responses = OpenAIClient.Responses;
type InputItem = OpenAIClient.Responses.ResponseInputItem;

const hosted = "open-05-3BIT-REAP";
const weatherTool = {
  type: "function",
  name: "get_weather",
  description: "The weather of a city",
  strict: true,
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
} as const;
const reasonedCall = stream(
  reasoning("I must ", "ask."),
  callStart(0, "call_1", "get_weather"),
  callArguments(0, '{"city":"Paris"}'),
  finish("tool_calls"),
);
const answer = stream(text("It is sunny ", "in Paris."), finish("stop"));
const timeLimit = 30_000;

export function describeOpenAIResponses(label: string, { OpenAI }: OpenAIModule): void {
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
    const prompt = (script: string): { marker: string; input: string } => {
      const marker = stack.node.marker(script);
      return { marker, input: `hello [[${marker}]]` };
    };
    const input = (script: string): { input: string } => ({ input: prompt(script).input });
    /** Version 4 has it under another name. */
    const remove = (client: OpenAIClient, id: string): Promise<unknown> => {
      const responses = client.responses as OpenAIClient["responses"] & { del?: Responses["delete"] };
      return responses.delete === undefined ? responses.del!(id) : responses.delete(id);
    };
    const rolesSeen = async (marker: string): Promise<string[]> => {
      const last = (await stack.node.requests(marker)).at(-1)!;
      return (last.body!["messages"] as { role: string }[]).map(({ role }) => role);
    };

    test(
      "plain text, with usage and a request id",
      async () => {
        const { client } = await newClient();
        const reply = await client.responses.create({ model: hosted, ...input("text") });
        expect(reply).toMatchObject({
          object: "response",
          model: hosted,
          status: "completed",
          output_text: "Hi there!",
        });
        expect(reply.usage).toEqual({
          input_tokens: 120,
          input_tokens_details: { cached_tokens: 20 },
          output_tokens: 20,
          output_tokens_details: { reasoning_tokens: 5 },
          total_tokens: 140,
        } as never);
        expect(reply._request_id).toBeString();
      },
      timeLimit,
    );

    test(
      "a web search gives an item with its sources and annotations, streamed and not",
      async () => {
        const { client } = await newClient();
        const request = {
          model: hosted,
          tools: [{ type: "web_search" }] as never[],
          include: ["web_search_call.action.sources" as never],
        };
        const whole = await client.responses.create({ ...request, ...input("web-search") });
        expect(whole.output.map(({ type }) => type)).toEqual(["message", "web_search_call", "message"]);
        expect(whole.output_text).toBe("I look. Bun is fast [1]. Elysia runs on it [2].");
        expect(whole.output[1]).toMatchObject({
          status: "completed",
          action: { query: "bun runtime", sources: foundPages.map(({ url }) => ({ type: "url", url })) },
        });
        const { content } = whole.output[2] as OpenAIClient.Responses.ResponseOutputMessage;
        const { text, annotations } = content[0] as OpenAIClient.Responses.ResponseOutputText;
        expect(annotations).toMatchObject(foundPages.map(({ url, title }) => ({ type: "url_citation", url, title })));
        for (const at of annotations) {
          if (at.type === "url_citation") expect(text.slice(at.start_index, at.end_index)).toMatch(/^\[[12]\]$/);
        }
        const stream = await client.responses.create({ ...request, stream: true, ...input("web-search") });
        const types: string[] = [];
        let final: OpenAIClient.Responses.Response | null = null;
        for await (const event of stream) {
          types.push(event.type);
          if (event.type === "response.completed") final = event.response;
        }
        expect(types).toContain("response.web_search_call.searching");
        expect(types.filter((type) => type === "response.output_text.annotation.added")).toHaveLength(2);
        const withoutIds = (output: unknown) => JSON.stringify(output).replaceAll(/"id":"\w+"/g, "");
        expect(withoutIds(final!.output)).toBe(withoutIds(whole.output));
        if (client.responses.stream !== undefined) {
          const helped = client.responses.stream({ ...request, ...input("web-search") });
          expect((await helped.finalResponse()).output_text).toBe(whole.output_text);
        }
      },
      timeLimit,
    );

    test(
      "a stream read event by event is what the reply is that is not streamed",
      async () => {
        const { client } = await newClient();
        const stream = await client.responses.create({ model: "core-3", stream: true, ...input("reasoning-text") });
        let text = "";
        let thought = "";
        let final: OpenAIClient.Responses.Response | null = null;
        for await (const event of stream) {
          if (event.type === "response.output_text.delta") text += event.delta;
          if (event.type === "response.reasoning_summary_text.delta") thought += event.delta;
          if (event.type === "response.completed") final = event.response;
        }
        expect({ text, thought }).toEqual({ text: "Hi there!", thought: "Let me think." });
        const whole = await client.responses.create({ model: "core-3", ...input("reasoning-text") });
        expect(final?.output.map(({ type }) => type)).toEqual(["reasoning", "message"]);
        const shapes = [final!, whole].map(({ output }) => JSON.stringify(output).replaceAll(/"id":"[^"]+"/g, '"id"'));
        expect(shapes[0]).toBe(shapes[1]!);
      },
      timeLimit,
    );

    test.each(["text", "reasoning-text", "parallel-tools", "two-bash-calls", "length"])(
      "the .stream() helper puts the answer together: %s",
      async (script) => {
        const { client } = await newClient();
        const types: string[] = [];
        const stream = client.responses.stream({ model: "core-3", tools: [weatherTool], ...input(script) });
        stream.on("event", ({ type }) => types.push(type));
        const final = await stream.finalResponse();
        // the helpers of versions 4 and 5 do not read response.incomplete and stay at what was before
        if (script === "length") expect(["incomplete", "in_progress"]).toContain(final.status!);
        else expect(final.status).toBe("completed");
        expect(types[0]).toBe("response.created");
        if (script === "parallel-tools") {
          expect(final.output).toMatchObject([
            { type: "function_call", name: "get_weather", arguments: '{"city":"London"}' },
            { type: "function_call", name: "get_weather", arguments: '{"city":"Tokyo"}' },
          ]);
        } else if (script !== "two-bash-calls") {
          const message = final.output.find((item) => item.type === "message")!;
          expect(message.content).toMatchObject([{ type: "output_text", text: "Hi there!" }]);
        }
      },
      timeLimit,
    );

    test(
      "a tool loop that sends every item back, reasoning sealed among them",
      async () => {
        const { client } = await newClient();
        const script = { advance: "rounds" as const, replies: [reasonedCall, answer] };
        await stack.node.define("responses-loop", script);
        const { marker, input } = prompt("responses-loop");
        const items: InputItem[] = [{ role: "user", content: input }];
        const request = { model: "core-3", store: false, include: ["reasoning.encrypted_content" as const] };
        const first = await client.responses.create({ ...request, tools: [weatherTool], input: items });
        const call = first.output.find((item) => item.type === "function_call")!;
        expect(JSON.parse(call.arguments)).toEqual({ city: "Paris" });
        const [thought] = first.output;
        expect(thought?.type === "reasoning" && thought.encrypted_content).toBeString();
        items.push(...(first.output as InputItem[]));
        items.push({ type: "function_call_output", call_id: call.call_id, output: "sunny" });
        const second = await client.responses.create({ ...request, tools: [weatherTool], input: items });
        expect(second.output_text).toBe("It is sunny in Paris.");
        const messages = (await stack.node.requests(marker))[1]!.body!["messages"] as Record<string, unknown>[];
        expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
        expect(JSON.stringify(messages[1])).toContain("I must ask.");
      },
      timeLimit,
    );

    test(
      "a conversation by previous_response_id; retrieved, listed and deleted",
      async () => {
        const { client } = await newClient();
        const { marker, input } = prompt("one-tool");
        const tools = [weatherTool];
        const first = await client.responses.create({ model: "core-3", input, tools });
        const call = first.output.find((item) => item.type === "function_call")!;
        const second = await client.responses.create({
          model: "core-3",
          previous_response_id: first.id,
          tools,
          input: [{ type: "function_call_output", call_id: call.call_id, output: "sunny" }],
        });
        expect(second.output_text).toBe("It is sunny in Paris.");
        const stream = client.responses.stream({ model: "core-3", previous_response_id: second.id, input: "thanks" });
        const third = await stream.finalResponse();
        expect(third.previous_response_id).toBe(second.id);
        expect(await rolesSeen(marker)).toEqual(["user", "assistant", "tool", "assistant", "user"]);

        const fetched = await client.responses.retrieve(second.id);
        expect(fetched).toMatchObject({ id: second.id, output_text: "It is sunny in Paris.", usage: second.usage! });
        const listed: unknown[] = [];
        for await (const item of client.responses.inputItems.list(second.id, { limit: 1 })) listed.push(item);
        expect(listed).toMatchObject([{ type: "function_call_output", output: "sunny" }]);
        await remove(client, second.id);
        expect(await failure(client.responses.retrieve(second.id))).toBeInstanceOf(OpenAI.NotFoundError);
        const cancelSignal = await failure(
          client.responses.create({ model: "core-3", previous_response_id: third.id, input: "more" }),
        );
        expect(cancelSignal).toBeInstanceOf(OpenAI.BadRequestError);
        expect(cancelSignal).toMatchObject({ code: "previous_response_not_found" });
      },
      timeLimit,
    );

    test(
      "input items page by page",
      async () => {
        const { client } = await newClient();
        const items: InputItem[] = Array.from({ length: 7 }, (_, index) => ({
          role: "user",
          content: `${index} ${prompt("text").input}`,
        }));
        const { id } = await client.responses.create({ model: "core-3", input: items });
        const seen: string[] = [];
        for await (const item of client.responses.inputItems.list(id, { limit: 3, order: "asc" })) {
          seen.push((item as { content: { text: string }[] }).content[0]!.text[0]!);
        }
        expect(seen.join("")).toBe("0123456");
      },
      timeLimit,
    );

    test(
      "parse() reads an answer to a schema, streamed or not",
      async () => {
        const { client } = await newClient();
        const format = {
          type: "json_schema" as const,
          name: "book",
          strict: true,
          schema: {
            type: "object",
            properties: { title: { type: "string" }, year: { type: "integer" } },
            required: ["title", "year"],
            additionalProperties: false,
          },
          // what the client's zod helper adds
          $brand: "auto-parseable-response-format",
          $parseRaw: JSON.parse,
        };
        const { marker, input } = prompt("json");
        const parsed = await client.responses.parse({ model: "core-3", input, text: { format } });
        expect(parsed.output_parsed as unknown).toEqual({ title: "Dune", year: 1965 });
        expect((await stack.node.request(marker)).body).toMatchObject({ response_format: { type: "json_schema" } });
        const streamed = client.responses.stream({ model: "core-3", ...prompt("json"), text: { format } } as never);
        expect((await streamed.finalResponse()).output_parsed as unknown).toEqual({ title: "Dune", year: 1965 });
      },
      timeLimit,
    );

    test(
      "a wrong key, a malformed request, an unknown model and an unknown response, each asked once",
      async () => {
        const { client, sent } = await newClient();
        const create = (body: object): Promise<unknown> =>
          failure(client.responses.create({ model: "core-3", input: "x", ...body } as never));
        for (const body of [
          { input: 42 },
          { model: "core-99" },
          { temperature: 9 },
          { previous_response_id: "resp_x" },
        ])
          expect(await create(body)).toBeInstanceOf(OpenAI.BadRequestError);
        expect(await failure(client.responses.retrieve("resp_none"))).toBeInstanceOf(OpenAI.NotFoundError);
        client.apiKey = `sk-tg-${"x".repeat(43)}`;
        const unauthorized = await create({});
        expect(unauthorized).toBeInstanceOf(OpenAI.AuthenticationError);
        expect(unauthorized).toMatchObject({ code: "invalid_api_key", type: "authentication_error" });
        expect(sent()).toBe(6);
      },
      timeLimit,
    );

    test(
      "an empty balance and a prompt that is too long, each asked once",
      async () => {
        const { client, sent } = await newClient(0);
        const quota = await failure(
          client.responses.create({ model: "core-3", max_output_tokens: 60_000, ...input("text") }),
        );
        expect(quota).toBeInstanceOf(OpenAI.RateLimitError);
        expect(quota).toMatchObject({ code: "insufficient_quota", type: "rate_limit_error" });
        expect(String(quota)).toMatch(/Quota exceeded\. Upgrade your plan at http\S+\/plan/);
        const tooLong = await failure(client.responses.create({ model: "core-3", ...input("prompt-too-long") }));
        expect(tooLong).toBeInstanceOf(OpenAI.BadRequestError);
        expect(tooLong).toMatchObject({ code: "context_length_exceeded" });
        expect(sent()).toBe(2);
      },
      timeLimit,
    );

    test(
      "a node's failure is tried again by the client and then answered",
      async () => {
        const { client, sent } = await newClient();
        const reply = await client.responses.create({ model: "core-3", ...input("second-try") });
        expect(reply.output_text).toBe("Hi there!");
        expect(sent()).toBe(2);
      },
      timeLimit,
    );

    test(
      "a node that dies mid-stream is a failed response with a code, which shows nothing of the node",
      async () => {
        const { client } = await newClient();
        const stream = await client.responses.create({ model: "core-3", stream: true, ...input("dies-rst") });
        let text = "";
        let last: OpenAIClient.Responses.ResponseStreamEvent | null = null;
        for await (const event of stream) {
          if (event.type === "response.output_text.delta") text += event.delta;
          last = event;
        }
        expect(text).toBe("Hi there");
        expect(last).toMatchObject({ type: "response.failed", response: { error: { code: "server_error" } } });
        expect(JSON.stringify(last)).not.toContain("127.0.0.1");
      },
      timeLimit,
    );

    test(
      "an abort stops the node within a second and is charged",
      async () => {
        const { client, account } = await newClient();
        const { marker, input } = prompt("endless");
        const stream = await client.responses.create({ model: "core-3", stream: true, input });
        let deltas = 0;
        let leftAt = 0;
        for await (const event of stream) {
          if (event.type === "response.output_text.delta" && ++deltas === 5) {
            leftAt = Date.now();
            break; // the client aborts when its iteration is left
          }
        }
        expect((await stack.node.closedAt(marker)) - leftAt).toBeLessThan(1_000);
        const row = await eventually("the abort is charged", async () => {
          const [newest] = await stack.gateway.usage(account.email);
          return newest ?? null;
        });
        expect(row).toMatchObject({ endpoint: "/v1/responses", estimated: true });
        expect(row.output).toBeGreaterThanOrEqual(5);
      },
      timeLimit,
    );
  });
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}
