// Requests as real clients send them: every shape is accepted, and reaches the node in the form that engines read.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { captures } from "../fixtures/captures.ts";
import { post, says } from "../fixtures/requests.ts";
import { Stack } from "../fixtures/stack.ts";

const timeLimit = 30_000;
const hosted = "open-05-3BIT-REAP";
let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start();
}, timeLimit);
afterAll(() => stack[Symbol.asyncDispose]());
afterEach(() => stack.gateway.expectNothingReserved(), timeLimit);

const weather = {
  type: "function",
  function: { name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } } } },
};

/** Sends the body, expects 200 and returns what the node was asked. */
async function nodeBody(body: Record<string, unknown>, marker: string): Promise<NodeBody> {
  const reply = await post(stack, await stack.gateway.account(), body);
  expect(reply.status, await reply.text()).toBe(200);
  return (await stack.node.request(marker)).body as NodeBody;
}
type NodeBody = Record<string, unknown> & { messages: Record<string, unknown>[] };

describe("captured requests", () => {
  test.each(captures.map((capture) => [capture.name, capture] as const))(
    "%s",
    async (_, capture) => {
      const reply = await post(stack, await stack.gateway.account(), capture.body, {
        path: capture.url,
        headers: capture.headers,
      });
      const text = await reply.text();
      expect(reply.status, text).toBe(200);
      expect(text).toContain(capture.body["stream"] === true ? "data: [DONE]" : '"chat.completion"');
    },
    timeLimit,
  );
});

describe("messages", () => {
  test(
    "system and developer turns stand anywhere",
    async () => {
      const marker = stack.node.marker("text");
      const { messages } = await nodeBody(
        {
          model: "core-3",
          messages: [
            { role: "developer", content: "be brief" },
            { role: "user", content: `hello [[${marker}]]` },
            { role: "assistant", content: "yes?" },
            {
              role: "system",
              content: [
                { type: "text", text: "be " },
                { type: "text", text: "kind" },
              ],
            },
            { role: "user", content: [{ type: "text", text: "go on" }] },
          ],
        },
        marker,
      );
      const all = JSON.stringify(messages);
      for (const content of ["be brief", "be kind", "go on", "yes?"]) expect(all).toContain(content);
      expect(messages.map(({ role }) => role)).not.toContain("developer"); // engines' templates do not know it
    },
    timeLimit,
  );

  test.each([
    ["a string", "sunny, 21 C"],
    [
      "an array of parts",
      [
        { type: "text", text: "sunny, " },
        { type: "text", text: "21 C" },
      ],
    ],
  ])(
    "a tool result as %s",
    async (_, content) => {
      const marker = stack.node.marker("text");
      const { messages } = await nodeBody(
        {
          model: "core-3",
          tools: [weather],
          messages: [
            { role: "user", content: `weather? [[${marker}]]` },
            {
              role: "assistant",
              content: null,
              tool_calls: [{ id: "call_1", type: "function", function: { name: "get_weather", arguments: "{}" } }],
            },
            { role: "tool", tool_call_id: "call_1", content },
          ],
        },
        marker,
      );
      expect(messages[1]?.["tool_calls"]).toMatchObject([{ id: "call_1", function: { name: "get_weather" } }]);
      expect(messages[2]).toMatchObject({ role: "tool", tool_call_id: "call_1" });
      // parts are joined; templates put a line end between them
      expect(String(messages[2]?.["content"]).replace("\n", "")).toBe("sunny, 21 C");
    },
    timeLimit,
  );

  test.each([
    ["absent", undefined],
    ["null", null],
    ["empty", ""],
  ])(
    "an assistant turn with calls whose content is %s",
    async (_, content) => {
      const marker = stack.node.marker("text");
      await nodeBody(
        {
          model: "core-3",
          tools: [weather],
          messages: [
            { role: "user", content: `weather? [[${marker}]]` },
            {
              role: "assistant",
              ...(content === undefined ? {} : { content }),
              tool_calls: [{ id: "call_1", type: "function", function: { name: "get_weather", arguments: "" } }],
            },
            { role: "tool", tool_call_id: "call_1", content: "sunny" },
          ],
        },
        marker,
      );
    },
    timeLimit,
  );

  test(
    "reasoning that a client echoes goes back to the node as reasoning_content",
    async () => {
      const marker = stack.node.marker("text");
      const { messages } = await nodeBody(
        {
          model: "core-3",
          messages: [
            { role: "user", content: `hello [[${marker}]]` },
            { role: "assistant", content: "Hi", reasoning_content: "They greet me." },
            { role: "user", content: "again" },
          ],
        },
        marker,
      );
      expect(messages[1]).toMatchObject({ content: "Hi", reasoning_content: "They greet me." });
    },
    timeLimit,
  );

  test(
    "an inline image reaches the node of a model that reads images",
    async () => {
      const marker = stack.node.marker("text");
      const url =
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";
      const { messages } = await nodeBody(
        {
          model: "core-3",
          messages: [
            {
              role: "user",
              content: [
                { type: "text", text: `[[${marker}]]` },
                { type: "image_url", image_url: { url } },
              ],
            },
          ],
        },
        marker,
      );
      expect(JSON.stringify(messages)).toContain(url);
    },
    timeLimit,
  );
});

describe("settings", () => {
  test.each(["off", "none", "minimal", "low", "medium", "high", "xhigh", "max"])(
    "the depth %s is accepted on both kinds of model, and sent on for hosted ones only",
    async (effort) => {
      const [first, second] = [stack.node.marker("text"), stack.node.marker("text")];
      const firstParty = await nodeBody(says(first, { reasoning_effort: effort }), first);
      expect(firstParty).not.toHaveProperty("reasoning_effort");
      expect(firstParty).not.toHaveProperty("chat_template_kwargs");
      const forwarded = await nodeBody(says(second, { model: hosted, reasoning_effort: effort }), second);
      expect("reasoning_effort" in forwarded || "chat_template_kwargs" in forwarded).toBe(true);
    },
    timeLimit,
  );

  test.each([
    [0, 1],
    [1, 1],
    [4_096, 4_096],
    [65_536, 65_536],
    [128_000, 65_536],
    [null, 4_096],
  ])(
    "a budget of %p is moved to %p without an error, and sent where it limits the answer",
    async (given, sent) => {
      for (const field of ["max_tokens", "max_completion_tokens"]) {
        const [limited, free] = [stack.node.marker("text"), stack.node.marker("text")];
        expect(await nodeBody(says(limited, { model: hosted, [field]: given }), limited)).toMatchObject({
          max_tokens: sent,
        });
        const unlimited = await nodeBody(says(free, { [field]: given }), free);
        expect(unlimited["max_tokens"]).not.toBe(given === 128_000 ? 65_536 : (given ?? 4_096));
      }
    },
    timeLimit,
  );

  test(
    "hosted models get the first 4 stop sequences that are not empty",
    async () => {
      const marker = stack.node.marker("text");
      const body = says(marker, { model: hosted, stop: ["", "a", "b", "", "c", "d", "e"] });
      expect(await nodeBody(body, marker)).toMatchObject({ stop: ["a", "b", "c", "d"] });
    },
    timeLimit,
  );

  test(
    "fields that nobody knows are accepted and not passed on",
    async () => {
      const marker = stack.node.marker("text");
      const body = await nodeBody(
        says(marker, {
          id_slot: 3,
          grammar: "root ::= x",
          n_predict: 9,
          priority: 1,
          chat_template: "x",
          metadata: { a: "b" },
          store: true,
        }),
        marker,
      );
      for (const field of ["id_slot", "grammar", "n_predict", "priority", "chat_template", "metadata", "store"]) {
        expect(body).not.toHaveProperty(field);
      }
    },
    timeLimit,
  );

  test(
    "the node is always asked for a stream with usage, and gets no header and no key of the client",
    async () => {
      const account = await stack.gateway.account();
      const marker = stack.node.marker("text");
      await (await post(stack, account, says(marker), { headers: { "x-conversation-id": "c", cookie: "a=b" } })).text();
      const { body, headers } = await stack.node.request(marker);
      expect(body).toMatchObject({ stream: true, stream_options: { include_usage: true }, model: "scripted" });
      expect(JSON.stringify(headers)).not.toContain("sk-tg-");
      expect(headers).not.toHaveProperty("x-conversation-id");
      expect(headers).not.toHaveProperty("cookie");
    },
    timeLimit,
  );
});

describe("tools", () => {
  const body = (marker: string, more: object): Record<string, unknown> => says(marker, { tools: [weather], ...more });

  test(
    "none: the node is offered no tools",
    async () => {
      const marker = stack.node.marker("text");
      expect((await nodeBody(body(marker, { tool_choice: "none" }), marker))["tools"] ?? []).toEqual([]);
    },
    timeLimit,
  );

  test(
    "a named tool is the only one that the node is offered",
    async () => {
      const marker = stack.node.marker("forced-tool");
      const other = { type: "function", function: { name: "other", parameters: { type: "object" } } };
      const sent = await nodeBody(
        body(marker, { tools: [weather, other], tool_choice: { type: "function", function: { name: "get_weather" } } }),
        marker,
      );
      expect(JSON.stringify(sent)).toContain("get_weather");
      expect(JSON.stringify(sent)).not.toContain('"other"');
    },
    timeLimit,
  );

  test(
    "allowed_tools is a hard limit",
    async () => {
      const marker = stack.node.marker("one-tool");
      const other = { type: "function", function: { name: "other", parameters: { type: "object" } } };
      const choice = {
        type: "allowed_tools",
        allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "get_weather" } }] },
      };
      const sent = await nodeBody(body(marker, { tools: [weather, other], tool_choice: choice }), marker);
      expect(JSON.stringify(sent["tools"])).not.toContain('"other"');
    },
    timeLimit,
  );

  test.each([true, false])(
    "parallel_tool_calls: false yields one call, streamed: %p",
    async (stream) => {
      const marker = stack.node.marker("parallel-tools");
      const reply = await post(
        stack,
        await stack.gateway.account(),
        body(marker, { parallel_tool_calls: false, stream }),
      );
      const text = await reply.text();
      expect(text).toContain("call_1");
      expect(text).not.toContain("call_2");
    },
    timeLimit,
  );

  test(
    "tools of hosted kinds are left out without an error",
    async () => {
      const marker = stack.node.marker("text");
      const sent = await nodeBody(body(marker, { tools: [weather, { type: "image_generation" }] }), marker);
      expect(JSON.stringify(sent)).not.toContain("image_generation");
    },
    timeLimit,
  );
});
