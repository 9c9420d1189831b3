// White space around thoughts and calls, and stop sequences that the gateway looks for itself: the same at every split of
// the text, and by bytes as by full parses.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AnswerReader, type ReaderOptions } from "../../src/nodes/reader.ts";
import { StopSequences } from "../../src/nodes/stop-sequences.ts";
import type { Ask, Ending, Piece } from "../../src/core/types.ts";
import { askOf, toolOf } from "../fixtures/asks.ts";
import { collector, eventsOf } from "../fixtures/read-answer.ts";

const chunk = (delta: object, more: object = {}): string =>
  JSON.stringify({ id: "c", choices: [{ index: 0, delta, ...more }] });
const called = { tool_calls: [{ index: 0, id: "a", function: { name: "get", arguments: "{}" } }] };
const end = (reason = "stop"): string => JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });
const text = (content: string): object => ({ content });
const thought = (reasoning: string): object => ({ reasoning });

type Read = ReturnType<typeof collector> & { ending: Ending; order: string };

/** What becomes of the deltas; `order` has a letter for each run of pieces of one kind. */
function read(deltas: readonly (object | string)[], options: ReaderOptions & { ask?: Ask } = {}): Read {
  let order = "";
  const collected = collector(({ kind }: Piece) => {
    if (order.at(-1) !== kind[0]) order += kind[0];
  });
  const { ask = askOf({ tools: [toolOf("get")] }), ...rest } = options;
  const reader = new AnswerReader(ask, collected, rest);
  const payloads = deltas.map((each) => (typeof each === "string" ? each : chunk(each)));
  const body = Buffer.from(payloads.map((payload) => `data: ${payload}\n\n`).join(""));
  eventsOf(reader, () => {}).feed(body, 0, body.length);
  return { ...collected, ending: reader.ending(), order };
}

describe("white space", () => {
  const rows: [name: string, deltas: readonly object[], order: string, reasoning: string, answer: string][] = [
    ["between thought and text", [thought("\nI see.\n"), text("\n\n"), text("Hi \n")], "rt", "I see.\n", "Hi \n"],
    ["in one piece with the text", [thought("a"), text("\n\n Hi")], "rt", "a", "Hi"],
    ["between thought and call", [thought("a"), text("\n\n"), called], "rc", "a", ""],
    ["before a call alone", [text("\n"), text(" "), called], "c", "", ""],
    ["behind a thought alone", [thought("a"), text("\n\n")], "r", "a", ""],
    ["behind a call", [called, text("\n\n")], "c", "", ""],
    ["between a call and text", [called, text("\n"), text("b")], "ct", "", "b"],
    ["of a thought of nothing else", [thought("\n\n"), text("\n\nHi")], "t", "", "Hi"],
    ["before text without a thought stays", [text("\n"), text("  "), text("Hi")], "t", "", "\n  Hi"],
    ["of an answer of nothing else stays", [text(" \n")], "t", "", " \n"],
    ["in the middle stays", [thought("a"), text("b"), text("\n\n"), text("c"), called], "rtc", "a", "b\n\nc"],
    ["before a thought goes", [text("\n"), thought("a"), text("b")], "rt", "a", "b"],
    ["between two thoughts does not divide them", [thought("a "), text("\n"), thought(" b")], "r", "a  b", ""],
    ["behind text and a second thought", [text("a"), thought("\nb"), text("\n\nc")], "trt", "b", "ac"],
    ["behind a tag", [text("<think>\na</think>\n\n"), text("\n"), text("b")], "rt", "a", "b"],
    ["behind a tag, before a call", [text("<think>a</think>\n\n"), called], "rc", "a", ""],
  ];
  test.each(rows)("%s", (_, deltas, order, reasoning, answer) => {
    for (const shapes of [undefined, null]) {
      const seen = read([...deltas, end()], shapes === null ? { shapes } : {});
      expect({ order: seen.order.replace(/c+/, "c"), reasoning: seen.reasoning, text: seen.text }).toEqual({
        order,
        reasoning,
        text: answer,
      });
    }
  });

  test("is the same for known events as for parsed ones, wherever kinds change", () => {
    const part = fc.oneof(
      fc.constantFrom("\n\n", " ", "a", "\n b", "\u3000", "\t", "é ").map(text),
      fc.constantFrom("\n", "a", " b", "c\n").map(thought),
    );
    // long runs, so that shapes are learned
    const runs = fc.array(fc.tuple(part, fc.integer({ min: 1, max: 8 })), { maxLength: 8 });
    fc.assert(
      fc.property(runs, (given) => {
        const deltas = given.flatMap(([delta, times]) => Array<object>(times).fill(delta));
        const { order, reasoning, text: answer, ending } = read([...deltas, end()]);
        const parsed = read([...deltas, end()], { shapes: null });
        expect({ order, reasoning, answer, ending }).toEqual({
          order: parsed.order,
          reasoning: parsed.reasoning,
          answer: parsed.text,
          ending: parsed.ending,
        });
      }),
    );
  });
});

describe("further stop sequences", () => {
  /** The answer as a plain search finds it. */
  const plainly = (whole: string, stops: readonly string[]): { text: string; stop: string | null } => {
    for (let end = 1; end <= whole.length; end++) {
      const ending = stops.filter((stop) => whole.slice(0, end).endsWith(stop)).sort((a, b) => b.length - a.length)[0];
      if (ending !== undefined) return { text: whole.slice(0, end - ending.length), stop: ending };
    }
    return { text: whole, stop: null };
  };
  const stopOf = ({ ending }: Read): string | null => (ending.kind === "end" ? ending.stopSequence : "failed");

  test("end the answer at every split, and nothing of them is passed on", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "\n", "é", "😀"), minLength: 1, maxLength: 40 });
    const stops = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "\n", "😀"), minLength: 1, maxLength: 4 }), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(letters, stops, fc.array(fc.nat(60), { maxLength: 6 }), (given, sought, places) => {
        const whole = `.${given}`; // white space at the start has rules of its own
        const characters = [...whole];
        const cuts = [0, ...new Set(places.map((place) => place % characters.length))].sort((a, b) => a - b);
        const parts = cuts.map((from, index) => characters.slice(from, cuts[index + 1]).join("")).filter(Boolean);
        const seen = read([...parts.map(text), end()], { stops: sought });
        const expected = plainly(whole, sought);
        expect({ text: seen.text, stop: stopOf(seen) }).toEqual(expected);
      }),
    );
  });
  test("are the client's end: the node is stopped, what came is whole", () => {
    const seen = read([text("1, 2"), text(","), text(" 3"), text(", 4")], { stops: [", 3"] });
    expect(seen.text).toBe("1, 2");
    expect(seen.ending).toMatchObject({ kind: "end", reason: "stop", stopSequence: ", 3", estimated: true });
  });
  test("count what was received: by the running usage", () => {
    const running = (content: string, output: number): string =>
      JSON.stringify({
        choices: [{ index: 0, delta: { content } }],
        usage: { prompt_tokens: 9, completion_tokens: output },
      });
    const seen = read([running("1", 1), running(", 2", 2), running(",", 3), running(" 3", 4), running("!", 5)], {
      stops: [", 3"],
    });
    expect(seen.ending).toMatchObject({ estimated: false, usage: { inputFresh: 9, output: 2 } });
    const atOnce = read([running(", 3", 1)], { stops: [", 3"] });
    expect(atOnce.ending).toMatchObject({ usage: { output: 0 } });
  });
  test("count what was received: by the events", () => {
    const seen = read([thought("a"), text("1"), text("2"), text("E"), text("N"), text("D")], { stops: ["END"] });
    expect(seen.ending).toMatchObject({ usage: { output: 3, reasoning: 1 } });
  });
  test("are not looked for in thoughts, nor across a call", () => {
    const seen = read([thought("a STOP b"), text("x ST"), called, text("OP y"), end()], { stops: ["STOP"] });
    expect(seen).toMatchObject({ reasoning: "a STOP b", text: "x STOP y" });
    expect(seen.ending).toMatchObject({ reason: "tool_calls", stopSequence: null });
  });
  test("that only began go out with the end, and with the end of the budget", () => {
    expect(read([text("ab"), text("EN"), end()], { stops: ["END"] }).text).toBe("abEN");
    const ask = askOf({ outputTokensMax: 2 });
    const cut = read([text("ab"), text("EN"), text("D"), end()], { stops: ["END"], ask });
    expect(cut).toMatchObject({ text: "abEN", ending: { reason: "length" } });
  });
  test("leave pieces and their log probabilities as they came", () => {
    const pieces: Piece[] = [];
    const reader = new AnswerReader(askOf(), { piece: (piece) => pieces.push(piece) }, { stops: ["END"] });
    for (const content of ["a", "bE", "c", "ENDx"]) reader.event(chunk(text(content), { logprobs: { content: [] } }));
    expect(pieces).toEqual(
      ["a", "bE", "c"].map((each) => ({ kind: "text", literal: `"${each}"`, logprobs: '{"content":[]}' })),
    );
  });
  test("take linear time, whatever they are", () => {
    const long = "a".repeat(8_000);
    const stops = [
      `${long}b`,
      `${"ab".repeat(4_000)}c`,
      ...Array.from({ length: 200 }, (_, index) => `${"a".repeat(index)}x`),
    ];
    const before = process.cpuUsage();
    const sequences = new StopSequences(stops);
    expect(sequences.find("a".repeat(2_000_000))).toBeNull();
    const piecewise = read([...Array<object>(2_000).fill(text("a".repeat(50))), end()], { stops });
    expect(piecewise.text.length).toBe(100_000);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(3_000);
  });
});
