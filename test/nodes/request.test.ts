// What goes to each engine: only known fields, in the form that it takes.
import type { SharePrefixCache } from "../../src/config/config.ts";
import { describe, expect, test } from "bun:test";
import type { EngineKind } from "../../src/nodes/engine-kind.ts";
import { nodeRequest } from "../../src/nodes/request.ts";
import type { Ask } from "../../src/core/types.ts";
import { askOf, firstPartyModel, toolOf } from "../fixtures/asks.ts";

type Body = Record<string, unknown> & { messages: Record<string, unknown>[] };
const bodyOf = (changes: Partial<Ask> = {}, engine: EngineKind = "unknown"): Body =>
  JSON.parse(nodeRequest(askOf(changes), 7, "node-model", engine).body) as Body;
const engines: EngineKind[] = ["vllm", "sglang", "tensorrt-llm", "llama.cpp", "ollama", "lm-studio", "tgi", "unknown"];
const tools = [toolOf("get_weather"), toolOf("get_time")];

describe("what every engine gets", () => {
  for (const engine of engines)
    test(engine, () => {
      const body = bodyOf({ stop: ["a", "b"], sampling: { temperature: 0.5, seed: 1 } }, engine);
      expect(body).toMatchObject({
        model: "node-model",
        stream: true,
        stream_options: { include_usage: true },
        max_tokens: 4_096,
        stop: ["a", "b"],
        temperature: 0.5,
        seed: 1,
        messages: [{ role: "user", content: "Hello" }],
      });
    });
  test("nothing that was not asked for", () => {
    expect(Object.keys(bodyOf()).sort()).toEqual(["max_tokens", "messages", "model", "stream", "stream_options"]);
  });
  test("no budget where it does not limit the answer", () => {
    expect(bodyOf({ model: firstPartyModel })).not.toHaveProperty("max_tokens");
  });
});

describe("what some engines get", () => {
  const withField = (field: string, changes: Partial<Ask> = {}): string[] =>
    engines.filter((engine) => field in bodyOf(changes, engine));
  test("running usage and cache salts where they are known", () => {
    const running = engines.filter(
      (engine) =>
        (bodyOf({}, engine)["stream_options"] as object) &&
        "continuous_usage_stats" in (bodyOf({}, engine)["stream_options"] as object),
    );
    expect(running).toEqual(["vllm", "sglang", "tensorrt-llm"]);
    expect(withField("cache_salt")).toEqual(["vllm", "sglang"]);
  });
  test("another salt for another account", () => {
    const salt = (account: number) =>
      (JSON.parse(nodeRequest(askOf(), account, "m", "vllm").body) as Body)["cache_salt"];
    expect(salt(1)).toBe(salt(1));
    expect(salt(1)).not.toBe(salt(2));
  });
  test("accounts are kept apart where the engine can, everywhere that they are asked to be, or not at all", () => {
    const kept = (sharing: SharePrefixCache | undefined, seed = 0n) =>
      Object.fromEntries(
        engines.flatMap((engine) => {
          const body = JSON.parse(nodeRequest(askOf(), 1, "m", engine, {}, { sharing, seed }).body) as Body;
          const fields = ["cache_salt", "cache_prompt"].filter((field) => field in body);
          return fields.length === 0 ? [] : [[engine, fields.map((field) => body[field] || field)]];
        }),
      );
    const salt = [expect.any(String)];
    expect(kept(undefined)).toEqual({ vllm: salt, sglang: salt });
    const everywhere = { vllm: salt, sglang: salt, "tensorrt-llm": salt, unknown: salt };
    expect(kept(false)).toEqual({ ...everywhere, "llama.cpp": ["cache_prompt"] });
    expect(kept(true)).toEqual({});
    expect([kept("account"), kept("plan")]).toEqual([kept(false), kept(false)]); // without a known plan each has its own
    expect(kept(undefined, 1n)["vllm"]).not.toEqual(kept(undefined, 2n)["vllm"]); // gateways on one engine
  });
  test("one salt for all accounts of a plan, where they share the cache", () => {
    const salt = (account: number, plan: string, sharing: SharePrefixCache) => {
      const { body } = nodeRequest(askOf(), account, "m", "vllm", {}, { sharing, seed: 0n, plan });
      return (JSON.parse(body) as Body)["cache_salt"];
    };
    expect(salt(1, "pro", "plan")).toBe(salt(2, "pro", "plan"));
    expect(salt(1, "pro", "plan")).not.toBe(salt(1, "free", "plan"));
    expect(salt(1, "pro", "account")).not.toBe(salt(2, "pro", "account"));
    expect(salt(1, "pro", "account")).toBe(salt(1, "free", "account"));
  });
  test("sampling fields by their names there", () => {
    const sampling = { top_k: 5, repetition_penalty: 1.1 };
    expect(bodyOf({ sampling }, "vllm")).toMatchObject(sampling);
    expect(bodyOf({ sampling }, "llama.cpp")).toMatchObject({ top_k: 5, repeat_penalty: 1.1 });
    expect(bodyOf({ sampling }, "unknown")).not.toHaveProperty("top_k");
  });
});

describe("reasoning depth", () => {
  const depth = (effort: Ask["effort"], engine: EngineKind, changes: Partial<Ask> = {}) => {
    const { reasoning_effort, chat_template_kwargs } = bodyOf({ effort, ...changes }, engine);
    return { reasoning_effort, chat_template_kwargs };
  };
  const off = { chat_template_kwargs: { enable_thinking: false, thinking: false }, reasoning_effort: undefined };
  test("off and on where templates read it", () => {
    for (const engine of ["vllm", "sglang", "sglang-router", "llama.cpp"] as const) {
      expect(depth("off", engine)).toEqual(off);
      expect(depth("minimal", engine)).toMatchObject({
        reasoning_effort: "low",
        chat_template_kwargs: { enable_thinking: true },
      });
      expect(depth("max", engine)).toMatchObject({ reasoning_effort: "high" });
    }
  });
  test("Ollama: off, and levels for gpt-oss alone", () => {
    expect(depth("off", "ollama")).toMatchObject({ reasoning_effort: "none" });
    expect(depth("high", "ollama").reasoning_effort).toBeUndefined();
    const body = JSON.parse(nodeRequest(askOf({ effort: "high" }), 1, "gpt-oss:20b", "ollama").body) as Body;
    expect(body["reasoning_effort"]).toBe("high");
  });
  test("transformers: in the template's settings alone", () => {
    expect(depth("off", "transformers")).toEqual(off);
    expect(depth("max", "transformers")).toEqual({
      chat_template_kwargs: { enable_thinking: true, thinking: true, reasoning_effort: "high" },
      reasoning_effort: undefined,
    });
  });
  test("nothing for first-party tiers, unknown engines, or no setting", () => {
    expect(Object.values(depth("high", "vllm", { model: firstPartyModel }))).toEqual([undefined, undefined]);
    expect(Object.values(depth("off", "unknown"))).toEqual([undefined, undefined]);
    expect(Object.values(depth(null, "vllm"))).toEqual([undefined, undefined]);
  });
});

describe("depths of the configuration", () => {
  const depths = { off: { think: false }, high: {} };
  const sent = (effort: Ask["effort"], changes: Partial<Ask> = {}) => {
    const { think, reasoning_effort, chat_template_kwargs } = JSON.parse(
      nodeRequest(askOf({ effort, ...changes }), 1, "m", "llama.cpp", { depth: depths }).body,
    ) as Body;
    return { think, reasoning_effort, chat_template_kwargs };
  };
  const nothing = { think: undefined, reasoning_effort: undefined, chat_template_kwargs: undefined };
  test("stand in place of the engine's, also an empty one", () => {
    expect(sent("off")).toEqual({ ...nothing, think: false });
    expect(sent("high")).toEqual(nothing);
    expect(sent("low")).toMatchObject({ reasoning_effort: "low" });
  });
  test("switch thinking off for a forced tool too, and mean nothing to first-party tiers", () => {
    const forced: Partial<Ask> = { tools, toolChoice: { named: "get_time" } };
    expect(sent(null, forced)).toEqual({ ...nothing, think: false });
    expect(sent("off", { model: firstPartyModel })).toEqual(nothing);
  });
});

describe("tools", () => {
  const names = (body: Body) =>
    (body["tools"] as { function: { name: string } }[] | undefined)?.map((tool) => tool.function.name);
  test("none, and an empty list, send no tools", () => {
    for (const body of [bodyOf({ tools, toolChoice: "none" }), bodyOf({ tools: [], toolChoice: "required" })]) {
      expect(body).not.toHaveProperty("tools");
      expect(body).not.toHaveProperty("tool_choice");
    }
  });
  test("auto and required", () => {
    expect(bodyOf({ tools })).not.toHaveProperty("tool_choice");
    expect(bodyOf({ tools, toolChoice: "required" })["tool_choice"]).toBe("required");
  });
  const named: Partial<Ask> = { tools, toolChoice: { named: "get_time" } };
  test("one tool is forced in each engine's way", () => {
    for (const engine of ["vllm", "sglang", "tensorrt-llm", "tgi"] as const)
      expect(bodyOf(named, engine)["tool_choice"]).toEqual({ type: "function", function: { name: "get_time" } });
    for (const engine of ["llama.cpp", "lm-studio", "sglang-router", "unknown"] as const) {
      expect(bodyOf(named, engine)["tool_choice"]).toBe("required");
      expect(names(bodyOf(named, engine))).toEqual(["get_time"]);
    }
    expect(bodyOf({ ...named, effort: "high" }, "llama.cpp")).toMatchObject({
      chat_template_kwargs: { enable_thinking: false },
    });
  });
  test("SGLang and vLLM constrain the arguments of a call that must be made only where its tool is strict", () => {
    const strict = (changes: Partial<Ask>, engine: EngineKind) =>
      (bodyOf(changes, engine)["tools"] as { function: { strict?: boolean } }[]).map((tool) => tool.function.strict);
    expect(strict(named, "sglang")).toEqual([true]);
    expect(strict({ tools: tools.slice(0, 1), toolChoice: "required" }, "sglang")).toEqual([true]);
    expect(strict({ tools, toolChoice: "required" }, "sglang")).toEqual([true, true]);
    expect(strict({ tools, toolChoice: "auto" }, "sglang")).toEqual([undefined, undefined]);
    expect(strict(named, "vllm")).toEqual([true]);
    expect(strict(named, "llama.cpp")).toEqual([undefined]);
    expect(strict({ ...named, inWords: { schema: true } }, "sglang")).toEqual([undefined]);
  });
  test("Ollama: a call that names its tool as the answer's schema, and the tool in words", () => {
    for (const tool of [named, { tools: tools.slice(1), toolChoice: "required" } as const]) {
      const { body, expected } = nodeRequest(askOf(tool), 1, "m", "ollama");
      expect(expected.textNamesCall).toBe(true);
      const parsed = JSON.parse(body) as Body;
      expect(parsed).not.toHaveProperty("tools");
      const { schema } = (parsed["response_format"] as { json_schema: { schema: { anyOf: object[] } } }).json_schema;
      expect(schema.anyOf).toMatchObject([
        {
          properties: { name: { const: "get_time" }, arguments: tools[1]!.parameters },
          required: ["name", "arguments"],
        },
      ]);
      expect((parsed["messages"] as { content: string }[])[0]!.content).toContain('"name":"get_time"');
    }
  });
  test("Ollama, any of several: one of their calls as the answer's schema, and the tools in words", () => {
    const either = { tools, toolChoice: "required" } as const;
    const { body, expected } = nodeRequest(askOf(either), 1, "m", "ollama");
    expect(expected).toMatchObject({ textNamesCall: true });
    const parsed = JSON.parse(body) as Body;
    expect(parsed).not.toHaveProperty("tools");
    const { schema } = (parsed["response_format"] as { json_schema: { schema: { anyOf: object[] } } }).json_schema;
    expect(schema.anyOf).toMatchObject(
      tools.map(({ name }) => ({ properties: { name: { const: name } }, required: ["name", "arguments"] })),
    );
    const [system] = parsed["messages"] as { role: string; content: string }[];
    for (const { name } of tools) expect(system!.content).toContain(`"name":"${name}"`);
    for (const inWords of [{ call: true }, { schema: true }] as const) {
      const again = nodeRequest(askOf({ ...either, inWords }), 1, "m", "ollama");
      expect(again.expected.textNamesCall).toBe(false);
      expect(JSON.parse(again.body)).toHaveProperty("tools");
    }
  });
  test("Ollama, any of several: a tool's schema that refers to itself is left open", () => {
    const parameters = { type: "object", properties: { next: { $ref: "#" } } };
    const recursive = [{ ...tools[0]!, parameters }, tools[1]!];
    const { body } = nodeRequest(askOf({ tools: recursive, toolChoice: "required" }), 1, "m", "ollama");
    const format = (JSON.parse(body) as Body)["response_format"];
    expect(format).toMatchObject({
      json_schema: { schema: { anyOf: [{ properties: { arguments: { type: "object" } } }, {}] } },
    });
    expect(JSON.stringify(format)).not.toContain("$ref");
  });
  test("never together with a schema", () => {
    const format = { kind: "json_object" } as const;
    for (const engine of engines) {
      expect(bodyOf({ tools, format }, engine)).not.toHaveProperty("response_format");
      expect(bodyOf({ tools, format, toolChoice: "none" }, engine)).toHaveProperty("response_format");
    }
  });
  test("the schema stands in the system message then, and for an engine that nobody knows", () => {
    const format = { kind: "json_schema", name: "n", schema: { type: "array" }, strict: null } as const;
    const system = (changes: Partial<Ask>, engine: EngineKind = "vllm") =>
      (bodyOf({ format, ...changes }, engine)["messages"] as { role: string; content: string }[]).find(
        ({ role }) => role === "system",
      )?.content;
    expect(system({})).toBeUndefined();
    for (const engine of ["unknown", "transformers"] as const) expect(system({}, engine)).toContain('{"type":"array"}');
    expect(bodyOf({ format }, "transformers")).not.toHaveProperty("response_format");
    expect(system({ tools })).toContain('{"type":"array"}');
    const turns = [{ role: "system", content: "Be brief." } as const, ...askOf().turns];
    expect(system({ tools, turns })).toStartWith("Be brief.\n\nYour final answer must be JSON");
    expect(system({ tools, format: { kind: "json_object" } })).toContain("must be a JSON object");
  });
  test("llama-server gets no log probabilities with tools", () => {
    const sampling = { logprobs: true, top_logprobs: 2 };
    expect(bodyOf({ tools, sampling }, "llama.cpp")).not.toHaveProperty("logprobs");
    expect(bodyOf({ sampling }, "llama.cpp")).toMatchObject(sampling);
  });
});

describe("response format", () => {
  const schema = { $schema: "http://json-schema.org/draft-07/schema#", type: "object", properties: {} };
  const format = { kind: "json_schema", name: "n", schema, strict: true } as const;
  test("json_schema", () => {
    expect(bodyOf({ format })["response_format"]).toEqual({
      type: "json_schema",
      json_schema: { name: "n", schema: { type: "object", properties: {} }, strict: true },
    });
    expect(bodyOf({ format }, "tgi")["response_format"]).toMatchObject({ type: "json_schema", value: { name: "n" } });
  });
  test("json_object", () => {
    expect(bodyOf({ format: { kind: "json_object" } })["response_format"]).toEqual({ type: "json_object" });
    expect(bodyOf({ format: { kind: "json_object" } }, "lm-studio")["response_format"]).toMatchObject({
      type: "json_schema",
    });
  });
});

test("llama-cpp-python takes a format of its own, forces no tool and refuses a message without content", () => {
  const call = { id: "call_1", name: "get_weather", arguments: "{}" };
  const turns: Ask["turns"] = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: null, reasoning: null, calls: [call] },
    { role: "tool", callId: call.id, content: "sunny" },
  ];
  const schema = { type: "object", properties: { city: { type: "string" } } };
  const format = { kind: "json_schema", name: "n", schema, strict: true } as const;
  const body = bodyOf({ turns, format }, "llama-cpp-python");
  expect(body).toMatchObject({ response_format: { type: "json_object", schema } });
  expect((body.messages as { content: unknown }[]).map(({ content }) => content)).toEqual(["Hi", "", "sunny"]);
  const forced = bodyOf({ tools: [toolOf("get_weather")], toolChoice: "required" }, "llama-cpp-python");
  expect(forced).toMatchObject({ response_format: { type: "json_object" } });
  expect(forced).not.toHaveProperty("tools");
});

describe("messages", () => {
  const messages = (...turns: Ask["turns"]) => bodyOf({ turns }).messages;
  test("system turns at the start are one message; later ones are marked", () => {
    const made = messages(
      { role: "system", content: "Be brief." },
      { role: "system", content: "Be kind." },
      { role: "user", content: "Hi" },
      { role: "system", content: "Now in French." },
    );
    expect(made).toEqual([
      { role: "system", content: "Be brief.\n\nBe kind." },
      { role: "user", content: "Hi" },
      { role: "user", content: "<system>\nNow in French.\n</system>" },
    ]);
  });
  test("an empty system turn is gone", () => {
    expect(messages({ role: "system", content: "" }, { role: "user", content: "Hi" })).toHaveLength(1);
  });
  test("reasoning and calls of the history; arguments are always a JSON object", () => {
    const call = (json: string) => ({ id: "a", name: "get", arguments: json });
    const made = messages({
      role: "assistant",
      content: null,
      reasoning: "why",
      calls: [call('{"a":1}'), call("{b"), call("[1]"), call("")],
    });
    expect(made[0]).toMatchObject({ role: "assistant", content: null, reasoning_content: "why" });
    const sent = (made[0]!["tool_calls"] as { function: { arguments: string } }[]).map((one) => one.function.arguments);
    expect(sent[0]).toBe('{"a":1}');
    for (const json of sent) expect(JSON.parse(json)).toBeObject();
  });
  test("images: data only, a URL goes nowhere", () => {
    const image = (url: string) => ({ kind: "image", url, detail: null }) as const;
    const made = messages({
      role: "user",
      content: [{ kind: "text", text: "see" }, image("data:image/png;base64,AA"), image("http://10.0.0.1/x.png")],
    });
    expect(made).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "see" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AA" } },
        ],
      },
    ]);
    expect(
      messages({
        role: "user",
        content: [{ kind: "text", text: "a" }, image("http://x/y.png"), { kind: "text", text: "b" }],
      }),
    ).toEqual([{ role: "user", content: "a\nb" }]);
  });
  test("images in a tool's result follow as the user's", () => {
    const made = messages({
      role: "tool",
      callId: "a",
      content: [
        { kind: "text", text: "t" },
        { kind: "image", url: "data:image/png;base64,AA", detail: "low" },
      ],
    });
    expect(made).toEqual([
      { role: "tool", tool_call_id: "a", content: "t" },
      { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA", detail: "low" } }] },
    ]);
  });
});

describe("what a node is told in words", () => {
  const schema = { type: "object", properties: { a: { type: "string", pattern: "^(?=x)a$" } } };
  const format = { kind: "json_schema", name: "x", schema, strict: null } as const;
  const systemOf = (body: Body): unknown => body.messages.find(({ role }) => role === "system")?.["content"];

  test("a format whose rules its engine cannot all be held to, beside the rest of them", () => {
    const body = bodyOf({ format }, "ollama");
    expect(body["response_format"]).toMatchObject({
      json_schema: { schema: { type: "object", properties: { a: { type: "string" } } } },
    });
    expect(systemOf(body)).toContain(JSON.stringify(schema));
    const plain = bodyOf({ format: { ...format, schema: { type: "object" } } }, "ollama");
    expect(systemOf(plain)).toBeUndefined();
  });
  test("a schema that it refused, and no schema", () => {
    for (const engine of engines) {
      const body = bodyOf({ format, inWords: { schema: true } }, engine);
      expect(body).not.toHaveProperty("response_format");
      expect(systemOf(body)).toContain(JSON.stringify(schema));
    }
  });
  test("parameters of tools that it refused", () => {
    const described = { ...toolOf("f", { parameters: schema, strict: true }), description: "Finds." };
    const { tools } = bodyOf({ tools: [described], inWords: { schema: true } }, "vllm");
    expect(tools).toEqual([
      {
        type: "function",
        function: {
          name: "f",
          description: `Finds.\n\nJSON Schema of the arguments: ${JSON.stringify(schema)}`,
          parameters: { type: "object", properties: {}, additionalProperties: true },
        },
      },
    ]);
    const asCall = bodyOf({ tools: [described], toolChoice: "required", inWords: { schema: true } }, "ollama");
    expect(asCall).not.toHaveProperty("response_format");
    expect(JSON.stringify(asCall["tools"])).toContain('\\"properties\\":{\\"a\\"');
  });
  test("that a call must be made", () => {
    for (const engine of engines) {
      expect(systemOf(bodyOf({ tools, toolChoice: "required", inWords: { call: true } }, engine))).toContain(
        "You must call one of the tools get_weather, get_time now",
      );
      expect(systemOf(bodyOf({ tools, toolChoice: { named: "get_time" }, inWords: { call: true } }, engine))).toContain(
        "You must call the tool get_time now",
      );
    }
  });
});

test("llama.cpp does not think before a call that must be made, of whichever tool", () => {
  const thinks = (changes: Partial<Ask>): unknown => bodyOf({ tools, ...changes }, "llama.cpp")["chat_template_kwargs"];
  expect(thinks({ toolChoice: "required" })).toEqual({ enable_thinking: false, thinking: false });
  expect(thinks({ toolChoice: { named: "get_time" } })).toEqual({ enable_thinking: false, thinking: false });
  expect(thinks({})).toBeUndefined();
});

describe("stop sequences", () => {
  const stop = ["a", "b", "c", "d", "e", "f"];
  const stopsOf = (changes: Partial<Ask>, engine: EngineKind) => {
    const {
      body,
      expected: { stops },
    } = nodeRequest(askOf({ stop, ...changes }), 7, "node-model", engine);
    return { sent: (JSON.parse(body) as Body)["stop"], stops };
  };
  test("four are the node's, the others ours", () => {
    for (const engine of engines) {
      expect(stopsOf({}, engine)).toEqual({ sent: ["a", "b", "c", "d"], stops: ["e", "f"] });
      expect(stopsOf({ stop: ["a"] }, engine)).toEqual({ sent: ["a"], stops: [] });
    }
  });
  test("all are ours where the client is to hear which one it was, and the engine does not say it", () => {
    for (const engine of engines) {
      const says = engine === "vllm" || engine === "sglang";
      const expected = says ? { sent: ["a", "b", "c", "d"], stops: ["e", "f"] } : { sent: undefined, stops: stop };
      expect(stopsOf({ endpoint: "/v1/messages" }, engine)).toEqual(expected);
    }
  });
  test("all are ours where the engine writes them out before it stops", () => {
    expect(stopsOf({}, "transformers")).toEqual({ sent: undefined, stops: stop });
  });
  test("long ones are the node's all the same", () => {
    const long = ["x".repeat(20_000)];
    expect(stopsOf({ stop: long, endpoint: "/v1/messages" }, "ollama")).toEqual({ sent: long, stops: [] });
  });
  test("none ends the arguments of a call that is written as text", () => {
    const forced = { tools: [toolOf("f")], toolChoice: "required", endpoint: "/v1/messages" } as const;
    expect(stopsOf(forced, "ollama")).toEqual({ sent: ["a", "b", "c", "d"], stops: [] });
  });
});
