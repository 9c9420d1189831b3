// The one table of answers, in no dialect, that all dialects are held to: each has a golden file for its stream
// and one for its reply in `replies/`. TOLLGATE_GOLDEN=write rewrites them.
import type { AnswerEnd } from "../../src/dialects/dialect.ts";
import type { Source } from "../../src/core/types.ts";
import type { Bodies, AnyDialectName } from "./dialects.ts";
import { call, cites, fragments, outcome, reasoning, refusal, search, serverCall, text } from "./pieces.ts";
import type { Answer } from "./player.ts";

export type Scenario = Answer &
  Readonly<{
    /** `core-3` is a first-party tier, whose usage has no details; the others are hosted. */
    model?: "core-3";
    /** What the request has beside a prompt. */
    bodies?: Bodies;
    /** Where the answer cannot come in every dialect. */
    only?: readonly AnyDialectName[];
  }>;

const stop: AnswerEnd = {
  reason: "stop",
  stopSequence: null,
  usage: { inputFresh: 100, inputCached: 20, output: 30, reasoning: 5 },
};
const toolCalls: AnswerEnd = { ...stop, reason: "tool_calls" };

const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const weatherTool: Bodies = {
  chat: { tools: [{ type: "function", function: { name: "get_weather", parameters: city } }] },
  messages: { tools: [{ name: "get_weather", input_schema: city }] },
  responses: { tools: [{ type: "function", name: "get_weather", parameters: city }] },
};

const book = {
  type: "object",
  properties: { title: { type: "string" }, year: { type: "integer" } },
  required: ["title", "year"],
  additionalProperties: false,
};
const bookFormat: Bodies = {
  chat: { response_format: { type: "json_schema", json_schema: { name: "book", strict: true, schema: book } } },
  messages: { output_config: { format: { type: "json_schema", schema: book } } },
  responses: { text: { format: { type: "json_schema", name: "book", strict: true, schema: book } } },
};

const bun: Source = { title: "Bun", url: "https://bun.example/", text: "Bun is a fast runtime." };
const elysia: Source = { title: "Elysia", url: "https://elysia.example/docs", text: "Elysia runs on Bun." };
const files = { server: "files", name: "read" };

/** Everything that JSON, UTF-8 and event streams treat in a way of their own. */
const oddText =
  'Grüße 😀\u{1f1e9}\u{1f1ea} e\u0301 "q" \\n \\ / \n\r\n\t\b\f\0\u007f \u2028\u2029 </script> data: [DONE]';

export const scenarios: Readonly<Record<string, Scenario>> = {
  text: { model: "core-3", steps: text("Hi ", "there", "!"), end: stop },
  "usage-apart": {
    only: ["chat", "completions"],
    bodies: {
      chat: { stream_options: { include_usage: true } },
      completions: { stream_options: { include_usage: true } },
    },
    steps: text("Hi ", "there", "!"),
    end: stop,
  },
  "reasoning-then-text": {
    steps: [{ kind: "counted", tokens: 117 }, ...reasoning("Let me ", "think."), ...text("Hi ", "there!")],
    end: stop,
  },
  "one-tool": {
    bodies: weatherTool,
    steps: [call(0, "call_1", "get_weather"), ...fragments(0, '{"ci', 'ty":"Par', 'is"}')],
    end: toolCalls,
  },
  "parallel-tools": {
    bodies: weatherTool,
    steps: [
      ...reasoning("Two cities, ", "and one that is missing."),
      call(0, "call_1", "get_weather"),
      call(1, "call_2", "get_weather"),
      call(2, "call_3", "get_weather"), // without arguments
      ...fragments(0, '{"city":'),
      ...fragments(1, '{"city":'),
      ...fragments(0, '"London"}'),
      ...fragments(1, '"Tokyo"}'),
    ],
    end: toolCalls,
  },
  "text-then-tool": {
    bodies: weatherTool,
    steps: [
      ...reasoning("Paris it is."),
      ...text("I look ", "it up."),
      call(0, "call_1", "get_weather"),
      ...fragments(0, '{"city":"Paris"}'),
    ],
    end: toolCalls,
  },
  length: { steps: text("Hi ", "there"), end: { ...stop, reason: "length" } },
  "length-in-tool": {
    bodies: weatherTool,
    steps: [
      ...text("I look it up."),
      call(0, "call_1", "get_weather"),
      ...fragments(0, '{"city":"Paris"}'),
      call(1, "call_2", "get_weather"),
      ...fragments(1, '{"city":"Lon'),
    ],
    end: { ...stop, reason: "length" },
  },
  "stop-sequence": { steps: text("Hi ", "there!"), end: { ...stop, stopSequence: "END" } },
  "content-filter": { steps: text("How to "), end: { ...stop, reason: "content_filter" } },
  empty: { steps: [], end: stop },
  "reasoning-alone": { steps: reasoning("Nothing to say."), end: stop },
  "odd-text": {
    steps: [
      ...reasoning(...oddText.split("")), // cut between all UTF-16 units, so that pairs of surrogates are split
      ...text(...oddText.split(""), oddText),
      // a node may escape what need not be
      { kind: "text", literal: '"Gr\\u00fc\\u00DFe \\ud83d\\ude00 \\/ \\u0022"', logprobs: null },
    ],
    end: stop,
  },
  "plain-logprobs": {
    only: ["completions"],
    bodies: { completions: { logprobs: 1 } },
    steps: [
      {
        kind: "text",
        literal: '"Hi"', // as vLLM and SGLang give them
        logprobs: '{"tokens":["Hi"],"token_logprobs":[-0.1],"top_logprobs":[{"Hi":-0.1}],"text_offset":[0]}',
      },
      {
        kind: "text",
        literal: '" \ud83d\ude00"', // as llama-server does
        logprobs:
          '{"content":[{"token":" \ud83d\ude00","logprob":-0.2,"top_logprobs":[{"token":"__proto__","logprob":-0.2}]}]}',
      },
      {
        kind: "text",
        literal: '""',
        logprobs: '{"content":[{"token":"","logprob":-0.3}]}',
      },
    ],
    end: stop,
  },
  logprobs: {
    only: ["chat"],
    bodies: { chat: { logprobs: true } },
    steps: [
      {
        kind: "text",
        literal: '"Hi"',
        logprobs: '{"content":[{"token":"Hi","logprob":-0.1,"bytes":[72,105],"top_logprobs":[]}]}',
      },
      {
        kind: "text",
        literal: '"!"',
        logprobs: '{"content":[{"token":"!","logprob":-0.2,"bytes":[33],"top_logprobs":[]}]}',
      },
    ],
    end: stop,
  },
  "web-search": {
    bodies: { responses: { include: ["reasoning.encrypted_content", "web_search_call.action.sources"] } },
    steps: [
      ...reasoning("Look it up."),
      ...text("One ", "moment."),
      search("bun runtime"),
      { kind: "silence" },
      outcome({ sources: [bun, elysia] }),
      ...reasoning("Found."),
      ...text("Bun ", "is fast [1]"),
      cites(bun, 23, 26),
      ...text("[2]"),
      cites(elysia, 26, 29),
      ...text(", they ", "say."),
    ],
    end: stop,
  },
  "failed-searches": {
    steps: [
      search("a"),
      outcome({ failed: true, text: "The search failed." }),
      search("b"),
      outcome({ failed: true, overLimit: true, text: "No more searches." }),
      ...text("I do not know."),
    ],
    end: stop,
  },
  "mcp-calls": {
    steps: [
      serverCall(files, { path: "a.txt" }),
      { kind: "silence" },
      outcome({ text: "text of a" }),
      serverCall(files, { path: "b.txt" }),
      outcome({ text: "There is no b.txt.", failed: true }),
      ...text("It says ", '"text of a".'),
    ],
    end: stop,
  },
  "fails-at-once": { steps: [], end: { refusal: "node_failed" } },
  "fails-midway": { steps: [...reasoning("Hm."), ...text("Hi ", "there")], end: { refusal: "node_failed" } },
  "fails-in-tool": {
    bodies: weatherTool,
    steps: [call(0, "call_1", "get_weather"), ...fragments(0, '{"city":')],
    end: { refusal: "node_failed" },
  },
  "waits-first": {
    // every sixth sign of life is an event in the responses dialect
    steps: [...Array.from({ length: 7 }, () => ({ kind: "silence" }) as const), ...text("At last.")],
    end: stop,
  },
  "structured-answer": {
    bodies: bookFormat,
    steps: text('{"title":', '"Dune",', '"year":1965}'),
    end: stop,
  },
  "refused-format": {
    bodies: bookFormat,
    steps: [...reasoning("No."), ...refusal("I cannot ", "help with that.")],
    end: stop,
  },
  "refused-after-text": { steps: [...text("Well."), ...refusal("I cannot ", "go on.")], end: stop },
  "spoiled-arguments": {
    bodies: weatherTool,
    only: ["messages"],
    steps: [
      call(0, "call_1", "get_weather"),
      ...fragments(0, '{"ci', 'ty":"Par', "is\n", '"} and more'),
      call(1, "call_2", "get_weather"),
      ...fragments(1, '{"city":"Paris","days":[1', ",Pa", "ris]}"),
    ],
    end: toolCalls,
  },
  "custom-tool": {
    only: ["responses"],
    bodies: { responses: { tools: [{ type: "custom", name: "apply_patch" }] } },
    steps: [
      call(0, "call_1", "apply_patch"),
      ...fragments(0, '{"input":"*** Begin', " Patch\\n**", "* End Pat", 'ch\\n"}'),
    ],
    end: toolCalls,
  },
};

export const modelOf = ({ model }: Scenario): string => model ?? "open-05-3BIT-REAP";
