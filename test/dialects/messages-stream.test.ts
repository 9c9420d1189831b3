// The exact bytes that the messages dialect writes: streams, replies and errors.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { embeddedCatalog } from "../../src/catalog.ts";
import { callsOf, Collector } from "../../src/dialects/collector.ts";
import type { Answer, AnswerEnd } from "../../src/dialects/dialect.ts";
import { messages } from "../../src/dialects/messages.ts";
import type { MessagesAsk } from "../../src/dialects/messages-request.ts";
import { isRefusal, messageOf } from "../../src/refusals.ts";
import type { Piece } from "../../src/types.ts";
import { goldenMessages } from "../fixtures/messages-captures.ts";
import { collectedMessage, expectWellFormedMessage, messagesEventsOf } from "../fixtures/messages-events.ts";

const catalog = embeddedCatalog();
const identity = { requestId: "req_1", createdSeconds: 1795200000 };
const usage = { inputFresh: 100, inputCached: 20, output: 30, reasoning: 5 };
const stop: AnswerEnd = { reason: "stop", stopSequence: null, usage };
const toolCalls: AnswerEnd = { ...stop, reason: "tool_calls" };
const hosted = "open-05-3BIT-REAP";
const shown = { type: "adaptive" };

function ask(more: object = {}): MessagesAsk {
  const body = { model: hosted, messages: [{ role: "user", content: "hello" }], thinking: shown, ...more };
  const result = messages.read(body, 400, catalog);
  if (isRefusal(result)) throw new Error(messageOf(result));
  return result;
}

function stream(pieces: readonly Piece[], end: AnswerEnd = stop, more: object = {}): string {
  const encoder = messages.encoder(ask(more), identity);
  return pieces.map((piece) => encoder.piece(piece)).join("") + encoder.end(end);
}

function reply(pieces: readonly Piece[], end: AnswerEnd = stop, more: object = {}) {
  const collector = new Collector();
  for (const piece of pieces) collector.piece(piece);
  return JSON.parse(messages.reply(ask(more), identity, collector.answer(), end));
}

const text = (value: string): Piece => ({ kind: "text", literal: JSON.stringify(value), logprobs: null });
const reasoning = (value: string): Piece => ({ kind: "reasoning", literal: JSON.stringify(value) });
const call = (index: number, id: string, name = "bash"): Piece => ({ kind: "call", index, id, name });
const args = (index: number, value: string): Piece => ({
  kind: "call-arguments",
  index,
  literal: JSON.stringify(value),
});
const textOf = ({ pieces }: Answer, kind: "text" | "reasoning"): string =>
  pieces.map((piece) => (piece.kind === kind ? (JSON.parse(piece.literal) as string) : "")).join("");
const kinds = (written: string) => collectedMessage(messagesEventsOf(written)).kinds;

/** A stream that every client read correctly, with our id, model, usage and signature; pings may stand anywhere. */
const golden = (wire: string): string =>
  wire
    .replaceAll('event: ping\ndata: {"type":"ping"}\n\n', "")
    .replace(/"id":"msg_\w+"/, '"id":"msg_1"')
    .replace('"model":"core-3"', `"model":"${hosted}"`)
    .replaceAll(
      /"usage":\{[^}]*\}/g,
      '"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":20,"output_tokens":30}',
    )
    .replace(
      /"input_tokens":100,.*?\}/, // what is known before the node has counted
      '"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}',
    )
    .replaceAll("c2lnbmF0dXJl", "tg1.");

describe("stream", () => {
  test("thinking and text", () => {
    expect(stream([reasoning("Let me "), reasoning("think."), text("Hi "), text("there!")])).toBe(
      golden(goldenMessages.messages_text),
    );
  });

  test("thinking, text and two calls", () => {
    const pieces = [
      reasoning("Two calls."),
      text("Running."),
      call(0, "toolu_01"),
      args(0, '{"comma'),
      args(0, 'nd":"echo a"}'),
      call(1, "toolu_02"),
      args(1, '{"command":"ec'),
      args(1, 'ho b"}'),
    ];
    expect(stream(pieces, toolCalls)).toBe(golden(goldenMessages.messages_tools));
  });

  test("a cut answer and a stop sequence", () => {
    const pieces = [text("Hi "), text("there!")];
    expect(stream(pieces, { ...stop, reason: "length" })).toBe(golden(goldenMessages.messages_max_tokens));
    expect(stream(pieces, { ...stop, stopSequence: "END" })).toBe(golden(goldenMessages.messages_stop_sequence));
    expect(stream(pieces, { ...stop, reason: "content_filter" })).toContain('"stop_reason":"refusal"');
  });

  test("a failure: the text is closed, the error event is the last word", () => {
    const encoder = messages.encoder(ask(), { requestId: "req_06", createdSeconds: 0 });
    const written = encoder.piece(text("Hi ")) + encoder.failure({ refusal: "busy" });
    expect(written.replace("msg_06", "msg_1")).toBe(
      golden(goldenMessages.messages_error).replace("overloaded_error", "rate_limit_error"), // spec, Errors
    );
  });

  test("a failure in the middle of a call leaves its block open: a client would run what is closed", () => {
    const encoder = messages.encoder(ask(), identity);
    const written = encoder.piece(call(0, "a")) + encoder.failure({ refusal: "node_failed" });
    expect(written).not.toContain("content_block_stop");
  });

  test("a failure before any piece is the error event alone", () => {
    expect(messages.encoder(ask(), identity).failure({ refusal: "node_failed" })).toBe(
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"The model stopped answering. Please retry."},"request_id":"req_1"}\n\n',
    );
  });

  test("an end before any piece still has a first block with a text", () => {
    const events = messagesEventsOf(stream([]));
    expectWellFormedMessage(events);
    expect(collectedMessage(events)).toMatchObject({ kinds: ["text"], text: "", stopReason: "end_turn" });
  });

  test("the sign of life is a ping", () => {
    expect(messages.encoder(ask(), identity).keepAlive()).toBe('event: ping\ndata: {"type":"ping"}\n\n');
  });

  test("literals go out as they came", () => {
    const piece: Piece = { kind: "text", literal: '"Hi \\u00e4\\n"', logprobs: null };
    expect(stream([piece])).toContain('"delta":{"type":"text_delta","text":"Hi \\u00e4\\n"}}');
  });

  test("fragments of parallel calls are put in order", () => {
    const events = messagesEventsOf(
      stream(
        [
          call(0, "a"),
          call(1, "b"),
          args(0, '{"city":'),
          args(1, '{"city":'),
          args(0, '"London"}'),
          args(1, '"Tokyo"}'),
        ],
        toolCalls,
      ),
    );
    expectWellFormedMessage(events);
    expect(collectedMessage(events).tools).toEqual([
      { id: "a", name: "bash", json: '{"city":"London"}' },
      { id: "b", name: "bash", json: '{"city":"Tokyo"}' },
    ]);
  });

  test("what comes behind a call waits until the call is complete, not until the answer has ended", () => {
    const encoder = messages.encoder(ask(), identity);
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

  test("usage of a first-party tier: the total, without the cache fields", () => {
    const written = stream([text("Hi")], stop, { model: "core-3" });
    expect(written).toContain('"stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":1}}}');
    expect(written).toContain('"usage":{"input_tokens":120,"output_tokens":30}}');
  });
});

describe("reply", () => {
  test("is the stream collected", () => {
    const { usage: _, ...expected } = goldenMessages.messages_text__nonstream;
    expect(reply([reasoning("Let me "), reasoning("think."), text("Hi "), text("there!")])).toEqual({
      ...expected,
      id: "msg_1",
      model: hosted,
      content: [{ ...expected.content[0], signature: "tg1." }, expected.content[1]],
      usage: { input_tokens: 100, cache_creation_input_tokens: 0, cache_read_input_tokens: 20, output_tokens: 30 },
    });
  });

  test("calls have their arguments as an object", () => {
    const { content } = goldenMessages.messages_tools__nonstream;
    const pieces = [
      text("Running."),
      call(0, "toolu_01"),
      call(1, "toolu_02"),
      args(0, '{"comma'),
      args(1, '{"command":"echo b"}'),
      args(0, 'nd":"echo a"}'),
    ];
    expect(reply(pieces, toolCalls)).toMatchObject({ content, stop_reason: "tool_use", stop_sequence: null });
  });

  test.each(["", "null", "[1]", '"text"', "{", '{"a":1}}'])("arguments %j are no object and become {}", (value) => {
    expect(reply([call(0, "a"), args(0, value)], toolCalls).content).toEqual([
      { type: "tool_use", id: "a", name: "bash", input: {} },
    ]);
  });

  test("a call that the budget cut is left out", () => {
    const pieces = [text("Now:"), call(0, "a"), args(0, '{"comm')];
    expect(reply(pieces, { ...stop, reason: "length" })).toMatchObject({
      content: [{ type: "text", text: "Now:" }],
      stop_reason: "max_tokens",
    });
  });

  test("thinking is hidden, shown or omitted as in the stream; an empty answer has an empty text", () => {
    expect(reply([reasoning("secret")], stop, { thinking: null }).content).toEqual([{ type: "text", text: "" }]);
    const omitted = { thinking: { type: "enabled", budget_tokens: 2000, display: "omitted" } };
    expect(reply([reasoning("secret"), text("Hi")], stop, omitted).content).toEqual([
      { type: "thinking", thinking: "", signature: expect.stringMatching(/^tg1\../) },
      { type: "text", text: "Hi" },
    ]);
  });

  test("a stop sequence is named", () => {
    expect(reply([text("Hi")], { ...stop, stopSequence: "END" })).toMatchObject({
      stop_reason: "stop_sequence",
      stop_sequence: "END",
    });
  });

  test("usage of a first-party tier is the total alone", () => {
    expect(reply([text("Hi")], stop, { model: "core-3" }).usage).toEqual({ input_tokens: 120, output_tokens: 30 });
  });
});

// 100 answers of dozens of events each take a second on an idle machine
const timeLimit = 30_000;

describe("any answer", () => {
  /** Calls with arguments in fragments, texts and reasoning, put in any order that keeps each call's own. */
  const answers = fc
    .tuple(
      fc.array(fc.oneof(fc.string().map(text), fc.string().map(reasoning)), { maxLength: 8 }),
      fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { maxLength: 4 }),
      fc.infiniteStream(fc.nat()),
    )
    .map(([loose, objects, chance]) => {
      const next = (below: number): number => (chance.next().value as number) % below;
      const lanes: Piece[][] = objects.map((object, index) => {
        const json = JSON.stringify(object);
        const lane: Piece[] = [];
        for (let at = 0; at < json.length;) {
          const size = 1 + next(12);
          lane.push(args(index, json.slice(at, at + size)));
          at += size;
        }
        return lane;
      });
      lanes.push([...loose]);
      const pieces: Piece[] = [];
      for (let begun = 0; lanes.some((lane) => lane.length > 0) || begun < objects.length;) {
        const lane = next(lanes.length);
        if (lane === lanes.length - 1 || lane < begun) pieces.push(...lanes[lane]!.splice(0, 1));
        else pieces.push(call(begun, `call_${begun++}`));
      }
      return pieces;
    });

  const displays = fc.constantFrom("summarized", "omitted");

  test(
    "is a well-formed stream that holds every piece, and the reply is the same",
    () => {
      fc.assert(
        fc.property(answers, (pieces) => {
          const events = messagesEventsOf(stream(pieces, toolCalls));
          expectWellFormedMessage(events);
          const streamed = collectedMessage(events);
          const collector = new Collector();
          for (const piece of pieces) collector.piece(piece);
          const answer = collector.answer();
          expect(streamed.text).toBe(textOf(answer, "text"));
          expect(streamed.thinking).toBe(textOf(answer, "reasoning"));
          expect(streamed.tools.map(({ json }) => json)).toEqual(
            callsOf(answer).map((each) => JSON.parse(each.arguments) as string),
          );

          const { content } = reply(pieces, toolCalls) as { content: Record<string, unknown>[] };
          const of = (type: string) => content.filter((block) => block["type"] === type);
          expect(
            of("text")
              .map((block) => block["text"])
              .join(""),
          ).toBe(streamed.text);
          expect(
            of("thinking")
              .map((block) => block["thinking"])
              .join(""),
          ).toBe(streamed.thinking);
          expect(of("tool_use").map(({ id, name, input }) => ({ id, name, input }))).toEqual(
            streamed.tools.map(({ id, name, json }) => ({ id, name, input: JSON.parse(json) })),
          );
        }),
      );
    },
    timeLimit,
  );

  test(
    "that is cut or fails at any point is well formed up to there",
    () => {
      fc.assert(
        fc.property(answers, fc.nat(), fc.boolean(), displays, (pieces, where, cut, display) => {
          const encoder = messages.encoder(ask({ thinking: { type: "adaptive", display } }), identity);
          const begun = pieces.slice(0, where % (pieces.length + 1));
          const written = begun.map((piece) => encoder.piece(piece)).join("");
          if (cut)
            return expectWellFormedMessage(messagesEventsOf(written + encoder.end({ ...stop, reason: "length" })));
          const events = messagesEventsOf(written + encoder.failure({ refusal: "node_failed" }));
          expect(events.filter(({ type }) => type === "error")).toEqual(events.slice(-1));
          expect(events.map(({ type }) => type)).not.toContain("message_stop");
        }),
      );
    },
    timeLimit,
  );
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
