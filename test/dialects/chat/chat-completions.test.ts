// What the chat-completions dialect reads and refuses. What it writes is in test/golden.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { embeddedCatalog } from "../../../src/core/catalog.ts";
import { chatCompletions } from "../../../src/dialects/chat/chat-completions.ts";
import { anySearch } from "../../../src/dialects/request/search-request.ts";
import { isRefusal, messageOf } from "../../../src/core/refusals.ts";
import type { Ask, Refusal } from "../../../src/core/types.ts";
import { pixelUrl } from "../../fixtures/pictures.ts";
import { readBody } from "../../fixtures/reading.ts";

const catalog = embeddedCatalog();
const hello = [{ role: "user", content: "hello" }];
const read = (body: object): Ask | Refusal => readBody(chatCompletions, body, JSON.stringify(body).length, catalog);

function ask(body: object): Ask {
  const result = read({ model: "core-3", messages: hello, ...body });
  if (isRefusal(result)) throw new Error(messageOf(result));
  return result;
}

function refusal(body: object): string {
  const result = read({ model: "core-3", messages: hello, ...body });
  if (!isRefusal(result)) throw new Error("was accepted");
  return `${result.refusal}: ${messageOf(result)}`;
}

describe("output budget", () => {
  test.each([
    [{}, 4096],
    [{ max_tokens: null }, 4096],
    [{ max_tokens: -5 }, 1],
    [{ max_tokens: 0 }, 1],
    [{ max_tokens: 1 }, 1],
    [{ max_tokens: 65_536 }, 65_536],
    [{ max_tokens: 128_000 }, 65_536],
    [{ max_completion_tokens: 77 }, 77],
    [{ max_tokens: 5, max_completion_tokens: 77 }, 5],
    [{ model: "core-coder-1" }, 65_536],
  ])("%p reserves %p tokens", (body, tokens) => {
    expect(ask(body).outputTokensMax).toBe(tokens);
  });

  test("that is no whole number is refused", () => {
    expect(refusal({ max_tokens: "many" })).toBe('malformed: max_tokens must be a whole number, is "many"');
    expect(refusal({ max_tokens: 1.5 })).toBe("malformed: max_tokens must be a whole number, is 1.5");
  });
});

describe("settings", () => {
  test("every depth that clients send is accepted", () => {
    const depths = ["off", "none", "minimal", "low", "medium", "high", "xhigh", "max"];
    expect(depths.map((reasoning_effort) => ask({ reasoning_effort }).effort)).toEqual([
      "off",
      "off",
      "minimal",
      "low",
      "medium",
      "high",
      "max",
      "max",
    ]);
    expect(ask({}).effort).toBeNull();
  });

  test("of a hosted model the first four non-empty stop strings are used, of others all", () => {
    expect(ask({ model: "open-10-W8A16", stop: ["", "a", "b", "", "c", "d", "e"] }).stop).toEqual(["a", "b", "c", "d"]);
    const stop = ["a", "b", "c", "d", "e"];
    expect(ask({ model: "core-3", stop }).stop).toEqual(stop); // only hosted models use no more than four
    const long = ["a", "b", "c", "d", "e".repeat(16_384), "f"];
    expect(refusal({ model: "core-3", stop: long })).toContain("stop must have at most 16384 characters");
    expect(ask({ model: "open-10-W8A16", stop: long }).stop).toEqual(["a", "b", "c", "d"]);
    expect(ask({ stop: "x" }).stop).toEqual(["x"]);
    expect(ask({ stop: null }).stop).toEqual([]);
  });

  test("sampling settings are kept as they are, absent and null ones left out", () => {
    const body = {
      temperature: 0,
      top_p: 1,
      seed: 7,
      logit_bias: { "5": -100 },
      presence_penalty: null,
      user: "u",
      metadata: { a: "b" },
    };
    expect(ask(body).sampling).toEqual({ temperature: 0, top_p: 1, seed: 7, logit_bias: { "5": -100 } });
  });

  test("web search is asked for by its switch, OpenAI's options or a hosted tool", () => {
    expect(ask({}).webSearch).toBeNull();
    expect(ask({ web_search: true }).webSearch).toEqual(anySearch);
    expect(ask({ web_search_options: {} }).webSearch).toEqual(anySearch);
    expect(ask({ tools: [{ type: "web_search_preview" }] }).webSearch).toEqual(anySearch);
  });
});

describe("conversation", () => {
  test("every role is read anywhere, developer as system", () => {
    const messages = [
      { role: "user", content: "a" },
      { role: "developer", content: [{ type: "text", text: "b" }] },
      {
        role: "assistant",
        content: null,
        reasoning_content: "r",
        tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c1", content: [{ type: "text", text: "result" }] },
      { role: "system", content: "d" },
    ];
    expect(ask({ messages }).turns).toEqual([
      { role: "user", content: "a" },
      { role: "system", content: "b" },
      { role: "assistant", content: null, reasoning: "r", calls: [{ id: "c1", name: "f", arguments: "{}" }] },
      { role: "tool", callId: "c1", content: [{ kind: "text", text: "result" }] },
      { role: "system", content: "d" },
    ]);
  });

  test("an image is read by a model with eyes and refused, naming the model, by one without", () => {
    const messages = [
      {
        role: "user",
        content: [{ type: "image_url", image_url: { url: pixelUrl, detail: "low" } }],
      },
    ];
    expect(ask({ messages }).turns).toEqual([
      { role: "user", content: [{ kind: "image", url: pixelUrl, detail: "low" }] },
    ]);
    expect(refusal({ model: "open-01-3BIT-REAP", messages })).toBe(
      "malformed: messages[0].content[0]: the model open-01-3BIT-REAP reads text only, not images",
    );
  });

  test.each([
    [{ messages: "not-an-array" }, "messages must be a non-empty array of messages"],
    [{ messages: [] }, "messages must be a non-empty array of messages"],
    [{ messages: [{ role: "robot", content: "x" }] }, "messages[0].role must be one of system, developer"],
    [{ messages: [{ role: "user", content: 5 }] }, "messages[0].content must be a string or an array of parts"],
    [{ messages: [{ role: "user" }] }, "messages[0].content is required"],
    [{ messages: [{ role: "tool", content: "x" }] }, "messages[0].tool_call_id must be a string"],
    [{ messages: [{ role: "user", content: [{ type: "text" }] }] }, "messages[0].content[0].text must be a string"],
    [{ messages: [{ role: "user", content: [null] }] }, "messages[0].content[0].type must be one of"],
    [{ messages: [{ role: "assistant", tool_calls: [{}] }] }, "messages[0].tool_calls[0].id must be a string"],
    [{ n: 2 }, "n must be 1"],
    [{ functions: [{ name: "f" }] }, "functions must be left out: functions are given in tools"],
    [{ temperature: 3 }, "temperature must be a number from 0 to 2, is 3"],
    [{ top_logprobs: 2 }, "top_logprobs needs logprobs: true"],
    [{ stream: "yes" }, "stream must be true or false"],
  ])("%p is refused", (body, reason) => {
    expect(refusal(body)).toStartWith(`malformed: ${reason}`);
  });

  test("an unknown model is its own refusal, which does not count for flood protection", () => {
    expect(refusal({ model: "gpt-9" })).toStartWith("unknown_model: The model `gpt-9` does not exist");
  });

  test("unknown fields anywhere are ignored", () => {
    expect(
      ask({ store: true, verbosity: "low", messages: [{ role: "user", content: "x", cache_control: {} }] }).turns,
    ).toHaveLength(1);
  });

  test("no value of a known field makes it throw", () => {
    const names = [
      "messages",
      "tools",
      "tool_choice",
      "response_format",
      "stop",
      "logit_bias",
      "reasoning_effort",
      "max_tokens",
    ];
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.jsonValue(), (name, value) => {
        read({ model: "core-3", messages: hello, [name]: value });
        read({
          model: "core-3",
          messages: [
            { role: "user", content: value },
            { role: "assistant", tool_calls: value },
          ],
        });
        read({
          model: "core-3",
          messages: hello,
          tools: [value, { type: "function", function: value }],
          tool_choice: value,
        });
      }),
    );
  });
});

describe("tools", () => {
  const tools = [
    {
      type: "function",
      function: { name: "a", description: "does a", parameters: { type: "object", properties: {} }, strict: true },
    },
    { type: "function", function: { name: "b" } },
    { type: "image_generation" },
  ];

  test("functions are read, hosted kinds that are not run here left out", () => {
    expect(ask({ tools }).tools).toEqual([
      { name: "a", description: "does a", parameters: { type: "object", properties: {} }, strict: true },
      { name: "b", description: null, parameters: { type: "object", properties: {} }, strict: null },
    ]);
  });

  test("tool_choice: strings, one named tool, and a hard limit to the allowed ones", () => {
    expect(ask({ tools, tool_choice: "none" }).toolChoice).toBe("none");
    expect(ask({ tools, tool_choice: "required" }).toolChoice).toBe("required");
    expect(ask({ tools, tool_choice: { type: "function", function: { name: "b" } } }).toolChoice).toEqual({
      named: "b",
    });
    const allowed = ask({
      tools,
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "b" } }] },
      },
    });
    expect([allowed.tools.map((tool) => tool.name), allowed.toolChoice]).toEqual([["b"], "required"]);
    expect(refusal({ tools, tool_choice: { type: "function", function: { name: "z" } } })).toContain(
      "there is no tool named z",
    );
    expect(refusal({ tool_choice: "required" })).toBe("malformed: tool_choice required needs tools");
    expect(refusal({ tools, tool_choice: "sometimes" })).toStartWith("malformed: tool_choice must be");
  });

  test("a schema that would overflow the stack is refused", () => {
    let parameters: object = {};
    for (let depth = 0; depth < 5000; depth++) parameters = { properties: { x: parameters } };
    expect(refusal({ tools: [{ type: "function", function: { name: "deep", parameters } }] })).toContain(
      "nests too deep",
    );
  });
});

describe("structured output", () => {
  const response_format = { type: "json_schema", json_schema: { name: "n", schema: { type: "object" }, strict: true } };

  test("is read as the model supports it, and refused naming model and field where it does not", () => {
    expect(ask({ response_format }).format).toEqual({
      kind: "json_schema",
      name: "n",
      schema: { type: "object" },
      strict: true,
    });
    expect(ask({ response_format: { type: "json_object" } }).format).toEqual({ kind: "json_object" });
    expect(ask({ response_format: { type: "text" } }).format).toBeNull();
    expect(refusal({ model: "open-08-W4A16-AUTOROUND-REAP", response_format })).toBe(
      "malformed: response_format: the model open-08-W4A16-AUTOROUND-REAP does not support json_schema",
    );
    expect(refusal({ model: "open-09-W4A16-AUTOROUND-REAP", response_format })).toContain(
      "open-09-W4A16-AUTOROUND-REAP",
    );
    expect(
      ask({ model: "open-09-W4A16-AUTOROUND-REAP", response_format: { type: "json_object" } }).format,
    ).not.toBeNull();
  });
});
