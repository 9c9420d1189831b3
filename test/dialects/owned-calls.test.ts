// Calls that the gateway ran itself, as each dialect shows them: streamed, collected, and when they come back in a
// history.
import { describe, expect, test } from "bun:test";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { chatCompletions } from "../../src/dialects/chat/chat-completions.ts";
import type { AnswerEnd, Dialect } from "../../src/dialects/dialect.ts";
import { messages } from "../../src/dialects/messages/messages.ts";
import { responsesDialect } from "../../src/dialects/responses/responses.ts";
import { readBody, writerOf, wholeReply } from "../fixtures/reading.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import type { Ask, Piece, ServerTool, Source, ToolOutcome } from "../../src/core/types.ts";
import { eventsOf } from "../fixtures/events.ts";
import {
  collectedMessage,
  expectWellFormedMessage,
  messagesEventsOf,
  replayedBlocks,
} from "../fixtures/messages-events.ts";
import { expectOrderedResponse, type ResponseBody } from "../fixtures/response-events.ts";

const catalog = embeddedCatalog();
const identity = { requestId: "req_1", createdSeconds: 1_795_200_000 };
const usage = { inputFresh: 100, inputCached: 20, output: 30, reasoning: 5 };
const ended: AnswerEnd = { reason: "stop", stopSequence: null, usage };
const responses = responsesDialect({
  sealingKey: new Uint8Array(32),
  clock: { wall: () => 1_795_200_002_000, monotonic: () => 0 },
  storesResponses: false,
}) as Dialect;

const bun: Source = { title: "Bun", url: "https://bun.example/", text: "Bun is fast." };
const elysia: Source = { title: "Elysia", url: "https://elysia.example/", text: "Elysia runs on Bun." };
const files: ServerTool = { server: "files", name: "read" };

const text = (value: string): Piece => ({ kind: "text", literal: JSON.stringify(value), logprobs: null });
const reasoning = (value: string): Piece => ({ kind: "reasoning", literal: JSON.stringify(value) });
const cites = (source: Source, start: number, end: number): Piece => ({ kind: "citation", source, start, end });
const outcome = (more: Partial<ToolOutcome>): Piece => ({
  kind: "owned-result",
  outcome: { text: "", failed: false, sources: [], ...more },
});
const search = (query: string): Piece => ({
  kind: "owned-call",
  call: { id: "call_1", name: "web_search", arguments: JSON.stringify({ query }) },
  tool: null,
});
const serverCall = (path: string): Piece => ({
  kind: "owned-call",
  call: { id: "call_1", name: "read", arguments: JSON.stringify({ path }) },
  tool: files,
});

const bodies: Readonly<Record<string, readonly [Dialect, object]>> = {
  chat: [chatCompletions, { messages: [{ role: "user", content: "hello" }] }],
  messages: [messages as Dialect, { messages: [{ role: "user", content: "hello" }], thinking: { type: "adaptive" } }],
  responses: [responses, { input: "hello", include: ["web_search_call.action.sources"] }],
};

function askOf(name: string, more: object = {}): readonly [Dialect, Ask] {
  const [dialect, body] = bodies[name]!;
  const ask = readBody(dialect, { model: "core-3", ...body, ...more }, 100, catalog);
  if (isRefusal(ask)) throw new Error("the body must be read");
  return [dialect, ask];
}

function stream(name: string, pieces: readonly Piece[], more: object = {}, end = ended): string {
  const [, ask] = askOf(name, more);
  const encoder = writerOf(ask).encoder(identity, "events");
  return pieces.map((piece) => encoder.piece(piece)).join("") + encoder.end(end);
}

function reply(name: string, pieces: readonly Piece[], more: object = {}, end = ended): Record<string, any> {
  const [, ask] = askOf(name, more);
  return JSON.parse(wholeReply(writerOf(ask).encoder(identity, "whole"), pieces, end));
}

/** Thinks, says something, searches, and answers with two sources. */
const searched: readonly Piece[] = [
  reasoning("Look it "),
  reasoning("up."),
  text("One moment."),
  search("bun runtime"),
  outcome({ sources: [bun, elysia] }),
  reasoning("Found."),
  text("Bun is fast [1]"),
  cites(bun, 23, 26),
  text("[2]"),
  cites(elysia, 26, 29),
  text(", they say."),
];

describe("chat-completions shows nothing of a search but the citations", () => {
  const annotations = [
    { type: "url_citation", url_citation: { start_index: 25, end_index: 28, url: bun.url, title: "Bun" } },
    { type: "url_citation", url_citation: { start_index: 28, end_index: 31, url: elysia.url, title: "Elysia" } },
  ];

  test("streamed in one delta before the finish, collected in the message", () => {
    const { chunks, done } = eventsOf(stream("chat", searched));
    expect(done).toBe(true);
    expect(chunks.map(({ choices }) => choices[0]?.delta)).toEqual([
      { role: "assistant", content: null },
      { reasoning_content: "Look it " },
      { reasoning_content: "up." },
      { content: "One moment." },
      { reasoning_content: "\n\nFound." },
      { content: "\n\nBun is fast [1]" },
      { content: "[2]" },
      { content: ", they say." },
      { annotations },
      {},
      {}, // with the usage
    ]);
    const { message } = reply("chat", searched)["choices"][0];
    expect(message).toMatchObject({ annotations, content: "One moment.\n\nBun is fast [1][2], they say." });
    for (const { url_citation: at } of annotations) {
      expect(message.content.slice(at.start_index, at.end_index)).toMatch(/^\[\d\]$/);
    }
  });

  test("without citations there is no such field", () => {
    expect(stream("chat", [search("a"), outcome({}), text("Nothing.")])).not.toContain("annotations");
    expect(reply("chat", [text("Nothing.")])["choices"][0].message).not.toHaveProperty("annotations");
  });

  test("a search before the first text opens no message", () => {
    const [, ask] = askOf("chat");
    const encoder = writerOf(ask).encoder(identity, "events");
    expect(encoder.piece(search("a")) + encoder.piece(outcome({}))).toBe("");
  });
});

describe("messages shows server tools, their results and citations", () => {
  const citation = (source: Source) => ({
    type: "web_search_result_location",
    url: source.url,
    title: source.title,
    encrypted_index: expect.stringMatching(/^tg1\../),
    cited_text: source.text,
  });

  test("streamed and collected alike", () => {
    const events = messagesEventsOf(stream("messages", searched));
    expectWellFormedMessage(events);
    expect(collectedMessage(events).kinds).toEqual([
      "thinking",
      "text",
      "server_tool_use",
      "web_search_tool_result",
      "thinking",
      "text",
      "text",
    ]);
    expect(events.at(-2)!["usage"]).toMatchObject({ server_tool_use: { web_search_requests: 1 } });

    const { content, usage: told } = reply("messages", searched) as { content: Record<string, any>[]; usage: object };
    expect(content).toMatchObject([
      { type: "thinking", thinking: "Look it up." },
      { type: "text", text: "One moment." },
      { type: "server_tool_use", id: "srvtoolu_1_0", name: "web_search", input: { query: "bun runtime" } },
      {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1_0",
        content: [
          { type: "web_search_result", url: bun.url, title: "Bun", page_age: null },
          { type: "web_search_result", url: elysia.url, title: "Elysia", page_age: null },
        ],
      },
      { type: "thinking", thinking: "Found." },
      { type: "text", text: "Bun is fast [1][2]", citations: [citation(bun), citation(elysia)] },
      { type: "text", text: ", they say." },
    ]);
    expect(content.at(-1)).not.toHaveProperty("citations");
    expect(told).toMatchObject({ server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 } });
    expect(replayedBlocks(events)).toEqual(content);
  });

  test("a block of the call is closed before its result is known, so that clients show it", () => {
    const [, ask] = askOf("messages");
    const begun = messagesEventsOf(writerOf(ask).encoder(identity, "events").piece(search("bun")));
    expect(begun.map(({ type }) => type)).toEqual([
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
    ]);
  });

  test("failures have the dialect's codes and are no searches", () => {
    const failed = [search("a"), outcome({ failed: true, text: "x" })];
    const over = [search("b"), outcome({ failed: true, overLimit: true, text: "x" })];
    const { content, usage: told } = reply("messages", [...failed, ...over, text("No.")]);
    expect([content[1].content, content[3].content]).toEqual([
      { type: "web_search_tool_result_error", error_code: "unavailable" },
      { type: "web_search_tool_result_error", error_code: "max_uses_exceeded" },
    ]);
    expect(told).not.toHaveProperty("server_tool_use");
  });

  test("calls of servers have their own blocks", () => {
    const pieces = [serverCall("a"), outcome({ text: "text of a" }), text("Read.")];
    const { content } = reply("messages", pieces);
    expect(content).toEqual([
      { type: "mcp_tool_use", id: "mcptoolu_1_0", name: "read", server_name: "files", input: { path: "a" } },
      {
        type: "mcp_tool_result",
        tool_use_id: "mcptoolu_1_0",
        is_error: false,
        content: [{ type: "text", text: "text of a" }],
      },
      { type: "text", text: "Read." },
    ]);
    expect(collectedMessage(messagesEventsOf(stream("messages", pieces))).kinds).toEqual([
      "mcp_tool_use",
      "mcp_tool_result",
      "text",
    ]);
  });

  test("beside a call of the client's that is not complete, all wait for their turn", () => {
    const pieces: Piece[] = [
      { kind: "call", index: 0, id: "toolu_1", name: "bash" },
      { kind: "call-arguments", index: 0, literal: '"{\\"command\\":"' },
      search("a"),
      outcome({ sources: [bun] }),
      { kind: "call-arguments", index: 0, literal: '"1}"' },
    ];
    const events = messagesEventsOf(stream("messages", pieces, {}, { ...ended, reason: "tool_calls" }));
    expectWellFormedMessage(events);
    expect(collectedMessage(events).kinds).toEqual(["tool_use", "server_tool_use", "web_search_tool_result"]);
  });

  test("what a client sends back is read as it was, with what the search found", () => {
    const { content } = reply("messages", searched);
    const [, ask] = askOf("messages", {
      messages: [
        { role: "user", content: "hello" },
        { role: "assistant", content },
        { role: "user", content: "and?" },
      ],
    });
    expect(ask.turns.slice(1)).toEqual([
      {
        role: "assistant",
        content: "One moment.",
        reasoning: "Look it up.",
        calls: [{ id: "srvtoolu_1_0", name: "web_search", arguments: '{"query":"bun runtime"}' }],
      },
      {
        role: "tool",
        callId: "srvtoolu_1_0",
        content: `Bun\n${bun.url}\nBun is fast.\n\nElysia\n${elysia.url}\nElysia runs on Bun.`,
      },
      { role: "assistant", content: "Bun is fast [1][2], they say.", reasoning: "Found.", calls: [] },
      { role: "user", content: "and?" },
    ]);
  });

  test("calls of servers come back under the names by which models know them", () => {
    const { content } = reply("messages", [serverCall("a"), outcome({ text: "text of a" }), text("Read.")]);
    const [, ask] = askOf("messages", { messages: [{ role: "assistant", content }] });
    expect(ask.turns[0]).toMatchObject({ calls: [{ name: "files__read", arguments: '{"path":"a"}' }] });
    expect(ask.turns[1]).toMatchObject({ role: "tool", content: "text of a" });
  });
});

describe("responses shows items of searches and servers' calls, and annotations", () => {
  test("streamed and collected alike; positions count in the item", () => {
    const streamed = expectOrderedResponse(stream("responses", searched));
    expect(streamed.output.map(({ type }) => type)).toEqual([
      "reasoning",
      "message",
      "web_search_call",
      "reasoning",
      "message",
    ]);
    expect(streamed.output[2]).toEqual({
      id: "ws_1_2",
      type: "web_search_call",
      status: "completed",
      action: {
        type: "search",
        query: "bun runtime",
        queries: ["bun runtime"],
        sources: [
          { type: "url", url: bun.url },
          { type: "url", url: elysia.url },
        ],
      },
    });
    const [part] = streamed.output[4]!["content"] as { text: string; annotations: Record<string, any>[] }[];
    expect(part!.annotations).toMatchObject([
      { type: "url_citation", url: bun.url, title: "Bun" },
      { type: "url_citation", url: elysia.url, title: "Elysia" },
    ]);
    expect(part!.annotations.map((at) => part!.text.slice(at["start_index"], at["end_index"]))).toEqual(["[1]", "[2]"]);
    expect(reply("responses", searched)["output"]).toEqual(streamed.output);
  });

  test("the sources of a search are listed for who asked for them", () => {
    const [, , item] = (reply("responses", searched, { include: [] }) as ResponseBody).output;
    expect(item!["action"]).toEqual({ type: "search", query: "bun runtime", queries: ["bun runtime"] });
  });

  test("a failed search is an item that says so", () => {
    const pieces = [search("a"), outcome({ failed: true, text: "x" }), text("No.")];
    expect(expectOrderedResponse(stream("responses", pieces)).output[0]).toMatchObject({ status: "failed" });
  });

  test("calls of servers are mcp_call items with their output or error", () => {
    const pieces = [
      serverCall("a"),
      outcome({ text: "text of a" }),
      serverCall("b"),
      outcome({ text: "no b", failed: true }),
      text("Read."),
    ];
    const { output } = expectOrderedResponse(stream("responses", pieces));
    expect(output).toMatchObject([
      {
        id: "mcp_1_0",
        type: "mcp_call",
        status: "completed",
        server_label: "files",
        name: "read",
        arguments: '{"path":"a"}',
        output: "text of a",
        error: null,
      },
      { type: "mcp_call", status: "failed", output: null, error: { type: "mcp_tool_execution_error" } },
      { type: "message" },
    ]);
    expect(reply("responses", pieces)["output"]).toEqual(output);
  });

  test("beside a call of the client's that is not complete, all wait for their turn", () => {
    const pieces: Piece[] = [
      { kind: "call", index: 0, id: "call_1", name: "bash" },
      { kind: "call-arguments", index: 0, literal: '"{\\"command\\":"' },
      search("a"),
      outcome({ sources: [bun] }),
      { kind: "call-arguments", index: 0, literal: '"1}"' },
    ];
    const { output } = expectOrderedResponse(stream("responses", pieces, {}, { ...ended, reason: "tool_calls" }));
    expect(output.map(({ type }) => type)).toEqual(["function_call", "web_search_call"]);
  });

  test("signs of life while a search runs, and while a model reads its results, wipe nothing", () => {
    const [, ask] = askOf("responses");
    const encoder = writerOf(ask).encoder(identity, "events");
    let written = encoder.piece(search("a"));
    for (let sign = 0; sign < 12; sign++) written += encoder.keepAlive();
    written += encoder.piece(outcome({ sources: [bun] }));
    let later = "";
    for (let sign = 0; sign < 12; sign++) later += encoder.keepAlive();
    expect(written).toContain("response.web_search_call.searching");
    expect(later).toContain("event: response.web_search_call.completed");
    expect(later).not.toContain("response.in_progress");
  });
});
