// Recorded answers of real engines to plain completions, byte for byte (fixtures/plain-transcripts: vLLM 0.32, llama-server
// of llama.cpp v0.5.0, Ollama 0.17, on 2026-11-22): what a client gets is what the engine said, wherever the network cuts it.
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { failureOfStatus } from "../../src/nodes/failure/failure.ts";
import { isRefusal, messageOf } from "../../src/core/refusals.ts";
import type { Piece } from "../../src/core/types.ts";
import { viewOf } from "../fixtures/client-view.ts";
import { cut, readAnswer } from "../fixtures/read-answer.ts";
import { readBody } from "../fixtures/reading.ts";
import { dialects } from "../golden/dialects.ts";
import { replyOf, streamOf, ways } from "../golden/player.ts";

type Exchange = Readonly<{ name: string; request: object; response: string }>;
type Event = Readonly<Record<string, any>>;

const folder = join(import.meta.dir, "../fixtures/plain-transcripts");
const engines = readdirSync(folder)
  .sort()
  .map((file) => {
    const lines = Buffer.from(Bun.gunzipSync(readFileSync(join(folder, file)))).toString("utf8");
    const exchanges = lines
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Exchange);
    return [file.replace(".jsonl.gz", ""), exchanges] as const;
  });

const endpoint = "/v1/completions";
const askOf = ({ request }: Exchange) => {
  const ask = readBody(dialects.completions, { model: "open-05-3BIT-REAP", ...request, stream: true });
  if (isRefusal(ask)) throw new Error(messageOf(ask));
  return ask;
};
const statusOf = ({ response }: Exchange): number => Number(response.slice(9, 12));

/** The plainest reading: one JSON.parse an event, joined strings. */
function plainly(response: string) {
  const text = Buffer.from(response, "latin1").toString("utf8");
  const events = [...text.matchAll(/^data: (\{.*\})\s*$/gm)].map((match) => JSON.parse(match[1]!) as Event);
  const choices: Event[] = events.flatMap((event) => event["choices"] ?? []);
  const finish: string = choices.findLast((choice) => choice["finish_reason"])?.["finish_reason"];
  return {
    text: choices.map((choice) => choice["text"]).join(""),
    finish: finish === "length" ? "length" : "stop",
    usage: events.findLast((event) => event["usage"])!["usage"] as Event,
    tokens: choices.flatMap(
      ({ logprobs }) => logprobs?.tokens ?? logprobs?.content?.map((each: Event) => each["token"]) ?? [],
    ),
  };
}

test("they are there", () => {
  expect(engines.map(([engine, exchanges]) => [engine, exchanges.length])).toEqual([
    ["llama-server", 23],
    ["ollama", 22],
    ["vllm", 23],
  ]);
});

describe.each(engines)("%s", (_, exchanges) => {
  const answered = exchanges.filter((exchange) => statusOf(exchange) === 200);
  const refused = exchanges.filter((exchange) => statusOf(exchange) !== 200);

  test.each(answered.map((exchange) => [exchange.name, exchange] as const))("%s", (__, exchange) => {
    const ask = askOf(exchange);
    const bytes = Buffer.from(exchange.response, "latin1");
    const plain = plainly(exchange.response);
    const steps: Piece[] = [];
    const { ending, text } = readAnswer([bytes], ask, {}, (piece) => steps.push(piece));
    expect([text, ending]).toMatchObject([plain.text, { kind: "end", reason: plain.finish, estimated: false }]);
    if (ending.kind !== "end") return;
    const { inputFresh, inputCached, output } = ending.usage;
    expect([inputFresh + inputCached, output]).toEqual([
      plain.usage["prompt_tokens"],
      plain.usage["completion_tokens"],
    ]);

    for (const way of ways) {
      const answer = { steps, end: ending };
      const reply = replyOf("completions", ask, answer, way);
      const whole = viewOf(endpoint, false, reply);
      expect(viewOf(endpoint, true, streamOf("completions", ask, answer, way))).toEqual(whole);
      expect(whole).toMatchObject({ complete: true, faults: [], text: plain.text, finish: plain.finish });
      const { logprobs } = JSON.parse(reply).choices[0];
      expect(logprobs?.tokens ?? []).toEqual(plain.tokens);
      if (logprobs !== null) {
        const lengths = ["token_logprobs", "top_logprobs", "text_offset"].map((name) => logprobs[name].length);
        expect(lengths).toEqual(lengths.map(() => plain.tokens.length));
      }
    }

    const read = (reads: readonly Buffer[], shapes?: null) =>
      JSON.stringify(readAnswer(reads, ask, shapes === null ? { shapes } : {}));
    const expected = read([bytes]);
    expect(read([bytes], null)).toBe(expected);
    expect(read(Array.from({ length: bytes.length }, (___, at) => bytes.subarray(at, at + 1)))).toBe(expected);
    const step = Math.ceil(bytes.length / 40);
    for (let at = 1; at < bytes.length; at += step) expect(read(cut(bytes, at))).toBe(expected);
  });

  test("what it refuses is the client's, with its own words", () => {
    const said = refused.map((exchange) => {
      const body = exchange.response.slice(exchange.response.indexOf("\r\n\r\n") + 4);
      const { blames, refusal, lacksModel } = failureOfStatus(askOf(exchange), statusOf(exchange), body);
      if (exchange.name === "unknown-model") return expect(lacksModel).toBe(true);
      expect([exchange.name, blames]).toEqual([exchange.name, "client"]);
      if (exchange.name === "too-long") return expect(refusal.refusal).toBe("context_length_exceeded");
      return expect(messageOf(refusal)).toMatch(/^(?:suffix|prompt): the model/);
    });
    expect(said.length).toBeGreaterThan(0);
  });
});
