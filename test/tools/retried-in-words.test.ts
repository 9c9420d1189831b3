// What a node was not held to is asked for once more in words: what goes out, what is charged, and what is not.
import { describe, expect, test } from "bun:test";
import { refuse } from "../../src/core/refusals.ts";
import { retriedInWords } from "../../src/tools/retried-in-words.ts";
import type { Ask, Ending, Piece, Usage } from "../../src/core/types.ts";
import { askOf, toolOf } from "../fixtures/asks.ts";

type Answer = Readonly<{ pieces?: readonly Piece[]; ending?: Ending }>;

const usage = (input: number, output: number): Usage => ({ inputFresh: input, inputCached: 1, output, reasoning: 1 });
const ends = (changes: Partial<Extract<Ending, { kind: "end" }>> = {}): Ending => ({
  kind: "end",
  reason: "stop",
  stopSequence: null,
  usage: usage(10, 5),
  estimated: false,
  ...changes,
});
const said = (words: string): Piece => ({ kind: "text", literal: JSON.stringify(words), logprobs: null });
const thinks: Piece = { kind: "reasoning", literal: '"hm"' };
const call: readonly Piece[] = [
  { kind: "call", index: 0, id: "a", name: "get" },
  { kind: "call-arguments", index: 0, literal: '"{}"' },
];
const isRefused: Ending = {
  kind: "failed",
  refusal: refuse("malformed", { reason: "no" }),
  elsewhere: false,
  ofRequest: true,
};
const schemaRefused: Ending = { ...isRefused, ofSchema: true };

/** One request with scripted answers; `log` is what happens in order. */
async function serve(ask: Ask, ...answers: readonly Answer[]) {
  const asks: Ask[] = [];
  const log: string[] = [];
  let repeats = 0;
  const round = retriedInWords(
    (asked, sink) => {
      const { pieces = [], ending = ends() } = answers[asks.length]!;
      asks.push(asked);
      for (const piece of pieces) {
        log.push(`node ${piece.kind}`);
        sink.piece(piece);
      }
      void sink.flush();
      log.push(`node ${ending.kind}`);
      return Promise.resolve(ending);
    },
    { log: () => {}, repeated: () => repeats++ },
  );
  const ending = await round(ask, { piece: ({ kind }) => void log.push(kind), flush: () => null });
  return { asks, log, ending, repeats };
}

const required = askOf({ tools: [toolOf("get"), toolOf("put")], toolChoice: "required" });

describe("a call that must be made", () => {
  test("flows on when it comes, and what waited before it", async () => {
    const { log, ending, repeats } = await serve(required, {
      pieces: [thinks, said("I call"), ...call],
      ending: ends({ reason: "tool_calls" }),
    });
    const waited = ["node reasoning", "node text", "node call", "reasoning", "text", "call"];
    expect(log).toEqual([...waited, "node call-arguments", "call-arguments", "node end"]);
    expect(ending).toMatchObject({ reason: "tool_calls" });
    expect(repeats).toBe(0);
  });
  test("that is left out is asked for again in words, and nothing of the first answer goes out or is charged", async () => {
    const { asks, log, ending, repeats } = await serve(
      required,
      { pieces: [thinks, said("Hello")], ending: ends({ usage: usage(10, 500), estimated: true }) },
      { pieces: call, ending: ends({ reason: "tool_calls", usage: usage(40, 7) }) },
    );
    expect(asks.map(({ inWords }) => inWords)).toEqual([undefined, { call: true }]);
    expect(log.filter((each) => !each.startsWith("node"))).toEqual(["call", "call-arguments"]);
    expect(ending).toMatchObject({ usage: usage(10, 7), estimated: true });
    expect(repeats).toBe(1);
  });
  test("of another tool than the demanded one is none", async () => {
    const other: readonly Piece[] = [{ kind: "call", index: 0, id: "b", name: "read_file" }];
    const named = askOf({ tools: [toolOf("get"), toolOf("put")], toolChoice: { named: "put" } });
    for (const [ask, wrong, right] of [
      [required, other, "get"],
      [named, call, "put"],
    ] as const) {
      const { asks, log, ending } = await serve(
        ask,
        { pieces: wrong, ending: ends({ reason: "tool_calls" }) },
        { pieces: [{ kind: "call", index: 0, id: "c", name: right }], ending: ends({ reason: "tool_calls" }) },
      );
      expect(asks.map(({ inWords }) => inWords)).toEqual([undefined, { call: true }]);
      expect(log.filter((each) => !each.startsWith("node"))).toEqual(["call"]);
      expect(ending).toMatchObject({ reason: "tool_calls" });
    }
  });
  test("that is left out twice is an error that says so, and free", async () => {
    const answer = { pieces: [said("Hello")] };
    const { asks, log, ending } = await serve(required, answer, answer);
    expect(asks).toHaveLength(2);
    expect(log).not.toContain("text");
    expect(ending).toEqual({ kind: "failed", refusal: refuse("not_called"), elsewhere: false });
    const tooLong = await serve(required, answer, { ending: isRefused });
    expect(tooLong.ending).toMatchObject({ refusal: { refusal: "not_called" } });
  });
  test.each([{ reason: "length" }, { reason: "content_filter" }, { stopSequence: "END" }] as const)(
    "an answer that ends otherwise goes out as it is: %o",
    async (changes) => {
      const { asks, log, ending } = await serve(required, { pieces: [said("Hel")], ending: ends(changes) });
      expect(asks).toHaveLength(1);
      expect(log).toEqual(["node text", "node end", "text"]);
      expect(ending).toMatchObject(changes);
    },
  );
  test("a failure stays one, and a client that left is not charged for what waited", async () => {
    const failed: Ending = { kind: "failed", refusal: refuse("node_failed"), elsewhere: false };
    expect((await serve(required, { pieces: [said("a")], ending: failed })).ending).toBe(failed);
    const left: Ending = { kind: "cancelled", usage: usage(10, 5), estimated: false };
    const { ending, log } = await serve(required, { pieces: [said("a")], ending: left });
    expect(ending).toMatchObject({ kind: "cancelled", usage: { inputFresh: 10, output: 0, reasoning: 0 } });
    expect(log).not.toContain("text");
    expect((await serve(required, { pieces: call, ending: left })).ending).toEqual(left);
  });
  test.each([
    askOf({ tools: [toolOf("get")] }),
    askOf({ tools: [toolOf("get")], toolChoice: "none" }),
    askOf({ toolChoice: "required" }),
    askOf({ tools: [toolOf("get")], toolChoice: { named: "get", mayAnswer: true } }),
  ])("nothing waits where no call is demanded", async (ask) => {
    const { asks, log } = await serve(ask, { pieces: [said("Hello")] });
    expect(asks).toEqual([ask]);
    expect(log).toEqual(["node text", "text", "node end"]);
  });
});

describe("a schema that is refused", () => {
  const format = { kind: "json_schema", name: "x", schema: { type: "object" }, strict: null } as const;
  const ask = askOf({ format });
  test("is asked for once in words", async () => {
    const { asks, ending, repeats } = await serve(ask, { ending: schemaRefused }, { pieces: [said("{}")] });
    expect(asks.map(({ inWords }) => inWords)).toEqual([undefined, { schema: true }]);
    expect(ending).toEqual(ends());
    expect(repeats).toBe(1);
  });
  test("twice is the refusal", async () => {
    const { asks, ending } = await serve(ask, { ending: schemaRefused }, { ending: schemaRefused });
    expect(asks).toHaveLength(2);
    expect(ending).toBe(schemaRefused);
  });
  test("is the client's first refusal, where its words are too many", async () => {
    const long: Ending = { ...isRefused, refusal: refuse("context_length_exceeded", { tokens: 2, maximum: 1 }) };
    expect((await serve(ask, { ending: schemaRefused }, { ending: long })).ending).toBe(schemaRefused);
  });
  test("other refusals stay", async () => {
    const { asks, ending } = await serve(ask, { ending: isRefused });
    expect(asks).toHaveLength(1);
    expect(ending).toBe(isRefused);
  });
  test("of a tool that must be called, which then is not, takes both", async () => {
    const { asks, ending } = await serve(
      required,
      { ending: schemaRefused },
      { pieces: [said("Hello")] },
      { pieces: call, ending: ends({ reason: "tool_calls" }) },
    );
    expect(asks.map(({ inWords }) => inWords)).toEqual([undefined, { schema: true }, { call: true, schema: true }]);
    expect(ending).toMatchObject({ reason: "tool_calls" });
  });
});
