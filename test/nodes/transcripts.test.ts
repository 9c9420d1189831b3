// Recorded streams of real engines (llama-server of llama.cpp v0.5.0, transformers serve 5.18), byte for byte, read at
// every split: the answer must not depend on where the network cuts it.
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { failureOfStatus } from "../../src/nodes/failure/failure.ts";
import { askOf, toolOf } from "../fixtures/asks.ts";
import { cut, readAnswer } from "../fixtures/read-answer.ts";

const folder = join(import.meta.dir, "../fixtures/node-transcripts");
const transcripts = ["llama-server", "transformers-serve"].flatMap((engine) =>
  readdirSync(join(folder, engine)).map((file) => ({
    name: `${engine}/${file.replace(".http", "")}`,
    bytes: readFileSync(join(folder, engine, file)),
  })),
);
const named = (name: string): Buffer => transcripts.find((one) => one.name === name)!.bytes;

type Chunk = {
  choices: { index: number; delta: Record<string, unknown>; finish_reason?: string }[];
  usage?: { prompt_tokens: number; completion_tokens: number };
};

/** The same answer read in the plainest way: the whole body, one JSON.parse an event, joined strings. */
function plainly(bytes: Buffer) {
  const body = bytes.toString("utf8").split("\r\n\r\n").slice(1).join("\r\n\r\n");
  const chunks = [...body.matchAll(/^data: (\{.*\})$/gm)].map((match) => JSON.parse(match[1]!) as Chunk);
  const choices = chunks.flatMap((chunk) => chunk.choices.filter(({ index }) => index === 0));
  const joined = (field: string) => choices.map(({ delta }) => (delta[field] as string | null) ?? "").join("");
  const calls = choices.flatMap(
    ({ delta }) => (delta["tool_calls"] as { index: number; function: { arguments: string } }[]) ?? [],
  );
  return {
    text: joined("content"),
    reasoning: joined("reasoning_content"),
    json: [0, 1].map((index) =>
      calls
        .filter((call) => call.index === index)
        .map((call) => call.function.arguments)
        .join(""),
    ),
    finish: choices.find(({ finish_reason }) => finish_reason)?.finish_reason ?? null,
    usage: chunks.find(({ usage }) => usage)?.usage ?? null,
  };
}

const ask = askOf({ outputTokensMax: 65_536, tools: [toolOf("get_weather"), toolOf("get_time")] });

describe("recorded streams", () => {
  test("the fixtures are there", () => expect(transcripts.length).toBe(19));

  for (const { name, bytes } of transcripts.filter((one) => !one.name.includes("too-long"))) {
    test(`${name} reads as its plain reading`, () => {
      const answer = readAnswer([bytes], ask);
      const plain = plainly(bytes);
      expect(answer.text).toBe(plain.text);
      expect(answer.reasoning).toBe(plain.reasoning);
      expect(answer.calls.map(({ json }) => json)).toEqual(plain.json.filter((json) => json !== ""));
      if (plain.finish === null)
        return expect(answer.ending).toMatchObject({ kind: "failed", refusal: { refusal: "node_failed" } });
      const { prompt_tokens = 25, completion_tokens = expect.any(Number) } = plain.usage ?? {};
      expect(answer.ending).toMatchObject({
        kind: "end",
        reason: plain.finish,
        estimated: plain.usage === null,
        usage: { output: completion_tokens },
      });
      if (answer.ending.kind === "end") {
        const { inputFresh, inputCached } = answer.ending.usage;
        expect(inputFresh + inputCached).toBe(prompt_tokens);
      }
    });

    test(`${name} reads the same at every split`, () => {
      const whole = forComparison(readAnswer([bytes], ask));
      if (bytes.length < 8_192) {
        for (let at = 1; at < bytes.length; at++) expect(forComparison(readAnswer(cut(bytes, at), ask))).toBe(whole);
        return;
      }
      const random = randomOf(bytes.length);
      for (let round = 0; round < 1_000; round++) {
        const at = Array.from({ length: 1 + (random() % 12) }, () => random() % bytes.length).sort((a, b) => a - b);
        expect(forComparison(readAnswer(cut(bytes, ...at), ask))).toBe(whole);
      }
    });

    test(`${name} reads the same byte by byte, and with every event parsed`, () => {
      const whole = forComparison(readAnswer([bytes], ask));
      expect(
        forComparison(
          readAnswer(
            [...bytes].map((byte) => Buffer.from([byte])),
            ask,
          ),
        ),
      ).toBe(whole);
      expect(forComparison(readAnswer([bytes], ask, { shapes: null }))).toBe(whole);
    });
  }

  test("a prompt that is too long gives the engine's numbers and none of its words", () => {
    const bytes = named("llama-server/31b-too-long-stream").toString();
    const body = bytes.slice(bytes.indexOf("\r\n\r\n") + 4);
    const { refusal } = failureOfStatus(ask, 400, body);
    expect(refusal).toEqual({ refusal: "context_length_exceeded", detail: { tokens: 5_009, maximum: 4_096 } });
  });
});

/** Ids that the gateway made up differ between readings; llama-server's own do not. */
function forComparison(answer: object): string {
  return JSON.stringify(answer).replace(/call_[0-9A-Za-z]{24}/g, "call_");
}

/** A seeded generator, so that a failure comes again. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 8;
  };
}
