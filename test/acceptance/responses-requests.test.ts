// Requests of the responses dialect that real clients send, and what of each reaches the node.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { post } from "../fixtures/requests.ts";
import { expectOrderedResponse, expectResponseShape, type ResponseBody } from "../fixtures/response-events.ts";
import { responsesCaptures } from "../fixtures/responses-captures.ts";
import { callArguments, callStart, finish, once } from "../fixtures/scripts.ts";
import { Stack } from "../fixtures/stack.ts";

const timeLimit = 30_000;
const path = "/v1/responses";
const hosted = "open-05-3BIT-REAP";
/** A first-party tier whose budget limits the answer, unlike that of core-3. */
const limited = "core-1.6-lite";
let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start();
}, timeLimit);
afterAll(() => stack[Symbol.asyncDispose]());
afterEach(() => stack.gateway.expectNothingReserved(), timeLimit);

type NodeBody = Record<string, unknown> & { messages: { role: string; [field: string]: unknown }[] };
type Answered = Readonly<{ sent: NodeBody; response: ResponseBody }>;

/** Sends items with a last user message that holds the marker, expects 200; what the node was asked and the reply. */
async function answered(more: object, items: readonly object[] = [], script = "text"): Promise<Answered> {
  const marker = stack.node.marker(script);
  const input = [...items, { role: "user", content: `hello [[${marker}]]` }];
  const reply = await post(stack, await stack.gateway.account(), { model: "core-3", input, ...more }, { path });
  const text = await reply.text();
  expect(reply.status, text).toBe(200);
  const response = text.startsWith("{") ? (JSON.parse(text) as ResponseBody) : expectOrderedResponse(text);
  return { sent: (await stack.node.request(marker)).body as NodeBody, response };
}

const weather = { type: "function", name: "get_weather", parameters: { type: "object" } };
const other = { type: "function", name: "other", parameters: { type: "object" } };
const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";

describe("captured requests", () => {
  test.each(responsesCaptures.map((capture) => [capture.name, capture] as const))(
    "%s",
    async (_, { body }) => {
      const reply = await post(stack, await stack.gateway.account(), { ...body, model: "core-3" }, { path });
      const text = await reply.text();
      expect(reply.status, text).toBe(200);
      const response = body["stream"] === true ? expectOrderedResponse(text) : (JSON.parse(text) as ResponseBody);
      if (body["stream"] !== true) expectResponseShape(response);
      const compacts = (body["input"] as { type?: string }[]).at(-1)?.type === "compaction_trigger";
      expect(response.output.map(({ type }) => type)).toEqual([compacts ? "compaction" : "message"]);
      const asksForJson = (body["text"] as { format?: unknown } | undefined)?.format !== undefined;
      if (asksForJson) expect(JSON.parse(response["output_text"] as string)).toBeObject();
      else if (!compacts) expect(response["output_text"]).toBe("Hi there!");
    },
    timeLimit,
  );
});

describe("conversation", () => {
  test(
    "system and developer items stand anywhere, after the instructions",
    async () => {
      const { sent } = await answered({ instructions: "first" }, [
        { role: "developer", content: "second" },
        { role: "user", content: [{ type: "input_text", text: "hi" }] },
        { role: "assistant", content: "hello" },
        { type: "message", role: "system", content: [{ type: "input_text", text: "third" }] },
      ]);
      const all = JSON.stringify(sent.messages);
      for (const word of ["first", "second", "third"]) expect(all).toContain(word);
      // templates take one system turn, at the start; what stands in the middle is said there in other words
      expect(all.indexOf("first")).toBeLessThan(all.indexOf("second"));
      expect(all.indexOf("second")).toBeLessThan(all.indexOf("third"));
      expect(sent.messages[0]?.role).toBe("system");
      expect(sent.messages.at(-1)).toMatchObject({ role: "user", content: expect.stringContaining("hello [[") });
    },
    timeLimit,
  );

  test.each([
    ["a string", "sunny, 21 C", "sunny, 21 C"],
    [
      "parts",
      [
        { type: "input_text", text: "sunny, " },
        { type: "input_text", text: "21 C" },
      ],
      "sunny, \n21 C",
    ],
  ])(
    "a tool's output as %s",
    async (_, output, expected) => {
      const { sent } = await answered({ tools: [weather] }, [
        { role: "user", content: "weather?" },
        { type: "function_call", call_id: "call_1", name: "get_weather", arguments: "{}" },
        { type: "function_call_output", call_id: "call_1", output },
      ]);
      expect(sent.messages[1]).toMatchObject({ tool_calls: [{ id: "call_1", function: { name: "get_weather" } }] });
      expect(sent.messages[2]).toMatchObject({ role: "tool", tool_call_id: "call_1", content: expected });
    },
    timeLimit,
  );

  test(
    "images reach the node from messages and from tool outputs, inline and by address",
    async () => {
      const { sent } = await answered({ tools: [weather] }, [
        {
          role: "user",
          content: [
            { type: "input_text", text: "look" },
            { type: "input_image", image_url: pixel, detail: "high" },
            { type: "input_image", image_url: pixel },
          ],
        },
        { type: "function_call", call_id: "call_1", name: "get_weather", arguments: "{}" },
        { type: "function_call_output", call_id: "call_1", output: [{ type: "input_image", image_url: pixel }] },
      ]);
      expect(JSON.stringify(sent.messages).split(pixel)).toHaveLength(4);
    },
    timeLimit,
  );

  test(
    "a file is accepted",
    async () => {
      const file = { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" };
      await answered({}, [{ role: "user", content: [{ type: "input_text", text: "read" }, file] }]);
    },
    timeLimit,
  );

  test(
    "reasoning comes back to the node: our own sealed, as a summary, without an id; what is not ours is dropped",
    async () => {
      const include = ["reasoning.encrypted_content"];
      const first = await answered({ include }, [], "reasoning-text");
      const [own] = first.response.output;
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
        const { sent } = await answered({}, [
          { role: "user", content: "hi" },
          item,
          { role: "assistant", content: "x" },
        ]);
        expect(JSON.stringify(sent.messages).includes("Let me think.")).toBe(found);
      }
    },
    timeLimit,
  );
});

describe("settings", () => {
  test.each(["off", "none", "minimal", "low", "medium", "high", "xhigh", "max"])(
    "the depth %s is accepted on both kinds of model, and sent on for hosted ones only",
    async (effort) => {
      const depth = async (model: string): Promise<string> => {
        const { sent } = await answered({ model, reasoning: { effort, summary: "auto" } });
        return JSON.stringify([sent["reasoning_effort"], sent["chat_template_kwargs"]]);
      };
      expect(await depth("core-3")).toBe("[null,null]");
      expect(await depth(hosted)).not.toBe("[null,null]");
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
    async (max_output_tokens, expected) => {
      expect((await answered({ model: limited, max_output_tokens })).sent["max_tokens"]).toBe(expected);
      expect((await answered({ model: "core-3", max_output_tokens })).sent["max_tokens"]).toBeUndefined();
    },
    timeLimit,
  );

  test(
    "text.format constrains the node's answer",
    async () => {
      const schema = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
      const text = { format: { type: "json_schema", name: "a", strict: true, schema }, verbosity: "low" };
      const { sent, response } = await answered({ text });
      expect(JSON.stringify(sent["response_format"])).toContain(JSON.stringify(schema));
      expect(response).toMatchObject({ text: { format: { type: "json_schema", name: "a", schema: null } } });
      const object = await answered({ text: { format: { type: "json_object" } } });
      expect(object.sent["response_format"]).toBeDefined();
    },
    timeLimit,
  );
});

describe("tools", () => {
  const namespace = { type: "namespace", name: "agents", description: "", tools: [{ ...other, name: "wait" }] };
  const custom = { type: "custom", name: "apply_patch", description: "patches" };
  const names = ({ sent }: Answered): string[] =>
    ((sent["tools"] ?? []) as { function: { name: string } }[]).map((tool) => tool.function.name);

  test(
    "namespaces are flat for the model, custom tools are functions, hosted ones are left out, deferred ones stay",
    async () => {
      const deferred = { ...other, name: "later", defer_loading: true };
      const hostedTools = ["image_generation", "tool_search", "local_shell", "computer"];
      const tools = [weather, namespace, custom, deferred, ...hostedTools.map((type) => ({ type }))];
      expect(names(await answered({ tools }))).toEqual(["get_weather", "agents__wait", "apply_patch", "later"]);
    },
    timeLimit,
  );

  test(
    "calls come back under the names and in the form that the client knows, streamed and not",
    async () => {
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
      for (const stream of [false, true]) {
        const { response } = await answered({ tools: [namespace, custom], stream }, [], "responses-names");
        expect(response.output).toMatchObject([
          { type: "function_call", call_id: "call_n", namespace: "agents", name: "wait", arguments: '{"id":1}' },
          { type: "custom_tool_call", call_id: "call_c", name: "apply_patch", input: "*** Begin\n" },
        ]);
      }
    },
    timeLimit,
  );

  test.each([
    ["auto", ["get_weather", "other"]],
    ["required", ["get_weather", "other"]],
    ["none", []],
    [{ type: "function", name: "get_weather" }, ["get_weather"]],
    [{ type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "other" }] }, ["other"]],
  ])(
    "the choice %j is obeyed",
    async (tool_choice, offered) => {
      const script = tool_choice === "none" || tool_choice === "auto" ? "text" : "forced-tool";
      expect(names(await answered({ tools: [weather, other], tool_choice }, [], script))).toEqual(offered);
    },
    timeLimit,
  );

  test.each([true, false])(
    "parallel_tool_calls: false yields one call, streamed: %p",
    async (stream) => {
      const body = { tools: [weather], parallel_tool_calls: false, stream };
      const { response } = await answered(body, [], "parallel-tools");
      expect(response.output.filter(({ type }) => type === "function_call")).toHaveLength(1);
    },
    timeLimit,
  );

  test.each([
    { type: "web_search", external_web_access: false },
    { type: "web_search" },
    { type: "web_search_preview" },
    { type: "web_search_2025_08_26" },
  ])(
    "%j is no error, and no search where none is configured",
    async (tool) => {
      const { sent, response } = await answered({ tools: [weather, tool] });
      expect(JSON.stringify(sent)).not.toContain("web_search");
      expect(response["output_text"]).toBe("Hi there!");
    },
    timeLimit,
  );
});
