// What a node tells that its prompt cache took in, as each dialect tells it: nothing is billed by it.
import { describe, expect, test } from "bun:test";
import { isRefusal } from "../../src/core/refusals.ts";
import { chatCompletions } from "../../src/dialects/chat/chat-completions.ts";
import type { AnswerEnd, Dialect } from "../../src/dialects/dialect.ts";
import { messages } from "../../src/dialects/messages/messages.ts";
import { responsesDialect } from "../../src/dialects/responses/responses.ts";
import { bodyOf } from "../fixtures/client-view.ts";
import type { Endpoint } from "../fixtures/endpoints.ts";
import { readBody, wholeReply, writerOf } from "../fixtures/reading.ts";

const identity = { requestId: "req_1", createdSeconds: 1_795_200_000 };
const clock = { wall: () => 1_795_200_002_000, monotonic: () => 0 };
const responses = responsesDialect({ sealingKey: new Uint8Array(32), clock, storesResponses: false }) as Dialect;
const usage = { inputFresh: 100, inputCached: 20, output: 30, reasoning: 5 };

function usageTold(dialect: Dialect, model: string, cacheWritten?: number): Record<string, unknown> {
  const read = readBody(dialect, bodyOf(dialect.endpoint as Endpoint, model, "Hello"));
  if (isRefusal(read)) throw new Error(read.refusal);
  const told = cacheWritten === undefined ? usage : { ...usage, cacheWritten };
  const ended: AnswerEnd = { reason: "stop", stopSequence: null, usage: told };
  const reply = JSON.parse(wholeReply(writerOf(read).encoder(identity, "whole"), [], ended)) as { usage: never };
  return reply.usage;
}

describe("cache writes", () => {
  const hosted = "open-10-W8A16";
  test("chat: beside the cached tokens of hosted models, where a node tells any", () => {
    const details = (model: string, tokens?: number) =>
      usageTold(chatCompletions, model, tokens)["prompt_tokens_details"];
    expect(details(hosted, 96)).toEqual({ cached_tokens: 20, cache_write_tokens: 96 });
    expect(details(hosted)).toEqual({ cached_tokens: 20 });
    expect(details("core-3", 96)).toBeUndefined();
  });
  test("responses: beside the cached tokens, always, as the official clients' types promise", () => {
    const details = (tokens?: number) => usageTold(responses, hosted, tokens)["input_tokens_details"];
    expect(details(96)).toEqual({ cached_tokens: 20, cache_write_tokens: 96 });
    expect(details()).toEqual({ cached_tokens: 20, cache_write_tokens: 0 });
  });
  test("messages: always 0, as the specification has it", () => {
    expect(usageTold(messages, hosted, 96)).toMatchObject({ input_tokens: 100, cache_creation_input_tokens: 0 });
  });
});
