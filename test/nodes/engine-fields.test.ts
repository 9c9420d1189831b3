// Fields that only some engines know: what of a body they are, where they go, and what is refused.
import { describe, expect, test } from "bun:test";
import { readEngineFields } from "../../src/dialects/request/engine-fields.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import type { Ask, Model } from "../../src/core/types.ts";
import { unknownField, type KnowingNode } from "../../src/nodes/engine-fields.ts";
import type { EngineKind } from "../../src/nodes/engine-kind.ts";
import { engineTraits } from "../../src/nodes/engine-traits.ts";
import { nodeRequest } from "../../src/nodes/request.ts";
import { askOf, hostedModel } from "../fixtures/asks.ts";

const own: Model = { ...hostedModel, tier: "own" };
const none: ReadonlySet<string> = new Set();

/** An Ask of a chat body's fields. */
function asked(body: object, model = own): Ask {
  const read = readEngineFields(body, model, none, true);
  if (isRefusal(read)) throw new Error(String(read.detail?.["reason"]));
  const { fields, format, effort } = read;
  return askOf({ model, format, effort, ...(fields.length > 0 ? { engineFields: fields } : {}) });
}

const refusalOf = (body: object, model = own): string | null => {
  const read = readEngineFields(body, model, none, true);
  return isRefusal(read) ? String(read.detail?.["reason"]) : null;
};

const sent = (ask: Ask, engine: EngineKind, node: KnowingNode = {}): Record<string, unknown> =>
  JSON.parse(nodeRequest(ask, 1, "m", engine, node).body) as Record<string, unknown>;

const unknownTo = (ask: Ask, engine: EngineKind, node: KnowingNode = {}): string | null => {
  const refusal = unknownField(ask, engine, engineTraits[engine].sampling, node);
  return refusal === null ? null : String(refusal.detail?.["reason"]).split(":", 1)[0]!;
};

describe("a field that only some engines know", () => {
  test.each([
    [{ ignore_eos: true }, "vllm", { ignore_eos: true }],
    [{ min_tokens: 5 }, "sglang", { min_tokens: 5 }],
    [{ include_stop_str_in_output: true }, "sglang", { no_stop_trim: true }],
    [{ guided_regex: "a+" }, "vllm", { structured_outputs: { regex: "a+" } }],
    [{ structured_outputs: { regex: "a+" } }, "sglang", { regex: "a+" }],
    [{ grammar: 'root ::= "a"' }, "llama.cpp", { grammar: 'root ::= "a"' }],
    [{ ebnf: 'root ::= "a"' }, "vllm", { structured_outputs: { grammar: 'root ::= "a"' } }],
    [{ guided_choice: ["a", 'b"\\\n'] }, "vllm", { structured_outputs: { choice: ["a", 'b"\\\n'] } }],
    [{ guided_choice: ["a", 'b"\\\n'] }, "llama.cpp", { grammar: 'root ::= "a" | "b\\x22\\x5c\\x0a"' }],
    [{ repeat_penalty: 1.2 }, "vllm", { repetition_penalty: 1.2 }],
    [{ thinking_budget: 100 }, "llama.cpp", { thinking_budget_tokens: 100 }],
    [{ chat_template_kwargs: { a: 1 } }, "transformers", { chat_template_kwargs: { a: 1 } }],
  ] as const)("%j reaches %s as %j", (body, engine, expected) => {
    const ask = asked(body);
    expect(unknownTo(ask, engine)).toBeNull();
    expect(sent(ask, engine)).toMatchObject(expected);
  });

  test.each([
    [{ guided_regex: "a+" }, "llama.cpp", "guided_regex"],
    [{ structured_outputs: { choice: ["a"] } }, "ollama", "structured_outputs.choice"],
    [{ ignore_eos: true }, "ollama", "ignore_eos"],
    [{ min_tokens: 5 }, "llama.cpp", "min_tokens"],
    [{ prompt_logprobs: 1 }, "vllm", "prompt_logprobs"],
    [{ return_token_ids: true }, "vllm", "return_token_ids"],
    [{ n_predict: 9_000 }, "llama.cpp", "n_predict"],
    [{ chat_template: "x" }, "vllm", "chat_template"],
    [{ chat_template_kwargs: { enable_thinking: false } }, "unknown", "chat_template_kwargs"],
    [{ enable_thinking: true }, "tgi", "enable_thinking"],
    [{ chat_template_kwargs: { enable_thinking: false, a: 1 } }, "ollama", "chat_template_kwargs"],
  ] as const)("%j is not sent to %s, and named", (body, engine, name) => {
    const ask = asked(body);
    expect(unknownTo(ask, engine)).toBe(name);
    expect(JSON.stringify(sent(ask, engine))).not.toContain(name.split(".", 1)[0]!);
  });

  test("sampling of which an engine knows nothing is named, unless it changes nothing", () => {
    const of = (sampling: Ask["sampling"], engine: EngineKind) => unknownTo(askOf({ model: own, sampling }), engine);
    expect(of({ top_k: 5 }, "ollama")).toBe("top_k");
    expect(of({ logit_bias: { "1": 5 } }, "ollama")).toBe("logit_bias");
    expect(of({ top_k: 0, min_p: 0, repetition_penalty: 1, logit_bias: {} }, "ollama")).toBeNull();
    expect(of({ top_k: 5, min_p: 0.1, repetition_penalty: 1.1, logit_bias: { "1": 5 } }, "vllm")).toBeNull();
    expect(unknownTo(askOf({ sampling: { top_k: 5 } }), "ollama")).toBeNull();
  });

  test("sampling is read in every dialect, and checked as in those that have a name for it", () => {
    const named = new Set(["temperature", "top_k"]);
    const read = (body: object, model = own) => readEngineFields(body, model, named, true);
    const body = { temperature: 1, top_k: 5, min_p: 0.1, seed: 3, repetition_penalty: 1.1 };
    expect(read(body)).toMatchObject({ sampling: { min_p: 0.1, seed: 3, repetition_penalty: 1.1 } });
    expect(read(body)).not.toHaveProperty("sampling.top_k");
    expect(read({ min_p: "x" })).toMatchObject({ detail: { reason: expect.stringContaining("min_p") } });
    expect(read({ min_p: "x" }, hostedModel)).toMatchObject({ sampling: {} });
  });

  describe("a format of a chat, in a dialect without formats,", () => {
    const read = (body: object) => {
      const found = readEngineFields(body, own, none, false);
      if (isRefusal(found)) throw new Error(String(found.detail?.["reason"]));
      return askOf({ model: own, engineFields: found.fields });
    };
    const schema = { type: "object", properties: { a: { type: "integer" } } };
    test.each([
      ["response_format", { type: "json_schema", json_schema: { name: "x", schema } }, schema],
      ["response_format", { type: "json_object" }, { type: "object" }],
      ["structured_outputs", { json_object: true }, { type: "object" }],
      ["structured_outputs", { json: schema }, schema],
    ])("%s %j is a schema, and passes as it came where an operator says so", (name, value, held) => {
      const ask = read({ [name]: value });
      expect(sent(ask, "vllm")).toMatchObject({ structured_outputs: { json: held } });
      expect(sent(ask, "llama.cpp")).toMatchObject({ json_schema: held });
      expect(unknownTo(ask, "ollama")).toStartWith(name);
      expect(sent(ask, "unknown", { fields: [name] })[name]).toEqual(value);
    });

    test("says what it may be", () => {
      expect(read({ response_format: { type: "text" } }).engineFields).toEqual([]);
      expect(() => read({ response_format: { type: "json_schema" } })).toThrow("response_format must be a JSON Schema");
      expect(() => read({ response_format: "json" })).toThrow("response_format.type must be one of");
      expect(() => read({ response_format: { type: "json_object" }, regex: "a" })).toThrow("one format");
    });
  });

  test("what means the same as nothing is nothing", () => {
    const usual = {
      ignore_eos: false,
      min_tokens: 0,
      skip_special_tokens: true,
      return_token_ids: false,
      use_beam_search: false,
      stop_token_ids: [],
      guided_json: null,
      structured_outputs: null,
    };
    expect(asked(usual)).not.toHaveProperty("engineFields");
  });

  test("an operator's list passes a field as it came, and tells that the engine knows it", () => {
    const node = { fields: ["guided_regex", "chat_template_kwargs", "structured_outputs", "top_k"] };
    const ask = asked({ guided_regex: "a+", chat_template_kwargs: { a: 1 } });
    expect(unknownTo(ask, "unknown", node)).toBeNull();
    expect(sent(ask, "unknown", node)).toMatchObject({ guided_regex: "a+", chat_template_kwargs: { a: 1 } });
    const structured = asked({ structured_outputs: { regex: "a+" } });
    expect(sent(structured, "unknown", node)).toMatchObject({ structured_outputs: { regex: "a+" } });
    const sampled = askOf({ model: own, sampling: { top_k: 5 } });
    expect([unknownTo(sampled, "unknown", node), sent(sampled, "unknown", node)["top_k"]]).toEqual([null, 5]);
  });

  test("the specification's models keep to what they always sent", () => {
    const body = { chat_template_kwargs: { a: 1 }, ignore_eos: "no", guided_json: 5, thinking: 7 };
    expect(readEngineFields(body, hostedModel, none, true)).toEqual({
      fields: [],
      format: null,
      effort: null,
      sampling: {},
    });
  });
});

describe("a switch for thoughts", () => {
  test.each([
    { chat_template_kwargs: { enable_thinking: false } },
    { enable_thinking: false },
    { thinking: { type: "disabled" } },
    { thinking: false },
  ])("%j is the depth in the form of each engine", (body) => {
    const ask = asked(body);
    expect(ask.effort).toBe("off");
    for (const engine of ["vllm", "sglang", "llama.cpp", "transformers"] as const) {
      expect([unknownTo(ask, engine), sent(ask, engine)["chat_template_kwargs"]]).toMatchObject([
        null,
        { enable_thinking: false },
      ]);
    }
    expect([unknownTo(ask, "ollama"), sent(ask, "ollama")]).toMatchObject([null, { reasoning_effort: "none" }]);
    expect(sent(ask, "ollama")).not.toHaveProperty("chat_template_kwargs");
    const node = { depth: { off: { think: "no" } } };
    expect([unknownTo(ask, "unknown", node), sent(ask, "unknown", node)["think"]]).toEqual([null, "no"]);
  });

  test("beside other settings of the template keeps them", () => {
    const ask = asked({ chat_template_kwargs: { enable_thinking: false, lang: "de" } });
    expect(sent(ask, "vllm")["chat_template_kwargs"]).toEqual({ enable_thinking: false, thinking: false, lang: "de" });
    const forced = {
      ...ask,
      tools: [{ name: "f", description: null, parameters: {}, strict: null }],
      toolChoice: "required",
    } as const;
    expect(sent(forced, "llama.cpp")["chat_template_kwargs"]).toMatchObject({ enable_thinking: false, lang: "de" });
  });

  test("is nothing where the shop lets no request set the depth", () => {
    const fixed = { ...own, readsDepth: false };
    const ask = asked({ chat_template_kwargs: { enable_thinking: false, lang: "de" } }, fixed);
    expect(sent(ask, "vllm")["chat_template_kwargs"]).toEqual({ lang: "de" });
    expect(sent(asked({ enable_thinking: false }, fixed), "vllm")).not.toHaveProperty("chat_template_kwargs");
  });
});

describe("a schema in an engine's field", () => {
  const schema = { type: "object", properties: { a: { type: "integer" } } };
  test.each([
    { guided_json: schema },
    { guided_json: JSON.stringify(schema) },
    { json_schema: schema },
    { structured_outputs: { json: schema } },
  ])("%j is a format, which the gateway checks", (body) => {
    expect(asked(body)).toMatchObject({ format: { kind: "json_schema", schema } });
    expect(asked(body)).not.toHaveProperty("engineFields");
  });

  test("json_object is one, too", () => {
    expect(asked({ structured_outputs: { json_object: true } }).format).toEqual({ kind: "json_object" });
  });

  test("of a plain completion goes to the engine", () => {
    const read = readEngineFields({ guided_json: schema }, own, none, false);
    expect(read).toMatchObject({ format: null, fields: [{ name: "json_schema", value: schema }] });
  });
});

describe("refused by name", () => {
  test.each([
    [{ chat_template_kwargs: { chat_template: "x" } }, "chat_template_kwargs.chat_template must be left out"],
    [{ chat_template_kwargs: { tokenize: true } }, "chat_template_kwargs.tokenize"],
    [
      { chat_template_kwargs: { enable_thinking: "false" } },
      "chat_template_kwargs.enable_thinking must be true or false",
    ],
    [{ chat_template_kwargs: { a: "x".repeat(70_000) } }, "64 KiB"],
    [{ enable_thinking: 1 }, "enable_thinking must be true or false"],
    [{ thinking: "maybe" }, "thinking must be"],
    [{ ignore_eos: "yes" }, "ignore_eos must be true or false"],
    [{ stop_token_ids: [1, "x"] }, "stop_token_ids[1]"],
    [{ regex: "a", grammar: "b" }, "grammar must be left out beside regex"],
    [{ structured_outputs: { structural_tag: "x" } }, "structured_outputs.structural_tag must be left out"],
    [{ guided_choice: [] }, "guided_choice must be"],
    [{ guided_choice: Array.from({ length: 1_001 }, () => "a") }, "guided_choice must be"],
    [{ grammar: "(".repeat(300) }, "grammar nests too deep"],
    [{ regex: "a".repeat(17_000) }, "regex must be"],
    [{ guided_json: "{" }, "guided_json must be a JSON Schema object"],
  ] as const)("%j", (body, words) => {
    expect(refusalOf(body)).toContain(words);
  });
});

describe("a last message of the model's own", () => {
  const turns = [
    { role: "user", content: "Count" },
    { role: "assistant", content: "1, 2,", reasoning: null, calls: [] },
  ] as const;
  const continued = { continue_final_message: true, add_generation_prompt: false };
  test("is gone on with", () => {
    expect(sent(askOf({ turns }), "vllm")).toMatchObject(continued);
    expect(sent(askOf({ turns }), "sglang")).toMatchObject({ continue_final_message: true });
    expect(sent(askOf({ turns }), "llama.cpp")).not.toHaveProperty("continue_final_message");
  });
  test.each([
    [[turns[0]]],
    [[turns[0], { ...turns[1], content: "" }]],
    [[turns[0], { ...turns[1], calls: [{ id: "a", name: "f", arguments: "{}" }] }]],
  ])("only if it is a beginning: %j", (others) => {
    expect(sent(askOf({ turns: others as Ask["turns"] }), "vllm")).not.toHaveProperty("continue_final_message");
  });
  test.each(["vllm", "llama.cpp"] as const)("%s begins no other where the client says so in one field", (engine) => {
    const { engineFields } = asked({ continue_final_message: true });
    expect(sent(askOf({ turns, model: own, engineFields: engineFields! }), engine)).toMatchObject(continued);
    expect(sent(askOf({ turns, model: own, engineFields: engineFields! }), "sglang")).not.toHaveProperty(
      "add_generation_prompt",
    );
  });
  test("not where the client says otherwise", () => {
    const { engineFields } = asked({ continue_final_message: false });
    expect(sent(askOf({ turns, model: own, engineFields: engineFields! }), "vllm")).toMatchObject({
      continue_final_message: false,
    });
  });
});
