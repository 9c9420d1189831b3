// Replies of the responses dialect: the exact events, their order under any pieces, and the non-streaming twins.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { embeddedCatalog } from "../../src/catalog.ts";
import { Collector } from "../../src/dialects/collector.ts";
import type { AnswerEnd, Encoder } from "../../src/dialects/dialect.ts";
import { compactionDialect, responsesDialect } from "../../src/dialects/responses.ts";
import type { ResponsesAsk } from "../../src/dialects/responses-request.ts";
import { ResponsesEncoder } from "../../src/dialects/responses-stream.ts";
import { Sealer, sealingKeyBytes } from "../../src/dialects/sealed-content.ts";
import { isRefusal, messageOf, type RefusalName, refuse } from "../../src/refusals.ts";
import type { Piece } from "../../src/types.ts";
import {
  expectOrderedResponse,
  expectResponseShape,
  type ResponseBody,
  responseEvents,
  textOfItem,
} from "../fixtures/response-events.ts";
import { goldenResponses } from "../fixtures/responses-captures.ts";
import { pixelUrl } from "../fixtures/pictures.ts";

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
  const result = dialect.read({ model: "core-3", input: "hello", ...body }, 100, catalog);
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
  const encoder = dialect.encoder(request, identity);
  return pieces.map((piece) => encoder.piece(piece)).join("") + encoder.end(end);
}

function reply(request: ResponsesAsk, pieces: readonly Piece[], end: AnswerEnd = ended): ResponseBody {
  const collector = new Collector();
  for (const piece of pieces) collector.piece(piece);
  return JSON.parse(dialect.reply(request, identity, collector.answer(), end));
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

describe("streams that every client read correctly are reproduced", () => {
  const length: AnswerEnd = { ...ended, reason: "length" };
  const calls: AnswerEnd = { ...ended, reason: "tool_calls" };
  test.each([
    ["responses_text", sealed, [...reasoning("Let me th", "ink."), ...text("Hi th", "ere!")], ended],
    [
      "responses_tools",
      { ...sealed, tools: [bash] },
      [
        ...reasoning("Two calls", "."),
        call(0, "call_1", "bash"),
        ...json(0, '{"command', '":"echo a', '"}'),
        call(1, "call_2", "bash"),
        ...json(1, '{"command', '":"echo b', '"}'),
      ],
      calls,
    ],
    ["responses_incomplete", {}, text("Hi th", "ere!"), length],
    [
      "responses_custom",
      { tools: [patch] },
      [call(0, "call_1", "apply_patch"), ...json(0, '{"input":"*** Begin', " Patch\\n**", "* End Pat", 'ch\\n"}')],
      calls,
    ],
  ] as const)("%s, streamed and not", (name, body, pieces, end) => {
    const request = ask(body);
    const written = responseEvents(stream(request, pieces, end));
    const golden = responseEvents(goldenResponses[name] as string);
    // The golden recording has no tools for its custom call, and calls the empty item completed.
    const adjust = (events: unknown) => {
      const text = JSON.stringify(normalised(events)).replaceAll(JSON.stringify([patch]), "[]");
      return JSON.parse(text.replaceAll('"status":"in_progress","call_id"', '"status":"completed","call_id"'));
    };
    expect(adjust(written.events)).toEqual(adjust(golden.events));
    expect(written.done).toBe(true);
    expect(adjust(reply(request, pieces, end))).toEqual(adjust(goldenResponses[`${name}__nonstream`]));
  });

  test("a failure ends with response.failed and, unlike the recording, no terminator", () => {
    const written = responseEvents(dialect.encoder(ask(), identity).failure(refuse("node_failed")));
    const golden = responseEvents(goldenResponses["responses_failed"] as string);
    expect(normalised(written.events)).toEqual(normalised(golden.events));
    expect(written.done).toBe(false);
  });
});

describe("bytes", () => {
  test("of a text delta are fixed but for number and literal, which goes through as it is", () => {
    const encoder = dialect.encoder(ask(), identity);
    encoder.piece(text("a")[0]!);
    expect(encoder.piece({ kind: "text", literal: '"\\u00e9\\/é"', logprobs: null })).toBe(
      'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_1_0","output_index":0,"content_index":0,"delta":"\\u00e9\\/é","logprobs":[]}\n\n',
    );
  });

  test("are the same whatever went before in other streams", () => {
    const pieces = [...reasoning("a"), ...text("b")];
    expect(stream(ask(), pieces)).toBe(stream(ask(), pieces));
  });
});

describe("signs of life", () => {
  const signs = (encoder: Encoder) => Array.from({ length: 12 }, () => encoder.keepAlive());
  const comment = ": waiting\n\n";

  test("are comments but for every sixth, which is an event since Codex sees no others", () => {
    const written = signs(dialect.encoder(ask(), identity));
    expect(written.filter((sign) => sign === comment)).toHaveLength(10);
    expect(responseEvents(written[5]!).events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
    ]);
    expect(responseEvents(written[11]!).events.map(({ type }) => type)).toEqual(["response.in_progress"]);
  });

  test("within an item are empty deltas, since another in_progress would wipe what clients have gathered", () => {
    const encoder = dialect.encoder(ask(), identity);
    encoder.piece(text("a")[0]!);
    const [event] = responseEvents(signs(encoder)[5]!).events;
    expect(event).toMatchObject({ type: "response.output_text.delta", delta: "" });
  });

  test("anywhere leave the stream well ordered and the answer as it is", () => {
    const pieces = [...reasoning("a"), ...text("b"), call(0, "c1", "bash"), ...json(0, "{", "}")];
    const custom = [call(1, "c2", "apply_patch"), ...json(1, '{"input":"', 'x"}')];
    const tools = [bash, patch];
    const encoder = dialect.encoder(ask({ tools }), identity);
    const written = [...pieces, ...custom].flatMap((piece) => {
      const given = signs(encoder);
      expect(given).not.toContain("");
      return [...given, encoder.piece(piece)];
    });
    const final = expectOrderedResponse([...written, ...signs(encoder), encoder.end(ended)].join(""));
    expect(final).toEqual(reply(ask({ tools }), [...pieces, ...custom]));
  });

  test("of a compaction tell only that it is in progress", () => {
    const encoder = dialect.encoder(
      ask({ input: [{ role: "user", content: "x" }, { type: "compaction_trigger" }] }),
      identity,
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
    const encoder = dialect.encoder(ask({ tools: [bash] }), identity);
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
    const encoder = dialect.encoder(ask({ tools: [bash] }), identity);
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
    const body = dialect.reply(
      ask(),
      identity,
      { pieces: text("Hi"), logprobs: [] },
      { ...ended, usage: { inputFresh: 1, inputCached: 2, output: 4, reasoning: 3 } },
    );
    expect(body).toEndWith(',"output_text":"Hi"}');
    expect(JSON.parse(body).usage).toEqual({
      input_tokens: 3,
      input_tokens_details: { cached_tokens: 2 },
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
      const encoder = dialect.encoder(ask(), identity);
      const written = [...reasoning("a"), ...text("b")].map((piece) => encoder.piece(piece)).join("");
      const final = expectOrderedResponse(written + encoder.failure(refuse(refusal)));
      expect(final["error"]).toEqual({ code, message: expect.any(String) });
      expect(final.output.map((item) => item.type)).toEqual(["reasoning"]);
    }
  });

  test("is there for whoever keeps responses, once it has ended", () => {
    const encoder = dialect.encoder(ask(), identity) as ResponsesEncoder;
    const begun = text("a").map((piece) => encoder.piece(piece));
    expect(encoder.response).toBeNull();
    const final = expectOrderedResponse([...begun, encoder.end(ended)].join(""));
    expect(JSON.parse(encoder.response!)).toEqual(final);
  });
});

describe("under any pieces", () => {
  const tools = [
    bash,
    patch,
    {
      type: "namespace",
      name: "n",
      tools: [
        { type: "function", name: "f" },
        { type: "custom", name: "c" },
      ],
    },
  ];
  const offered = ["bash", "apply_patch", "n__f", "n__c", "made_up"];
  const anyText = fc.string({ unit: "grapheme", maxLength: 8 });
  /** The fragments of one call's arguments; a few are no JSON, or are followed by white space. */
  const fragments = fc
    .tuple(fc.dictionary(anyText, fc.jsonValue({ maxDepth: 1 }), { maxKeys: 3 }), fc.array(fc.nat(), { maxLength: 4 }))
    .map(([value, cuts]) => {
      const characters = [...JSON.stringify(value)];
      const at = cuts.map((cut) => cut % characters.length).sort((a, b) => a - b);
      return [...at, characters.length].map((end, index) => characters.slice(at[index - 1] ?? 0, end).join(""));
    });
  const calls = fc.array(fc.tuple(fc.constantFrom(...offered), fragments), { maxLength: 4 });
  const speech = fc.array(fc.tuple(fc.boolean(), anyText), { maxLength: 6 });

  /** Puts text, reasoning and the fragments of all calls into one order; a call comes before its arguments. */
  const pieces = fc
    .tuple(speech, calls, fc.infiniteStream(fc.nat(99)), fc.boolean())
    .map(([spoken, called, chance, mixed]) => {
      const lanes: Piece[][] = called.map(([name, parts], index) => [
        call(index, `call_${index}`, name),
        ...json(index, ...parts),
      ]);
      const begins = lanes.map((lane) => lane.shift()!);
      const result: Piece[] = spoken.flatMap(([thinks, words]) => (thinks ? reasoning(words) : text(words)));
      if (!mixed) return [...result, ...lanes.flatMap((lane, index) => [begins[index]!, ...lane])];
      // Calls begin in the order of their index; from then on any call may go on.
      const open: Piece[][] = [];
      const rest = result.splice(Math.ceil(result.length / 2));
      while (begins.length > 0 || rest.length > 0 || open.some((lane) => lane.length > 0)) {
        const choices = open.filter((lane) => lane.length > 0);
        const pick = (chance.next().value ?? 0) % (choices.length + 2);
        if (pick < choices.length) result.push(choices[pick]!.shift()!);
        else if (pick === choices.length && begins.length > 0) {
          result.push(begins.shift()!);
          open.push(lanes[open.length]!);
        } else if (rest.length > 0) result.push(rest.shift()!);
      }
      return result;
    });
  const reasons = fc.constantFrom("stop", "tool_calls", "length", "content_filter");

  const joined = (items: ResponseBody["output"], type: string): string =>
    items
      .filter((item) => item.type === type)
      .map(textOfItem)
      .join("");

  test("streams are well ordered, have one end, and say what the non-streaming reply says", () => {
    fc.assert(
      fc.property(pieces, reasons, fc.boolean(), (given, reason, seals) => {
        const request = ask({ tools, ...(seals ? sealed : {}) });
        const end = { ...ended, reason };
        const final = expectOrderedResponse(stream(request, given, end));
        const whole = reply(request, given, end);
        expectResponseShape(whole);
        expect(final.status).toBe(reason === "stop" || reason === "tool_calls" ? "completed" : "incomplete");
        expect(whole["output_text"]).toBe(final["output_text"]);
        for (const type of ["reasoning", "message"])
          expect(joined(final.output, type)).toBe(joined(whole.output, type));
        const called = (body: ResponseBody) =>
          body.output
            .filter((item) => item.type.endsWith("call"))
            .map(({ call_id, name, namespace, ...item }) => ({
              call_id,
              name,
              namespace,
              text: textOfItem(item as never),
            }));
        expect(called(final)).toEqual(called(whole));
        expect(whole["output_text"]).toBe(
          given.map((piece) => (piece.kind === "text" ? (JSON.parse(piece.literal) as string) : "")).join(""),
        );
      }),
      { numRuns: 200 },
    );
  });

  test("a failure anywhere leaves a well ordered stream without a terminator", () => {
    fc.assert(
      fc.property(pieces, fc.nat(), (given, place) => {
        const encoder = dialect.encoder(ask({ tools }), identity);
        const begun = given.slice(0, place % (given.length + 1)).map((piece) => encoder.piece(piece));
        expect(expectOrderedResponse([...begun, encoder.failure(refuse("node_failed"))].join("")).status).toBe(
          "failed",
        );
      }),
      { numRuns: 100 },
    );
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
    const encoder: Encoder = dialect.encoder(compacting, identity);
    const begun = text("They").map((piece) => encoder.piece(piece));
    expect(expectOrderedResponse([...begun, encoder.failure(refuse("busy"))].join("")).status).toBe("failed");
  });

  test("by its own endpoint is a response.compaction object", () => {
    const compact = compactionDialect(options);
    const request = compact.read({ model: "core-3", input: "build a boat" }, 10, catalog) as ResponsesAsk;
    const answer = { pieces: text("A boat."), logprobs: [] };
    expect(JSON.parse(compact.reply(request, identity, answer, ended))).toEqual({
      id: "resp_1",
      object: "response.compaction",
      created_at: identity.createdSeconds,
      output: [{ id: "cmp_1", type: "compaction", encrypted_content: expect.any(String) }],
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
