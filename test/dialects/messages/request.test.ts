// What the messages dialect reads and what it refuses, without a server.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { embeddedCatalog } from "../../../src/core/catalog.ts";
import { messages } from "../../../src/dialects/messages/messages.ts";
import type { MessagesAsk } from "../../../src/dialects/messages/request.ts";
import { anySearch } from "../../../src/dialects/request/search-request.ts";
import { isRefusal, messageOf } from "../../../src/core/refusals.ts";
import type { Refusal } from "../../../src/core/types.ts";
import { messagesCaptures } from "../../fixtures/messages-captures.ts";
import { pixelBase64, pixelUrl, png } from "../../fixtures/pictures.ts";
import { readBody } from "../../fixtures/reading.ts";

const catalog = embeddedCatalog();
const hello = [{ role: "user", content: "hello" }];
const textOnly = "open-01-3BIT-REAP";
const read = (body: object): MessagesAsk | Refusal =>
  readBody<MessagesAsk>(messages, { model: "core-3", messages: hello, ...body }, JSON.stringify(body).length, catalog);

function ask(body: object): MessagesAsk {
  const result = read(body);
  if (isRefusal(result)) throw new Error(messageOf(result));
  return result;
}

function refusal(body: object): string {
  const result = read(body);
  if (!isRefusal(result)) throw new Error("was accepted");
  return `${result.refusal}: ${messageOf(result)}`;
}

const turns = (...given: object[]) => ask({ messages: given }).turns;
const user = (...content: object[]) => ({ role: "user", content });
const assistant = (...content: object[]) => ({ role: "assistant", content });
const textBlock = (text: string) => ({ type: "text", text });
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: pixelBase64 } };
const imagePart = { kind: "image", url: pixelUrl, detail: null };

describe("requests of real clients", () => {
  test.each(messagesCaptures.map((capture) => [capture.name, capture] as const))("%s", (_, { body }) => {
    const result = readBody(messages, { ...body, model: "core-3" }, JSON.stringify(body).length, catalog);
    expect(isRefusal(result) ? messageOf(result) : null).toBeNull();
    const { turns, tools } = result as MessagesAsk;
    expect(JSON.stringify(turns)).not.toContain("x-anthropic-billing-header");
    const given = (body["tools"] ?? []) as { type?: string }[];
    expect(tools).toHaveLength(given.filter(({ type }) => type === undefined).length);
  });

  test("a client's tool search: the answer is text, the found tool a tool like the others", () => {
    const capture = messagesCaptures.find(({ name }) => name.includes("cc_websearch 2"));
    const { turns, tools } = ask({ ...capture?.body });
    expect(turns.at(-1)).toMatchObject({ role: "tool", content: "The tool WebSearch is available now." });
    expect(tools.map(({ name }) => name)).toContain("WebSearch");
  });

  test("Claude Code's search request switches our web search on and leaves no tool", () => {
    const capture = messagesCaptures.find(({ name }) => name.includes("cc_websearch 3"));
    expect(ask({ ...capture?.body })).toMatchObject({ webSearch: { usesMax: 8 }, tools: [], toolChoice: "auto" });
  });
});

describe("conversation", () => {
  test("the billing header is dropped, so that conversations share a prefix", () => {
    const system = (hash: string) => [
      textBlock(`x-anthropic-billing-header: cc_version=2.1.329.${hash}; cc_entrypoint=cli;`),
      { ...textBlock("You are Claude."), cache_control: { type: "ephemeral" } },
      textBlock("Be brief."),
    ];
    expect(ask({ system: system("a") }).turns).toEqual(ask({ system: system("b") }).turns);
    expect(ask({ system: system("a") }).turns[0]).toEqual({ role: "system", content: "You are Claude.\nBe brief." });
    const line = "x-anthropic-billing-header: cc_version=1;";
    expect(ask({ system: line }).turns).toEqual(ask({}).turns);
    expect(ask({ system: `${line}\nBe brief.` }).turns[0]).toEqual({ role: "system", content: "Be brief." });
  });

  test("a string and one text block are the same prompt, in every place that takes both", () => {
    const conversation = (content: (text: string) => unknown) => ({
      system: content("s"),
      messages: [
        { role: "user", content: content("a") },
        { role: "system", content: content("in between") },
        { role: "developer", content: content("also") },
        assistant(textBlock("b"), { type: "tool_use", id: "t1", name: "f", input: {} }),
        user({ type: "tool_result", tool_use_id: "t1", content: content("result") }),
        { role: "assistant", content: content("c") },
      ],
    });
    const { turns } = ask(conversation((text) => text));
    expect(ask(conversation((text) => [{ ...textBlock(text), cache_control: { type: "ephemeral" } }])).turns).toEqual(
      turns,
    );
    expect(turns.map(({ role }) => role)).toEqual([
      "system",
      "user",
      "system",
      "system",
      "assistant",
      "tool",
      "assistant", // prettier keeps the roles apart
    ]);
  });

  test("a message with tool results and text: the results first, then one user turn", () => {
    const results = [
      { type: "tool_result", tool_use_id: "t1", content: "one" },
      { type: "tool_result", tool_use_id: "t2" },
    ];
    const expected = [
      { role: "tool", callId: "t1", content: "one" },
      { role: "tool", callId: "t2", content: "" },
      { role: "user", content: "and\nnow" },
    ] as const;
    expect(turns(user(...results, textBlock("and"), textBlock("now")))).toEqual([...expected]);
    expect(turns(user(textBlock("and"), ...results, textBlock("now")))).toEqual([...expected]);
    expect(turns(user(...results))).toHaveLength(2);
  });

  test("a tool result: error marked, images kept, other blocks as text", () => {
    const result = (content: unknown, more: object = {}) =>
      turns(user({ type: "tool_result", tool_use_id: "t", content, ...more }))[0];
    expect(result("no such file", { is_error: true })).toMatchObject({ content: "Error:\nno such file" });
    expect(result([textBlock("red:"), image])).toEqual({
      role: "tool",
      callId: "t",
      content: [{ kind: "text", text: "red:" }, imagePart],
    } as never);
    expect(result([{ type: "tool_reference", tool_name: "Grep" }])).toMatchObject({
      content: "The tool Grep is available now.",
    });
    const found = { type: "search_result", title: "Bun", source: "https://bun.sh", content: [textBlock("A runtime.")] };
    expect(result([found])).toMatchObject({ content: "Bun\nhttps://bun.sh\nA runtime." });
  });

  test("images by address and inline, text of documents at once, the rest to be fetched and read", () => {
    const document = (source: object, more: object = {}) => ({ type: "document", source, ...more });
    expect(
      turns(
        user(
          textBlock("look:"),
          image,
          { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
          document({ type: "text", media_type: "text/plain", data: "plain" }, { title: "T", context: "C" }),
          document({ type: "content", content: [textBlock("inside"), image] }),
          document({ type: "base64", media_type: "application/pdf", data: "JVBERi0=" }, { title: "P", context: "C" }),
          document({ type: "base64", media_type: "text/plain", data: btoa("a,b") }),
          document({ type: "url", url: "https://example.com/a.pdf" }, { citations: { enabled: true } }),
        ),
      ),
    ).toEqual([
      {
        role: "user",
        content: [
          { kind: "text", text: "look:" },
          imagePart,
          { kind: "image", url: "https://example.com/a.png", detail: null },
          { kind: "text", text: "T" },
          { kind: "text", text: "C" },
          { kind: "text", text: "plain" },
          { kind: "text", text: "inside" },
          imagePart,
          { kind: "file", url: "data:application/pdf;base64,JVBERi0=", name: "P: C" },
          { kind: "text", text: "<document>\na,b\n</document>" },
          { kind: "file", url: "https://example.com/a.pdf", name: null },
        ],
      },
    ] as never);
  });

  test("an assistant message is one turn, whatever signature its thinking has", () => {
    for (const signature of ["", "ErUBCkYIBRgC", undefined]) {
      expect(
        turns(
          assistant(
            { type: "thinking", thinking: "Let me ", signature },
            { type: "thinking", thinking: "think.", signature },
            { type: "redacted_thinking", data: "b3BhcXVl" },
            textBlock("Run"),
            textBlock("ning."),
            { type: "tool_use", id: "t1", name: "bash", input: { command: "ls", depth: [1, null] } },
            { type: "tool_use", id: "t2", name: "now", input: {} },
          ),
        ),
      ).toEqual([
        {
          role: "assistant",
          content: "Running.",
          reasoning: "Let me think.",
          calls: [
            { id: "t1", name: "bash", arguments: '{"command":"ls","depth":[1,null]}' },
            { id: "t2", name: "now", arguments: "{}" },
          ],
        },
      ]);
    }
  });

  test("an assistant message without text has content null beside calls, else an empty text", () => {
    expect(turns(assistant({ type: "tool_use", id: "t", name: "f" }))[0]).toMatchObject({ content: null });
    expect(turns(assistant({ type: "thinking", thinking: "", signature: "s" }))).toEqual([
      { role: "assistant", content: "", reasoning: null, calls: [] },
    ]);
    expect(turns(assistant())).toHaveLength(1);
  });

  test("a search of the dialect's own servers in the history becomes a call and its result", () => {
    const search = [
      textBlock("Searching."),
      { type: "server_tool_use", id: "srv1", name: "web_search", input: { query: "bun" } },
      {
        type: "web_search_tool_result",
        tool_use_id: "srv1",
        content: [{ type: "web_search_result", url: "https://bun.sh", title: "Bun", encrypted_content: "secret" }],
      },
    ];
    const call = { id: "srv1", name: "web_search", arguments: '{"query":"bun"}' };
    const expected = [
      { role: "assistant", content: "Searching.", reasoning: null, calls: [call] },
      { role: "tool", callId: "srv1", content: "Bun\nhttps://bun.sh" },
    ] as const;
    expect(turns(assistant(...search, textBlock("Bun is fast.")))).toEqual([
      ...expected,
      { role: "assistant", content: "Bun is fast.", reasoning: null, calls: [] },
    ]);
    expect(turns(assistant(...search))).toEqual([...expected]);
    expect(turns(assistant(...search.slice(0, 2)))).toEqual([{ ...expected[0], calls: [] }]); // no result, no call
    const strange = { type: "web_search_result", url: { toString: 1, valueOf: 1 }, title: [["Bun"]] };
    expect(turns(assistant(search[1]!, { ...search[2], content: [strange] }))[1]).toMatchObject({ content: "" });
    const failed = { ...search[2], content: { type: "web_search_tool_result_error", error_code: "unavailable" } };
    expect(turns(assistant(search[1]!, failed))[1]).toMatchObject({ content: expect.stringContaining("unavailable") });
  });

  test("an unknown block is left out", () => {
    expect(turns(user({ type: "invented_in_2027", anything: {} }, textBlock("hi")))).toEqual([
      { role: "user", content: "hi" },
    ]);
  });

  test.each([
    [{ messages: "not-an-array" }, "messages must be a non-empty array of messages"],
    [{ messages: [] }, "messages must be a non-empty array of messages"],
    [
      { messages: [{ role: "tool", content: "x" }] },
      "messages[0].role must be one of user, assistant, system, developer",
    ],
    [{ messages: [{ role: "user" }] }, "messages[0].content is missing"],
    [{ messages: [{ role: "user", content: 5 }] }, "messages[0].content must be a string or an array of content"],
    [{ messages: [{ role: "user", content: [null] }] }, "messages[0].content must be a string or an array of content"],
    [{ messages: [user({ type: "text" })] }, "messages[0].content[0].text must be a string"],
    [{ messages: [user({ type: "tool_result" })] }, "messages[0].content[0].tool_use_id must be a string"],
    [
      { messages: [user({ type: "tool_result", tool_use_id: "t", content: [5] })] },
      "messages[0].content[0].content[0] must be an object with a type",
    ],
    [{ messages: [user({ type: "image" })] }, "messages[0].content[0].source must be an object"],
    [{ messages: [assistant({ type: "tool_use", id: 1 })] }, "messages[0].content[0].id must be a string"],
    [
      { messages: [assistant({ type: "tool_use", id: "t", name: "f", input: "x" })] },
      "messages[0].content[0].input must be an object",
    ],
    [{ system: 5 }, "system must be a string or an array"],
    [{ temperature: 3 }, "temperature must be a number from 0 to 2, is 3"],
    [{ stop_sequences: "x" }, "stop_sequences must be an array of strings"],
    [{ thinking: true }, "thinking must be an object with type"],
    [{ stream: "yes" }, "stream must be true or false"],
    [{ tools: [{}] }, "tools[0].name must be a non-empty string"],
    [{ tools: [{ name: "f", input_schema: [] }] }, "tools[0].input_schema must be a JSON Schema object"],
  ])("%j is refused", (body, reason) => {
    expect(refusal(body)).toStartWith(`malformed: ${reason}`);
  });

  test("an image for a model without eyes is refused, naming model and field, in a tool result too", () => {
    const model = textOnly;
    const reason = `the model ${model} reads text only, not images`;
    expect(refusal({ model, messages: [user(image)] })).toBe(`malformed: messages[0].content[0]: ${reason}`);
    const result = { type: "tool_result", tool_use_id: "t", content: [textBlock("red"), image] };
    expect(refusal({ model, messages: [user(result)] })).toBe(
      `malformed: messages[0].content[0].content[1]: ${reason}`,
    );
  });

  test("an unknown model is its own refusal, which does not count for flood protection", () => {
    expect(refusal({ model: "claude-opus-5-5" })).toStartWith("unknown_model: The model `claude-opus-5-5`");
  });

  // Taken as it stands, a thread's second request would be a conversation of one tool result.
  test.each([{ type: "create" }, { type: "continue", previous_message_id: "msg_1" }])(
    "a conversation that the server is to keep is refused in the words on which the SDK sends it whole: %j",
    (thread) => {
      const refused = read({ thread });
      expect(refused).toMatchObject({ refusal: "threads_not_kept" });
      expect(JSON.parse(messages.errorBody(refused as Refusal, "req_1")).error).toMatchObject({
        type: "invalid_request_error",
        details: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
      });
    },
  );

  test("no value of any field makes it throw", () => {
    const names = ["messages", "system", "tools", "tool_choice", "thinking", "output_config", "stop_sequences"];
    const types = ["text", "image", "document", "tool_use", "tool_result", "server_tool_use", "web_search_tool_result"];
    const block = fc.record(
      {
        type: fc.constantFrom(...types),
        text: fc.jsonValue(),
        source: fc.jsonValue(),
        content: fc.jsonValue(),
        input: fc.jsonValue(),
        id: fc.constantFrom("a", 1),
        name: fc.constantFrom("f", null),
        tool_use_id: fc.constantFrom("a", 1),
      },
      { requiredKeys: ["type"] },
    );
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.jsonValue(), fc.array(block), (name, value, blocks) => {
        read({ [name]: value });
        read({ messages: [{ role: "user", content: blocks }, assistant(...(blocks as object[])), user({ value })] });
        read({ tools: [value], tool_choice: { type: "tool", name: value } });
      }),
    );
  });

  test("nesting that would overflow the stack is refused", () => {
    let deep: object = {};
    for (let depth = 0; depth < 200_000; depth++) deep = { x: deep };
    const use = { type: "server_tool_use", id: "t", name: "f", input: {} };
    const results = { type: "web_search_tool_result", tool_use_id: "t", content: deep };
    const tooDeep = [
      { tools: [{ name: "f", input_schema: deep }] },
      { output_config: { format: { type: "json_schema", schema: deep } } },
      { messages: [assistant({ type: "tool_use", id: "t", name: "f", input: deep })] },
      { messages: [assistant(use, results)] },
    ];
    for (const body of tooDeep) {
      const result = readBody(messages, { model: "core-3", messages: hello, ...body }, 0, catalog);
      expect(isRefusal(result) && messageOf(result)).toContain("nests too deep");
    }
    let documents: object = textBlock("innermost");
    for (let depth = 0; depth < 200_000; depth++) {
      documents = { type: "document", source: { type: "content", content: [documents] } };
    }
    const nested = readBody(messages, { model: "core-3", messages: [user(documents)] }, 0, catalog);
    expect((nested as MessagesAsk).turns).toEqual([{ role: "user", content: "" }]);
  });
});

describe("settings", () => {
  test.each([
    [{}, 4096],
    [{ max_tokens: null }, 4096],
    [{ max_tokens: 0 }, 1],
    [{ max_tokens: 1 }, 1],
    [{ max_tokens: 65_536 }, 65_536],
    [{ max_tokens: 128_000 }, 65_536],
    [{ model: "core-coder-1" }, 65_536],
  ])("%j reserves %p tokens", (body, tokens) => {
    expect(ask(body).outputTokensMax).toBe(tokens);
  });

  test("the depth: off, a word, a budget, or the model's own", () => {
    const depths: [object, string | null][] = [
      [{}, null],
      [{ thinking: { type: "disabled" }, output_config: { effort: "high" } }, "off"],
      [{ thinking: { type: "adaptive" } }, null],
      [{ thinking: { type: "between_tools" } }, null],
      [{ thinking: { type: "adaptive" }, output_config: { effort: "low" } }, "low"],
      [{ thinking: { type: "enabled", budget_tokens: 31_999 }, output_config: { effort: "medium" } }, "medium"],
      [{ output_config: { effort: "xhigh" } }, "max"],
      [{ output_config: { effort: null } }, null],
      [{ thinking: { type: "enabled" } }, null],
      [{ thinking: { type: "enabled", budget_tokens: 100 } }, "minimal"],
      [{ thinking: { type: "enabled", budget_tokens: 1_024 } }, "low"],
      [{ thinking: { type: "enabled", budget_tokens: 4_096 } }, "medium"],
      [{ thinking: { type: "enabled", budget_tokens: 15_999 } }, "high"],
      [{ thinking: { type: "enabled", budget_tokens: 31_999 } }, "max"],
    ];
    expect(depths.map(([body]) => ask(body).effort)).toEqual(depths.map(([, effort]) => effort as never));
    for (const effort of ["off", "none", "minimal", "low", "medium", "high", "xhigh", "max"]) {
      expect(ask({ output_config: { effort } }).effort).not.toBeNull();
    }
  });

  test("thinking is shown to who asked for it", () => {
    const shown = (thinking: unknown) => ask({ thinking }).thinking;
    expect([shown(undefined), shown(null), shown({ type: "disabled" })]).toEqual(["hidden", "hidden", "hidden"]);
    expect(shown({ type: "enabled", budget_tokens: 2000 })).toBe("shown");
    expect(shown({ type: "adaptive", display: null })).toBe("shown");
    expect(shown({ type: "adaptive", display: "updates" })).toBe("shown");
    expect(shown({ type: "adaptive", display: "omitted" })).toBe("omitted");
  });

  test("stop sequences, sampling and switches; what is not known is ignored", () => {
    const body = {
      stop_sequences: ["", "a", "b", "", "c", "d", "e"],
      temperature: 0,
      top_p: 1,
      top_k: 40,
      stream: true,
      metadata: { user_id: "{}" },
      service_tier: "auto",
      context_management: { edits: [] },
      safeguards: [{ type: "dangerous_tool_use" }],
      cache_control: { type: "ephemeral" },
      seed: 7,
    };
    expect(ask(body)).toMatchObject({ stop: ["a", "b", "c", "d", "e"], stream: true, webSearch: null });
    expect(ask(body).sampling).toEqual({ temperature: 0, top_p: 1, top_k: 40 });
    expect(ask({ web_search: true }).webSearch).toEqual(anySearch);
  });

  test("the prompt's size is estimated without its inline images", () => {
    const size = (body: object) =>
      (readBody(messages, body, JSON.stringify(body).length, catalog) as MessagesAsk).inputTokensEstimate;
    const picture = {
      type: "image",
      source: { type: "base64", media_type: "image/png", data: png(1, 1, 300_000).toString("base64") },
    };
    expect(size({ model: "core-3", messages: [user(textBlock("a".repeat(4_000)), picture)] })).toBeWithin(1_000, 1_100);
    expect(size({ model: "core-3", messages: [user(textBlock("a".repeat(4_000_000)))] })).toBe(196_608);
  });
});

describe("tools", () => {
  const tools = [
    { name: "a", description: "does a", input_schema: { type: "object", properties: {} }, strict: true },
    { name: "b", type: "custom", defer_loading: true, cache_control: { type: "ephemeral" } },
    { name: "bash", type: "bash_20250124" },
    { name: "web_search", type: "web_search_20250305", max_uses: 8 },
  ];

  test("a client's own are read, the servers' left out but for web search", () => {
    expect(ask({ tools })).toMatchObject({
      tools: [
        { name: "a", description: "does a", parameters: { type: "object", properties: {} }, strict: true },
        { name: "b", description: null, parameters: { type: "object", properties: {} }, strict: null },
      ],
      webSearch: { ...anySearch, usesMax: 8 },
    });
    expect(ask({ tools: tools.slice(0, 3) }).webSearch).toBeNull();
  });

  test.each([
    [null, "auto"],
    [{ type: "auto" }, "auto"],
    [{ type: "none" }, "none"],
    [{ type: "any" }, "required"],
    [{ type: "tool", name: "b" }, { named: "b" }],
    [{ type: "tool", name: "web_search" }, "auto"],
  ])("tool_choice %j is %j", (tool_choice, choice) => {
    expect(ask({ tools, tool_choice }).toolChoice).toEqual(choice as never);
  });

  test("a choice that cannot be met is refused", () => {
    expect(refusal({ tool_choice: { type: "any" } })).toBe("malformed: tool_choice any needs tools");
    expect(refusal({ tools, tool_choice: { type: "tool", name: "z" } })).toContain("there is no tool named z");
    expect(refusal({ tools, tool_choice: { type: "tool" } })).toBe("malformed: tool_choice.name must be a string");
    expect(refusal({ tools, tool_choice: "auto" })).toStartWith("malformed: tool_choice must be an object");
    expect(ask({ tools: tools.slice(2), tool_choice: { type: "any" } }).toolChoice).toBe("auto");
  });

  test("disable_parallel_tool_use", () => {
    const parallel = (disable_parallel_tool_use?: boolean) =>
      ask({ tools, tool_choice: { type: "auto", disable_parallel_tool_use } }).parallelToolCalls;
    expect([parallel(), parallel(true), parallel(false)]).toEqual([null, false, true]);
  });
});

describe("structured output", () => {
  const format = { type: "json_schema", schema: { type: "object" } };

  test("is read in its place of today and of yesterday", () => {
    const expected = { kind: "json_schema", name: "answer", schema: { type: "object" }, strict: true } as const;
    expect(ask({ output_config: { format } }).format).toEqual(expected);
    expect(ask({ output_format: format }).format).toEqual(expected);
    expect(ask({ output_config: { format: null } }).format).toBeNull();
  });

  test("is refused naming model and field where the model lacks it", () => {
    for (const model of ["open-08-W4A16-AUTOROUND-REAP", "open-09-W4A16-AUTOROUND-REAP"]) {
      expect(refusal({ model, output_config: { format } })).toBe(
        `malformed: output_config.format: the model ${model} does not support json_schema`,
      );
    }
    expect(refusal({ output_config: { format: { type: "json_schema" } } })).toBe(
      "malformed: output_config.format.schema must be a JSON Schema object",
    );
  });
});
