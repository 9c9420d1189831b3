// What vLLM 0.32, llama-server of llama.cpp v0.5.0 and Ollama 0.17 answered to requests for vectors and scores on 2026-11-22, of a
// tiny model (test/fixtures/transcripts/inputs.jsonl.gz): read as their plain reading, at every cut in two.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../../src/core/refusals.ts";
import type { InputsAsk } from "../../../src/core/inputs.ts";
import type { Inputs, Piece } from "../../../src/core/types.ts";
import { failureOfStatus } from "../../../src/nodes/failure/failure.ts";
import { InputsAnswer } from "../../../src/nodes/inputs/inputs-answer.ts";
import { askOf, hostedModel } from "../../fixtures/asks.ts";

type Recorded = Readonly<{
  engine: string;
  case: string;
  path: string;
  request: Record<string, any>;
  status: number;
  response: string;
}>;

const file = join(import.meta.dir, "../../fixtures/transcripts/inputs.jsonl.gz");
const recorded = Buffer.from(Bun.gunzipSync(readFileSync(file)))
  .toString()
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Recorded);

const model = { ...hostedModel, id: "tiny", kind: "embedding" } as const;

function askFor(one: Recorded): InputsAsk {
  const { path, request } = one;
  const { input, documents, query, top_n: best = documents?.length, dimensions = null } = request;
  const isOne = typeof input === "string" || typeof input?.[0] === "number";
  const list: unknown[] = documents ?? (isOne ? [input] : input);
  const tokens = Array.isArray(list[0]) ? (list as number[][]).flat().length : null;
  const inputs: Inputs =
    path === "/v1/rerank"
      ? { kind: "scores", count: list.length, query, best, returnsDocuments: false }
      : { kind: "vectors", count: list.length, tokens, format: request["encoding_format"] ?? "float", dimensions };
  // Long texts were left out of the recording.
  const bodyBytes = one.case.includes("too long") ? 18_000 : JSON.stringify(request).length;
  return { ...askOf({ model, outputTokensMax: 0, bodyBytes }), inputs };
}

function read(one: Recorded, reads: readonly Buffer[]) {
  const items = new Map<number, unknown>();
  const piece = (given: Piece): void => {
    if (given.kind === "input") items.set(given.index, JSON.parse(given.json));
  };
  const answer = new InputsAnswer(askFor(one), { piece, flush: () => null });
  for (const bytes of reads) answer.push(bytes, 0, bytes.length);
  return { ending: answer.end(), items: [...items].sort(([first], [second]) => first - second) };
}

/** What JSON.parse sees in it. */
function plainly({ response }: Recorded): unknown {
  const { data, results, usage } = JSON.parse(response);
  return {
    ending: {
      kind: "end",
      reason: "stop",
      stopSequence: null,
      estimated: false,
      usage: { inputFresh: usage.prompt_tokens, inputCached: 0, output: 0, reasoning: 0 },
    },
    items: (data ?? results)
      .map((item: any) => [item.index, item.embedding ?? item.relevance_score])
      .sort(([one]: [number], [other]: [number]) => one - other),
  };
}

const named = (all: readonly Recorded[]) => all.map((one) => [`${one.engine}, ${one.case}`, one] as const);
const answered = recorded.filter(({ status }) => status === 200);
/** llama-server makes of dimensions what it likes. */
const isAsAsked = (one: Recorded): boolean => one.engine !== "llama.cpp" || one.case !== "dimensions";

test("they are there", () => {
  expect([recorded.length, answered.length]).toEqual([39, 19]);
});

describe.each(named(answered.filter(isAsAsked)))("%s", (_, one) => {
  test("is read as it is, wherever it is cut", () => {
    const bytes = Buffer.from(one.response);
    const whole = read(one, [bytes]);
    expect(whole).toEqual(plainly(one) as never);
    for (let at = 1; at < bytes.length; at += 1 + Math.floor(bytes.length / 200)) {
      const cut = read(one, [Buffer.from(bytes.subarray(0, at)), Buffer.from(bytes.subarray(at))]);
      expect(JSON.stringify(cut)).toBe(JSON.stringify(whole));
    }
  });

  test("is none where its end is missing", () => {
    const bytes = Buffer.from(one.response.trimEnd());
    for (const left of [1, 2, Math.floor(bytes.length / 2), bytes.length]) {
      expect(read(one, [bytes.subarray(0, bytes.length - left)]).ending.kind).toBe("failed");
    }
  });
});

test("vectors of other dimensions than were asked for are the request's fault", () => {
  const one = recorded.find((each) => !isAsAsked(each))!;
  const { ending } = read(one, [Buffer.from(one.response)]);
  expect(ending.kind === "failed" && messageOf(ending.refusal)).toBe(
    "dimensions must be left out: the model makes vectors of 192 numbers here",
  );
});

const takesNone = "The model `tiny` does not take these tokens here: send input as texts.";
const reasons: Readonly<Record<string, string>> = {
  "llama.cpp, tokens out of range": takesNone,
  "llama.cpp, too long": "prompt is too long: 3001 tokens > 512 maximum",
  "vllm, tokens out of range": takesNone,
  "vllm, dimensions": "The model `tiny` does not make vectors of other dimensions: leave dimensions out.",
  "vllm, too long": "prompt is too long: 2049 tokens > 2048 maximum",
  "vllm, rerank too long": "prompt is too long: 2049 tokens > 2048 maximum",
  "vllm, other model": "The model `tiny` is not loaded on its node right now. Please retry later.",
  "ollama, tokens": takesNone,
  "ollama, token lists": takesNone,
  "ollama, tokens out of range": takesNone,
  "ollama, other model": "The model `tiny` is not loaded on its node right now. Please retry later.",
};

test.each(Object.entries(reasons))("%s: %s", (name, message) => {
  const one = recorded.find((each) => `${each.engine}, ${each.case}` === name)!;
  expect(messageOf(failureOfStatus(askFor(one), one.status, one.response).refusal)).toBe(message);
});
