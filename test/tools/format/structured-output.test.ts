// Structured output around a scripted round: what is asked again, what is sent, and what is charged.
import { describe, expect, test } from "bun:test";
import { refuse } from "../../../src/core/refusals.ts";
import type { CheckResult } from "../../../src/tools/format/answer-checker.ts";
import type { CheckOrder } from "../../../src/tools/format/checking-process.ts";
import type { Round } from "../../../src/tools/round.ts";
import { structuredOutput, wantsForm } from "../../../src/tools/format/structured-output.ts";
import type { Ask, Ending, Piece, Usage } from "../../../src/core/types.ts";
import { askOf, toolOf } from "../../fixtures/asks.ts";

const usageOf = (input: number, output: number): Usage => ({ inputFresh: input, inputCached: 1, output, reasoning: 2 });
const ended = (usage: Usage, changes: Partial<Extract<Ending, { kind: "end" }>> = {}): Ending => ({
  kind: "end",
  reason: "stop",
  stopSequence: null,
  usage,
  estimated: false,
  ...changes,
});
const text = (...words: string[]): Piece[] =>
  words.map((word) => ({ kind: "text", literal: JSON.stringify(word), logprobs: null }));
const call = (name: string, json: string): Piece[] => [
  { kind: "call", index: 0, id: "1", name },
  { kind: "call-arguments", index: 0, literal: JSON.stringify(json) },
];

type Answer = Readonly<{ pieces: Piece[]; ending: Ending }>;

/** Runs answers one after the other; `verdicts` are given to texts, by text. */
async function run(ask: Ask, answers: readonly Answer[], verdicts: Record<string, CheckResult["verdict"]> = {}) {
  const asked: Ask[] = [];
  const checked: CheckOrder[] = [];
  const seen: Piece[] = [];
  const round: Round = async (asks, sink) => {
    const { pieces, ending } = answers[asked.length]!;
    asked.push(asks);
    for (const piece of pieces) sink.piece(piece);
    await sink.flush();
    return ending;
  };
  const checker = {
    check: async (order: CheckOrder): Promise<CheckResult> => {
      checked.push(order);
      const verdict = verdicts[order.text ?? "schema"] ?? "fits";
      return verdict === "misfit" || verdict === "unusable" ? { verdict, reason: "/a must be x" } : { verdict };
    },
  };
  const parts = { checker, account: 1, log: () => {} };
  const sink = { piece: (piece: Piece) => void seen.push(piece), flush: () => null };
  const ending = await structuredOutput(round, parts)(ask, sink);
  return { ending, asked, checked, seen };
}

const schema = { type: "object" };
const format = { kind: "json_schema", name: "a", schema, strict: true } as const;
const plain = askOf({ format, stream: false });
const streamed = askOf({ format, stream: true });
const good: Answer = { pieces: text('{"a"', ":1}"), ending: ended(usageOf(10, 5)) };
const bad: Answer = { pieces: text("no"), ending: ended(usageOf(10, 7)) };
const misfit: Ending = { kind: "failed", refusal: refuse("answer_misfit"), elsewhere: false };

describe("an answer that fits", () => {
  test.each([plain, streamed])("goes out as it is, after the schema and then the answer were checked", async (ask) => {
    const { ending, asked, checked, seen } = await run(ask, [good]);
    expect(ending).toEqual(good.ending);
    expect(seen).toEqual(good.pieces);
    expect(asked).toEqual([ask]);
    const schemaText = JSON.stringify(schema);
    expect(checked).toEqual([
      { schema: schemaText, text: null },
      { schema: schemaText, text: '{"a":1}' },
    ]);
  });

  test("a request without a format is handed on untouched", async () => {
    const ask = askOf();
    expect(wantsForm(ask)).toBe(false);
    expect((await run(ask, [bad])).checked).toEqual([]);
  });
});

describe("an answer that the client began", () => {
  const beginning = { role: "assistant", content: '{"a": ', reasoning: null, calls: [] } as const;
  const begun = (stream: boolean): Ask => askOf({ format, stream, turns: [...plain.turns, beginning] });
  const rest: Answer = { pieces: text("1}"), ending: ended(usageOf(10, 5)) };

  test.each([false, true])("fits with its beginning or alone; streamed: %p", async (stream) => {
    const { ending, asked, seen } = await run(begun(stream), [rest], { "1}": "misfit" });
    expect([ending, seen]).toEqual([rest.ending, rest.pieces]);
    expect(asked).toHaveLength(1);
    expect((await run(begun(stream), [good])).ending).toEqual(good.ending);
  });

  test("does not fit where neither does", async () => {
    const verdicts = { "1}": "misfit", '{"a": 1}': "misfit" } as const;
    expect((await run(begun(true), [rest], verdicts)).ending).toMatchObject({ kind: "failed" });
    const { asked, checked } = await run(begun(false), [rest, bad, good], { ...verdicts, no: "misfit" });
    expect(asked).toHaveLength(3);
    expect(checked.map(({ text: checkedText }) => checkedText)).not.toContain('{"a": no');
  });
});

describe("an answer that does not fit", () => {
  test("is asked for again with what was wrong; only the answer that goes out is billed", async () => {
    const again: Answer = { ...good, ending: ended(usageOf(99, 6)) };
    const { ending, asked, seen } = await run(plain, [bad, again], { no: "misfit" });
    expect(seen).toEqual(good.pieces);
    expect(ending).toEqual(ended({ ...usageOf(10, 6) }));
    expect(asked[1]?.turns.slice(plain.turns.length)).toEqual([
      { role: "assistant", content: "no", reasoning: null, calls: [] },
      {
        role: "user",
        content: "That does not fit the required format: /a must be x. Give the whole answer again as JSON alone.",
      },
    ]);
  });

  test("twice again, then it is an error and nothing went out", async () => {
    const { ending, asked, seen } = await run(plain, [bad, bad, bad], { no: "misfit" });
    expect(ending).toEqual(misfit);
    expect(asked).toHaveLength(3);
    expect(asked[2]?.turns).toHaveLength(plain.turns.length + 2);
    expect(seen).toEqual([]);
  });

  test("ends a stream with the error after its text, which is charged", async () => {
    const { ending, asked, seen } = await run(streamed, [bad], { no: "misfit" });
    expect(ending).toEqual({ ...misfit, delivered: { usage: usageOf(10, 7), estimated: false } } as Ending);
    expect(asked).toHaveLength(1);
    expect(seen).toEqual(bad.pieces);
  });

  test("a prompt that the misfit made too long is a misfit, another failure is itself", async () => {
    const overflow = refuse("context_length_exceeded", { tokens: 2, maximum: 1 });
    const failing = (refusal: typeof overflow): Answer => ({
      pieces: [],
      ending: { kind: "failed", refusal, elsewhere: false },
    });
    expect((await run(plain, [bad, failing(overflow)], { no: "misfit" })).ending).toEqual(misfit);
    expect((await run(plain, [failing(overflow)])).ending).toMatchObject({ refusal: overflow });
    const busy = refuse("busy", { seconds: 5 });
    expect((await run(plain, [bad, failing(busy)], { no: "misfit" })).ending).toMatchObject({ refusal: busy });
  });
});

describe("answers that nobody calls complete", () => {
  test.each([
    ["cut by its budget", text("{"), ended(usageOf(1, 1), { reason: "length" })],
    ["cut by a filter", text("{"), ended(usageOf(1, 1), { reason: "content_filter" })],
    ["cut by a stop string", text("{"), ended(usageOf(1, 1), { stopSequence: "END" })],
    ["calls of tools", call("f", "no"), ended(usageOf(1, 1), { reason: "tool_calls" })],
    ["left by the client", text("{"), { kind: "cancelled", usage: usageOf(1, 1), estimated: true } as Ending],
  ])("%s go out unchecked, streamed or not", async (_, pieces, ending) => {
    for (const ask of [plain, streamed]) {
      const result = await run(ask, [{ pieces, ending }], { "{": "misfit", no: "misfit" });
      expect(result.ending).toEqual(ending);
      expect(result.seen).toEqual(pieces);
      expect(result.checked).toHaveLength(1); // the schema
    }
  });
});

describe("schemas that cannot be used", () => {
  test.each([
    ["unusable", "The JSON Schema cannot be used: /a must be x"],
    ["slow", "The JSON Schema is too complex: checking against it takes too long"],
  ] as const)("%s: a 400 before a node is asked", async (verdict, reason) => {
    const { ending, asked } = await run(plain, [], { schema: verdict });
    expect(ending).toEqual({ kind: "failed", refusal: refuse("malformed", { reason }), elsewhere: false });
    expect(asked).toEqual([]);
  });

  test("an answer whose check takes too long is the schema's fault and not asked for again", async () => {
    const { ending, asked } = await run(plain, [good], { '{"a":1}': "slow" });
    expect(ending).toMatchObject({ kind: "failed", refusal: { refusal: "malformed" } });
    expect(asked).toHaveLength(1);
  });

  test("a stream whose check takes too long is charged, one that cannot be checked is not", async () => {
    const delivered = { usage: good.ending.kind === "end" && good.ending.usage, estimated: false };
    expect((await run(streamed, [good], { '{"a":1}': "slow" })).ending).toMatchObject({ kind: "failed", delivered });
    const failed = await run(streamed, [good], { '{"a":1}': "failed" });
    expect(failed.ending).toEqual({ kind: "failed", refusal: refuse("internal"), elsewhere: false });
  });

  test("without the checking process it is our failure", async () => {
    expect((await run(plain, [], { schema: "failed" })).ending).toMatchObject({ refusal: { refusal: "internal" } });
  });
});

describe("a tool as the form", () => {
  const json = toolOf("json");
  const called: Answer = { pieces: call("json", "{}"), ending: ended(usageOf(10, 5), { reason: "tool_calls" }) };
  const asForm = askOf({ tools: [json], toolChoice: "required", stream: false });

  test.each([
    [{ tools: [json], toolChoice: "required" }, true],
    [{ tools: [json, toolOf("other")], toolChoice: { named: "json" } }, true],
    [{ tools: [toolOf("f", { strict: true })], toolChoice: { named: "f" } }, true],
    [{ tools: [toolOf("f")], toolChoice: { named: "f" } }, true],
    [{ tools: [toolOf("f")], toolChoice: { named: "f", mayAnswer: true } }, false],
    [{ tools: [json, toolOf("other")], toolChoice: "required" }, false],
    [{ tools: [json], toolChoice: "auto" }, false],
  ] as const)("%j: %p", (changes, isForm) => {
    expect(wantsForm(askOf(changes as Partial<Ask>))).toBe(isForm);
  });

  test("its arguments must fit its parameters, and are asked for again", async () => {
    const wrong: Answer = { ...called, pieces: call("json", "no") };
    const { ending, checked, seen, asked } = await run(asForm, [wrong, called], { no: "misfit" });
    expect(ending.kind).toBe("end");
    expect(seen).toEqual(called.pieces);
    expect(checked.at(-1)).toEqual({ schema: JSON.stringify(json.parameters), text: "{}" });
    expect(asked[1]?.turns.at(-1)).toMatchObject({ content: expect.stringContaining("Call json again.") });
  });

  test("parameters that are no schema are nobody's fault", async () => {
    const { ending } = await run(asForm, [called], { schema: "unusable", "{}": "unusable" });
    expect(ending).toEqual(called.ending);
  });
});
