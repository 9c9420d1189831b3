// A node's stream read into pieces and one ending: every engine's habits, and the fast way against the full parse.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { KnownShapes } from "../../src/nodes/fast-path/known-shapes.ts";
import { AnswerReader, type Channel } from "../../src/nodes/reader.ts";
import type { Ask, Ending, Piece } from "../../src/core/types.ts";
import { askOf, firstPartyModel, toolOf } from "../fixtures/asks.ts";
import { doneEvent, event, finishEvent, textEvent, usageEvent } from "../fixtures/raw-node.ts";
import { collector, eventsOf, readEvents } from "../fixtures/read-answer.ts";

const delta = (given: object, more: object = {}): string => event({ delta: given, finish_reason: null }, more);
const call = (item: object): string => delta({ tool_calls: [item] });
const choice = (given: object): object => ({ choices: [{ index: 0, delta: given, finish_reason: null }] });
const feed = (reader: AnswerReader, payloads: readonly string[]): void => {
  const body = Buffer.from(payloads.map((payload) => `data: ${payload}\n\n`).join(""));
  eventsOf(reader, () => {}).feed(body, 0, body.length);
};
const tools = [toolOf("get_weather"), toolOf("get"), toolOf("get_time")];
const ended = [finishEvent(), usageEvent(), doneEvent].join("");

describe("text and reasoning", () => {
  test("both reasoning fields", () => {
    const body = delta({ reasoning_content: "I " }) + delta({ reasoning: "think" }) + textEvent("Hi") + ended;
    expect(readEvents(body)).toMatchObject({ reasoning: "I think", text: "Hi" });
  });
  test("both fields in one event are one text", () => {
    const body =
      delta({ reasoning_content: "a", reasoning: "a" }) + delta({ reasoning_content: "b", reasoning: "b" }) + ended;
    expect(readEvents(body).reasoning).toBe("ab");
  });
  test("reasoning and text in one event", () => {
    expect(readEvents(delta({ reasoning: "r", content: "t" }) + ended)).toMatchObject({ reasoning: "r", text: "t" });
  });
  test("missing, null and empty are alike", () => {
    const body =
      delta({ role: "assistant" }) +
      delta({ content: null }) +
      delta({ content: "" }) +
      delta({ content: "x", tool_calls: [] }) +
      event({ delta: { content: "y" } }) +
      event({ delta: { content: "z" }, finish_reason: "" }) +
      ended;
    expect(readEvents(body)).toMatchObject({ text: "xyz", ending: { kind: "end", reason: "stop" } });
  });
  test("what a model says in the field for refusals is a refusal, and counts like text", () => {
    const refusals = ["I ", "cannot", " help", " with", " that."].map((refusal) => delta({ content: null, refusal }));
    expect(readEvents(textEvent("a") + refusals.join("") + finishEvent() + doneEvent)).toMatchObject({
      text: "a",
      refusal: "I cannot help with that.",
      ending: { usage: { output: 7 }, estimated: true },
    });
  });
  test("other choices are ignored", () => {
    const other = `data: {"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"length"}]}\n\n`;
    expect(readEvents(textEvent("yes") + other + ended)).toMatchObject({ text: "yes", ending: { reason: "stop" } });
  });
  test("a surrogate pair cut between two events is put together, a lone half becomes U+FFFD", () => {
    const raw = (literal: string, field = "content") => `data: {"choices":[{"delta":{"${field}":${literal}}}]}\n\n`;
    expect(readEvents(raw('"a\\ud83d"') + raw('"\\ude00b"') + ended).text).toBe("a😀b");
    expect(readEvents(raw('"a\\ud83d"') + raw('"b"') + ended).text).toBe("a\ufffdb");
    expect(readEvents(raw('"a\\ude00"') + raw('"b\\ud83d"') + ended).text).toBe("a\ufffdb\ufffd");
    expect(readEvents(raw('"r\\ud83d"', "reasoning") + raw('"t"') + ended)).toMatchObject({
      reasoning: "r\ufffd",
      text: "t",
    });
  });
  test("log probabilities travel with their text", () => {
    const pieces: unknown[] = [];
    const reader = new AnswerReader(askOf(), { piece: (piece) => pieces.push(piece) });
    const logprobs = { content: [{ token: "x", logprob: -0.1, bytes: [120], top_logprobs: [] }] };
    reader.event(JSON.stringify({ choices: [{ delta: { content: "x" }, logprobs }] }));
    expect(pieces).toEqual([{ kind: "text", literal: '"x"', logprobs: JSON.stringify(logprobs) }]);
  });
  test("those of a refusal, too", () => {
    const pieces: unknown[] = [];
    const reader = new AnswerReader(askOf(), { piece: (piece) => pieces.push(piece) });
    const tokens = [{ token: "no", logprob: -0.1, bytes: [110, 111], top_logprobs: [] }];
    const choice = { delta: { content: null, refusal: "no" }, logprobs: { content: null, refusal: tokens } };
    reader.event(JSON.stringify({ choices: [choice] }));
    expect(pieces).toEqual([{ kind: "refusal", literal: '"no"', logprobs: JSON.stringify(choice.logprobs) }]);
  });
});

describe("endings", () => {
  const reason = (given: string, ask: Ask = askOf(), before = textEvent("x")): Ending =>
    readEvents(before + finishEvent(given) + usageEvent() + doneEvent, ask).ending;
  test("reasons", () => {
    expect(reason("stop")).toMatchObject({ kind: "end", reason: "stop" });
    expect(reason("length")).toMatchObject({ reason: "length" });
    expect(reason("content_filter")).toMatchObject({ reason: "content_filter" });
    expect(reason("eos_token")).toMatchObject({ reason: "stop" });
    expect(reason("tool_calls")).toMatchObject({ reason: "stop" }); // no call was made
    expect(reason("abort")).toMatchObject({ kind: "failed", refusal: { refusal: "node_failed" } });
  });
  test("stop after a call is tool_calls", () => {
    const made = call({ index: 0, id: "a", function: { name: "get", arguments: "{}" } });
    expect(reason("stop", askOf({ tools }), made)).toMatchObject({ reason: "tool_calls" });
    expect(reason("length", askOf({ tools }), made)).toMatchObject({ reason: "length" });
  });
  test("[DONE] is not needed, a finish reason is", () => {
    expect(readEvents(textEvent("x") + finishEvent() + usageEvent()).ending).toMatchObject({
      kind: "end",
      estimated: false,
    });
    expect(readEvents(textEvent("x") + doneEvent).ending).toMatchObject({
      kind: "failed",
      refusal: { refusal: "node_failed" },
      elsewhere: false,
    });
    expect(readEvents("").ending).toMatchObject({ kind: "failed" });
  });
  test("the first finish reason and the first usage win, later text is not the answer's", () => {
    const body =
      textEvent("x") +
      finishEvent("length") +
      usageEvent(10, 1) +
      textEvent("y") +
      finishEvent("stop") +
      usageEvent(99, 99) +
      doneEvent;
    expect(readEvents(body)).toMatchObject({
      text: "x",
      ending: { reason: "length", usage: { inputFresh: 10, output: 1 } },
    });
  });
  test("the stop sequence, when the engine says it and the client asked for it", () => {
    const finish = (more: object) =>
      textEvent("x") + event({ delta: {}, finish_reason: "stop", ...more }) + usageEvent();
    const ask = askOf({ stop: ["END"] });
    expect(readEvents(finish({ stop_reason: "END" }), ask).ending).toMatchObject({ stopSequence: "END" });
    expect(readEvents(finish({ matched_stop: "END" }), ask).ending).toMatchObject({ stopSequence: "END" });
    expect(readEvents(finish({ stop_reason: 151_643 }), ask).ending).toMatchObject({ stopSequence: null });
    expect(readEvents(finish({ stop_reason: "other" }), ask).ending).toMatchObject({ stopSequence: null });
  });
});

describe("errors inside a stream", () => {
  const failure = (payload: string, before = ""): Ending =>
    readEvents(`${before}data: ${payload}\n\n${doneEvent}`).ending;
  const rows: [string, string, object][] = [
    [
      "nested",
      '{"error":{"message":"secret-host:8000 died","type":"server_error","code":500}}',
      { refusal: { refusal: "node_failed" } },
    ],
    ["flat", '{"object":"error","message":"x","type":"y","code":500}', { refusal: { refusal: "node_failed" } }],
    ["a string", '{"error":"boom"}', { refusal: { refusal: "node_failed" } }],
    [
      "overloaded",
      '{"error":{"message":"The request queue is full","code":503}}',
      { refusal: { refusal: "busy" }, elsewhere: true },
    ],
    [
      "overloaded, flat",
      '{"object":"error","message":"server busy, please try again","code":null}',
      { refusal: { refusal: "busy" } },
    ],
    [
      "too long (SGLang)",
      '{"error":{"message":"The input (70000 tokens) is longer than the model\'s context length (65536 tokens).","code":400}}',
      {
        refusal: { refusal: "context_length_exceeded", detail: { tokens: 70_000, maximum: 65_536 } },
        elsewhere: false,
      },
    ],
    ["not JSON", '{"error": "it said "no""}', { refusal: { refusal: "node_failed" } }],
    ["garbage", "hello", { refusal: { refusal: "node_failed" } }],
  ];
  for (const [name, payload, expected] of rows)
    test(name, () => {
      expect(failure(payload)).toMatchObject({ kind: "failed", ...expected });
      expect(JSON.stringify(failure(payload))).not.toContain("secret");
      // a context that is full within the answer is its end
      const within =
        name === "too long (SGLang)" ? { kind: "end", reason: "length" } : { kind: "failed", elsewhere: false };
      expect(failure(payload, textEvent("x"))).toMatchObject(within);
    });
  test("event: error with any payload", () => {
    expect(readEvents('event: error\ndata: {"message":"x"}\n\n').ending).toMatchObject({ kind: "failed" });
  });
  test("an error that is null is none", () => {
    expect(readEvents(textEvent("x", { error: null }) + ended)).toMatchObject({ text: "x", ending: { kind: "end" } });
  });
  test("after the finish reason the answer is complete", () => {
    expect(readEvents(textEvent("x") + finishEvent() + 'data: {"error":"x"}\n\n').ending).toMatchObject({
      kind: "end",
      estimated: true,
    });
  });
});

describe("usage", () => {
  const usage = (report: object | null, ask = askOf({ bodyBytes: 400 })): Ending =>
    readEvents(
      textEvent("four") +
        textEvent("five5") +
        finishEvent() +
        (report === null ? "" : event(null, { usage: report })) +
        doneEvent,
      ask,
    ).ending;
  const own = { usage: { inputFresh: 100, inputCached: 0, output: 3, reasoning: 0 }, estimated: true };
  const good = { prompt_tokens: 10, completion_tokens: 2 };

  const accepted: [string, object, object][] = [
    ["plain", good, { inputFresh: 10, inputCached: 0, output: 2, reasoning: 0 }],
    ["cached", { ...good, prompt_tokens_details: { cached_tokens: 4 } }, { inputFresh: 6, inputCached: 4 }],
    ["all cached", { ...good, prompt_tokens_details: { cached_tokens: 10 } }, { inputFresh: 0, inputCached: 10 }],
    ["cached (DeepSeek)", { ...good, prompt_cache_hit_tokens: 4 }, { inputFresh: 6, inputCached: 4 }],
    ["no details", { ...good, prompt_tokens_details: null }, { inputFresh: 10 }],
    ["reasoning", { ...good, completion_tokens_details: { reasoning_tokens: 1 } }, { reasoning: 1 }],
    ["reasoning (SGLang)", { ...good, reasoning_tokens: 1 }, { reasoning: 1 }],
  ];
  for (const [name, report, expected] of accepted)
    test(`accepted: ${name}`, () => expect(usage(report)).toMatchObject({ usage: expected, estimated: false }));

  const written = (tokens: unknown): unknown => {
    const ending = usage({ ...good, prompt_tokens_details: { cached_tokens: 4, created_cache_tokens: tokens } });
    return ending.kind === "end" ? ending.usage.cacheWritten : ending;
  };
  test("what the cache took in (vLLM), at most what was read anew, and nothing that is no number of tokens", () => {
    expect([5, 6, 7, 1e15].map(written)).toEqual([5, 6, 6, 6]);
    for (const none of [0, -1, 1.5, 1e300, "5", null, {}, []]) expect(written(none)).toBeUndefined();
  });

  test("more output than was asked for is none", () => {
    const ask = askOf({ outputTokensMax: 20 });
    const more = { ...good, completion_tokens: 20_000, completion_tokens_details: { reasoning_tokens: 30 } };
    expect(usage(more, ask)).toMatchObject({ usage: { inputFresh: 10, output: 20, reasoning: 20 }, estimated: false });
  });

  const absurd: [string, object | null][] = [
    ["missing", null],
    ["empty", {}],
    ["without output", { prompt_tokens: 10 }],
    ["negative", { ...good, completion_tokens: -1 }],
    ["negative input", { ...good, prompt_tokens: -1 }],
    ["fractional", { ...good, completion_tokens: 1.5 }],
    ["a string", { ...good, completion_tokens: "2" }],
    ["1e19", { ...good, completion_tokens: 1e19 }],
    ["above the context", { ...good, prompt_tokens: 300_000 }],
    ["together above the context", { prompt_tokens: 200_000, completion_tokens: 100_000 }],
    ["more cached than read", { ...good, prompt_tokens_details: { cached_tokens: 11 } }],
    ["negative cached", { ...good, prompt_tokens_details: { cached_tokens: -1 } }],
    ["more reasoning than output", { ...good, completion_tokens_details: { reasoning_tokens: 3 } }],
    ["no input", { ...good, prompt_tokens: 0 }],
    ["no output, though there was some", { ...good, completion_tokens: 0 }],
  ];
  for (const [name, report] of absurd) test(`own count: ${name}`, () => expect(usage(report)).toMatchObject(own));

  test("own count: NaN and Infinity, which are no JSON", () => {
    for (const word of ["NaN", "Infinity", "-Infinity"]) {
      const body = `${textEvent("four")}${textEvent("five5")}${finishEvent()}data: {"choices":[],"usage":{"prompt_tokens":${word},"completion_tokens":2}}\n\n`;
      expect(readEvents(body, askOf({ bodyBytes: 400 })).ending).toMatchObject(own);
    }
  });
  test("on the finish chunk (transformers)", () => {
    expect(readEvents(textEvent("x") + finishEvent("stop", { usage: good })).ending).toMatchObject({
      usage: { inputFresh: 10, output: 2 },
      estimated: false,
    });
  });
  test("the report of its own adds cached tokens to that on the finish chunk", () => {
    const body =
      textEvent("x", { usage: good }) +
      finishEvent("stop", { usage: good }) +
      usageEvent(10, 2, { prompt_tokens_details: { cached_tokens: 8 } });
    expect(readEvents(body).ending).toMatchObject({ usage: { inputFresh: 2, inputCached: 8 } });
  });
  test("reasoning is counted when the node does not, never above the output", () => {
    const body = (output: number) =>
      delta({ reasoning: "a" }) + delta({ reasoning: "b" }) + textEvent("x") + finishEvent() + usageEvent(10, output);
    expect(readEvents(body(3)).ending).toMatchObject({ usage: { output: 3, reasoning: 2 }, estimated: false });
    expect(readEvents(body(1)).ending).toMatchObject({ usage: { output: 1, reasoning: 1 } });
  });
  test("own count is at most the budget where the node was told it", () => {
    const body = textEvent("a".repeat(400)) + finishEvent();
    expect(readEvents(body, askOf({ outputTokensMax: 20 })).ending).toMatchObject({
      usage: { output: 20 },
      estimated: true,
    });
    expect(readEvents(body, askOf({ outputTokensMax: 20, model: firstPartyModel })).ending).toMatchObject({
      usage: { output: 100 },
    });
  });
  test("an image counts as an image, not as the length of its base64", () => {
    const url = `data:image/png;base64,${"A".repeat(1_000_000)}`;
    const ask = askOf({
      bodyBytes: url.length + 400,
      turns: [{ role: "user", content: [{ kind: "image", url, detail: null }] }],
    });
    expect(readEvents(textEvent("x") + finishEvent(), ask).ending).toMatchObject({ usage: { inputFresh: 1_600 } });
  });

  describe("when the client leaves", () => {
    const cancelSignal = (body: string, ask = askOf({ bodyBytes: 400 })): Ending => {
      const reader = new AnswerReader(ask, { piece() {} });
      for (const line of body.split("\n\n")) if (line !== "") reader.event(line.slice(6));
      return reader.cancelled();
    };
    test("the running usage is charged", () => {
      const running = (output: number) => ({ usage: { prompt_tokens: 50, completion_tokens: output } });
      const body = ["a", "b", "c", "d", "e"].map((text, index) => textEvent(text, running(index + 1))).join("");
      expect(cancelSignal(body)).toEqual({
        kind: "cancelled",
        usage: { inputFresh: 50, inputCached: 0, output: 5, reasoning: 0 },
        estimated: false,
      });
    });
    test("never less than was delivered, whatever the running usage says", () => {
      const running = { usage: { prompt_tokens: 50, completion_tokens: 1 } };
      // it may be behind, and then its input is right
      expect(cancelSignal(textEvent("ab", running).repeat(43))).toMatchObject({
        usage: { inputFresh: 50, output: 43 },
        estimated: false,
      });
      // where it says one token of a whole page, it is absurd
      expect(cancelSignal(textEvent("a word ", running).repeat(430))).toMatchObject({
        usage: { inputFresh: 100, output: 753 },
        estimated: true,
      });
    });
    test("else our own count", () => {
      expect(cancelSignal(textEvent("a") + textEvent("b") + textEvent("c"))).toEqual({
        kind: "cancelled",
        usage: { inputFresh: 100, inputCached: 0, output: 3, reasoning: 0 },
        estimated: true,
      });
      expect(cancelSignal("")).toMatchObject({ usage: { inputFresh: 100, output: 0 }, estimated: true });
    });
  });
});

describe("a node that goes on after the budget", () => {
  const many = (count: number, more: (index: number) => object = () => ({})) =>
    Array.from({ length: count }, (_, index) => textEvent("ab", more(index))).join("");
  test("is cut at it, by our count", () => {
    const answer = readEvents(many(50), askOf({ outputTokensMax: 8 }));
    expect(answer).toMatchObject({
      text: "ab".repeat(8),
      ending: { kind: "end", reason: "length", usage: { output: 8 }, estimated: true },
    });
  });
  test("is cut at it, by its own count", () => {
    const more = (index: number) => ({ usage: { prompt_tokens: 10, completion_tokens: 2 * (index + 1) } });
    expect(readEvents(many(50, more), askOf({ outputTokensMax: 8 }))).toMatchObject({
      text: "ab".repeat(4),
      ending: { reason: "length", usage: { inputFresh: 10, output: 8 }, estimated: false },
    });
  });
  test("is cut though it hides many tokens in one event", () => {
    const body = Array.from({ length: 4 }, () => textEvent("x".repeat(1_000))).join("");
    expect(readEvents(body, askOf({ outputTokensMax: 10 })).ending).toMatchObject({
      reason: "length",
      usage: { output: 10 },
    });
  });
  test("is cut within an event that goes far beyond it", () => {
    const ask = askOf({ outputTokensMax: 10, tools: [toolOf("get")] });
    const json = JSON.stringify("x".repeat(5_000));
    for (const body of [
      textEvent("é".repeat(5_000)),
      textEvent("a").repeat(9) + textEvent("é".repeat(5_000)), // by its bytes
      delta({ reasoning: "é".repeat(5_000) }),
      call({ index: 0, id: "a", function: { name: "get", arguments: json } }),
      call({ index: 0, id: "a", function: { name: "get", arguments: "" } }) +
        call({ index: 0, function: { arguments: json } }),
    ]) {
      const { text, reasoning, calls, ending } = readEvents(body + ended, ask);
      expect(`${text}${reasoning}${calls.map((one) => one.json).join("")}`.length).toBeLessThanOrEqual(320);
      expect(ending).toMatchObject({ kind: "end", reason: "length", usage: { output: 10 } });
    }
  });
  test("is cut though its running count stands still", () => {
    const answer = readEvents(
      many(500, () => ({ usage: { prompt_tokens: 10, completion_tokens: 1 } })),
      askOf({ outputTokensMax: 8 }),
    );
    expect(answer.text.length).toBeLessThanOrEqual(2 * 64);
    expect(answer.ending).toMatchObject({ kind: "end", reason: "length", usage: { output: 8 } });
  });
  test("is cut at its context where the budget does not limit the answer", () => {
    const model = { ...firstPartyModel, contextTokens: 64 };
    const ask = askOf({ outputTokensMax: 8, model });
    expect(readEvents(many(50) + ended, ask).text).toBe("ab".repeat(50));
    expect(readEvents(many(500) + ended, ask)).toMatchObject({
      text: "ab".repeat(64),
      ending: { reason: "length", usage: { output: 64 } },
    });
    const thought = Array.from({ length: 500 }, () => delta({ reasoning: "hm" })).join("");
    expect(readEvents(thought + ended, ask).reasoning).toBe("hm".repeat(64));
  });
  test("is cut where its log probabilities are too much to keep", () => {
    const logprobs = { content: [{ token: "x".repeat(1024 * 1024) }] };
    const reader = new AnswerReader(askOf({ stream: false }), { piece() {} });
    const payload = JSON.stringify({ choices: [{ delta: { content: "x" }, logprobs }] });
    for (let sent = 0; sent < 100 && !reader.done; sent++) reader.event(payload);
    expect(reader.ending()).toMatchObject({ reason: "length", usage: { output: 63 } });
  });
  test("one that keeps to it is not cut", () => {
    expect(
      readEvents(many(8) + finishEvent("length") + usageEvent(10, 8), askOf({ outputTokensMax: 8 })).ending,
    ).toMatchObject({ reason: "length", usage: { output: 8 }, estimated: false });
  });
});

describe("tool calls", () => {
  test("one at most where the client wants no parallel ones, also from a node that sends two", () => {
    const body =
      call({ index: 0, id: "a", function: { name: "get_time", arguments: '{"at":' } }) +
      call({ index: 1, id: "b", function: { name: "get_weather", arguments: "{}" } }) +
      call({ index: 0, function: { arguments: "1}" } }) +
      ended;
    const both = [{ name: "get_time", json: '{"at":1}' }, { name: "get_weather" }];
    expect(readEvents(body, askOf({ tools })).calls).toMatchObject(both);
    const single = readEvents(body, askOf({ tools, parallelToolCalls: false })).calls;
    expect(single).toMatchObject(both.slice(0, 1));
    expect(single).toHaveLength(1);
  });
  test("whole calls count toward the budget, by name and arguments", () => {
    const item = (index: number) => ({ index, id: `c${index}`, function: { name: "get", arguments: "{}" } });
    const many = delta({ tool_calls: Array.from({ length: 50 }, (_, index) => item(index)) });
    expect(readEvents(many + ended, askOf({ tools, outputTokensMax: 5 }))).toMatchObject({
      calls: { length: 5 },
      ending: { reason: "length", usage: { output: 5 } },
    });
    const names = Array.from({ length: 50 }, (_, index) =>
      call({ index, id: `c${index}`, function: { name: "get" } }),
    ).join("");
    expect(readEvents(names + ended, askOf({ tools, outputTokensMax: 5 })).ending).toMatchObject({
      reason: "length",
      usage: { output: 5 },
    });
    // left out, because the client wants one at a time: they end the answer all the same
    const single = askOf({ tools, outputTokensMax: 5, parallelToolCalls: false });
    expect(readEvents(many + ended, single)).toMatchObject({ calls: { length: 1 }, ending: { reason: "length" } });
  });
  test("an answer has 128 at most, and those are whole", () => {
    for (const given of ["{}", ""]) {
      const body = Array.from({ length: 200 }, (_, index) =>
        call({ index, id: `c${index}`, function: { name: "get", arguments: given } }),
      ).join("");
      const { calls: made, ending } = readEvents(body + ended, askOf({ tools }));
      expect(made).toHaveLength(128);
      expect(made.at(-1)).toEqual({ id: "c127", name: "get", json: "{}" });
      expect(ending).toMatchObject({ reason: "length" });
    }
  });
  test("a name without end ends the answer", () => {
    const body = Array.from({ length: 2_000 }, (_, at) => call({ index: 0, function: { name: `n${at % 10}` } })).join(
      "",
    );
    expect(readEvents(textEvent("x") + body + ended, askOf({ tools })).ending).toMatchObject({ reason: "length" });
  });

  const calls = (body: string, given = tools) => readEvents(body + ended, askOf({ tools: given })).calls;
  const ours = expect.stringMatching(/^call_[0-9A-Za-z]{24}$/);
  const rows: [string, string, object[]][] = [
    [
      "name first, then pieces (vLLM)",
      call({ index: 0, id: "a", type: "function", function: { name: "get_weather", arguments: "" } }) +
        call({ index: 0, function: { arguments: '{"ci' } }) +
        call({ index: 0, function: { arguments: 'ty":1}' } }),
      [{ id: "a", name: "get_weather", json: '{"city":1}' }],
    ],
    [
      "name and first piece together (llama-server)",
      call({ index: 0, id: "a", function: { name: "get", arguments: "{" } }) +
        call({ index: 0, function: { arguments: "}" } }),
      [{ id: "a", name: "get", json: "{}" }],
    ],
    [
      "whole calls in one delta",
      delta({
        tool_calls: [
          { index: 0, id: "a", function: { name: "get", arguments: "{}" } },
          { index: 1, id: "b", function: { name: "get_time", arguments: "{}" } },
        ],
      }),
      [
        { id: "a", name: "get", json: "{}" },
        { id: "b", name: "get_time", json: "{}" },
      ],
    ],
    [
      "whole calls without index",
      delta({
        tool_calls: [
          { id: "a", function: { name: "get", arguments: "{}" } },
          { id: "b", function: { name: "get", arguments: "{}" } },
        ],
      }),
      [{ id: "a" }, { id: "b" }],
    ],
    [
      "every index 0, other ids",
      call({ index: 0, id: "a", function: { name: "get", arguments: "{}" } }) +
        call({ index: 0, id: "b", function: { name: "get", arguments: "{}" } }),
      [
        { id: "a", json: "{}" },
        { id: "b", json: "{}" },
      ],
    ],
    [
      "every index 0, no ids, other names",
      call({ index: 0, function: { name: "get", arguments: "{}" } }) +
        call({ index: 0, function: { name: "get_time", arguments: "{}" } }),
      [
        { name: "get", id: ours },
        { name: "get_time", id: ours },
      ],
    ],
    [
      "indices from 1 with a gap",
      call({ index: 1, id: "a", function: { name: "get", arguments: "{}" } }) +
        call({ index: 5, id: "b", function: { name: "get", arguments: "{}" } }),
      [{ id: "a" }, { id: "b" }],
    ],
    ["empty id", call({ index: 0, id: "", function: { name: "get", arguments: "{}" } }), [{ id: ours }]],
    ["numeric id (LM Studio)", call({ index: 0, id: 17, function: { name: "get", arguments: "{}" } }), [{ id: "17" }]],
    [
      "the same id twice",
      delta({
        tool_calls: [
          { index: 0, id: "a", function: { name: "get", arguments: "{}" } },
          { index: 1, id: "a", function: { name: "get", arguments: "{}" } },
        ],
      }),
      [{ id: "a" }, { id: ours }],
    ],
    [
      "name and id in every delta (TGI)",
      ["{", "}"]
        .map((json) => call({ index: 0, id: "", type: "function", function: { name: "get_weather", arguments: json } }))
        .join(""),
      [{ name: "get_weather", json: "{}" }],
    ],
    [
      "no ids, the same tool twice under one index",
      call({ index: 0, function: { name: "get", arguments: '{"x":1}' } }) +
        call({ index: 0, id: "", function: { name: "get", arguments: '{"x":' } }) +
        call({ index: 0, id: "", function: { name: "get", arguments: "2}" } }),
      [
        { name: "get", json: '{"x":1}' },
        { name: "get", json: '{"x":2}' },
      ],
    ],
    [
      "no ids, the name again with white space behind the arguments",
      call({ index: 0, function: { name: "get", arguments: "{}" } }) +
        call({ index: 0, function: { name: "get", arguments: "\n" } }),
      [{ name: "get", json: "{}\n" }],
    ],
    [
      "no ids, the same tool twice, with arguments in many pieces",
      call({ index: 0, function: { name: "get", arguments: "" } }) +
        ['{"x', '":"', ..."abcdefghij", '"}']
          .map((json) => call({ index: 0, function: { arguments: json } }))
          .join("") +
        call({ index: 0, function: { name: "get", arguments: "" } }) +
        call({ index: 0, function: { name: "get", arguments: "{}" } }),
      [
        { name: "get", json: '{"x":"abcdefghij"}' },
        { name: "get", json: "{}" },
      ],
    ],
    [
      "id in every delta",
      ["{", "}"].map((json) => call({ index: 0, id: "a", function: { name: "get", arguments: json } })).join(""),
      [{ id: "a", json: "{}" }],
    ],
    [
      "arguments as an object",
      call({ index: 0, id: "a", function: { name: "get", arguments: { city: "Paris" } } }),
      [{ json: '{"city":"Paris"}' }],
    ],
    [
      "the name in fragments",
      call({ index: 0, id: "a", function: { name: "get" } }) +
        call({ index: 0, function: { name: "_weather" } }) +
        call({ index: 0, function: { arguments: "{}" } }),
      [{ name: "get_weather" }],
    ],
    [
      "the name growing",
      call({ index: 0, id: "a", function: { name: "get_w" } }) +
        call({ index: 0, function: { name: "get_weather" } }) +
        call({ index: 0, function: { arguments: "{}" } }),
      [{ name: "get_weather" }],
    ],
    [
      "the name late",
      call({ index: 0, id: "a", function: { arguments: "{" } }) +
        call({ index: 0, function: { name: "get" } }) +
        call({ index: 0, function: { arguments: "}" } }),
      [{ name: "get", json: "{}" }],
    ],
    [
      "pieces of two calls in turn",
      [0, 1].map((index) => call({ index, id: `${index}`, function: { name: "get", arguments: "{" } })).join("") +
        [1, 0].map((index) => call({ index, function: { arguments: `"${index}":1}` } })).join(""),
      [{ json: '{"0":1}' }, { json: '{"1":1}' }],
    ],
    ["no arguments at all", call({ index: 0, id: "a", function: { name: "get" } }), [{ name: "get", json: "{}" }]],
  ];
  for (const [name, body, expected] of rows)
    test(name, () => {
      const made = calls(body);
      expect(new Set(made.map(({ id }) => id)).size).toBe(expected.length);
      expect(made.length).toBe(expected.length);
      expect(made).toMatchObject(expected);
      expect(readEvents(body + ended, askOf({ tools })).ending).toMatchObject({ kind: "end", reason: "tool_calls" });
    });
  test("a call that never gets a name is a failure, unless there is but one tool", () => {
    const body = call({ index: 0, id: "a", function: { arguments: "{}" } }) + ended;
    expect(readEvents(body, askOf({ tools })).ending).toMatchObject({ kind: "failed" });
    expect(readEvents(body, askOf({ tools: [toolOf("get")] })).calls).toMatchObject([{ name: "get", json: "{}" }]);
  });
  test("text as a call that names its tool, at every split in two and character by character", () => {
    const text = '{"name": "get_time", "arguments": {"zone": "}\\"\u00e9"}}\n';
    const splits = Array.from({ length: text.length - 1 }, (_, at) => [text.slice(0, at + 1), text.slice(at + 1)]);
    for (const pieces of [[text], [...text], ...splits]) {
      const body = pieces.map((piece) => textEvent(piece)).join("") + ended;
      const answer = readEvents(body, askOf({ tools }), { textNamesCall: true });
      expect(answer).toMatchObject({
        text: "",
        calls: [{ id: ours, name: "get_time", json: '{"zone": "}\\"\u00e9"}' }],
        ending: { reason: "tool_calls" },
      });
    }
  });
  test.each(["Hello!", '{"arguments": {}}', '{"name": 1, "arguments": {}}', `{"name":"${"x".repeat(9_000)}`, ""])(
    "text that should name a call and does not is an answer without one: %p",
    (text) => {
      const answer = readEvents(textEvent(text) + ended, askOf({ tools }), { textNamesCall: true });
      expect(answer).toMatchObject({ text: "", calls: [], ending: { reason: "stop" } });
    },
  );
});

describe("the fast way equals the full parse", () => {
  // Streams of a few shapes whose strings are anything at all, with other events in between.
  const text = fc.oneof(
    fc.string({ unit: "binary", maxLength: 12 }),
    fc.constantFrom(
      '"',
      "\\",
      '\\"',
      "\u0000",
      "\u2028",
      '","x":"',
      '"}}]}',
      "content",
      '"content":"a"',
      "\ud83d",
      "\ude00",
      "usage",
      '"usage":{"completion_tokens":1',
    ),
  );
  type Shape = (text: string, index: number) => object;
  const eventShapes: Shape[] = [
    (content) => choice({ content }),
    (content) => choice({ role: "assistant", content, reasoning_content: null }),
    (reasoning_content) => choice({ reasoning_content }),
    (reasoning) => choice({ content: "", reasoning }),
    (reasoning) => choice({ reasoning, reasoning_content: reasoning }),
    (content, index) => ({
      ...choice({ content }),
      usage: { prompt_tokens: 9, completion_tokens: index, total_tokens: 9 + index },
    }),
    (content, index) => ({ usage: { prompt_tokens: 9, completion_tokens: index }, ...choice({ content }) }),
    (content, index) => ({ ...choice({ content }), created: 1_700_000_000 + (index >> 2), usage: null }),
    (content) => ({ ...choice({ content }), note: '"content":"x"', model: "usage:1,2" }),
    (json) => choice({ tool_calls: [{ index: 0, function: { arguments: json } }] }),
    (json) => choice({ tool_calls: [{ index: 0, id: "a", function: { name: "get", arguments: json } }] }),
    (content) => ({ choices: [{ delta: { content }, logprobs: { content: [] } }] }),
    (content) => ({ choices: [{ delta: { content } }, { index: 1, delta: { content } }] }),
    (content, index) => ({ id: `c-${index}`, created: 1_700_000_000 + index, ...choice({ content }) }),
    (content, index) => ({ id: content, ...choice({ content }), created: index, timings: { id: "x" } }),
    (json, index) => choice({ tool_calls: [{ id: index > 2 ? "b" : "", index: 0, function: { arguments: json } }] }),
  ];
  const escape = (json: string, style: number): string => {
    if (style === 1)
      return json.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
    return style === 2 ? json.replaceAll("/", "\\/").replaceAll(":", ": ") : json;
  };
  const steps = fc.array(
    fc.tuple(
      fc.nat(eventShapes.length - 1),
      fc.integer({ min: 1, max: 6 }),
      fc.nat(2),
      fc.array(text, { minLength: 6, maxLength: 6 }),
    ),
    { maxLength: 8 },
  );

  const read = (payloads: string[], shapes: KnownShapes<Channel> | null, takesBytes = true): object => {
    const collected = collector();
    const pieces: string[] = [];
    const piece = (given: Piece): void => {
      pieces.push(given.kind);
      collected.piece(given);
    };
    const literal: typeof collected.literal = (kind, bytes, start, end) => {
      pieces.push(kind);
      collected.literal(kind, bytes, start, end);
    };
    const ask = askOf({ tools: [toolOf("get")], outputTokensMax: 65_536 });
    const reader = new AnswerReader(ask, takesBytes ? { piece, literal } : { piece }, { shapes });
    feed(reader, payloads);
    const running = reader.cancelled();
    reader.event('{"choices":[{"delta":{},"finish_reason":"stop"}]}');
    return {
      pieces,
      text: collected.text,
      reasoning: collected.reasoning,
      calls: collected.calls,
      running,
      ending: reader.ending(),
    };
  };

  /** Without the ids that were made up. */
  const hidden = (result: object) => JSON.stringify(result).replace(/call_[0-9A-Za-z]{24}/g, "call_");

  test("for any payloads", () => {
    fc.assert(
      fc.property(steps, (given) => {
        const payloads = given.flatMap(([shape, count, style, texts]) =>
          texts.slice(0, count).map((one, index) => escape(JSON.stringify(eventShapes[shape]!(one, index)), style)),
        );
        const whole = hidden(read(payloads, null));
        expect(hidden(read(payloads, new KnownShapes()))).toBe(whole);
        expect(hidden(read(payloads, new KnownShapes(), false))).toBe(whole);
      }),
      { numRuns: Number(process.env["TOLLGATE_TEST_RUNS"] ?? 400) },
    );
  });

  test("for any answers after each other, which know what those before them taught", () => {
    fc.assert(
      fc.property(fc.array(steps, { minLength: 2, maxLength: 5 }), (answers) => {
        const shapes = new KnownShapes<Channel>();
        for (const [nth, answer] of answers.entries()) {
          const payloads = answer.flatMap(([shape, count, style, texts]) =>
            texts.slice(0, count).map((one, index) => {
              const event = { id: `chatcmpl-${nth}`, ...eventShapes[shape]!(one, index), model: `m${nth % 2}` };
              return escape(JSON.stringify(event), style);
            }),
          );
          expect(hidden(read(payloads, shapes))).toBe(hidden(read(payloads, null)));
        }
      }),
      { numRuns: Number(process.env["TOLLGATE_TEST_RUNS"] ?? 400) },
    );
  });

  test("an answer is read by what one before it taught, whatever its id and time", () => {
    const shapes = new KnownShapes<Channel>();
    const answer = (nth: number) =>
      Array.from({ length: 9 }, (_, index) =>
        JSON.stringify({
          id: `chatcmpl-${"x".repeat(nth)}`,
          created: 170 ** nth,
          ...choice({ content: `word${index}` }),
        }),
      );
    const parses = (nth: number): number => {
      const parse = JSON.parse;
      let count = 0;
      JSON.parse = (source: string) => {
        count++;
        return parse(source) as unknown;
      };
      try {
        feed(new AnswerReader(askOf(), { piece() {} }, { shapes }), answer(nth));
      } finally {
        JSON.parse = parse;
      }
      return count;
    };
    expect([parses(1) > 4, parses(2), parses(3)]).toEqual([true, 0, 0]);
  });

  test("the arguments of a call are not known where the answer began no call", () => {
    const shapes = new KnownShapes<Channel>();
    const first = JSON.stringify(
      choice({ tool_calls: [{ index: 0, id: "a", function: { name: "get", arguments: "" } }] }),
    );
    const more = JSON.stringify(choice({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] }));
    read([first, ...Array<string>(9).fill(more)], shapes);
    expect(hidden(read([more, more], shapes))).toBe(hidden(read([more, more], null)));
  });

  test("a node that changes every event is not learned from for ever", () => {
    const shapes = new KnownShapes<Channel>();
    const payloads = Array.from({ length: 99 }, (_, at) =>
      JSON.stringify({ [`n${at}`]: 1, ...choice({ content: "x" }) }),
    );
    const learn = shapes.learn.bind(shapes);
    let learned = 0;
    shapes.learn = (...given) => {
      const template = learn(...given);
      if (template !== null) learned++;
      return template;
    };
    read(payloads, shapes);
    expect(learned).toBe(24);
  });

  test("and does not parse what it knows", () => {
    const parse = JSON.parse;
    let parses = 0;
    const payloads = Array.from({ length: 100 }, (_, index) => JSON.stringify(choice({ content: `word${index}\n` })));
    JSON.parse = (source: string) => {
      parses++;
      return parse(source) as unknown;
    };
    const reader = new AnswerReader(askOf(), { piece() {} });
    try {
      feed(reader, payloads);
    } finally {
      JSON.parse = parse;
    }
    expect(parses).toBeLessThan(24);
  });

  test("bytes that are no UTF-8 are replaced, as a decoder does", () => {
    const known = textEvent("x").repeat(9);
    for (const bad of [
      [0xff],
      [0xc3],
      [0xc0, 0x80],
      [0xed, 0xa0, 0x80],
      [0xf0, 0x9f, 0x98],
      [0xf4, 0x90, 0x80, 0x80],
    ]) {
      const [before, after] = textEvent("@").split("@") as [string, string];
      const event = Buffer.concat([Buffer.from(before), Buffer.from(bad), Buffer.from(after)]);
      const body = Buffer.concat([Buffer.from(known), event, Buffer.from(textEvent("é你😀") + ended)]);
      expect(readEvents(body).text).toBe(`${"x".repeat(9)}${Buffer.from(bad).toString()}é你😀`);
    }
  });

  test("a string elsewhere that equals the text is not taken for it", () => {
    const named = (model: string, content: string) =>
      `data: ${JSON.stringify({ model, choices: [{ delta: { content } }] })}\n\n`;
    const known = named("x", "x").repeat(9);
    expect(readEvents(known + named("q", "x") + named("x", "y") + ended).text).toBe(`${"x".repeat(10)}y`);
  });

  test("more after a known shape is no known shape", () => {
    const known = '{"choices":[{"delta":{"content":"x"}}]}';
    for (const more of ["}", "x", ' {"a":1}'])
      expect(readEvents(`${`data: ${known}\n\n`.repeat(9)}data: ${known}${more}\n\n${ended}`)).toMatchObject({
        text: "x".repeat(9),
        ending: { kind: "failed" },
      });
  });

  test("broken literals in a known shape are broken events", () => {
    for (const literal of ['"a\u0001"', '"a\\x"', '"a\\u12g4"', '"a', "5", '"a","b":"c', '"a"b"']) {
      const known = `data: {"choices":[{"delta":{"content":"x"}}]}\n\n`;
      const { text: got, ending } = readEvents(
        `${known.repeat(9)}data: {"choices":[{"delta":{"content":${literal}}}]}\n\n${finishEvent()}`,
      );
      expect(got).toMatch(/^x{9}a?$/);
      if (literal !== '"a","b":"c')
        expect([literal, ending.kind]).toEqual([literal, literal === "5" ? "end" : "failed"]);
    }
  });
});

describe("an answer is read in linear time", () => {
  const first = (given: object) => choice({ tool_calls: [{ index: 0, function: { name: "get", ...given } }] });
  const content = (given: string) => choice({ content: given });
  const same = (event: object, count: number): string[] => Array<string>(count).fill(JSON.stringify(event));
  const pieces = 60_000;
  const bodies: [string, readonly string[]][] = [
    [
      "arguments of a call without an id, each fragment of which may be the last",
      same(first({ arguments: "}" }), pieces),
    ],
    [
      "the same, of which none is whole",
      [JSON.stringify(first({ arguments: "{" })), ...same(first({ arguments: "{}" }), pieces)],
    ],
    [
      "calls beyond what an answer may have",
      [
        JSON.stringify(
          choice({
            tool_calls: Array.from({ length: pieces }, (_, index) => ({
              index,
              id: `${index}`,
              function: { name: "get", arguments: "{}" },
            })),
          }),
        ),
      ],
    ],
    [
      "a name in fragments",
      Array.from({ length: pieces }, (_, at) =>
        JSON.stringify(choice({ tool_calls: [{ index: 0, function: { name: `${at}` } }] })),
      ),
    ],
    ["white space before a thought", same(content(" "), pieces)],
    ["a thought", [JSON.stringify(content("<think>")), ...same(content("</"), pieces)]],
    ["one event with the text in many places", same({ ...content("x"), more: Array<string>(pieces).fill("x") }, 8)],
  ];
  test.each(bodies)(
    "%s",
    (_, payloads) => {
      const before = process.cpuUsage();
      feed(new AnswerReader(askOf({ tools, outputTokensMax: 65_536 }), { piece() {} }), payloads);
      const { user, system } = process.cpuUsage(before);
      // quadratic, each of them takes from 10 s to minutes
      expect((user + system) / 1_000).toBeLessThan(4_000);
    },
    60_000,
  );
});
