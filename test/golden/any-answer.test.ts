// Whatever a model says in whatever order, every dialect's stream is in order and ends once, the reply says the same,
// and texts are written the same whether they come as bytes or as strings.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { AnswerEnd } from "../../src/dialects/dialect.ts";
import type { Refusal } from "../../src/core/types.ts";
import { viewOf } from "../fixtures/client-view.ts";
import { collected, eventsOf, expectWellFormed } from "../fixtures/events.ts";
import { expectWellFormedMessage, messagesEventsOf, replayedBlocks } from "../fixtures/messages-events.ts";
import { expectOrderedResponse, expectResponseShape, type ResponseBody } from "../fixtures/response-events.ts";
import { ends, offeredTools, wholeAnswers } from "./answers.ts";
import { askIn, type DialectName, dialectNames, dialects } from "./dialects.ts";
import { type Answer, replyOf, type Step, streamOf, ways } from "./player.ts";
import { saidIn } from "./said.ts";
import { endpointOf } from "../fixtures/endpoints.ts";

/** Requests that change what is written of an answer. */
const requests: Readonly<Record<DialectName, fc.Arbitrary<object>>> = {
  chat: fc.constantFrom({}, { stream_options: { include_usage: true } }),
  messages: fc.constantFrom(
    { thinking: { type: "adaptive" } },
    { thinking: { type: "adaptive", display: "omitted" } },
    { thinking: null },
  ),
  responses: fc
    .constantFrom({}, { include: [] }, { include: ["web_search_call.action.sources"] })
    .map((more) => ({ tools: offeredTools, ...more })),
};

const readers: Readonly<Record<DialectName, Reader>> = {
  chat: {
    expectOrder: (stream, request) =>
      expectWellFormed(eventsOf(stream), { rounds: true, usageApart: "stream_options" in request }),
    ofStream(stream) {
      const events = eventsOf(stream);
      const contents = events.chunks.map(({ choices }) => choices[0]?.delta["content"]);
      const content = contents.some((part) => typeof part === "string") ? contents.join("") : null; // joins null as ""
      return { ...collected(events), content };
    },
    ofReply(reply) {
      const [{ message, finish_reason: finishReason }] = reply["choices"];
      const calls = (message.tool_calls ?? []).map((call: any) => ({ id: call.id, ...call.function }));
      const { content, reasoning_content: reasoning = "", annotations = [] } = message;
      return { content, reasoning, calls, annotations, finishReason };
    },
  },
  messages: {
    expectOrder: (stream) => expectWellFormedMessage(messagesEventsOf(stream)),
    ofStream: (stream) => replayedBlocks(messagesEventsOf(stream)),
    ofReply: (reply) => reply["content"],
  },
  responses: {
    expectOrder: expectOrderedResponse,
    ofStream: expectOrderedResponse,
    ofReply(reply) {
      expectResponseShape(reply as ResponseBody);
      return reply;
    },
  },
};
/** Checks the order of a finished stream, and gives what a client gathers of a stream and of a reply in the same form. */
type Reader = Readonly<{
  expectOrder(stream: string, request: object): void;
  ofStream(stream: string): unknown;
  ofReply(reply: Record<string, any>): unknown;
}>;

/** The same stream in every way in which it can be written. */
function streamed(name: DialectName, request: object, answer: Answer): string {
  const ask = askIn(name, "core-3", request);
  const [strings, bytes] = ways.map((way) => streamOf(name, ask, answer, way));
  expect(bytes!).toBe(strings!);
  return strings!;
}

function replied(name: DialectName, request: object, answer: Answer): Record<string, any> {
  const ask = askIn(name, "core-3", request);
  const [strings, bytes] = ways.map((way) => replyOf(name, ask, answer, way));
  expect(bytes!).toBe(strings!);
  return JSON.parse(strings!);
}

const length: AnswerEnd = {
  reason: "length",
  stopSequence: null,
  usage: { inputFresh: 9, inputCached: 0, output: 9, reasoning: 0 },
};
const failure: Refusal = { refusal: "node_failed" };
/** The beginning of an answer. */
const begun = fc.tuple(wholeAnswers, fc.nat()).map(([steps, place]) => steps.slice(0, place % (steps.length + 1)));

function hasHalfCall(steps: readonly Step[]): boolean {
  const given: string[] = [];
  for (const step of steps) {
    if (step.kind === "call") given[step.index] = "";
    else if (step.kind === "call-arguments") given[step.index] += JSON.parse(step.literal) as string;
  }
  return given.some((json) => !json.endsWith("}") || !isJson(json));
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // that it does not parse is the answer
  }
}

const options = { numRuns: Number(process.env["TOLLGATE_TEST_RUNS"] ?? 150) };
// a hundred answers of dozens of events each take a second on an idle machine
const timeLimit = 120_000;

describe.each(dialectNames)("any answer, %s", (name) => {
  const endpoint = endpointOf(dialects[name]);
  const reader = readers[name];
  const viewOfStream = (stream: string) => viewOf(endpoint, true, stream);

  test(
    "whole: the stream is in order, ends once, and the reply says the same",
    () => {
      const holds = (steps: readonly Step[], end: AnswerEnd, request: object): void => {
        const stream = streamed(name, request, { steps, end });
        const reply = replied(name, request, { steps, end });
        reader.expectOrder(stream, request);
        expect(reader.ofStream(stream)).toEqual(reader.ofReply(reply));
        const view = viewOfStream(stream);
        expect(view).toMatchObject({ complete: true, error: null, faults: [], text: saidIn(name, { steps }) });
        expect(viewOf(endpoint, false, JSON.stringify(reply))).toEqual(view);
      };
      fc.assert(fc.property(wholeAnswers, ends, requests[name], holds), options);
    },
    timeLimit,
  );

  test(
    "cut by the budget anywhere: the stream is in order and ends once; text is lost only behind half a call",
    () => {
      const holds = (steps: readonly Step[], request: object): void => {
        const stream = streamed(name, request, { steps, end: length });
        reader.expectOrder(stream, request);
        const view = viewOfStream(stream);
        expect(view).toMatchObject({ complete: true, error: null, faults: [] });
        const said = saidIn(name, { steps });
        // Half a call's item stays open, and items of a response do not open beside each other.
        if (name === "responses" && hasHalfCall(steps)) expect(said.startsWith(view.text)).toBe(true);
        else expect(view.text).toBe(said);
        const reply = replied(name, request, { steps, end: length });
        expect(viewOf(endpoint, false, JSON.stringify(reply))).toEqual(view);
      };
      fc.assert(fc.property(begun, requests[name], holds), options);
    },
    timeLimit,
  );

  test(
    "failed anywhere: the error is the last word, without a terminator",
    () => {
      const holds = (steps: readonly Step[], request: object): void => {
        const stream = streamed(name, request, { steps, end: failure });
        expect(viewOfStream(stream)).toMatchObject({ complete: false, faults: [], usage: null });
        expect(viewOfStream(stream).error).not.toBeNull();
        if (name === "responses") expect(expectOrderedResponse(stream).status).toBe("failed");
      };
      fc.assert(fc.property(begun, requests[name], holds), options);
    },
    timeLimit,
  );
});
