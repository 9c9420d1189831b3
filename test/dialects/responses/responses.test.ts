// Requests of the responses dialect: what is read, what is refused, and what real clients send.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { embeddedCatalog } from "../../../src/core/catalog.ts";
import { responsesDialect } from "../../../src/dialects/responses/responses.ts";
import { echoOf } from "../../../src/dialects/responses/response-object.ts";
import { packRequest } from "../../../src/dialects/responses/request.ts";
import type { ResponsesAsk } from "../../../src/dialects/responses/body.ts";
import { sealingKeyBytes } from "../../../src/core/limits.ts";
import { Sealer } from "../../../src/dialects/request/sealed-content.ts";
import { type Earlier, type Item, referencesOf } from "../../../src/dialects/stored-responses.ts";
import { anySearch } from "../../../src/dialects/request/search-request.ts";
import { isRefusal, messageOf, refuse } from "../../../src/core/refusals.ts";
import type { Refusal } from "../../../src/core/types.ts";
import { responsesCaptures } from "../../fixtures/responses-captures.ts";
import { pixelUrl } from "../../fixtures/pictures.ts";
import { atRoute, readBody } from "../../fixtures/reading.ts";

const catalog = embeddedCatalog();
const sealingKey = new Uint8Array(sealingKeyBytes).fill(1);
const sealer = new Sealer(sealingKey);
const options = { sealingKey, clock: { wall: () => 1_795_200_002_000, monotonic: () => 0 }, storesResponses: true };
const dialect = responsesDialect(options);
const hello = { model: "core-3", input: "hello" };

const read = (body: object, earlier?: Earlier): ResponsesAsk | Refusal =>
  readBody<ResponsesAsk>(dialect, { ...hello, ...body }, JSON.stringify(body).length, catalog, earlier);

function ask(body: object, earlier?: Earlier): ResponsesAsk {
  const result = read(body, earlier);
  if (isRefusal(result)) throw new Error(messageOf(result));
  return result;
}

function refusal(body: object): string {
  const result = read(body);
  if (!isRefusal(result)) throw new Error("was accepted");
  return `${result.refusal}: ${messageOf(result)}`;
}

test.each(["hello", "", ' a "quote"\n\u{1f600} \ud83d'])(
  "a text %j is read and kept like the item for which it stands",
  (text) => {
    const items = [{ type: "message", role: "user", content: [{ type: "input_text", text }] }];
    const [told, meant] = [ask({ input: text }), ask({ input: items })];
    expect(told.turns).toEqual(meant.turns);
    expect(told.input).toBe(JSON.stringify(meant.input));
    expect(packRequest(told).ask).toMatchObject({ input: JSON.stringify(items) });
    expect(packRequest(meant).ask).toMatchObject({ input: JSON.stringify(items) });
  },
);

const turns = (...input: Item[]) => ask({ input }).turns;
const user = { role: "user", content: "hi" };
const userTurn = { role: "user" as const, content: "hi" };
const echo = (body: object): Record<string, unknown> => JSON.parse(`{${ask(body).echo}}`);

describe("requests of real clients", () => {
  test.each(responsesCaptures.map(({ name, body }) => [name, body] as const))("%s is read", (_, body) => {
    const model = catalog.models.has(body["model"] as string) ? body["model"] : "core-3";
    const result = ask({ ...body, model });
    expect(result.turns.length).toBeGreaterThan(0);
    const names = result.tools.map((tool) => tool.name);
    expect(new Set(names).size).toBe(names.length);
  });

  test("Codex's tool round becomes an assistant turn with its call and a tool turn; foreign reasoning is dropped", () => {
    const capture = responsesCaptures.find(({ name }) => name === "codex ns request 2")!;
    const result = ask(capture.body);
    expect(result.turns.slice(-2)).toEqual([
      {
        role: "assistant",
        content: null,
        reasoning: null,
        calls: [
          {
            id: "call_rec1",
            name: "multi_agent_v1__wait_agent",
            arguments: '{"targets":["x"],"timeout_ms":1000}',
          },
        ],
      },
      { role: "tool", callId: "call_rec1", content: expect.stringContaining("invalid agent id x") },
    ]);
    expect(result.tools.map((tool) => tool.name)).toContain("multi_agent_v1__wait_agent");
    expect(result).toMatchObject({ webSearch: anySearch, sealsReasoning: true, parallelToolCalls: true, store: false });
  });

  test("Codex's tools in an additional_tools item are offered, custom ones too", () => {
    const { body } = responsesCaptures.find(({ name }) => name === "codex gpt-6-sol request 1")!;
    const result = ask({ ...body, model: "core-3" });
    expect(result.tools.map((tool) => tool.name)).toContain("functions__exec");
    expect(result.offered.origin("functions__exec")).toEqual({ kind: "custom", namespace: "functions", name: "exec" });
    expect(result.parallelToolCalls).toBe(false);
  });

  test("Codex's image results stay images", () => {
    const { body } = responsesCaptures.find(({ name }) => name === "codex viewimg request 2")!;
    expect(ask(body).turns.at(-1)).toEqual({
      role: "tool",
      callId: "call_rec1",
      content: [{ kind: "image", url: expect.stringContaining("data:image/png"), detail: "high" }],
    });
  });

  test("a compaction_trigger at the end asks for a summary without tools", () => {
    const { body } = responsesCaptures.find(({ name }) => name === "codex bcompact request 2")!;
    const result = ask(body);
    expect(result).toMatchObject({
      compacts: "in a response",
      tools: [],
      toolChoice: "none",
      webSearch: null,
      format: null,
    });
    expect(result.turns.at(-1)).toEqual({ role: "user", content: expect.stringContaining("handover note") });
  });
});

describe("settings", () => {
  test.each([
    [{}, 4096],
    [{ max_output_tokens: null }, 4096],
    [{ max_output_tokens: 0 }, 1],
    [{ max_output_tokens: 128_000 }, 65_536],
    [{ model: "core-coder-1" }, 4096],
    [{ model: "core-coder-1", max_output_tokens: 9_000 }, 9_000],
  ])("%p reserves %p tokens", (body, tokens) => {
    expect(ask(body).outputTokensMax).toBe(tokens);
  });

  test("every depth that clients send is read, and echoed in the schema's words", () => {
    const depths = ["off", "none", "minimal", "low", "medium", "high", "xhigh", "max"];
    expect(depths.map((effort) => ask({ reasoning: { effort } }).effort)).toEqual([
      "off",
      "off",
      "minimal",
      "low",
      "medium",
      "high",
      "max",
      "max",
    ]);
    expect(depths.map((effort) => (echo({ reasoning: { effort } })["reasoning"] as { effort: string }).effort)).toEqual(
      ["none", "none", "low", "low", "medium", "high", "xhigh", "xhigh"],
    );
    expect(echo({ reasoning: { summary: "auto", context: "all_turns" } })["reasoning"]).toEqual({
      effort: null,
      summary: "auto",
    });
    expect(refusal({ reasoning: { effort: "extreme" } })).toStartWith("malformed: reasoning.effort must be one of off");
  });

  test("sampling settings are passed on, and echoed with their defaults", () => {
    expect(ask({ temperature: 0, top_p: 0.5, presence_penalty: null, user: "u" }).sampling).toEqual({
      temperature: 0,
      top_p: 0.5,
    });
    expect(echo({ temperature: 0, top_p: null })).toMatchObject({ temperature: 0, top_p: 1, presence_penalty: 0 });
  });

  test("a format is read for models that have it, and echoed without its schema", () => {
    const schema = { type: "object", properties: { title: { type: "string" } } };
    const text = { format: { type: "json_schema", name: "t", strict: true, schema }, verbosity: "low" };
    expect(ask({ text }).format).toEqual({ kind: "json_schema", name: "t", schema, strict: true });
    expect(echo({ text })["text"]).toEqual({
      format: { type: "json_schema", name: "t", description: null, schema: null, strict: true },
    });
    expect(ask({ text: { format: { type: "json_object" } } }).format).toEqual({ kind: "json_object" });
    expect(ask({ text: { verbosity: "high" } }).format).toBeNull();
    expect(refusal({ model: "open-08-W4A16-AUTOROUND-REAP", text })).toBe(
      "malformed: text.format: the model open-08-W4A16-AUTOROUND-REAP does not support json_schema",
    );
    expect(refusal({ model: "open-09-W4A16-AUTOROUND-REAP", text })).toContain("does not support json_schema");
    expect(refusal({ text: { format: { type: "xml" } } })).toContain("text.format.type must be one of");
    expect(refusal({ text: { format: { type: "json_schema" } } })).toContain("text.format.schema must be");
  });

  test("function tools are echoed with description and strict filled in, others as they came", () => {
    const tools = [
      { type: "function", name: "f", parameters: { type: "object" } },
      { type: "web_search", external_web_access: false },
    ];
    expect(echo({ tools })["tools"]).toEqual([
      { type: "function", name: "f", parameters: { type: "object" }, description: null, strict: null },
      { type: "web_search", external_web_access: false },
    ]);
    expect(ask({ tools }).webSearch).toBeNull();
    expect(ask({ web_search: true }).webSearch).toEqual(anySearch);
  });

  test("an echo is the same text whether it is made short or member by member", () => {
    const short = [{}, { instructions: 'say "hi"' }, { max_output_tokens: 9 }, { max_tool_calls: 3 }, { store: false }];
    for (const body of short) expect(ask(body).echo).toBe(ask({ ...body, temperature: null }).echo);
  });

  test.each([
    ["parallel_tool_calls", false],
    ["previous_response_id", "resp_1"],
    ["prompt_cache_key", "k"],
    ["reasoning", { effort: "low", summary: null }],
    ["safety_identifier", "s"],
    ["temperature", 0],
    ["text", { format: { type: "json_object" } }],
    ["tool_choice", "none"],
    ["tools", [{ type: "web_search" }]],
    ["top_logprobs", 2],
    ["top_p", 0.5],
    ["presence_penalty", 1],
    ["frequency_penalty", 1],
    ["truncation", "auto"],
    ["user", "u"],
    ["metadata", { a: "b" }],
  ] as const)("%s alone is echoed as it was given", (field, value) => {
    const echo = echoOf({ model: "core-3", [field]: value }, ask({}).model, null, true);
    expect((JSON.parse(`{${echo}}`) as Record<string, unknown>)[field]).toEqual(value);
  });

  test("a response is kept unless the client or the operator does not want it", () => {
    expect(ask({}).store).toBe(true);
    expect(ask({ store: false }).store).toBe(false);
    const withoutStore = readBody(responsesDialect({ ...options, storesResponses: false }), hello, 10, catalog);
    expect((withoutStore as ResponsesAsk).store).toBe(false);
    expect(JSON.parse(`{${(withoutStore as ResponsesAsk).echo}}`).store).toBe(false);
  });

  test.each([
    [{ input: 42 }, "input must be a string or an array of items, is 42"],
    [{ input: [] }, "input must hold at least one message"],
    [{ input: ["x"] }, "input"],
    [{ background: true, store: false }, "background: needs a stored response: send store true, and no compaction"],
    [{ conversation: {} }, "conversation must be an id or an object with one"],
    [{ conversation: "conv_1", previous_response_id: "resp_1" }, "conversation: must not be with previous_response_id"],
    [{ temperature: 3 }, "temperature must be a number from 0 to 2, is 3"],
    [{ stream: "yes" }, "stream must be true or false"],
    [{ tools: "x" }, "tools must be an array of tools"],
    [{ tool_choice: "any" }, 'tool_choice must be "none"'],
    [{ max_output_tokens: "many" }, "max_output_tokens must be a whole number"],
    [{ truncation: "maybe" }, "truncation must be one of auto, disabled"],
  ])("%p is refused", (body, reason) => {
    expect(refusal(body)).toStartWith(`malformed: ${reason}`);
  });

  test("a body without input is refused", () => {
    const result = readBody<ResponsesAsk>(dialect, { model: "core-3" }, 10, catalog);
    expect(isRefusal(result) && messageOf(result)).toBe("input is missing: must be a string or an array of items");
  });

  test("an unknown model is its own refusal", () => {
    expect(refusal({ model: "gpt-9" })).toStartWith("unknown_model: ");
  });

  test("unknown fields and null for every optional one are ignored", () => {
    const nulls = Object.fromEntries(
      ["instructions", "tools", "reasoning", "text", "include", "metadata", "store", "background", "conversation"].map(
        (name) => [name, null],
      ),
    );
    expect(ask({ ...nulls, client_metadata: { a: "b" }, prompt_cache_retention: "24h" }).turns).toEqual([
      { role: "user", content: "hello" },
    ]);
  });

  test("a body that nests too deep is refused, not a crash", () => {
    let deep: unknown = 1;
    for (let depth = 0; depth < 5_000; depth++) deep = { deep };
    for (const body of [{ metadata: { deep } }, { tools: [{ type: "mcp", deep }] }, { input: [{ type: "x", deep }] }]) {
      expect(isRefusal(readBody(dialect, { ...hello, ...body }, 10, catalog))).toBe(true);
    }
  });
});

describe("conversation", () => {
  test("instructions come first; every role is read anywhere", () => {
    expect(
      ask({
        instructions: "be brief",
        input: [
          { role: "user", content: "a" },
          { type: "message", role: "developer", content: [{ type: "input_text", text: "b" }] },
          { role: "assistant", content: [{ type: "output_text", text: "c", annotations: [] }], phase: "commentary" },
          { role: "system", content: "d" },
        ],
      }).turns,
    ).toEqual([
      { role: "system", content: "be brief" },
      { role: "user", content: "a" },
      { role: "system", content: "b" },
      { role: "assistant", content: "c", reasoning: null, calls: [] },
      { role: "system", content: "d" },
    ]);
  });

  test("what the model did in one step is one turn", () => {
    expect(
      turns(
        user,
        { type: "reasoning", summary: [{ type: "summary_text", text: "think" }] },
        { type: "message", role: "assistant", content: "I will look." },
        { type: "function_call", call_id: "c1", name: "ls", arguments: '{"dir":"."}' },
        { type: "function_call", call_id: "c2", name: "pwd", arguments: "" },
        { type: "function_call_output", call_id: "c1", output: "a.txt" },
        { type: "function_call_output", call_id: "c2", output: [{ type: "input_text", text: "/" }] },
        { role: "assistant", content: "Done." },
        { role: "assistant", content: [{ type: "refusal", refusal: "No more." }] },
      ),
    ).toEqual([
      userTurn,
      {
        role: "assistant",
        content: "I will look.",
        reasoning: "think",
        calls: [
          { id: "c1", name: "ls", arguments: '{"dir":"."}' },
          { id: "c2", name: "pwd", arguments: "{}" },
        ],
      },
      { role: "tool", callId: "c1", content: "a.txt" },
      { role: "tool", callId: "c2", content: "/" },
      { role: "assistant", content: "Done.\n\nNo more.", reasoning: null, calls: [] },
    ]);
  });

  test("a message in parts reads like the same message as a string", () => {
    const parts = [{ type: "input_text", text: "hi" }];
    expect(turns({ role: "user", content: parts })).toEqual(turns(user));
  });

  test("images are kept where the model sees them and refused, naming the model, where not; files are kept", () => {
    const content = [
      { type: "input_text", text: "look" },
      { type: "input_image", image_url: pixelUrl, detail: "low" },
      { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" },
      { type: "input_file", file_url: "https://example.com/b.csv" },
      { type: "input_hologram" },
    ];
    expect(turns({ role: "user", content })).toEqual([
      {
        role: "user",
        content: [
          { kind: "text", text: "look" },
          { kind: "image", url: pixelUrl, detail: "low" },
          { kind: "file", url: "data:application/pdf;base64,JVBERi0=", name: "a.pdf" },
          { kind: "file", url: "https://example.com/b.csv", name: null },
        ],
      },
    ]);
    expect(refusal({ model: "core-coder-1", input: [{ role: "user", content }] })).toBe(
      "malformed: input[0].content[1]: the model core-coder-1 reads text only, not images",
    );
  });

  test("our sealed reasoning comes back as the thought, without its id too", () => {
    const sealed = sealer.seal("reasoning", "the thought");
    const item = { type: "reasoning", summary: [{ type: "summary_text", text: "short" }], encrypted_content: sealed };
    const assistant = { role: "assistant", content: "hi" };
    const [turn] = turns(item, assistant);
    expect(turn).toMatchObject({ role: "assistant", reasoning: "the thought" });
  });

  test("reasoning that cannot be read is dropped, never an error", () => {
    const broken = [
      { type: "reasoning", summary: [{ type: "summary_text", text: "x" }], encrypted_content: "ZW5jcnlwdGVk" },
      { type: "reasoning", id: "rs_1", summary: [], content: null, encrypted_content: "tg1.AAAA" },
      { type: "reasoning", id: "rs_1", encrypted_content: sealer.seal("compaction", "not a thought") },
      { type: "reasoning" },
      { type: "reasoning", summary: "x", content: 5 },
      { type: "reasoning", summary: [null, 5, {}] },
    ];
    for (const item of broken) {
      expect(turns(user, item, { role: "assistant", content: "a" })).toEqual([
        userTurn,
        { role: "assistant", content: "a", reasoning: null, calls: [] },
      ]);
    }
  });

  test("a thought that led to nothing is no turn", () => {
    expect(turns({ type: "reasoning", summary: [{ type: "summary_text", text: "x" }] }, user)).toEqual([userTurn]);
  });

  test("custom calls and their output become function calls around the input", () => {
    const tools = [{ type: "custom", name: "apply_patch" }];
    const input = [
      user,
      { type: "custom_tool_call", call_id: "c1", name: "apply_patch", input: '*** "x"\n' },
      { type: "custom_tool_call_output", call_id: "c1", output: "ok" },
    ];
    expect(ask({ tools, input }).turns.slice(1)).toEqual([
      {
        role: "assistant",
        content: null,
        reasoning: null,
        calls: [{ id: "c1", name: "apply_patch", arguments: JSON.stringify({ input: '*** "x"\n' }) }],
      },
      { role: "tool", callId: "c1", content: "ok" },
    ]);
  });

  test("arguments that are no JSON object are kept as words, since engines refuse them", () => {
    const calls = ["[1]", "{broken", '"text"'].map((json) => ({
      type: "function_call",
      call_id: json,
      name: "f",
      arguments: json,
    }));
    const [turn] = turns(...calls);
    const given = turn!.role === "assistant" ? turn!.calls.map((call) => JSON.parse(call.arguments)) : [];
    expect(given).toEqual([{ input: "[1]" }, { input: "{broken" }, { input: '"text"' }]);
  });

  test("a sealed summary comes back as the conversation so far; a foreign one is dropped", () => {
    const encrypted_content = sealer.seal("compaction", "they want a boat");
    expect(turns({ type: "compaction", id: "cmp_1", encrypted_content }, user)).toEqual([
      { role: "user", content: expect.stringContaining("they want a boat") },
      userTurn,
    ]);
    expect(turns({ type: "compaction", id: "cmp_1", encrypted_content: "gAAAA" }, user)).toEqual([userTurn]);
    expect(turns({ type: "compaction" }, user)).toEqual([userTurn]);
  });

  test("calls of tools that other servers run are kept as calls, other foreign items left out", () => {
    expect(
      turns(
        user,
        { type: "local_shell_call", call_id: "c1", action: { type: "exec", command: ["ls"] } },
        { type: "local_shell_call_output", call_id: "c1", output: "a.txt" },
        { type: "shell_call_output", call_id: "c2", output: [{ stdout: "x", outcome: { type: "exit" } }] },
        { type: "tool_search_call", call_id: "c3", arguments: { query: "q" } },
        { type: "tool_search_output", call_id: "c3", tools: [] },
        { type: "mcp_list_tools", id: "m" },
        { type: "configuration_update" },
        { type: "made_up" },
      ).slice(1),
    ).toEqual([
      {
        role: "assistant",
        content: null,
        reasoning: null,
        calls: [{ id: "c1", name: "local_shell", arguments: '{"type":"exec","command":["ls"]}' }],
      },
      { role: "tool", callId: "c1", content: "a.txt" },
      { role: "tool", callId: "c2", content: '[{"stdout":"x","outcome":{"type":"exit"}}]' },
      {
        role: "assistant",
        content: null,
        reasoning: null,
        calls: [{ id: "c3", name: "tool_search", arguments: '{"query":"q"}' }],
      },
      { role: "tool", callId: "c3", content: "[]" },
    ]);
  });

  test("searches and calls of servers' tools become calls with their results", () => {
    const strange = { type: "url", url: { toString: 1, valueOf: 1 } };
    const action = { type: "search", query: "bun", sources: [strange, { type: "url", url: "https://bun.com/" }] };
    const mcp = { type: "mcp_call", id: "mcp_1", server_label: "files", name: "read", arguments: '{"path":"a"}' };
    expect(
      turns(
        user,
        { type: "message", role: "assistant", content: "I look." },
        { type: "web_search_call", id: "ws_1", status: "completed", action },
        { type: "web_search_call", id: "ws_2", status: "completed", action: { type: "search", queries: ["elysia"] } },
        { type: "web_search_call", id: "ws_3", status: "completed", action: { type: "open_page" } },
        { ...mcp, output: "text of a" },
        { ...mcp, id: "mcp_2", output: null, error: { type: "mcp_tool_execution_error" } },
        { type: "message", role: "assistant", content: "It is fast [1]." },
      ).slice(1),
    ).toEqual([
      {
        role: "assistant",
        content: "I look.",
        reasoning: null,
        calls: [{ id: "ws_1", name: "web_search", arguments: '{"query":"bun"}' }],
      },
      { role: "tool", callId: "ws_1", content: "Found:\nhttps://bun.com/" },
      {
        role: "assistant",
        content: null,
        reasoning: null,
        calls: [{ id: "ws_2", name: "web_search", arguments: '{"query":"elysia"}' }],
      },
      { role: "tool", callId: "ws_2", content: "It was searched; the answer says what was found." },
      {
        role: "assistant",
        content: null,
        reasoning: null,
        calls: [{ id: "mcp_1", name: "files__read", arguments: '{"path":"a"}' }],
      },
      { role: "tool", callId: "mcp_1", content: "text of a" },
      {
        role: "assistant",
        content: null,
        reasoning: null,
        calls: [{ id: "mcp_2", name: "files__read", arguments: '{"path":"a"}' }],
      },
      { role: "tool", callId: "mcp_2", content: '{"type":"mcp_tool_execution_error"}' },
      { role: "assistant", content: "It is fast [1].", reasoning: null, calls: [] },
    ]);
  });

  test.each([
    [{}, "input[0] must have a type or a role"],
    [{ role: "robot", content: "x" }, "input[0].role must be one of user, assistant, system, developer"],
    [{ role: "user", content: 5 }, "input[0].content must be a string or an array of parts"],
    [{ role: "user", content: [null] }, "input[0].content[0] must be an object"],
    [{ role: "user", content: [{}] }, "input[0].content[0].type is required"],
    [{ role: "user", content: [{ type: "input_text" }] }, "input[0].content[0].text must be a string"],
    [{ role: "user", content: [{ type: "input_image" }] }, "input[0].content[0].image_url must be a string"],
    [{ role: "user", content: [{ type: "input_audio" }] }, "input[0].content[0]: the model core-3 does not read audio"],
    [{ type: "function_call", name: "f" }, "input[0].call_id must be a string"],
    [{ type: "function_call", call_id: "c" }, "input[0].name must be a string"],
    [{ type: "function_call_output", output: "x" }, "input[0].call_id must be a string"],
    [{ type: "item_reference" }, "input[0].id must be a string"],
    [{ type: "item_reference", id: "msg_1" }, "input[0]: no item msg_1 is stored here; send the item itself"],
    [{ type: "additional_tools", tools: 5 }, "input[0].tools must be an array"],
  ])("%p is refused", (item, reason) => {
    expect(refusal({ input: [item] })).toStartWith(`malformed: ${reason}`);
  });

  test("no value of a known field makes it throw", () => {
    const field = fc.constantFrom(
      ...["type", "role", "content", "call_id", "name", "arguments", "output", "summary", "encrypted_content", "id"],
      ...["tools", "input", "namespace", "action"],
    );
    const types = fc.constantFrom(
      ...["message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "compaction"],
      ...["item_reference", "additional_tools", "x_call", "x_output", "user", "assistant"],
    );
    const json = fc.jsonValue({ maxDepth: 2 });
    const value = fc.oneof(types, json, fc.array(fc.dictionary(field, fc.oneof(types, json), { maxKeys: 4 })));
    fc.assert(
      fc.property(fc.array(fc.dictionary(field, value, { maxKeys: 6 }), { maxLength: 5 }), (input) => {
        const result = read({ input });
        if (isRefusal(result)) expect(messageOf(result)).not.toContain("undefined");
      }),
      { numRuns: 200 },
    );
    const names = [
      "model",
      "input",
      "tools",
      "tool_choice",
      "text",
      "reasoning",
      "metadata",
      "include",
      "instructions",
    ];
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), json), (body) => {
        read(body);
      }),
      { numRuns: 200 },
    );
  });
});

describe("what came earlier", () => {
  const conversation = [user, { id: "msg_1", type: "message", role: "assistant", content: "hello" }];

  test("is what a request refers to", () => {
    expect(referencesOf(hello)).toBeNull();
    expect(referencesOf({ input: [user] })).toBeNull();
    for (const body of [null, 5, "x", [], { input: [null, 5] }]) expect(referencesOf(body)).toBeNull();
    const input = [{ type: "item_reference", id: "msg_1" }, user, { type: "item_reference", id: "fc_1" }];
    expect(referencesOf({ previous_response_id: "resp_1", input })).toEqual({
      previousResponseId: "resp_1",
      itemIds: ["msg_1", "fc_1"],
    });
  });

  test("stands before the input, after this request's instructions", () => {
    const result = ask(
      { previous_response_id: "resp_1", instructions: "new" },
      { conversation, items: new Map(), bytes: 0 },
    );
    expect(result.turns).toEqual([
      { role: "system", content: "new" },
      userTurn,
      { role: "assistant", content: "hello", reasoning: null, calls: [] },
      { role: "user", content: "hello" },
    ]);
    expect(result.previousResponseId).toBe("resp_1");
    expect(JSON.parse(result.input as string)).toMatchObject([{ role: "user" }]);
  });

  test("is enough: a request that continues needs no input of its own", () => {
    const earlier = { conversation, items: new Map(), bytes: 0 };
    for (const input of [undefined, null, []]) {
      expect(ask({ input, previous_response_id: "resp_1" }, earlier).turns).toHaveLength(2);
    }
  });

  test("brings the tools that its items added, before those that this request adds", () => {
    const tool = (name: string, description: string) => ({ type: "function", name, description, parameters: {} });
    const adds = (...tools: object[]) => ({ type: "additional_tools", role: "developer", tools });
    const before = adds(tool("a", "old"), tool("b", "old"));
    const now = adds(tool("b", "new"));
    const tools = [tool("own", "own")];
    const earlier = { conversation: [before, ...conversation], items: new Map(), bytes: 0 };
    const continued = ask({ tools, input: [now, user], previous_response_id: "resp_1" }, earlier);
    expect(continued.tools.map(({ name, description }) => `${name} ${description}`)).toEqual([
      "own own",
      "a old",
      "b new",
    ]);
    expect(continued.tools).toEqual(ask({ tools, input: [before, ...conversation, now, user] }).tools);
  });

  test("keeps what it says itself of a tool that the conversation brought, and of searching", () => {
    const tool = (name: string, description: string) => ({ type: "function", name, description, parameters: {} });
    const before = [tool("a", "old"), { type: "web_search" }];
    const earlier = { conversation: [{ type: "additional_tools", tools: before }], items: new Map(), bytes: 0 };
    const tools = [tool("own", "own"), tool("a", "new"), { type: "web_search", external_web_access: false }];
    const continued = ask({ tools, input: [user], previous_response_id: "resp_1" }, earlier);
    expect(continued.tools.map(({ name, description }) => `${name} ${description}`)).toEqual(["own own", "a new"]);
    expect(continued.webSearch).toBeNull();
  });

  test("names the response that is missing from the conversation", () => {
    const earlier = { conversation: null, missingId: "resp_0", items: new Map(), bytes: 0 };
    const result = read({ previous_response_id: "resp_1" }, earlier);
    expect(result).toEqual(refuse("previous_response_not_found", { id: "resp_0" }));
  });

  test("is a refusal with its own code when it is not there", () => {
    const result = read({ previous_response_id: "resp_gone" });
    expect(isRefusal(result) && dialect.statusOf(result, null)).toBe(400);
    expect(JSON.parse(dialect.errorBody(result as Refusal, "req_1"))).toEqual({
      error: {
        type: "invalid_request_error",
        message: "Previous response with id 'resp_gone' not found.",
        code: "previous_response_not_found",
        param: "previous_response_id",
      },
    });
  });

  test("is found by item too; a thought that is not there is left out", () => {
    const items = new Map<string, Item>([["msg_1", conversation[1]!]]);
    const input = [user, { type: "item_reference", id: "rs_1" }, { type: "item_reference", id: "msg_1" }];
    expect(ask({ input }, { conversation: null, items, bytes: 0 }).turns).toEqual([
      userTurn,
      { role: "assistant", content: "hello", reasoning: null, calls: [] },
    ]);
    const loop = new Map<string, Item>([["msg_1", { type: "item_reference", id: "msg_1" }]]);
    expect(isRefusal(read({ input }, { conversation: null, items: loop, bytes: 0 }))).toBe(true);
  });
});

describe("errors", () => {
  test("have type, message, code and param", () => {
    expect(JSON.parse(dialect.errorBody(refuse("busy"), "req_1"))).toEqual({
      error: {
        type: "rate_limit_error",
        message: "Routes are temporarily busy. Please retry.",
        code: null,
        param: null,
      },
    });
    expect(JSON.parse(dialect.errorBody(refuse("quota_exceeded", { site_url: "http://x" }), "r")).error.code).toBe(
      "insufficient_quota",
    );
  });

  test("an unreadable balance is a 500 for first-party tiers and a 503 for hosted models", () => {
    const unverified = refuse("quota_unverified");
    expect(dialect.statusOf(unverified, ask({}))).toBe(500);
    expect(dialect.statusOf(unverified, ask({ model: "open-01-3BIT-REAP" }))).toBe(503);
    expect(dialect.statusOf(refuse("quota_exceeded"), ask({}))).toBe(429);
  });
});

describe("compact and input_tokens", () => {
  const compact = atRoute(dialect, "/v1/responses/compact");

  test("compact takes a body without input when it refers to a response, and never streams", () => {
    const earlier = { conversation: [user], items: new Map(), bytes: 0 };
    const result = readBody(
      compact,
      { model: "core-3", previous_response_id: "resp_1", stream: true },
      10,
      catalog,
      earlier,
    );
    expect(result).toMatchObject({ compacts: "alone", stream: false, store: false });
    expect((result as ResponsesAsk).turns).toHaveLength(2);
  });

  test("compact without a model is a 400", () => {
    const result = readBody(compact, { input: "x" }, 10, catalog);
    expect(isRefusal(result) && compact.statusOf(result, null)).toBe(400);
    expect(isRefusal(readBody(compact, "x", 10, catalog))).toBe(true);
  });
});
