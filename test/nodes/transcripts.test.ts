// Recorded answers of ten engines and routers, byte for byte: what a client of any dialect gets must be what the engine
// said, and must not depend on where the network cuts it.
import { endpointOf } from "../fixtures/endpoints.ts";
import { describe, expect, test } from "bun:test";
import { failureOfEvent, failureOfStatus } from "../../src/nodes/failure/failure.ts";
import { parseNodeJson, record } from "../../src/nodes/json.ts";
import type { ReaderOptions } from "../../src/nodes/reader.ts";
import { messageOf } from "../../src/core/refusals.ts";
import type { Ask, Ending, Piece } from "../../src/core/types.ts";
import { viewOf } from "../fixtures/client-view.ts";
import { cut, readAnswer } from "../fixtures/read-answer.ts";
import { askFor, asStream, plainly, type Transcript, transcripts } from "../fixtures/transcripts.ts";
import { askIn, dialectNames, dialects } from "../golden/dialects.ts";
import { replyOf, streamOf, ways } from "../golden/player.ts";

const engines = [...new Set(transcripts.map(({ engine }) => engine))];
const answersOf = (engine: string) => transcripts.filter((each) => each.engine === engine && each.status === 200);

/** Half a second on an idle machine. */
const timeLimit = 60_000;

test("they are there", () => {
  expect(engines).toHaveLength(10);
  expect(transcripts).toHaveLength(426);
  expect(transcripts.filter(({ status }) => status !== 200)).toHaveLength(102);
});

/** What a reading comes to; ids that the gateway made up differ between readings. */
const comparable = (reads: readonly Buffer[], ask: Ask, options: ReaderOptions = {}): string =>
  JSON.stringify(readAnswer(reads, ask, options)).replace(/call_[0-9A-Za-z]{24}/g, "call_");

/** Each answer as a stream: it is one, or is made one. */
const streamBytes = (transcript: Transcript): Buffer => (transcript.isStream ? transcript.bytes : asStream(transcript));

describe.each(engines)("answers of %s", (engine) => {
  test("read as their plain reading", () => {
    for (const transcript of answersOf(engine)) {
      const bytes = streamBytes(transcript);
      const plain = plainly(transcript.isStream ? transcript.body : bytes.toString("utf8"));
      const answer = readAnswer([bytes], askFor(transcript));
      const calls = answer.calls.map(({ name, json }) => ({ name, json }));
      expect({ name: transcript.name, text: answer.text, reasoning: answer.reasoning, calls }).toEqual({
        name: transcript.name,
        text: plain.text,
        reasoning: plain.reasoning,
        calls: plain.calls.map(({ name, json }) => ({ name, json: json === "" ? "{}" : json })),
      });
      expectEnding(transcript, answer.ending, plain);
    }
  });

  test(
    "read the same at every split, byte by byte, and with every event parsed",
    () => {
      for (const transcript of answersOf(engine).filter(({ isStream }) => isStream)) {
        const { bytes } = transcript;
        const ask = askFor(transcript);
        const whole = comparable([bytes], ask);
        expect(comparable([bytes], ask, { shapes: null })).toBe(whole);
        const single = Array.from({ length: bytes.length }, (_, at) => bytes.subarray(at, at + 1));
        expect(comparable(single, ask)).toBe(whole);
        for (const at of placesToCut(bytes)) expect(comparable(cut(bytes, at), ask)).toBe(whole);
      }
    },
    timeLimit,
  );

  test("reach clients of all dialects, streamed and not, without blank beginnings", () => {
    for (const transcript of answersOf(engine)) {
      const { ending, pieces, text, calls } = piecesOf(transcript);
      if (ending.kind !== "end") continue;
      for (const name of dialectNames) {
        const ask = askIn(name, "open-05-3BIT-REAP");
        const endpoint = endpointOf(dialects[name]);
        for (const way of ways) {
          const answer = { steps: pieces, end: ending };
          const stream = viewOf(endpoint, true, streamOf(name, ask, answer, way));
          const reply = replyOf(name, ask, answer, way);
          const whole = viewOf(endpoint, false, reply);
          expect(stream).toMatchObject({ complete: true, error: null, faults: [], text });
          expect(whole).toEqual(stream);
          expect(whole.usage!.output).toBe(ending.usage.output);
          expect(blankParts(JSON.parse(reply))).toEqual([]);
          for (const { json } of calls.filter(isWhole)) {
            expect(calledWith(JSON.parse(reply))).toContainEqual(JSON.parse(json));
          }
        }
      }
    }
  });
});

function expectEnding({ engine, name }: Transcript, ending: Ending, plain: ReturnType<typeof plainly>): void {
  if (plain.finish === null) {
    expect(ending).toMatchObject({ kind: "failed", refusal: { refusal: "node_failed" } });
    return;
  }
  const reason = plain.finish === "stop" && plain.calls.length > 0 ? "tool_calls" : plain.finish;
  expect({ engine, name, ending }).toMatchObject({
    ending: { kind: "end", reason: reason === "tool_calls" && plain.calls.length === 0 ? "stop" : reason },
  });
  if (ending.kind !== "end" || plain.usage === null) return;
  const { inputFresh, inputCached, output } = ending.usage;
  const { prompt_tokens, completion_tokens, prompt_tokens_details: details } = plain.usage;
  // llama.cpp tells what was cached beside the usage, too
  const cached = details?.cached_tokens ?? inputCached;
  expect({ engine, name, input: inputFresh + inputCached, cached: inputCached, output }).toEqual({
    engine,
    name,
    input: prompt_tokens,
    cached,
    output: completion_tokens,
  });
}

/** Around the end of each event, and some more; at most so many that all recordings take a few seconds. */
function placesToCut(bytes: Buffer): number[] {
  const ends: number[] = [];
  for (let at = bytes.indexOf("\n\n"); at >= 0; at = bytes.indexOf("\n\n", at + 2)) ends.push(at);
  const step = Math.ceil(ends.length / 40);
  const near = ends.filter((_, index) => index % step === 0).flatMap((end) => [end, end + 1, end + 2]);
  let state = bytes.length;
  const others = Array.from({ length: 40 }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return 1 + ((state >>> 8) % (bytes.length - 1));
  });
  return [...near, ...others];
}

function piecesOf(transcript: Transcript) {
  const pieces: Piece[] = [];
  const { ending, text, calls } = readAnswer([streamBytes(transcript)], askFor(transcript), {}, (piece) =>
    pieces.push(piece),
  );
  return { ending, text, calls, pieces };
}

/** Blocks and items of white space alone. */
function blankParts(reply: Record<string, any>): unknown[] {
  const parts: Record<string, any>[] = reply["content"] ?? reply["output"] ?? [reply["choices"][0].message];
  const isBlank = (value: unknown): boolean => typeof value === "string" && value !== "" && value.trim() === "";
  return parts.filter(
    ({ text, thinking, content, reasoning_content: reasoning }) =>
      [text, thinking, reasoning, content].some(isBlank) ||
      (Array.isArray(content) && content.some((each: any) => isBlank(each.text))),
  );
}

/** SGLang calls a tool with a number once, llama-cpp-python with half an object. */
const isWhole = ({ json }: { json: string }): boolean => record(parseNodeJson(json)) !== null;

function calledWith(reply: Record<string, any>): unknown[] {
  const parsed = (json: string): unknown[] => (isWhole({ json }) ? [JSON.parse(json)] : []);
  if (reply["choices"] !== undefined) {
    return (reply["choices"][0].message.tool_calls ?? []).flatMap((call: any) => parsed(call.function.arguments));
  }
  if (reply["output"] !== undefined) {
    return reply["output"].flatMap((item: any) => (item.type === "function_call" ? parsed(item.arguments) : []));
  }
  return reply["content"].flatMap((block: any) => (block.type === "tool_use" ? [block.input] : []));
}

/** What an engine says of a request that is at fault without a word that tells it from a fault of its own. */
const wordless = /^(?:llama-server 30b?-(?:bad-json|empty-body)|llama-cpp-python 43-bad-json|transformers.* 500)/;

describe.each(engines)("errors of %s", (engine) => {
  const errors = transcripts.filter((each) => each.engine === engine && each.status !== 200);
  test.each(errors.map((each) => [each.name, each] as const))("%s", (name, transcript) => {
    const { status, body } = transcript;
    const ask = askFor(transcript);
    const failure = failureOfStatus(ask, status, body);
    const isNodes = status === 503 || wordless.test(`${engine} ${name}`) || wordless.test(`${engine} ${status}`);
    const isOperators = [401, 403, 404].includes(status) || /unknown-model|wrong-model/.test(name);
    expect(failure.blames).toBe(isNodes ? "node" : isOperators ? "operator" : "client");
    expect(messageOf(failure.refusal)).not.toMatch(/\/opt\/|litellm|vllm/i);
    if (failure.blames !== "client") return;
    if (/overflow|too-long/.test(name)) expect(failure.refusal.refusal).toBe("context_length_exceeded");
    expect(failure.ofSchema === true).toBe(/bad-schema|json-schema|schema-and-tools|schema-lookahead/.test(name));
    // vLLM and SGLang say some of it in a stream's first event, with the status in it
    const event = status === 400 ? JSON.stringify({ error: { ...errorOf(body), code: 400 } }) : body;
    if (status === 400 || status === 500) expect(failureOfEvent(ask, event, false).blames).toBe("client");
  });
});

function errorOf(body: string): object {
  if (!body.startsWith("{")) return { message: body };
  const json = JSON.parse(body);
  return typeof json.error === "object" ? json.error : json;
}
