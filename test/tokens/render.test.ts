// What is counted of a request: everything that a model sees, once, and a little too much rather than too little.
import { describe, expect, test } from "bun:test";
import { anySearch } from "../../src/dialects/request/search-request.ts";
import { imageTokens, renderAsk } from "../../src/tokens/render.ts";
import type { Ask, Tool } from "../../src/core/types.ts";
import { askOf } from "../fixtures/asks.ts";
import { tokenizer } from "./reference.ts";

const tool: Tool = {
  name: "get_weather",
  description: "Get the weather for a city",
  parameters: {
    type: "object",
    properties: { city: { type: "string", description: "City name" } },
    required: ["city"],
  },
  strict: null,
};

/** The count of a request, as the gateway makes it. */
function count(ask: Ask): number {
  const { texts, extraTokens } = renderAsk(ask);
  return texts.reduce((sum, text) => sum + tokenizer.encode(text).length, extraTokens);
}

/** A prompt as ChatML templates write it; `<|im_start|>` and `<|im_end|>` are one token each and part the text. */
function chatMl(prompt: string): number {
  const parts = prompt.split(/<\|im_(?:start|end)\|>/);
  return parts.reduce((sum, part) => sum + tokenizer.encode(part).length, parts.length - 1);
}

describe("everything is counted", () => {
  const base = askOf();
  const marker = "zebra crossing ".repeat(50);
  const cases: [string, Partial<Ask>][] = [
    ["system", { turns: [{ role: "system", content: marker }] }],
    ["user text", { turns: [{ role: "user", content: marker }] }],
    ["a text part", { turns: [{ role: "user", content: [{ kind: "text", text: marker }] }] }],
    ["assistant text", { turns: [{ role: "assistant", content: marker, reasoning: null, calls: [] }] }],
    ["reasoning", { turns: [{ role: "assistant", content: null, reasoning: marker, calls: [] }] }],
    [
      "a call's arguments",
      {
        turns: [
          {
            role: "assistant",
            content: null,
            reasoning: null,
            calls: [{ id: "1", name: "f", arguments: `{"a":"${marker}"}` }],
          },
        ],
      },
    ],
    [
      "a call's name",
      {
        turns: [
          { role: "assistant", content: null, reasoning: null, calls: [{ id: "1", name: marker, arguments: "{}" }] },
        ],
      },
    ],
    ["a result", { turns: [{ role: "tool", callId: "1", content: marker }] }],
    ["a result's part", { turns: [{ role: "tool", callId: "1", content: [{ kind: "text", text: marker }] }] }],
    ["a tool's name", { tools: [{ ...tool, name: marker }] }],
    ["a tool's description", { tools: [{ ...tool, description: marker }] }],
    ["a tool's schema", { tools: [{ ...tool, parameters: { [marker]: {} } }] }],
    [
      "the schema of the answer",
      { format: { kind: "json_schema", name: "a", schema: { title: marker }, strict: null } },
    ],
  ];
  test.each(cases)("%s, once", (_what, fields) => {
    const more = count(askOf(fields)) - count(base);
    expect(more).toBeGreaterThanOrEqual(100);
    expect(more).toBeLessThan(100 + 250);
  });

  test("search and images add tokens", () => {
    const image = { kind: "image", url: "https://example.com/a.png", detail: null } as const;
    expect(count(askOf({ webSearch: anySearch }))).toBeGreaterThan(count(base));
    expect(count(askOf({ turns: [{ role: "user", content: [image, image] }] }))).toBeGreaterThan(2 * 1_445);
  });
});

describe("a little high, never low", () => {
  const hi = [{ role: "user", content: "Hi" }] as const;
  test("for one message", () => {
    const real = chatMl("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    expect(real).toBe(9);
    expect(count(askOf({ turns: hi })) - real).toBeWithin(0, 10);
  });

  test("for a long conversation", () => {
    const turns = Array.from(
      { length: 50 },
      (_none, index) => ({ role: "user", content: `Question ${index}?` }) as const,
    );
    const real = chatMl(
      `${turns.map(({ content }) => `<|im_start|>user\n${content}<|im_end|>\n`).join("")}<|im_start|>assistant\n`,
    );
    expect(count(askOf({ turns })) - real).toBeWithin(0, real * 0.05);
  });

  test("for tools that the model is told of: the forced one alone, and none where none may be called", () => {
    const tools = [tool, { ...tool, name: "other" }];
    const all = count(askOf({ turns: hi, tools }));
    const one = count(askOf({ turns: hi, tools: [tool] }));
    expect(count(askOf({ turns: hi, tools, toolChoice: { named: tool.name } }))).toBe(one);
    expect(count(askOf({ turns: hi, tools, toolChoice: "required" }))).toBe(all);
    expect(count(askOf({ turns: hi, tools, toolChoice: "none" }))).toBe(count(askOf({ turns: hi })));
    expect(all).toBeGreaterThan(one);
  });

  test("for tools, as Qwen's template writes them", () => {
    const real = chatMl(
      '<|im_start|>system\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{"type": "function", "function": {"name": "get_weather", "description": "Get the weather for a city", "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "City name"}}, "required": ["city"]}}}\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n',
    );
    expect(count(askOf({ turns: hi, tools: [tool] })) - real).toBeWithin(0, real * 0.2);
  });
});

describe("images", () => {
  test.each([
    [{ width: 1, height: 1 }, null, 85 + 170],
    [{ width: 512, height: 512 }, null, 85 + 170],
    [{ width: 513, height: 512 }, "auto", 85 + 2 * 170],
    [{ width: 1_024, height: 1_024 }, "high", 85 + 4 * 170],
    [{ width: 4_096, height: 8_192 }, null, 85 + 6 * 170],
    [{ width: 100_000, height: 100 }, null, 85 + 4 * 170],
    [{ width: 4_294_967_295, height: 4_294_967_295 }, null, 85 + 4 * 170],
    [{ width: 2_048, height: 700 }, null, 85 + 8 * 170],
    [{ width: 4_096, height: 4_096 }, "low", 85],
    [null, "low", 85],
    [null, null, 85 + 8 * 170],
  ])("%j, detail %p: %p tokens", (size, detail, tokens) => expect(imageTokens(size, detail)).toBe(tokens));
});
