// Requests of the messages dialect as real clients send them: every shape is accepted, and reaches the node in the form
// that engines read.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { messagesCaptures } from "../fixtures/messages-captures.ts";
import { collectedMessage, expectWellFormedMessage, messagesEventsOf } from "../fixtures/messages-events.ts";
import { post } from "../fixtures/requests.ts";
import { callArguments, callStart, finish, once } from "../fixtures/scripts.ts";
import { Stack } from "../fixtures/stack.ts";

const timeLimit = 30_000;
const path = "/v1/messages";
const hosted = "open-05-3BIT-REAP";
let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start();
}, timeLimit);
afterAll(() => stack[Symbol.asyncDispose]());
afterEach(() => stack.gateway.expectNothingReserved(), timeLimit);

const weather = {
  name: "get_weather",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const other = { name: "other", input_schema: { type: "object" } };
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";
const picture = { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } };
const pictureUrl = `data:image/png;base64,${pixel}`;
const call = { type: "tool_use", id: "call_1", name: "get_weather", input: { city: "Paris" } };

type NodeBody = Record<string, unknown> & { messages: { role: string; [field: string]: unknown }[] };

/** Sends a body whose last user message holds the marker, expects 200 and returns what the node was asked. */
async function nodeBody(more: object, messages: object[] = [], script = "text"): Promise<NodeBody> {
  const marker = stack.node.marker(script);
  const last = { role: "user", content: `hello [[${marker}]]` };
  const body = { model: "core-3", messages: [...messages, last], ...more };
  const reply = await post(stack, await stack.gateway.account(), body, { path });
  expect(reply.status, await reply.text()).toBe(200);
  return (await stack.node.request(marker)).body as NodeBody;
}

describe("captured requests", () => {
  test.each(messagesCaptures.map((capture) => [capture.name, capture] as const))(
    "%s",
    async (_, { body }) => {
      const reply = await post(stack, await stack.gateway.account(), { ...body, model: "core-3" }, { path });
      const text = await reply.text();
      expect(reply.status, text).toBe(200);
      if (body["stream"] === true) {
        const events = messagesEventsOf(text);
        expectWellFormedMessage(events);
        const asksForJson = (body["output_config"] as { format?: unknown } | undefined)?.format !== undefined;
        if (asksForJson) expect(JSON.parse(collectedMessage(events).text)).toBeObject();
        else expect(collectedMessage(events).text).toBe("Hi there!");
      } else expect(JSON.parse(text).content).toEqual([{ type: "text", text: "Hi there!" }]);
    },
    timeLimit,
  );
});

describe("conversation", () => {
  test(
    "system prompts stand anywhere, as a string or as blocks",
    async () => {
      const { messages } = await nodeBody(
        {
          system: [
            { type: "text", text: "be brief" },
            { type: "text", text: "be kind", cache_control: { type: "ephemeral" } },
          ],
        },
        [
          { role: "user", content: "one" },
          { role: "system", content: "the sun shines" },
          { role: "assistant", content: "two" },
          { role: "system", content: [{ type: "text", text: "it rains" }] },
        ],
      );
      const all = JSON.stringify(messages);
      for (const said of ["be brief", "be kind", "the sun shines", "it rains", "two"]) expect(all).toContain(said);
    },
    timeLimit,
  );

  test.each([
    ["a string", "sunny", "sunny"],
    ["text blocks", [{ type: "text", text: "sunny", cache_control: { type: "ephemeral" } }], "sunny"],
    ["a found tool", [{ type: "tool_reference", tool_name: "WebFetch" }], "WebFetch"],
    ["nothing", undefined, ""],
  ])(
    "a tool result that is %s",
    async (_, content, expected) => {
      const { messages } = await nodeBody({ tools: [weather] }, [
        { role: "user", content: "weather?" },
        { role: "assistant", content: [{ type: "text", text: "Let me see." }, call] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content }] },
      ]);
      expect(messages[1]).toMatchObject({
        content: "Let me see.",
        tool_calls: [{ id: "call_1", function: { name: "get_weather", arguments: '{"city":"Paris"}' } }],
      });
      expect(messages[2]).toMatchObject({ role: "tool", tool_call_id: "call_1" });
      expect(String(messages[2]?.["content"])).toContain(expected);
    },
    timeLimit,
  );

  test(
    "a failed tool says so to the model",
    async () => {
      const result = { type: "tool_result", tool_use_id: "call_1", content: "no such city", is_error: true };
      const { messages } = await nodeBody({ tools: [weather] }, [
        { role: "user", content: "weather?" },
        { role: "assistant", content: [call] },
        { role: "user", content: [result] },
      ]);
      expect(String(messages[2]?.["content"])).toMatch(/error[^]*no such city/i);
    },
    timeLimit,
  );

  test(
    "inline images reach the node from messages and from tool results",
    async () => {
      const told = await nodeBody({}, [{ role: "user", content: [picture, { type: "text", text: "what is it?" }] }]);
      expect(JSON.stringify(told.messages)).toContain(pictureUrl);
      const read = await nodeBody({ tools: [weather] }, [
        { role: "user", content: "look" },
        { role: "assistant", content: [call] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: [picture] }] },
      ]);
      expect(JSON.stringify(read.messages)).toContain(pictureUrl);
    },
    timeLimit,
  );

  test.each([
    ["a PDF", { type: "base64", media_type: "application/pdf", data: "JVBERi0=" }],
    ["text", { type: "text", media_type: "text/plain", data: "the document's words" }],
  ])(
    "a document that is %s is accepted",
    async (kind, source) => {
      const document = { type: "document", source, title: "Title", citations: { enabled: true } };
      const { messages } = await nodeBody({}, [{ role: "user", content: [document] }]);
      if (kind === "text") expect(JSON.stringify(messages)).toContain("the document's words");
    },
    timeLimit,
  );

  test.each([
    ["ours", "tg1."],
    ["foreign", "EqQBCkYIChgCKkDn"],
    ["empty", ""],
    ["absent", undefined],
  ])(
    "thinking that comes back reaches the node whatever its signature: %s",
    async (_, signature) => {
      const { messages } = await nodeBody({ thinking: { type: "adaptive" } }, [
        { role: "user", content: "one" },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "They count.", signature },
            { type: "redacted_thinking", data: "x" },
            { type: "text", text: "two" },
          ],
        },
      ]);
      expect(messages[1]).toMatchObject({ role: "assistant", content: "two", reasoning_content: "They count." });
    },
    timeLimit,
  );

  test(
    "conversations that differ in the billing header or in the form of a message are the same prompt",
    async () => {
      const prompt = async (hash: string, content: unknown) => {
        const header = `x-anthropic-billing-header: cc_version=2.1.329.${hash}; cc_entrypoint=cli;`;
        const system = [
          { type: "text", text: header },
          { type: "text", text: "be brief" },
        ];
        return (await nodeBody({ system }, [{ role: "user", content }])).messages.slice(0, -1);
      };
      const block = { type: "text", text: "hello", cache_control: { type: "ephemeral" } };
      expect(await prompt("a1b", [block])).toEqual(await prompt("9f0", "hello"));
    },
    timeLimit,
  );
});

describe("settings", () => {
  test.each([
    { thinking: { type: "enabled", budget_tokens: 1_024 } },
    { thinking: { type: "enabled", budget_tokens: 31_999, display: "omitted" } },
    { thinking: { type: "adaptive", display: "updates" } },
    { thinking: { type: "between_tools" } },
    { thinking: { type: "disabled" } },
    ...["low", "medium", "high", "xhigh", "max"].map((effort) => ({
      thinking: { type: "adaptive" },
      output_config: { effort },
    })),
  ])(
    "%j is accepted by both kinds of model, and sent on as a depth for hosted ones only",
    async (depth) => {
      const firstParty = await nodeBody(depth);
      expect(firstParty).not.toHaveProperty("reasoning_effort");
      expect(firstParty).not.toHaveProperty("chat_template_kwargs");
      const forwarded = await nodeBody({ model: hosted, ...depth });
      const named = "budget_tokens" in depth.thinking || "output_config" in depth || depth.thinking.type === "disabled";
      expect("reasoning_effort" in forwarded || "chat_template_kwargs" in forwarded).toBe(named);
    },
    timeLimit,
  );

  test.each([
    [0, 1],
    [1, 1],
    [4_096, 4_096],
    [65_536, 65_536],
    [128_000, 65_536],
    [undefined, 4_096],
  ])(
    "a budget of %p is moved to %p without an error, and sent where it limits the answer",
    async (given, sent) => {
      expect(await nodeBody({ model: hosted, max_tokens: given })).toMatchObject({ max_tokens: sent });
      expect((await nodeBody({ max_tokens: given }))["max_tokens"]).not.toBe(sent);
    },
    timeLimit,
  );

  test.each([
    ["output_config", (format: object) => ({ output_config: { format } })],
    ["output_format", (format: object) => ({ output_format: format })],
  ])(
    "a JSON schema in %s constrains the node's answer",
    async (_, place) => {
      const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };
      const body = await nodeBody(place({ type: "json_schema", schema }), [], "json");
      expect(body["response_format"]).toMatchObject({ type: "json_schema", json_schema: { schema } });
    },
    timeLimit,
  );

  test(
    "stop sequences, sampling and the system prompt are passed on; what nobody knows is not",
    async () => {
      const body = await nodeBody({
        model: hosted,
        stop_sequences: ["", "a", "b", "", "c", "d", "e"],
        temperature: 0.5,
        top_p: 0.9,
        top_k: 40,
        metadata: { user_id: '{"device":"d"}' },
        context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
        container: null,
        diagnostics: { previous_message_id: null },
        safeguards: [{ type: "dangerous_tool_use" }],
        service_tier: "auto",
        speed: "fast",
        id_slot: 3,
        chat_template: "x",
      });
      expect(body).toMatchObject({ stop: ["a", "b", "c", "d"], temperature: 0.5, top_p: 0.9, top_k: 40 });
      for (const field of ["metadata", "context_management", "container", "safeguards", "id_slot", "chat_template"]) {
        expect(body).not.toHaveProperty(field);
      }
    },
    timeLimit,
  );
});

describe("tools", () => {
  const names = (body: NodeBody): string[] =>
    ((body["tools"] ?? []) as { function: { name: string } }[]).map((tool) => tool.function.name);

  test(
    "a deferred tool is a tool like the others, one of the dialect's own servers is left out",
    async () => {
      const deferred = { ...other, defer_loading: true, input_examples: [{}], cache_control: { type: "ephemeral" } };
      const server = { type: "bash_20250124", name: "bash" };
      expect(names(await nodeBody({ tools: [weather, deferred, server] }))).toEqual(["get_weather", "other"]);
    },
    timeLimit,
  );

  test(
    "every choice is obeyed",
    async () => {
      const tools = [weather, other];
      const choosing = async (tool_choice: object, script: string) =>
        await nodeBody({ tools, tool_choice }, [], script);
      expect(names(await choosing({ type: "none" }, "text"))).toEqual([]);
      expect((await choosing({ type: "auto" }, "text"))["tool_choice"] ?? "auto").toBe("auto");
      expect((await choosing({ type: "any" }, "one-tool"))["tool_choice"]).toBe("required");
      const named = await choosing({ type: "tool", name: "get_weather" }, "forced-tool");
      expect(names(named)).toEqual(["get_weather"]);
    },
    timeLimit,
  );

  test(
    "the forced tool named json, by which the AI SDK asks for an object",
    async () => {
      const answer = { title: "Dune" };
      const steps = [
        callStart(0, "call_1", "json"),
        ...callArguments(0, JSON.stringify(answer)),
        ...finish("tool_calls"),
      ];
      await stack.node.define("json-tool", once(steps));
      const marker = stack.node.marker("json-tool");
      const json = { name: "json", description: "Respond with a JSON object.", input_schema: { type: "object" } };
      const tool_choice = { type: "any", disable_parallel_tool_use: true };
      const body = {
        model: "core-3",
        messages: [{ role: "user", content: `[[${marker}]]` }],
        tools: [json],
        tool_choice,
      };
      const reply = await post(stack, await stack.gateway.account(), body, { path });
      expect(await reply.json()).toMatchObject({
        content: [{ type: "tool_use", name: "json", input: answer }],
        stop_reason: "tool_use",
      });
    },
    timeLimit,
  );

  test.each([true, false])(
    "disable_parallel_tool_use yields one call, streamed: %p",
    async (stream) => {
      const marker = stack.node.marker("parallel-tools");
      const body = {
        model: "core-3",
        messages: [{ role: "user", content: `[[${marker}]]` }],
        tools: [weather],
        tool_choice: { type: "auto", disable_parallel_tool_use: true },
        stream,
      };
      const text = await (await post(stack, await stack.gateway.account(), body, { path })).text();
      expect(text.split('"type":"tool_use"')).toHaveLength(2);
    },
    timeLimit,
  );
});
