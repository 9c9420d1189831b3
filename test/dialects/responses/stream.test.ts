// Replies of the responses dialect beyond the answers of test/golden: signs of life, cut calls, failures, compaction.
import { describe, expect, test } from "bun:test";
import { embeddedCatalog } from "../../../src/core/catalog.ts";
import type { AnswerEnd, Encoder } from "../../../src/dialects/dialect.ts";
import { responsesDialect } from "../../../src/dialects/responses/responses.ts";
import type { ResponsesAsk } from "../../../src/dialects/responses/body.ts";
import { atRoute, readBody, writerOf, wholeReply } from "../../fixtures/reading.ts";
import { type Earlier, responseText, type StoredResponse } from "../../../src/dialects/stored-responses.ts";
import { sealingKeyBytes } from "../../../src/core/limits.ts";
import { Sealer } from "../../../src/dialects/request/sealed-content.ts";
import { isRefusal, messageOf, type RefusalName, refuse } from "../../../src/core/refusals.ts";
import type { Piece } from "../../../src/core/types.ts";
import {
  expectOrderedResponse,
  expectResponseShape,
  type ResponseBody,
  responseEvents,
  textOfItem,
} from "../../fixtures/response-events.ts";
import { pixelUrl } from "../../fixtures/pictures.ts";

const catalog = embeddedCatalog();
const sealingKey = new Uint8Array(sealingKeyBytes).fill(1);
const sealer = new Sealer(sealingKey);
const clock = { wall: () => 1_795_200_002_000, monotonic: () => 0 };
const options = { sealingKey, clock, storesResponses: false };
const dialect = responsesDialect(options);
const identity = { requestId: "req_1", createdSeconds: 1_795_200_000 };
const usage = { inputFresh: 100, inputCached: 20, output: 20, reasoning: 5 };
const ended: AnswerEnd = { reason: "stop", stopSequence: null, usage };
const sealed = { include: ["reasoning.encrypted_content"] };

function ask(body: object = {}): ResponsesAsk {
  const result = readBody<ResponsesAsk>(dialect, { model: "core-3", input: "hello", ...body }, 100, catalog);
  if (isRefusal(result)) throw new Error(messageOf(result));
  return result;
}

const text = (...fragments: string[]): Piece[] =>
  fragments.map((fragment) => ({ kind: "text", literal: JSON.stringify(fragment), logprobs: null }));
const reasoning = (...fragments: string[]): Piece[] =>
  fragments.map((fragment) => ({ kind: "reasoning", literal: JSON.stringify(fragment) }));
const call = (index: number, id: string, name: string): Piece => ({ kind: "call", index, id, name });
const json = (index: number, ...fragments: string[]): Piece[] =>
  fragments.map((fragment) => ({ kind: "call-arguments", index, literal: JSON.stringify(fragment) }));

function stream(request: ResponsesAsk, pieces: readonly Piece[], end: AnswerEnd = ended): string {
  const encoder = writerOf(request).encoder(identity, "events");
  return pieces.map((piece) => encoder.piece(piece)).join("") + encoder.end(end);
}

function reply(request: ResponsesAsk, pieces: readonly Piece[], end: AnswerEnd = ended): ResponseBody {
  return JSON.parse(wholeReply(writerOf(request).encoder(identity, "whole"), pieces, end));
}

/** What differs between two right replies: ids, the sealed bytes, and the convenience key that goldens lack. */
function normalised(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, inner: unknown) => {
    if ((key === "id" || key === "item_id") && typeof inner === "string") return inner.replace(/_.*/, "");
    if (key === "encrypted_content") return "sealed";
    if (key === "output_text") return undefined;
    return inner;
  });
}

const bash = {
  type: "function",
  name: "bash",
  description: "run",
  parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  strict: false,
};
const patch = { type: "custom", name: "apply_patch" };

describe("signs of life", () => {
  const signs = (encoder: Encoder) => Array.from({ length: 12 }, () => encoder.keepAlive());
  const comment = ": waiting\n\n";

  test("are comments but for every sixth, which is an event since Codex sees no others", () => {
    const written = signs(writerOf(ask()).encoder(identity, "events"));
    expect(written.filter((sign) => sign === comment)).toHaveLength(10);
    expect(responseEvents(written[5]!).events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
    ]);
    expect(responseEvents(written[11]!).events.map(({ type }) => type)).toEqual(["response.in_progress"]);
  });

  test("within an item are empty deltas, since another in_progress would wipe what clients have gathered", () => {
    const encoder = writerOf(ask()).encoder(identity, "events");
    encoder.piece(text("a")[0]!);
    const [event] = responseEvents(signs(encoder)[5]!).events;
    expect(event).toMatchObject({ type: "response.output_text.delta", delta: "" });
  });

  test("anywhere leave the stream well ordered and the answer as it is", () => {
    const pieces = [...reasoning("a"), ...text("b"), call(0, "c1", "bash"), ...json(0, "{", "}")];
    const custom = [call(1, "c2", "apply_patch"), ...json(1, '{"input":"', 'x"}')];
    const tools = [bash, patch];
    const encoder = writerOf(ask({ tools })).encoder(identity, "events");
    const written = [...pieces, ...custom].flatMap((piece) => {
      const given = signs(encoder);
      expect(given).not.toContain("");
      return [...given, encoder.piece(piece)];
    });
    const final = expectOrderedResponse([...written, ...signs(encoder), encoder.end(ended)].join(""));
    expect(final).toEqual(reply(ask({ tools }), [...pieces, ...custom]));
  });

  test("of a compaction tell only that it is in progress", () => {
    const encoder = writerOf(ask({ input: [{ role: "user", content: "x" }, { type: "compaction_trigger" }] })).encoder(
      identity,
      "events",
    );
    const begun = [...signs(encoder), ...text("y").map((piece) => encoder.piece(piece)), ...signs(encoder)];
    expect(expectOrderedResponse([...begun, encoder.end(ended)].join("")).output).toHaveLength(1);
  });
});

describe("calls", () => {
  const namespaced = { type: "namespace", name: "agents", tools: [{ type: "function", name: "wait" }] };

  test("of a namespaced tool come back split", () => {
    const pieces = [call(0, "c1", "agents__wait"), ...json(0, "{}")];
    const [item] = expectOrderedResponse(stream(ask({ tools: [namespaced] }), pieces)).output;
    expect(item).toMatchObject({ type: "function_call", name: "wait", namespace: "agents", call_id: "c1" });
  });

  test("that arrive interleaved open one after the other; the first streams while the second waits", () => {
    const encoder = writerOf(ask({ tools: [bash] })).encoder(identity, "events");
    let written = "";
    const write = (...pieces: Piece[]) => {
      const events = pieces.map((piece) => encoder.piece(piece)).join("");
      written += events;
      return responseEvents(events).events.map(
        (event) => `${event.type.replace("response.", "")} ${String(event["output_index"])}`,
      );
    };
    write(...text("x"));
    expect(write(call(0, "c1", "bash")).at(-1)).toBe("output_item.added 1");
    expect(write(...json(0, '{"a":'))).toEqual(["function_call_arguments.delta 1"]);
    expect(write(call(1, "c2", "bash"), ...json(1, '{"b":', "2}"))).toEqual([]);
    expect(write(...json(0, "1}"))).toEqual([
      "function_call_arguments.delta 1",
      "function_call_arguments.done 1",
      "output_item.done 1",
      "output_item.added 2",
      "function_call_arguments.delta 2",
    ]);
    expect(write(...json(0, "\n"))).toEqual([]); // white space after the end
    expect(write(...json(1, " "))).toEqual(["function_call_arguments.delta 2"]);
    expect(expectOrderedResponse(written + encoder.end(ended)).output.map(textOfItem)).toEqual([
      "x",
      '{"a":1}',
      '{"b":2} ',
    ]);
  });

  test("one after the other stream each", () => {
    const encoder = writerOf(ask({ tools: [bash] })).encoder(identity, "events");
    for (const piece of [call(0, "c1", "bash"), ...json(0, '{"a":1}'), call(1, "c2", "bash")]) encoder.piece(piece);
    expect(encoder.piece(json(1, '{"b')[0]!)).toContain('"delta":"{\\"b"');
  });

  test("that the budget cut are not done and not in the output, streamed or not", () => {
    const pieces = [...text("I run"), call(0, "c1", "bash"), ...json(0, '{"command":"rm -rf /tm')];
    for (const reason of ["length", "content_filter"] as const) {
      const written = stream(ask({ tools: [bash] }), pieces, { ...ended, reason });
      const final = expectOrderedResponse(written);
      expect(final.status).toBe("incomplete");
      expect(final["incomplete_details"]).toEqual({
        reason: reason === "length" ? "max_output_tokens" : "content_filter",
      });
      expect(final.output.map((item) => item.type)).toEqual(["message"]);
      expect(written).not.toContain("function_call_arguments.done");
      expect(reply(ask({ tools: [bash] }), pieces, { ...ended, reason }).output).toHaveLength(1);
    }
  });

  test("that are whole when the budget ends are given", () => {
    const pieces = [call(0, "c1", "bash"), ...json(0, '{"a":1}')];
    expect(
      expectOrderedResponse(stream(ask({ tools: [bash] }), pieces, { ...ended, reason: "length" })).output,
    ).toEqual([expect.objectContaining({ type: "function_call", status: "completed", arguments: '{"a":1}' })]);
  });

  test("of a custom tool with broken wrapping still come as custom calls", () => {
    const pieces = [call(0, "c1", "apply_patch"), ...json(0, "*** Begin", " Patch")];
    const [item] = expectOrderedResponse(stream(ask({ tools: [patch] }), pieces)).output;
    expect(item).toMatchObject({ type: "custom_tool_call", name: "apply_patch", input: "*** Begin Patch" });
  });

  test("with odd names and ids stay valid JSON", () => {
    const pieces = [call(0, 'c"\n', 'na"me\u2028'), ...json(0, "{}")];
    const [item] = expectOrderedResponse(stream(ask(), pieces)).output;
    expect(item).toMatchObject({ call_id: 'c"\n', name: 'na"me\u2028' });
  });
});

describe("reasoning", () => {
  test("is sealed when asked for, the same in each event, and opens to the whole thought", () => {
    const final = expectOrderedResponse(stream(ask(sealed), [...reasoning("a", "\u00e9", "😀"), ...text("x")]));
    const [item] = final.output;
    expect(sealer.open("reasoning", item!["encrypted_content"] as string)).toBe("a\u00e9😀");
    expect(expectOrderedResponse(stream(ask(), reasoning("a"))).output[0]).not.toHaveProperty("encrypted_content");
  });

  test("of a reply sent back is what the model thought", () => {
    const { output } = reply(ask(sealed), [...reasoning("deep"), ...text("x")]);
    const next = ask({ input: [{ role: "user", content: "q" }, ...output, { role: "user", content: "more" }] });
    expect(next.turns).toEqual([
      { role: "user", content: "q" },
      { role: "assistant", content: "x", reasoning: "deep", calls: [] },
      { role: "user", content: "more" },
    ]);
  });
});

describe("an answer", () => {
  test("of nothing, or of thoughts alone, still has a message, so that agents stop asking", () => {
    for (const pieces of [[], reasoning("hm")]) {
      const final = expectOrderedResponse(stream(ask(), pieces));
      expect(final.output.at(-1)).toMatchObject({ type: "message", status: "completed" });
      expect(normalised(reply(ask(), pieces))).toEqual(normalised(final));
    }
  });

  test("has its text in output_text, last, and its usage with both details", () => {
    const usage = { inputFresh: 1, inputCached: 2, output: 4, reasoning: 3 };
    const body = wholeReply(writerOf(ask()).encoder(identity, "whole"), text("Hi"), { ...ended, usage });
    expect(body).toEndWith(',"output_text":"Hi"}');
    expect(JSON.parse(body).usage).toEqual({
      input_tokens: 3,
      input_tokens_details: { cached_tokens: 2, cache_write_tokens: 0 },
      output_tokens: 4,
      output_tokens_details: { reasoning_tokens: 3 },
      total_tokens: 7,
    });
  });

  test("is the same object in the stream's last event and in the non-streaming reply", () => {
    const pieces = [...reasoning("a", "b"), ...text("c", "d"), call(0, "c1", "bash"), ...json(0, "{", "}")];
    const request = ask({ tools: [bash], instructions: "be brief", metadata: { a: "b" }, max_output_tokens: 0 });
    expect(expectOrderedResponse(stream(request, pieces))).toEqual(reply(request, pieces));
    expect(reply(request, pieces)).toMatchObject({
      instructions: "be brief",
      metadata: { a: "b" },
      max_output_tokens: 1,
    });
  });

  test("that failed names a code on which clients act, keeps what was done, and has no terminator", () => {
    const codes: [RefusalName, string][] = [
      ["node_failed", "server_error"],
      ["internal", "server_error"],
      ["quota_unverified", "server_error"],
      ["busy", "rate_limit_exceeded"],
      ["quota_exceeded", "insufficient_quota"],
      ["context_length_exceeded", "context_length_exceeded"],
    ];
    for (const [refusal, code] of codes) {
      const encoder = writerOf(ask()).encoder(identity, "events");
      const written = [...reasoning("a"), ...text("b")].map((piece) => encoder.piece(piece)).join("");
      const final = expectOrderedResponse(written + encoder.failure(refuse(refusal)));
      expect(final["error"]).toEqual({ code, message: expect.any(String) });
      expect(final.output.map((item) => item.type)).toEqual(["reasoning"]);
    }
  });

  test("is there for whoever keeps responses, once it has ended", () => {
    const kept: StoredResponse[] = [];
    const storing = responsesDialect({ ...options, storesResponses: true });
    const request = readBody(storing, { model: "core-3", input: "hello" }, 100, catalog) as ResponsesAsk;
    const encoder = writerOf(request).encoder(identity, "events", (response) => void kept.push(response));
    const begun = text("a").map((piece) => encoder.piece(piece));
    expect(kept).toEqual([]);
    const final = expectOrderedResponse([...begun, encoder.end(ended)].join(""));
    expect(kept.map(({ id, output }) => [id, JSON.parse(output)])).toEqual([[final["id"], final.output]]);
  });

  test("is the same for whoever keeps it as for the client, in both forms", () => {
    const storing = responsesDialect({ ...options, storesResponses: true });
    const input = 'a "question", and "output":[] in it, \u00e9';
    const tools = [{ type: "function", name: "look" }];
    const body = { model: "core-3", input, instructions: input, tools, ...sealed };
    const request = readBody(storing, body, 100, catalog) as ResponsesAsk;
    const answers: Piece[][] = [
      text("a"),
      reasoning("hm"),
      [...reasoning("hm"), ...text('say "usage":{} ', "\u00e9"), call(0, "c", "look"), ...json(0, "{}")],
    ];
    for (const pieces of answers) {
      for (const form of ["events", "whole"] as const) {
        for (const reason of ["stop", "length"] as const) {
          let kept: StoredResponse | null = null;
          const encoder = writerOf(request).encoder(identity, form, (response) => void (kept = response));
          const events = pieces.map((piece) => encoder.piece(piece)).join("");
          const end = encoder.end({ ...ended, reason });
          const told = form === "whole" ? (JSON.parse(end) as ResponseBody) : expectOrderedResponse(events + end);
          expect(JSON.parse(responseText(kept!)) as object).toEqual(told);
          expect(kept!.settings).not.toContain('"output_text"');
        }
      }
    }
  });
});

describe("compaction", () => {
  const compacting = ask({ input: [{ role: "user", content: "build a boat" }, { type: "compaction_trigger" }] });
  const pieces = [...reasoning("let me sum up"), ...text("They want ", "a boat.")];

  test("gives exactly one item that comes back as the conversation so far", () => {
    const final = expectOrderedResponse(stream(compacting, pieces, { ...ended, reason: "length" }));
    expect(final.status).toBe("completed");
    expect(final.output).toEqual([{ id: "cmp_1", type: "compaction", encrypted_content: expect.any(String) }]);
    const next = ask({ input: [...final.output, { role: "user", content: "go on" }] });
    expect(next.turns).toEqual([
      { role: "user", content: expect.stringContaining("They want a boat.") },
      { role: "user", content: "go on" },
    ]);
    expect(normalised(reply(compacting, pieces))).toEqual(normalised(final));
  });

  test("of a model that only thought keeps the thought", () => {
    const [item] = reply(compacting, reasoning("a boat")).output;
    expect(sealer.open("compaction", item!["encrypted_content"] as string)).toBe("a boat");
  });

  test("that failed says so", () => {
    const encoder: Encoder = writerOf(compacting).encoder(identity, "events");
    const begun = text("They").map((piece) => encoder.piece(piece));
    expect(expectOrderedResponse([...begun, encoder.failure(refuse("busy"))].join("")).status).toBe("failed");
  });

  test("by its own endpoint is a response.compaction object: all user messages, then the summary", () => {
    const compact = atRoute(dialect, "/v1/responses/compact");
    const picture = [{ type: "input_image", image_url: pixelUrl }];
    const input = [
      { role: "user", content: "build a boat" },
      { type: "message", role: "assistant", content: "Of wood?" },
      { type: "message", id: "msg_7", role: "user", content: picture },
      { type: "item_reference", id: "msg_2" },
      { type: "message", role: "developer", content: "be brief" },
    ];
    const earlier: Earlier = {
      conversation: null,
      items: new Map([["msg_2", { id: "msg_2", type: "message", role: "user", content: [] }]]),
      bytes: 0,
    };
    const request = readBody(compact, { model: "core-3", input }, 10, catalog, earlier) as ResponsesAsk;
    expect(JSON.parse(wholeReply(writerOf(request).encoder(identity, "whole"), text("A boat."), ended))).toEqual({
      id: "resp_1",
      object: "response.compaction",
      created_at: identity.createdSeconds,
      output: [
        {
          id: expect.stringMatching(/^msg_\w+$/),
          type: "message",
          role: "user",
          status: "completed",
          content: [{ type: "input_text", text: "build a boat" }],
        },
        { id: "msg_7", type: "message", role: "user", status: "completed", content: picture },
        { id: "msg_2", type: "message", role: "user", status: "completed", content: [] },
        { id: "cmp_1", type: "compaction", encrypted_content: expect.any(String) },
      ],
      usage: expect.objectContaining({ total_tokens: 140 }),
    });
  });
});

describe("the cases of the Open Responses suite", () => {
  const message = (role: string, content: unknown) => ({ type: "message", role, content });
  const weather = { type: "function", name: "get_weather", description: "weather", parameters: { type: "object" } };
  const image = pixelUrl;
  const cases: Record<string, { body: object; pieces: readonly Piece[]; has: string }> = {
    "basic-response": { body: { input: [message("user", "Say hello")] }, pieces: text("Hello"), has: "message" },
    "assistant-phase": {
      body: {
        input: [
          { ...message("assistant", "I look."), phase: "commentary" },
          { ...message("assistant", "Found."), phase: "final_answer" },
          message("user", "Say it again"),
        ],
      },
      pieces: text("Found."),
      has: "message",
    },
    "system-prompt": {
      body: { input: [message("system", "You are a pirate"), message("user", "Hello")] },
      pieces: text("Arr"),
      has: "message",
    },
    "tool-calling": {
      body: { input: [message("user", "Weather in San Francisco?")], tools: [weather] },
      pieces: [call(0, "call_1", "get_weather"), ...json(0, '{"location":"San Francisco"}')],
      has: "function_call",
    },
    "image-input": {
      body: {
        input: [
          message("user", [
            { type: "input_text", text: "What is it?" },
            { type: "input_image", image_url: image },
          ]),
        ],
      },
      pieces: text("A dot"),
      has: "message",
    },
    "multi-turn": {
      body: { input: [message("user", "I am Ann"), message("assistant", "Hello Ann"), message("user", "Who am I?")] },
      pieces: text("Ann"),
      has: "message",
    },
  };

  test.each(Object.entries(cases))("%s, streamed and not", (_, { body, pieces, has }) => {
    const request = ask(body);
    for (const response of [reply(request, pieces), expectOrderedResponse(stream(request, pieces))]) {
      expectResponseShape(response);
      expect(response.status).toBe("completed");
      expect(response.output.map((item) => item.type)).toContain(has);
    }
  });
});
