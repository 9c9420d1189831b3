// What the messages dialect writes beyond the answers of test/golden: calls in odd orders, hidden thinking, errors.
import { describe, expect, test } from "bun:test";
import { embeddedCatalog } from "../../../src/core/catalog.ts";
import type { AnswerEnd } from "../../../src/dialects/dialect.ts";
import { messages } from "../../../src/dialects/messages/messages.ts";
import type { MessagesAsk } from "../../../src/dialects/messages/request.ts";
import { readBody, writerOf, wholeReply } from "../../fixtures/reading.ts";
import { isRefusal, messageOf } from "../../../src/core/refusals.ts";
import type { Piece } from "../../../src/core/types.ts";
import { collectedMessage, expectWellFormedMessage, messagesEventsOf } from "../../fixtures/messages-events.ts";

const catalog = embeddedCatalog();
const identity = { requestId: "req_1", createdSeconds: 1795200000 };
const usage = { inputFresh: 100, inputCached: 20, output: 30, reasoning: 5 };
const stop: AnswerEnd = { reason: "stop", stopSequence: null, usage };
const toolCalls: AnswerEnd = { ...stop, reason: "tool_calls" };
const hosted = "open-05-3BIT-REAP";
const shown = { type: "adaptive" };

function ask(more: object = {}): MessagesAsk {
  const body = { model: hosted, messages: [{ role: "user", content: "hello" }], thinking: shown, ...more };
  const result = readBody<MessagesAsk>(messages, body, 400, catalog);
  if (isRefusal(result)) throw new Error(messageOf(result));
  return result;
}

function stream(pieces: readonly Piece[], end: AnswerEnd = stop, more: object = {}): string {
  const encoder = writerOf(ask(more)).encoder(identity, "events");
  return pieces.map((piece) => encoder.piece(piece)).join("") + encoder.end(end);
}

function reply(pieces: readonly Piece[], end: AnswerEnd = stop, more: object = {}) {
  return JSON.parse(wholeReply(writerOf(ask(more)).encoder(identity, "whole"), pieces, end));
}

const text = (value: string): Piece => ({ kind: "text", literal: JSON.stringify(value), logprobs: null });
const reasoning = (value: string): Piece => ({ kind: "reasoning", literal: JSON.stringify(value) });
const call = (index: number, id: string, name = "bash"): Piece => ({ kind: "call", index, id, name });
const args = (index: number, value: string): Piece => ({
  kind: "call-arguments",
  index,
  literal: JSON.stringify(value),
});
const kinds = (written: string) => collectedMessage(messagesEventsOf(written)).kinds;

describe("stream", () => {
  test("a failure in the middle of a call leaves its block open: a client would run what is closed", () => {
    const encoder = writerOf(ask()).encoder(identity, "events");
    const written = encoder.piece(call(0, "a")) + encoder.failure({ refusal: "node_failed" });
    expect(written).not.toContain("content_block_stop");
  });

  test("what comes behind a call waits until the call is complete, not until the answer has ended", () => {
    const encoder = writerOf(ask()).encoder(identity, "events");
    encoder.piece(call(0, "a"));
    encoder.piece(args(0, '{"x":{"y":1}')); // ends like an object and is none
    expect(encoder.piece(call(1, "b"))).toBe("");
    expect(encoder.piece(args(1, "{}"))).toBe("");
    expect(encoder.piece(text("done"))).toBe("");
    const written = encoder.piece(args(0, "}"));
    expect(kinds(written)).toEqual(["tool_use", "text"]);
    expect(written).toContain('"text":"done"');
  });

  test("text and reasoning between calls get blocks of their own, in order", () => {
    const pieces = [
      reasoning("a"),
      call(0, "x"),
      args(0, "{}"),
      text("b"),
      text("c"),
      reasoning("d"),
      text(""),
      call(1, "y"),
    ];
    const events = messagesEventsOf(stream(pieces, toolCalls));
    expectWellFormedMessage(events);
    expect(collectedMessage(events).kinds).toEqual(["thinking", "tool_use", "text", "thinking", "tool_use"]);
  });

  test("a call that the budget cut before its turn came is not begun", () => {
    const pieces = [call(0, "a"), call(1, "b"), call(2, "c"), args(0, "{"), args(1, '{"x":'), args(2, "{}")];
    const events = messagesEventsOf(stream(pieces, { ...stop, reason: "length" }));
    expectWellFormedMessage(events);
    expect(collectedMessage(events).tools.map(({ id }) => id)).toEqual(["a", "c"]);
  });

  test("thinking that was not asked for is not sent; omitted, it is a signature without text", () => {
    const pieces = [reasoning("secret"), reasoning("more"), text("Hi")];
    const hidden = stream(pieces, stop, { thinking: null });
    expect([kinds(hidden), hidden.includes("secret")]).toEqual([["text"], false]);
    const omitted = stream(pieces, stop, { thinking: { type: "adaptive", display: "omitted" } });
    expect([kinds(omitted), omitted.includes("secret")]).toEqual([["thinking", "text"], false]);
    expectWellFormedMessage(messagesEventsOf(omitted));
  });

  test.each(["stream", "reply"])("omitted thinking comes back to the model with its signature: %s", (way) => {
    const pieces = [reasoning("Grüße, \ud83d"), reasoning("\ude00"), text("Hi")];
    const omitted = { thinking: { type: "adaptive", display: "omitted" } };
    const signature =
      way === "stream"
        ? messagesEventsOf(stream(pieces, stop, omitted)).find(({ delta }) => delta?.signature)?.["delta"].signature
        : reply(pieces, stop, omitted).content[0].signature;
    const history = [{ role: "assistant", content: [{ type: "thinking", thinking: "", signature }] }];
    expect(ask({ messages: history }).turns).toMatchObject([{ role: "assistant", reasoning: "Grüße, 😀" }]);
  });
});

describe("reply", () => {
  const inputOf = (value: string) => reply([call(0, "a"), args(0, value)], toolCalls).content[0].input;

  test.each(["", " ", "null"])("arguments %j are none and become {}", (value) => {
    expect(inputOf(value)).toEqual({});
  });

  test.each(["[1]", '"text"', "{", '{"a":1,}', "words"])("arguments %j are told: a client would run an {}", (value) => {
    expect(inputOf(value)).toEqual({ INVALID_JSON: value });
  });

  test("thinking is hidden, shown or omitted as in the stream; an empty answer has an empty text", () => {
    expect(reply([reasoning("secret")], stop, { thinking: null }).content).toEqual([{ type: "text", text: "" }]);
    const omitted = { thinking: { type: "enabled", budget_tokens: 2000, display: "omitted" } };
    expect(reply([reasoning("secret"), text("Hi")], stop, omitted).content).toEqual([
      { type: "thinking", thinking: "", signature: expect.stringMatching(/^tg1\../) },
      { type: "text", text: "Hi" },
    ]);
  });
});

describe("errors", () => {
  test("are wrapped and name the request; code and param are not of this dialect", () => {
    const body = (refusal: Parameters<typeof messages.errorBody>[0]) =>
      JSON.parse(messages.errorBody(refusal, "req_1"));
    expect(body({ refusal: "quota_exceeded", detail: { site_url: "https://example.com" } })).toEqual({
      type: "error",
      error: { type: "rate_limit_error", message: "Quota exceeded. Upgrade your plan at https://example.com/plan" },
      request_id: "req_1",
    });
    // Claude Code compacts its conversation on these words.
    expect(body({ refusal: "context_length_exceeded", detail: { tokens: 5, maximum: 4 } }).error).toEqual({
      type: "invalid_request_error",
      message: "prompt is too long: 5 tokens > 4 maximum",
    });
    expect(messages.statusOf({ refusal: "quota_unverified" }, null)).toBe(503);
  });
});
