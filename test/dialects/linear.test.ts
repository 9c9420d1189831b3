// Answers of the worst shapes are written in linear time, in every dialect, streamed and not.
import { describe, expect, test } from "bun:test";
import { Collected } from "../../src/dialects/reply/collected.ts";
import type { Piece } from "../../src/core/types.ts";
import { askIn, dialectNames, identity } from "../golden/dialects.ts";
import { writerOf } from "../fixtures/reading.ts";

const timeLimit = 120_000;
const count = 30_000;
const source = { title: "Bun", url: "https://bun.example/", text: "Bun is fast." };
const text = (value: string): Piece => ({ kind: "text", literal: JSON.stringify(value), logprobs: null });
const thought: Piece = { kind: "reasoning", literal: '"hm "' };
const call = (index: number, name = "get"): Piece => ({ kind: "call", index, id: `call_${index}`, name });
const more = (index: number, json: string): Piece => ({
  kind: "call-arguments",
  index,
  literal: JSON.stringify(json),
});
const times = (...pieces: readonly Piece[]): Piece[] => Array.from({ length: count }, () => pieces).flat();
const search: Piece[] = [
  { kind: "owned-call", call: { id: "c", name: "web_search", arguments: '{"query":"bun"}' }, tool: null },
  { kind: "owned-result", outcome: { text: "Bun", failed: false, sources: [source] } },
];

const answers: Readonly<Record<string, readonly Piece[]>> = {
  "a call that may end with each fragment while another waits": [
    call(0),
    more(0, "{"),
    call(1),
    ...times(more(0, "{}")),
  ],
  "the same, ended and no JSON": [call(0), more(0, "{x}"), call(1), ...times(more(0, "}"))],
  "two calls in turns": [call(0), call(1), more(0, "{"), more(1, "{"), ...times(more(0, "}"), more(1, "}"))],
  "a custom tool whose call begins with white space": [call(0, "patch"), ...times(more(0, " "))],
  "text and thoughts in turns": times(text("word "), thought).slice(0, count / 2),
  "citations behind a long text": [
    ...times(text("a word ")),
    ...search,
    ...times(text("[1]"), { kind: "citation", source, start: 0, end: 3 }),
  ],
};
const requests = { chat: {}, messages: {}, responses: { tools: [{ type: "custom", name: "patch" }] } };

describe.each(dialectNames)("%s", (name) => {
  test.each(Object.keys(answers))(
    "%s",
    (shape) => {
      const ask = askIn(name, "open-05-3BIT-REAP", requests[name]);
      const usage = { inputFresh: 1, inputCached: 0, output: 1, reasoning: 0 };
      const end = { reason: "stop", stopSequence: null, usage } as const;
      const before = process.cpuUsage();
      const encoder = writerOf(ask).encoder(identity, "events");
      const collected = new Collected(writerOf(ask).encoder(identity, "whole"));
      for (const piece of answers[shape]!) {
        encoder.piece(piece);
        collected.piece(piece);
      }
      encoder.end(end);
      collected.end(end);
      const { user, system } = process.cpuUsage(before);
      // quadratic, they take from 10 s to minutes
      expect((user + system) / 1_000).toBeLessThan(4_000);
    },
    timeLimit,
  );
});
