// What the messages dialect alone has: blocks of its own in the conversation, its ways to ask for thoughts and forms, the
// count with which a stream begins, and its recorded replies.
import { describe, expect, test } from "bun:test";
import { asking, dialectOf, hosted, toolsOf, weather } from "../fixtures/dialects.ts";
import { eventually } from "../fixtures/eventually.ts";
import { goldenMessages } from "../fixtures/messages-captures.ts";
import { messagesEventsOf } from "../fixtures/messages-events.ts";
import { answered, type Asking, type NodeBody, post } from "../fixtures/requests.ts";
import { callArguments, callStart, finish, once, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";

const dialect = dialectOf.messages;
const path = dialect.endpoint;
const stack = useStack();

const ask = (script: string, more: object = {}, asked: Asking = {}) => answered(stack, dialect, script, more, asked);
const sent = async (more: object = {}): Promise<NodeBody> => (await ask("text", more)).sent;
const sentOf = async (raw: readonly object[], more: object = {}): Promise<NodeBody["messages"]> =>
  (await ask("text", more, { raw })).sent.messages;
const call = { type: "tool_use", id: "call_1", name: "get_weather", input: { city: "Paris" } };

describe("conversation", () => {
  test.each([
    [
      "text with a mark for caches",
      { content: [{ type: "text", text: "sunny", cache_control: { type: "ephemeral" } }] },
      /^sunny$/,
    ],
    ["a found tool", { content: [{ type: "tool_reference", tool_name: "WebFetch" }] }, /WebFetch/],
    ["nothing", {}, /^$/],
    ["an error", { content: "no such city", is_error: true }, /error[^]*no such city/i],
  ])("a tool's result that is %s", async (_, result, expected) => {
    const turns = [
      { role: "user", content: "weather?" },
      { role: "assistant", content: [call] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", ...result }] },
    ];
    const messages = await sentOf(turns, toolsOf(dialect, weather));
    expect(messages[2]).toMatchObject({ role: "tool", tool_call_id: "call_1" });
    expect(String(messages[2]!["content"])).toMatch(expected);
  });

  test("a document that is text reaches the node", async () => {
    const source = { type: "text", media_type: "text/plain", data: "the document's words" };
    const content = [{ type: "document", source, title: "Title", citations: { enabled: true } }];
    expect(JSON.stringify(await sentOf([{ role: "user", content }]))).toContain("the document's words");
  });

  test.each(["tg1.", "EqQBCkYIChgCKkDn", "", undefined])(
    "thinking that comes back reaches the node whatever its signature: %p",
    async (signature) => {
      const content = [
        { type: "thinking", thinking: "They count.", signature },
        { type: "redacted_thinking", data: "x" },
        { type: "text", text: "two" },
      ];
      const turns = [
        { role: "user", content: "one" },
        { role: "assistant", content },
      ];
      const messages = await sentOf(turns, { thinking: { type: "adaptive" } });
      expect(messages[1]).toMatchObject({ role: "assistant", content: "two", reasoning_content: "They count." });
    },
  );

  test("Claude Code's billing line, a block of its own, is not for the model", async () => {
    const lines = ["x-anthropic-billing-header: cc_version=2.1.329.a1b; cc_entrypoint=cli;", "be brief"];
    const { messages } = await sent({ system: lines.map((text) => ({ type: "text", text })) });
    expect(messages[0]).toEqual({ role: "system", content: "be brief" });
  });
});

describe("settings", () => {
  test.each([
    [{ type: "enabled", budget_tokens: 1_024 }, true],
    [{ type: "enabled", budget_tokens: 31_999, display: "omitted" }, true],
    [{ type: "adaptive", display: "updates" }, false],
    [{ type: "between_tools" }, false],
    [{ type: "disabled" }, true],
  ])(
    "thinking %j is accepted by both kinds of model, and sent on for hosted ones if it names a depth: %p",
    async (thinking, named) => {
      const hasDepth = (body: NodeBody): boolean => "reasoning_effort" in body || "chat_template_kwargs" in body;
      expect(hasDepth(await sent({ thinking }))).toBe(false);
      expect(hasDepth(await sent({ model: hosted, thinking }))).toBe(named);
    },
  );

  test("a JSON schema in output_format, where a beta had it, constrains the node's answer", async () => {
    const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };
    const { sent } = await ask("json", { output_format: { type: "json_schema", schema } });
    expect(sent["response_format"]).toMatchObject({ type: "json_schema", json_schema: { schema } });
  });

  test("the forced tool named json, by which the AI SDK asks for an object", async () => {
    const answer = { title: "Dune" };
    const steps = [
      callStart(0, "call_1", "json"),
      ...callArguments(0, JSON.stringify(answer)),
      ...finish("tool_calls"),
    ];
    await stack.node.define("json-tool", once(steps));
    const tools = [{ name: "json", description: "Respond with a JSON object.", input_schema: { type: "object" } }];
    const { told } = await ask("json-tool", { tools, tool_choice: { type: "any", disable_parallel_tool_use: true } });
    expect(told).toMatchObject({ calls: [{ name: "json", given: answer }], ending: "tool_use" });
  });

  test("the sequence that ended an answer is told", async () => {
    const { written } = await ask("stop-sequence", { stop_sequences: ["END"] });
    expect(JSON.parse(written)).toMatchObject({ stop_reason: "stop_sequence", stop_sequence: "END" });
    expect(JSON.parse((await ask("text", { stop_sequences: ["END"] })).written).stop_sequence).toBeNull();
  });
});

// The node's first word is not kept back for the count: where it comes sooner, the stream begins with an estimate, and its
// last event has the node's own numbers in any case.
test("a stream that is counted before its first word begins with the number that the counting endpoint gives", async () => {
  const account = await stack.gateway.account();
  await stack.node.define("later", once({ waitMs: 300 }, text("Hi ", "there!"), finish("stop")));
  const body = asking(dialect, `hello [[${stack.node.marker("later")}]]`, { system: "Answer briefly. ".repeat(40) });
  const count = await post(stack, account, body, { path: `${path}/count_tokens` });
  const { input_tokens: counted } = (await count.json()) as { input_tokens: number };
  expect(counted).toBeGreaterThan(100);
  const seen = new Set<number>();
  await eventually("a stream is counted before its first word", async () => {
    const written = await (await post(stack, account, { ...body, stream: true }, { path })).text();
    const start = messagesEventsOf(written).find(({ type }) => type === "message_start");
    seen.add(start!["message"].usage.input_tokens);
    return seen.has(counted);
  });
  expect([...seen].filter((tokens) => !(tokens > 100))).toEqual([]);
});

test("a hosted model's usage splits cached from uncached input, at the start of a stream too", async () => {
  const [start] = messagesEventsOf((await ask("text", { model: hosted, stream: true })).written);
  expect(start?.["message"].usage).toMatchObject({ cache_creation_input_tokens: 0, cache_read_input_tokens: 0 });
});

/** Ids, model, usage and signature are the reply's own; pings may stand anywhere. */
const comparable = (wire: string): string =>
  wire
    .replaceAll('event: ping\ndata: {"type":"ping"}\n\n', "")
    .replaceAll(/"id":"(?:msg|toolu|call)_[^"]*"/g, '"id":"id"')
    .replaceAll(/"model":"[^"]*"/g, '"model":"m"')
    .replaceAll(/"usage":\{[^}]*\}/g, '"usage":{}')
    .replaceAll(/"signature":"[^"]+"/g, '"signature":"s"');

test.each([
  ["messages_text", "reasoning-text"],
  ["messages_max_tokens", "length"],
  ["messages_stop_sequence", "stop-sequence"],
] as const)("recorded replies: %s is byte for byte what every client read correctly", async (golden, script) => {
  const { written } = await ask(script, { stream: true, stop_sequences: ["END"], thinking: { type: "adaptive" } });
  expect(comparable(written)).toBe(comparable(goldenMessages[golden]));
});
