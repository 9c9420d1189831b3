// What goes to each engine for a plain completion: the prompt as it stands, and only fields that it obeys.
import { describe, expect, test } from "bun:test";
import type { EngineKind } from "../../src/nodes/engine-kind.ts";
import { countedPrompt, notTaken, type PlainAsk, plainRequest } from "../../src/nodes/plain-request.ts";
import { writtenTurns } from "../../src/nodes/request-messages.ts";
import { countRequestOfAsk } from "../../src/nodes/token-count.ts";
import type { Turn } from "../../src/core/types.ts";
import { askOf, firstPartyModel, preparedOf } from "../fixtures/asks.ts";

const engines: EngineKind[] = ["vllm", "sglang", "tensorrt-llm", "llama.cpp", "ollama", "lm-studio", "tgi", "unknown"];
const prompt: Turn = { role: "prompt", content: '<fim>"é\u2028', tokens: null };
const plain = { suffix: null, echo: false };
const plainAsk = (changes: Partial<PlainAsk> = {}): PlainAsk => ({ ...askOf({ turns: [prompt] }), plain, ...changes });
const textOf = (body: string | readonly Buffer[]): string =>
  typeof body === "string" ? body : Buffer.concat([...body]).toString();
const bodyOf = (changes: Partial<PlainAsk>, engine: EngineKind = "unknown") =>
  JSON.parse(textOf(plainRequest(plainAsk(changes), 7, "m", engine).body)) as Record<string, unknown>;

test.each(engines)("%s gets the prompt, the budget of every model and nothing of a conversation", (engine) => {
  const sampling = { temperature: 0, logprobs: true, top_logprobs: 3 } as const;
  const { stream_options, cache_salt, ...body } = bodyOf(
    { model: firstPartyModel, outputTokensMax: 9, sampling },
    engine,
  );
  expect(body).toEqual({
    model: "m",
    prompt: prompt.content,
    stream: true,
    max_tokens: 9,
    temperature: 0,
    logprobs: 3,
  });
  expect(stream_options).toMatchObject({ include_usage: true });
  expect(cache_salt !== undefined).toBe(engine === "vllm" || engine === "sglang");
});

test("tokens go as tokens", () => {
  expect(bodyOf({ turns: [{ role: "prompt", content: "", tokens: [1, 2] }] })["prompt"]).toEqual([1, 2]);
});

test("a large body's prompt goes as its bytes", () => {
  for (const turn of [prompt, { ...prompt, content: "", tokens: [1, 2] }]) {
    const prepared = preparedOf({ messages: Buffer.from(writtenTurns([turn]).messages) });
    for (const engine of ["vllm", "llama.cpp"] as const) {
      const small = plainAsk({ turns: [turn], stop: ["x"] });
      const large = { ...small, turns: [], prepared };
      expect(textOf(plainRequest(large, 7, "m", engine).body)).toBe(textOf(plainRequest(small, 7, "m", engine).body));
      expect(textOf(countedPrompt(large, "m", engine))).toBe(textOf(countedPrompt(small, "m", engine)));
    }
  }
});

describe("what an engine would leave undone is refused, not charged", () => {
  const refusedBy = (changes: Partial<PlainAsk["plain"]>) =>
    engines.filter((engine) => notTaken(plainAsk({ plain: { ...plain, ...changes } }), engine) !== null);
  test("a suffix", () => {
    expect(refusedBy({ suffix: "end" })).toEqual(["sglang", "tensorrt-llm", "llama.cpp", "lm-studio", "tgi"]);
    expect(bodyOf({ plain: { ...plain, suffix: "end" } }, "ollama")).toMatchObject({ suffix: "end" });
  });
  test("an echo", () => {
    expect(refusedBy({ echo: true })).toEqual(["tensorrt-llm", "llama.cpp", "ollama", "lm-studio", "tgi"]);
    expect(bodyOf({ plain: { ...plain, echo: true } }, "vllm")).toMatchObject({ echo: true });
  });
  test("an echo alone", () => {
    const alone = { echo: true, echoAlone: true } as const;
    expect(refusedBy(alone)).toEqual(["tensorrt-llm", "llama.cpp", "ollama", "lm-studio", "tgi"]);
    expect(notTaken(plainAsk({ plain: { ...plain, ...alone } }), "llama-cpp-python")).not.toBeNull();
    expect(bodyOf({ plain: { ...plain, ...alone } }, "vllm")).toMatchObject({ echo: true, max_tokens: 0 });
  });
  test("nothing else", () => expect(refusedBy({})).toEqual([]));
});

test("stops beyond the fourth are looked for here", () => {
  const stop = ["a", "b", "c", "d", "e"];
  expect([bodyOf({ stop })["stop"], plainRequest(plainAsk({ stop }), 7, "m", "vllm").expected.stops]).toEqual([
    ["a", "b", "c", "d"],
    ["e"],
  ]);
});

test("engines count the prompt without a template; tokens need no counting", () => {
  const counted = (engine: EngineKind, ask = plainAsk()) =>
    countRequestOfAsk(ask, () => countedPrompt(ask, "m", engine), engine);
  const read = (engine: EngineKind) => {
    const request = counted(engine)!;
    return [request.path, JSON.parse(textOf(request.body))];
  };
  expect(read("vllm")).toEqual(["/tokenize", { model: "m", prompt: prompt.content }]);
  expect(read("llama.cpp")).toEqual(["/tokenize", { model: "m", content: prompt.content, add_special: true }]);
  expect(counted("ollama")).toBeNull();
  expect(counted("vllm", plainAsk({ turns: [{ role: "prompt", content: "", tokens: [1] }] }))).toBeNull();
});

test("it keeps accounts apart in what engines keep of prompts as a chat does", () => {
  const body = (sharing: boolean | undefined, engine: "vllm" | "llama.cpp") =>
    textOf(plainRequest(plainAsk(), 7, "m", engine, {}, { sharing, seed: 0n }).body);
  expect([undefined, false, true].map((sharing) => body(sharing, "vllm").includes('"cache_salt"'))).toEqual([
    true,
    true,
    false,
  ]);
  expect(body(false, "llama.cpp")).toContain('"cache_prompt":false');
});
