// Replies of the responses dialect: streams event by event and byte by byte, failures, compaction, the Open Responses
// suite's requirements, and clients that leave.
import { describe, expect, test } from "bun:test";
import { largeBodyMinBytes } from "../../src/core/limits.ts";
import { dialectOf, firstParty, withoutIds } from "../fixtures/dialects.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { pixelUrl } from "../fixtures/pictures.ts";
import { answered, type Asking, post, refusalOf } from "../fixtures/requests.ts";
import {
  expectOrderedResponse,
  expectResponseShape,
  type ResponseBody,
  responseEvents,
} from "../fixtures/response-events.ts";
import { goldenResponses } from "../fixtures/responses-captures.ts";
import { callArguments, callStart, finish, once, reasoning, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";

const dialect = dialectOf.responses;
const path = dialect.endpoint;
const stack = useStack();

const ask = (script: string, more: object = {}, asked: Asking = {}) => answered(stack, dialect, script, more, asked);
const bash = dialect.tool({
  name: "bash",
  description: "run",
  strict: false,
  parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
});
/** The response of a body, streamed or not. */
async function respond(account: Account, body: object, stream = false): Promise<ResponseBody> {
  const reply = await post(stack, account, { model: firstParty, ...body, stream }, { path });
  const written = await reply.text();
  expect(reply.status, written).toBe(200);
  if (stream) return expectOrderedResponse(written);
  const response = JSON.parse(written) as ResponseBody;
  expectResponseShape(response);
  return response;
}

test("a WebSocket without a key is refused before it opens", async () => {
  const headers = { upgrade: "websocket", connection: "upgrade", "openai-beta": "responses_websockets=2026-02-06" };
  const reply = await fetch(`${stack.gateway.url}${path}`, { headers });
  expect(await refusalOf(dialect, reply)).toMatchObject({ status: 401 });
});

test("core-coder-1 is paid in tokens here, not in calls", async () => {
  const { account } = await ask("text", { model: "core-coder-1" });
  expect((await stack.gateway.show(account.email)).coder_calls.used).toBe(0);
  // 140 tokens at $8.00, of a balance at $5.00 per million
  expect(await stack.gateway.usage(account.email)).toMatchObject([{ billed_tokens: 224 }]);
});

test("reasoning comes back to the node: our own sealed, as a summary, without an id; what is not ours is dropped", async () => {
  const { written } = await ask("reasoning-text", { include: ["reasoning.encrypted_content"] });
  const [own] = (JSON.parse(written) as ResponseBody).output;
  expect(own).toMatchObject({ type: "reasoning" });
  expect(own!["encrypted_content"]).toBeString();
  const rows = [
    [own!, true],
    [{ ...own!, id: undefined, summary: [] }, true],
    [{ type: "reasoning", summary: [{ type: "summary_text", text: "Let me think." }] }, true],
    [{ ...own!, encrypted_content: "gAAAAABgarbage", summary: [] }, false],
    [{ type: "reasoning", id: "rs_other", summary: [], content: null, encrypted_content: null }, false],
  ] as const;
  for (const [item, found] of rows) {
    const raw = [{ role: "user", content: "hi" }, item, { role: "assistant", content: "x" }];
    const { sent } = await ask("text", {}, { raw });
    expect(JSON.stringify(sent.messages).includes("Let me think.")).toBe(found);
  }
});

test("text.format is repeated without its schema", async () => {
  const schema = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
  const { written } = await ask("text", {
    text: { format: { type: "json_schema", name: "a", strict: true, schema }, verbosity: "low" },
  });
  expect(JSON.parse(written)).toMatchObject({ text: { format: { type: "json_schema", name: "a", schema: null } } });
});

describe("tools", () => {
  const wait = { type: "function", name: "wait", parameters: { type: "object" } };
  const namespace = { type: "namespace", name: "agents", description: "", tools: [wait] };
  const custom = { type: "custom", name: "apply_patch", description: "patches" };

  test("namespaces are flat for the model, custom tools are functions", async () => {
    const { sent } = await ask("text", { tools: [bash, namespace, custom] });
    expect(sent.tools!.map((tool) => tool.function.name)).toEqual(["bash", "agents__wait", "apply_patch"]);
  });

  test.each([false, true])(
    "calls come back under the names and in the form that the client knows, streamed: %p",
    async (stream) => {
      await stack.node.define(
        "responses-names",
        once(
          callStart(0, "call_n", "agents__wait"),
          callArguments(0, '{"id":', "1}"),
          callStart(1, "call_c", "apply_patch"),
          callArguments(1, '{"input":"*** Be', 'gin\\n"}'),
          finish("tool_calls"),
        ),
      );
      const input = `[[${stack.node.marker("responses-names")}]]`;
      const { output } = await respond(await stack.gateway.account(), { input, tools: [namespace, custom] }, stream);
      expect(output).toMatchObject([
        { type: "function_call", call_id: "call_n", namespace: "agents", name: "wait", arguments: '{"id":1}' },
        { type: "custom_tool_call", call_id: "call_c", name: "apply_patch", input: "*** Begin\n" },
      ]);
    },
  );
});

test.each([
  ["responses_text", [...reasoning("Let me th", "ink."), ...text("Hi th", "ere!")], "stop", {}],
  [
    "responses_tools",
    [
      ...reasoning("Two calls", "."),
      callStart(0, "call_1", "bash"),
      ...callArguments(0, '{"command', '":"echo a', '"}'),
      callStart(1, "call_2", "bash"),
      ...callArguments(1, '{"command', '":"echo b', '"}'),
    ],
    "tool_calls",
    { tools: [bash] },
  ],
  ["responses_incomplete", text("Hi th", "ere!"), "length", {}],
] as const)(
  "recorded replies: %s is what every client read correctly, streamed and not",
  async (golden, steps, reason, more) => {
    await stack.node.define(golden, once([...steps], finish(reason)));
    const body = { store: false, include: ["reasoning.encrypted_content"], ...more };
    const { events } = responseEvents((await ask(golden, { stream: true, ...body })).written);
    // the recordings are older than the name of a call whose arguments are complete
    const unnamed = events.map((event) =>
      event.type.endsWith("arguments.done") ? { ...event, name: undefined } : event,
    );
    expect(comparable(unnamed)).toEqual(comparable(responseEvents(goldenResponses[golden] as string).events));
    const reply = JSON.parse((await ask(golden, body)).written);
    expect(comparable(reply)).toEqual(comparable(goldenResponses[`${golden}__nonstream`]));
  },
);

describe("compaction", () => {
  const user = { type: "message", role: "user", content: [{ type: "input_text", text: "remember 42" }] };

  test.each([true, false])(
    "a trigger as the last item yields exactly one compaction item, streamed: %p",
    async (stream) => {
      const account = await stack.gateway.account();
      const marker = stack.node.marker("text");
      const input = [user, { role: "assistant", content: `[[${marker}]] noted` }, { type: "compaction_trigger" }];
      const response = await respond(account, { input, tools: [bash] }, stream);
      expect(response.output.map(({ type }) => type)).toEqual(["compaction"]);
      expect(response.output[0]!["encrypted_content"]).toBeString();
      expect(JSON.stringify(response)).not.toContain("Hi there!"); // sealed

      const next = stack.node.marker("text");
      await respond(account, { input: [...response.output, { role: "user", content: `[[${next}]]` }] });
      expect(JSON.stringify((await stack.node.request(next)).body)).toContain("Hi there!");
    },
  );

  test.each([0, largeBodyMinBytes])(
    "POST /v1/responses/compact replies with the user's messages and a compaction, usable as input; no model is 400 (%i)",
    async (padding) => {
      const account = await stack.gateway.account();
      const compact = { path: "/v1/responses/compact" };
      const earlier = await respond(account, { input: "remember blue" });
      const input = [user, { role: "assistant", content: "x".repeat(padding) }, { ...user, content: "and red" }];
      const body = { model: "core-3", input, previous_response_id: earlier.id, prompt_cache_key: "k" };
      const reply = await post(stack, account, body, compact);
      const compaction = (await reply.json()) as ResponseBody;
      expect(reply.status).toBe(200);
      expect(compaction).toMatchObject({ object: "response.compaction", usage: { total_tokens: 140 } });
      const { encrypted_content } = compaction.output.at(-1)!;
      expect(compaction.output).toMatchObject([
        { type: "message", role: "user", content: [{ type: "input_text", text: "remember blue" }] },
        { type: "message", role: "user" },
        { type: "message", role: "user", content: [{ type: "input_text", text: "and red" }] },
        { type: "compaction", encrypted_content: expect.any(String) },
      ]);
      expect(encrypted_content).not.toContain("x".repeat(9));
      await respond(account, { input: [...compaction.output, { role: "user", content: "go on" }] });
      const { model: _, ...without } = body;
      expect(await refusalOf(dialect, await post(stack, account, without, compact))).toMatchObject({ status: 400 });
    },
  );
});

describe("the cases of the Open Responses suite", () => {
  const message = (role: string, content: unknown, more: object = {}) => ({ type: "message", role, content, ...more });
  const hello = message("user", "Say hello in exactly 3 words.");
  const image = { type: "input_image", image_url: pixelUrl };
  const tool = {
    type: "function",
    name: "get_weather",
    description: "Get the current weather for a location",
    parameters: { type: "object", properties: { location: { type: "string" } }, required: ["location"] },
  };

  test.each([
    ["basic-response", { input: [hello] }],
    [
      "assistant-phase",
      {
        input: [
          message("assistant", "Looking.", { phase: "commentary" }),
          message("assistant", "Done.", { phase: "final_answer" }),
          hello,
        ],
      },
    ],
    ["system-prompt", { input: [message("system", "You are a pirate."), hello] }],
    ["image-input", { input: [message("user", [{ type: "input_text", text: "What is this?" }, image])] }],
    ["multi-turn", { input: [message("user", "I am Alice."), message("assistant", "Hello Alice!"), hello] }],
  ])("%s, and as a stream", async (_, body) => {
    const account = await stack.gateway.account();
    for (const stream of [false, true]) {
      const { status, output } = await respond(account, body, stream);
      expect(status).toBe("completed");
      expect(output).not.toBeEmpty();
    }
  });

  test("tool-calling with a tool that has no `strict`", async () => {
    const response = JSON.parse((await ask("one-tool", { tools: [tool] })).written);
    expect(response["output"]).toContainEqual(expect.objectContaining({ type: "function_call" }));
    expect(response["tools"]).toEqual([{ ...tool, strict: null }]);
  });
});

/** The convenience key, and what the recordings had of another model and other calls, apart. */
const comparable = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(withoutIds(value)), (key, inner: unknown) =>
    key === "output_text" || key === "call_id" || key === "model" ? undefined : inner,
  );
