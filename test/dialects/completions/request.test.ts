// What a plain completion's body becomes, and what is refused by name.
import { describe, expect, test } from "bun:test";
import { completions } from "../../../src/dialects/completions/completions.ts";
import type { CompletionAsk } from "../../../src/dialects/completions/request.ts";
import { isRefusal, messageOf } from "../../../src/core/refusals.ts";
import { renderAsk } from "../../../src/tokens/render.ts";
import { readBody } from "../../fixtures/reading.ts";

const model = "core-3";
const asked = (body: object): CompletionAsk => {
  const ask = readBody<CompletionAsk>(completions, { model, ...body });
  if (isRefusal(ask)) throw new Error(messageOf(ask));
  return ask;
};
const refused = (body: object): string => {
  const ask = readBody(completions, { model, prompt: "x", ...body });
  return isRefusal(ask) ? messageOf(ask) : "not refused";
};

describe("the prompt", () => {
  const text = { role: "prompt", content: "Once", tokens: null };
  const tokens = { role: "prompt", content: "", tokens: [5, 6, 7] };
  test.each([
    ["a text", "Once", text],
    ["a list of one text", ["Once"], text],
    ["tokens", [5, 6, 7], tokens],
    ["a list of tokens in a list", [[5, 6, 7]], tokens],
    ["nothing", "", { ...text, content: "" }],
    ["a text that was cut in a character", "\udca9 Once", { ...text, content: "\ufffd Once" }],
  ])("%s", (_, prompt, turn) => {
    expect(asked({ prompt }).turns as unknown[]).toEqual([turn]);
  });

  test.each([
    ["two texts", ["a", "b"], "prompt must be one prompt: send a request for each of several"],
    ["two lists of tokens", [[1], [2]], "prompt must be one prompt: send a request for each of several"],
    ["an empty list", [], "prompt must not be an empty list"],
    ["an empty list of tokens", [[]], "prompt must not be an empty list"],
    ["an object", { toString: null }, "prompt must be a string, a list of tokens, or a list of these"],
    ["texts and tokens", ["a", 1], "prompt must be a string, a list of tokens, or a list of these"],
    ["half a token", [0.5], "prompt must be a string, a list of tokens, or a list of these"],
    ["a token beyond 31 bits", [2 ** 31], "prompt must be a string, a list of tokens, or a list of these"],
    ["null", null, "prompt must be a string, a list of tokens, or a list of these"],
  ])("not %s", (_, prompt, message) => {
    expect(refused({ prompt })).toStartWith(message);
  });

  test("is counted as it stands, with what follows it and without a template", () => {
    expect(renderAsk(asked({ prompt: "Once", suffix: "end" }))).toEqual({
      texts: ["end", "Once"].sort(),
      extraTokens: 0,
    });
    expect(renderAsk(asked({ prompt: [5, 6, 7] })).extraTokens).toBe(3);
  });
});

describe("settings", () => {
  test("those of OpenAI by default: 16 tokens, no suffix, no echo", () => {
    expect(asked({ prompt: "x" })).toMatchObject({
      outputTokensMax: 16,
      plain: { suffix: null, echo: false },
      stream: false,
      sampling: {},
      tools: [],
      toolChoice: "none",
      endpoint: "/v1/completions",
      coderBilling: "tokens",
    });
    expect(asked({ prompt: "x", suffix: "", max_tokens: null }).plain.suffix).toBeNull();
  });

  test("what is sampled, and how many alternatives are told", () => {
    const given = {
      temperature: 0,
      top_p: 0.5,
      seed: 1,
      presence_penalty: 1,
      frequency_penalty: -1,
      logit_bias: { 5: 1 },
    };
    expect(asked({ prompt: "x", ...given, logprobs: 0, user: "me" }).sampling).toEqual({
      ...given,
      logprobs: true,
      top_logprobs: 0,
    });
  });

  test("a budget out of range is moved to the nearest end", () => {
    expect([0, 1e6].map((max_tokens) => asked({ prompt: "x", max_tokens }).outputTokensMax)).toEqual([1, 65_536]);
  });

  test("more stops than nodes take are not looked for in a prompt that is repeated", () => {
    const stop = ["a", "b", "c", "d", "e"];
    expect(refused({ stop, echo: true })).toBe("stop must have at most 4 sequences with echo");
    expect(asked({ prompt: "x", stop }).stop).toEqual(stop);
  });

  test.each([
    ["n", 2],
    ["best_of", 3],
    ["logprobs", true],
    ["logprobs", 21],
    ["suffix", 5],
    ["echo", "yes"],
    ["stream", 1],
    ["stop", [1]],
    ["max_tokens", "16"],
    ["temperature", 3],
    ["logit_bias", { 5: 200 }],
    ["model", "core-9"],
  ])("%s: %p is refused by its name", (field, value) => {
    expect(refused({ [field]: value })).toContain(field === "model" ? "core-9" : `${field}`);
  });
});
