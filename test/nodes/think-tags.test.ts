// Thoughts in <think> tags: split off at any split of the bytes, with nothing else changed.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AnswerReader } from "../../src/nodes/reader.ts";
import type { Piece } from "../../src/core/types.ts";
import { askOf, toolOf } from "../fixtures/asks.ts";
import { eventsOf } from "../fixtures/read-answer.ts";

type Seen = { reasoning: string; text: string; calls: number; order: string };

/** What becomes of an answer whose content comes in these fragments. */
function read(fragments: readonly string[], options: { opened?: boolean; fast?: boolean; more?: object[] } = {}): Seen {
  const seen: Seen = { reasoning: "", text: "", calls: 0, order: "" };
  const ask = askOf({ tools: [toolOf("f")] });
  const take = (piece: Piece): void => {
    if (piece.kind === "reasoning" || piece.kind === "text") seen[piece.kind] += JSON.parse(piece.literal) as string;
    if (piece.kind === "call") seen.calls++;
    if (seen.order.at(-1) !== piece.kind[0]) seen.order += piece.kind[0];
  };
  const literal = (kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number): void =>
    take({ kind, literal: Buffer.from(bytes.subarray(start, end)).toString(), logprobs: null });
  const reader = new AnswerReader(
    ask,
    { piece: take, literal },
    { thinkTagOpened: options.opened ?? false, ...(options.fast === false ? { shapes: null } : {}) },
  );
  const payloads = [
    ...fragments.map((content) => chunk({ content })),
    ...(options.more ?? []).map(chunk),
    JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
  ];
  const body = Buffer.from(payloads.map((payload) => `data: ${payload}\n\n`).join(""));
  eventsOf(reader, () => {}).feed(body, 0, body.length);
  expect(reader.ending().kind).toBe("end");
  return seen;
}

const chunk = (delta: object): string => JSON.stringify({ id: "c", choices: [{ index: 0, delta }] });
const splitAt = (text: string, places: readonly number[]): string[] => {
  const cuts = [0, ...new Set(places)].sort((a, b) => a - b);
  return cuts.map((from, index) => text.slice(from, cuts[index + 1])).filter((part) => part !== "");
};

const table: readonly (readonly [answer: string, opened: boolean, reasoning: string, text: string])[] = [
  ["<think>\nLet me see.\n</think>\n\nHi!", false, "Let me see.\n", "Hi!"],
  ["\n<think>a</think>b", false, "a", "b"],
  ["<think>\n\n</think>\n\nHi!", false, "", "Hi!"],
  ["<think>never closed", false, "never closed", ""],
  ["<think>almost </thin", false, "almost </thin", ""],
  ["<think>a < b </ c </think>d", false, "a < b </ c ", "d"],
  ["<think>a</think>b <think>c</think>", false, "a", "b <think>c</think>"],
  ["Hi <think>there</think>", false, "", "Hi <think>there</think>"],
  ["<thin ice", false, "", "<thin ice"],
  ["<thi", false, "", "<thi"],
  ["  \n", false, "", "  \n"],
  ["plain", false, "", "plain"],
  ["a</think>b", false, "", "a</think>b"],
  ["Let me see.</think>\n\nHi!", true, "Let me see.", "Hi!"],
  ["<think>\nLet me see.</think>Hi!", true, "Let me see.", "Hi!"],
  ["<thi", true, "<thi", ""],
  ["no end", true, "no end", ""],
  ["<think>\u{1f914}</think>\u{1f600}\n", false, "\u{1f914}", "\u{1f600}\n"],
];

describe("thoughts in tags", () => {
  test.each(table)("%j, opened by the template: %p", (answer, opened, reasoning, text) => {
    for (const fast of [true, false]) {
      for (let first = 0; first <= answer.length; first++) {
        for (let second = first; second <= answer.length; second++) {
          const seen = read(splitAt(answer, [first, second]), { opened, fast });
          expect({ reasoning: seen.reasoning, text: seen.text }).toEqual({ reasoning, text });
        }
      }
      const single = read([...answer], { opened, fast });
      expect({ reasoning: single.reasoning, text: single.text }).toEqual({ reasoning, text });
    }
  });

  test("any thought and any text at any split", () => {
    const words = fc.array(fc.constantFrom("<", "/", "think", ">", "\n", '"', "\\", "é", "\u{1f600}", "a"), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(words, words, fc.array(fc.nat(60)), fc.boolean(), (thoughtWords, textWords, places, fast) => {
        const thought = `t${thoughtWords.join("").replaceAll("</think>", "")}.`;
        fc.pre(!thought.includes("</think>"));
        const text = `x${textWords.join("")}`;
        const answer = `<think>\n${thought}</think>\n${text}`;
        const seen = read(
          splitAt(
            answer,
            places.filter((place) => place < answer.length),
          ),
          { fast },
        );
        expect({ reasoning: seen.reasoning, text: seen.text }).toEqual({ reasoning: thought, text });
      }),
      { numRuns: Number(process.env["TOLLGATE_TEST_RUNS"] ?? 300) },
    );
  });

  test("a long thought goes the fast way, also where the engine writes < as an escape", () => {
    const tokens = ["<think>", ...Array.from({ length: 40 }, (_, index) => `w${index} `), "<", "/think", ">", "Hi"];
    const seen = read(tokens);
    expect(seen).toMatchObject({ reasoning: tokens.slice(1, 41).join(""), text: "Hi", order: "rt" });

    const pieces: Piece[] = [];
    const reader = new AnswerReader(askOf(), { piece: (piece) => pieces.push(piece) });
    for (const token of tokens)
      reader.event(chunk({ content: token }).replaceAll("<", "\\u003c").replaceAll(">", "\\u003e"));
    expect(pieces.at(-1)).toEqual({ kind: "text", literal: '"Hi"', logprobs: null });
    expect(pieces.slice(0, -1).every(({ kind }) => kind === "reasoning")).toBe(true);
  });

  test("a node with a parser of its own is believed: tags in its text are text", () => {
    const pieces: string[] = [];
    const reader = new AnswerReader(askOf(), {
      piece: (piece) => pieces.push(`${piece.kind} ${"literal" in piece && piece.literal}`),
    });
    reader.event(chunk({ reasoning_content: "hm" }));
    reader.event(chunk({ content: "<think>" }));
    expect(pieces).toEqual(['reasoning "hm"', 'text "<think>"']);
  });

  test("a call ends the looking, what was held comes before it", () => {
    const call = { tool_calls: [{ index: 0, id: "1", function: { name: "f", arguments: "{}" } }] };
    expect(read(["<thi"], { more: [call] })).toMatchObject({ text: "<thi", calls: 1, order: "tc" });
    expect(read(["<think>a</think>\n"], { more: [call] })).toMatchObject({ reasoning: "a", text: "", calls: 1 });
    expect(read(["<think>a"], { more: [call] })).toMatchObject({ reasoning: "a", calls: 1, order: "rc" });
  });

  test("log probabilities of held pieces stay with them", () => {
    const pieces: Piece[] = [];
    const reader = new AnswerReader(askOf(), { piece: (piece) => pieces.push(piece) });
    const logprobs = { content: [{ token: "<" }] };
    reader.event(JSON.stringify({ choices: [{ index: 0, delta: { content: "<" }, logprobs }] }));
    reader.event(chunk({ content: "b" }));
    expect(pieces).toEqual([
      { kind: "text", literal: '"<"', logprobs: JSON.stringify(logprobs) },
      { kind: "text", literal: '"b"', logprobs: null },
    ]);
  });

  test("thoughts are counted as reasoning where the node counts nothing", () => {
    const reader = new AnswerReader(askOf(), { piece() {} });
    for (const content of ["<think>", "a", "b", "</think>", "c"]) reader.event(chunk({ content }));
    reader.event(JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }));
    const ending = reader.ending();
    expect(ending).toMatchObject({ kind: "end", estimated: true, usage: { output: 5, reasoning: 2 } });
  });
});
