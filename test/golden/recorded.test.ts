// Replies that every client was seen to read correctly, against ours for the same content: the same events in the same
// order, with the same members and values. Where ours differs, the difference stands here with its reason.
import { describe, expect, test } from "bun:test";
import type { AnswerEnd } from "../../src/dialects/dialect.ts";
import type { Source } from "../../src/core/types.ts";
import { goldenChat } from "../fixtures/captures.ts";
import { eventsOf } from "../fixtures/events.ts";
import { goldenMessages } from "../fixtures/messages-captures.ts";
import { messagesEventsOf } from "../fixtures/messages-events.ts";
import { responseEvents } from "../fixtures/response-events.ts";
import { goldenResponses } from "../fixtures/responses-captures.ts";
import { askIn, type DialectName } from "./dialects.ts";
import { call, cites, fragments, outcome, reasoning, search, text } from "./pieces.ts";
import { type Answer, replyOf, streamOf } from "./player.ts";

const recorded: Readonly<Record<string, unknown>> = { ...goldenChat, ...goldenMessages, ...goldenResponses };
const hosted = "open-05-3BIT-REAP";

/** How ours differs, and what makes a recording the same. */
type Difference = Readonly<{ why: string; adjusted(recording: string): string }>;

type Row = Answer & Readonly<{ dialect: DialectName; body?: object; differences?: readonly Difference[] }>;

const end = (reason: AnswerEnd["reason"], output: number, stopSequence: string | null = null): AnswerEnd => ({
  reason,
  stopSequence,
  usage: { inputFresh: 100, inputCached: 20, output, reasoning: 5 },
});
const bun: Source = { title: "Bun", url: "https://example.com/bun", text: "Bun is" };
const searching = [search("bun runtime"), outcome({ sources: [bun] })];
const bash = {
  type: "function",
  name: "bash",
  description: "run",
  parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  strict: false,
};
const patch = { type: "custom", name: "apply_patch" };

// ------------------------------------------------------------------------------------------------- the differences

const replacing = (why: string, from: string | RegExp, to: string): Difference => ({
  why,
  adjusted: (recording) => recording.replaceAll(from, to),
});

const withoutPings = replacing(
  "a ping is sent when there is nothing else",
  'event: ping\ndata: {"type":"ping"}\n\n',
  "",
);
const cacheUnknown = replacing(
  "what a node's cache holds is not known before it answers",
  '"cache_read_input_tokens":20,"output_tokens":1}',
  '"cache_read_input_tokens":0,"output_tokens":1}',
);
const atStart = [withoutPings, cacheUnknown];
const noTerminator = replacing("half an answer must not look whole: nothing follows an error", "data: [DONE]\n\n", "");
const outputTextMember = (value: string): Difference =>
  replacing(
    "the specification's convenience member of a response that has ended",
    '"total_tokens":140}',
    `"total_tokens":140},"output_text":${JSON.stringify(value)}`,
  );
const cacheWrites = replacing(
  "newer official types promise what a cache took in",
  '"cached_tokens":20}',
  '"cached_tokens":20,"cache_write_tokens":0}',
);
const calledName = replacing(
  "some official types promise the name of the call",
  /("type":"response.function_call_arguments.done",.*?),"arguments"/g,
  '$1,"name":"bash","arguments"',
);

// -------------------------------------------------------------------------------------------------------- the table

const thoughtText = [...reasoning("Let me ", "think."), ...text("Hi ", "there!")];
const twoCalls = [
  call(0, "call_1", "bash"),
  ...fragments(0, '{"comma', 'nd":"echo a"}'),
  call(1, "call_2", "bash"),
  ...fragments(1, '{"command":"echo b"}'),
];
const messagesCalls = [
  ...reasoning("Two calls."),
  ...text("Running."),
  call(0, "toolu_01", "bash"),
  ...fragments(0, '{"comma', 'nd":"echo a"}'),
  call(1, "toolu_02", "bash"),
  ...fragments(1, '{"command":"ec', 'ho b"}'),
];
const responsesText = [...reasoning("Let me th", "ink."), ...text("Hi th", "ere!")];
const responsesCalls = [
  ...reasoning("Two calls", "."),
  call(0, "call_1", "bash"),
  ...fragments(0, '{"command', '":"echo a', '"}'),
  call(1, "call_2", "bash"),
  ...fragments(1, '{"command', '":"echo b', '"}'),
];
const counted = { kind: "counted", tokens: 100 } as const;
const usageApart = { stream_options: { include_usage: true } };
const unsealed = { include: [] };
const greeting = [counted, ...text("Hi ", "there!")];

const rows: Readonly<Record<string, Row>> = {
  chat_text: {
    dialect: "chat",
    body: usageApart,
    steps: [{ kind: "silence" }, ...thoughtText],
    end: end("stop", 20),
    differences: [
      replacing(
        "whether a text follows is not known when a thought begins, and beside calls content is null",
        '"role":"assistant","content":""',
        '"role":"assistant","content":null',
      ),
    ],
  },
  chat_text__nonstream: { dialect: "chat", steps: thoughtText, end: end("stop", 20) },
  chat_tools: {
    dialect: "chat",
    body: usageApart,
    steps: [...reasoning("Two calls."), ...twoCalls],
    end: end("tool_calls", 20),
  },
  chat_tools__nonstream: {
    dialect: "chat",
    steps: [...reasoning("Two calls."), ...twoCalls],
    end: end("tool_calls", 20),
  },
  chat_length: { dialect: "chat", body: usageApart, steps: text("Hi ", "there!"), end: end("length", 20) },
  chat_error: { dialect: "chat", steps: text("Hi "), end: { refusal: "node_failed" }, differences: [noTerminator] },

  messages_text: { dialect: "messages", steps: [counted, ...thoughtText], end: end("stop", 20), differences: atStart },
  messages_text__nonstream: { dialect: "messages", steps: thoughtText, end: end("stop", 20) },
  messages_tools: {
    dialect: "messages",
    steps: [counted, ...messagesCalls],
    end: end("tool_calls", 30),
    differences: atStart,
  },
  messages_tools__nonstream: {
    dialect: "messages",
    body: { thinking: null },
    steps: messagesCalls,
    end: end("tool_calls", 30),
  },
  messages_max_tokens: { dialect: "messages", steps: greeting, end: end("length", 8), differences: [cacheUnknown] },
  messages_stop_sequence: {
    dialect: "messages",
    steps: greeting,
    end: end("stop", 8, "END"),
    differences: [cacheUnknown],
  },
  messages_websearch: {
    dialect: "messages",
    steps: [counted, ...searching, ...text("Hi there!"), cites(bun, 0, 9)],
    end: end("stop", 20),
    differences: [
      cacheUnknown,
      replacing("a block without citations has no such member: null breaks clients", ',"citations":[]', ""),
      replacing(
        "usage at the end has all counts, since those at the start were estimates",
        '"usage":{"output_tokens":20,',
        '"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":20,"output_tokens":20,',
      ),
    ],
  },
  messages_error: {
    dialect: "messages",
    steps: [counted, ...text("Hi ")],
    end: { refusal: "busy" },
    differences: [
      cacheUnknown,
      replacing("the specification's type for busy routes", "overloaded_error", "rate_limit_error"),
    ],
  },

  responses_text: {
    dialect: "responses",
    steps: responsesText,
    end: end("stop", 20),
    differences: [cacheWrites, outputTextMember("Hi there!")],
  },
  responses_tools: {
    dialect: "responses",
    body: { tools: [bash] },
    steps: responsesCalls,
    end: end("tool_calls", 20),
    differences: [cacheWrites, calledName, outputTextMember("")],
  },
  responses_incomplete: {
    dialect: "responses",
    body: unsealed,
    steps: text("Hi th", "ere!"),
    end: end("length", 20),
    differences: [cacheWrites, outputTextMember("Hi there!")],
  },
  responses_failed: {
    dialect: "responses",
    body: unsealed,
    steps: [],
    end: { refusal: "node_failed" },
    differences: [noTerminator],
  },
  responses_citations: {
    dialect: "responses",
    body: unsealed,
    steps: [...text("Hi th", "ere!"), cites(bun, 0, 2)],
    end: end("stop", 20),
    differences: [cacheWrites, outputTextMember("Hi there!")],
  },
  responses_websearch: {
    dialect: "responses",
    body: { include: ["web_search_call.action.sources"] },
    steps: [...searching, ...text("Hi th", "ere!"), cites(bun, 0, 2)],
    end: end("stop", 20),
    differences: [
      cacheWrites,
      outputTextMember("Hi there!"),
      replacing(
        "while it searches nothing is found yet",
        /("status":"in_progress","action":\{.*?"sources":)\[.*?\]/g,
        "$1[]",
      ),
    ],
  },
  responses_custom: {
    dialect: "responses",
    body: { include: [], tools: [patch] },
    steps: [
      call(0, "call_1", "apply_patch"),
      ...fragments(0, '{"input":"*** Begin', " Patch\\n**", "* End Pat", 'ch\\n"}'),
    ],
    end: end("tool_calls", 20),
    differences: [
      cacheWrites,
      outputTextMember(""),
      replacing(
        "the tool that is called is echoed; the recording has none",
        '"tools":[]',
        `"tools":[${JSON.stringify(patch)}]`,
      ),
      replacing(
        "a call that has only begun is in progress",
        /"status":"completed"(,"call_id":"call_1","name":"apply_patch","input":"")/g,
        '"status":"in_progress"$1',
      ),
    ],
  },
};

/** Recordings without a reply of ours. */
const notOurs: Readonly<Record<string, string>> = {
  models: "no reply but a list, which test/acceptance/models.test.ts checks",
  responses_failed__nonstream: "a failure is an HTTP error: a 200 with status failed is no valid reply to the AI SDK",
};

// ---------------------------------------------------------------------------------------------------- the comparison

/** Ids are minted, and some strings are opaque to clients. */
const normalised = (written: string): string =>
  written
    .replace(/"(id|item_id|tool_use_id)":"(chatcmpl|msg|srvtoolu|resp|rs|fc|ctc|ws)[-_][^"]*"/g, '"$1":"$2"')
    .replace(/"(encrypted_content|encrypted_index|signature)":"[^"]+"/g, '"$1":"opaque"')
    .replaceAll('"request_id":"req_06"', '"request_id":"req_1"')
    .replaceAll('"core-3"', `"${hosted}"`);

const readers: Readonly<Record<DialectName, (stream: string) => unknown>> = {
  chat: eventsOf,
  messages: messagesEventsOf,
  responses: responseEvents,
};

/** The recording as ours must be. */
const expected = (recording: string, { differences = [] }: Row): string =>
  normalised(differences.reduce((text, { adjusted }) => adjusted(text), recording));

describe("a recorded reply is what ours looks like", () => {
  test.each(Object.entries(rows))("%s", (name, row) => {
    const ask = askIn(row.dialect, hosted, row.body);
    const recording = recorded[name];
    if (typeof recording !== "string") {
      expect(JSON.parse(normalised(replyOf(row.dialect, ask, row, "strings")))).toEqual(
        JSON.parse(expected(JSON.stringify(recording), row)),
      );
      return;
    }
    const read = readers[row.dialect];
    expect(read(normalised(streamOf(row.dialect, ask, row, "strings")))).toEqual(read(expected(recording, row)));
    const twin = `${name}__nonstream`;
    if (!(twin in recorded) || twin in rows || twin in notOurs) return;
    expect(JSON.parse(normalised(replyOf(row.dialect, ask, row, "strings")))).toEqual(
      JSON.parse(expected(JSON.stringify(recorded[twin]), row)),
    );
  });

  test("every difference that is listed is one", () => {
    for (const [name, { differences = [] }] of Object.entries(rows)) {
      const recording = recorded[name] as string;
      for (const { why, adjusted } of differences)
        expect([name, why, adjusted(recording)]).not.toEqual([name, why, recording]);
    }
  });

  test("every recording has its row", () => {
    const covered = [...Object.keys(rows), ...Object.keys(notOurs)];
    const twins = Object.keys(rows).map((name) => `${name}__nonstream`);
    expect(Object.keys(recorded).filter((name) => !covered.includes(name) && !twins.includes(name))).toEqual([]);
  });
});
