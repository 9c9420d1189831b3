// The bodies of the counting endpoints and their replies.
import { afterAll, describe, expect, test } from "bun:test";
import { embeddedCatalog, type KnownModels } from "../../src/core/catalog.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import { TokenCounter } from "../../src/tokens/counter.ts";
import { TokenCounts } from "../../src/tokens/node-count.ts";
import { countInput, readTokenize, tokenize } from "../../src/tokens/tokenize.ts";
import { systemClock } from "../../src/core/clock.ts";
import { chatCompletions } from "../../src/dialects/chat/chat-completions.ts";
import type { Dialect } from "../../src/dialects/dialect.ts";
import { messages } from "../../src/dialects/messages/messages.ts";
import { responsesDialect } from "../../src/dialects/responses/responses.ts";
import { askOf } from "../fixtures/asks.ts";
import { encodings, reference } from "./reference.ts";
import { readBody } from "../fixtures/reading.ts";

const catalog = embeddedCatalog();
const stays = new AbortController().signal;
const counter = new TokenCounter({ log: () => {} });
afterAll(() => counter.close());
const estimates = new TokenCounts(counter, null, { monotonic: () => 0 });
const node = { countAsk: () => Promise.resolve(77), countText: () => Promise.resolve(66) };
const exact = new TokenCounts(counter, node, { monotonic: () => 0 });

function readAsk(body: unknown, catalog: KnownModels) {
  const ask = readBody(chatCompletions, body, 100, catalog);
  return isRefusal(ask) ? ask : { ask };
}
const read = (body: unknown) => readTokenize(body, catalog, (chat) => readAsk(chat, catalog));

async function reply(body: unknown, counts = estimates) {
  const request = read(body);
  return isRefusal(request) ? request : tokenize(request, counts, 1, stays);
}

describe("POST /v1/tokenize", () => {
  test("a text", async () => {
    expect(await reply({ text: "hello world" })).toEqual({
      object: "tokenization",
      model: null,
      count: 2,
      exact: false,
      tokenizer: "o200k_base",
      max_model_len: null,
    });
  });

  test("a text, its ids and messages for a model of which the catalog names another encoding", async () => {
    const model = { ...catalog.models.get("core-3")!, encoding: "cl100k_base" as const };
    const own = { ...catalog, models: new Map([[model.id, model]]) };
    const replyOf = (body: object) => {
      const request = readTokenize({ ...body, model: model.id }, own, (chat) => readAsk(chat, own));
      return isRefusal(request) ? request : tokenize(request, estimates, 1, stays);
    };
    const text = "日本語 unbelievably 12345";
    const tokens = [...encodings.cl100k_base.reference.encode_ordinary(text)];
    expect(tokens.length).not.toBe(reference.encode_ordinary(text).length);
    const counted = { count: tokens.length, exact: false, tokenizer: "cl100k_base" };
    expect(await replyOf({ text })).toMatchObject(counted);
    expect(await replyOf({ text, return_tokens: true })).toMatchObject({ ...counted, tokens });
    const messages = [{ role: "user", content: text }];
    expect(await replyOf({ messages })).toMatchObject({ tokenizer: "cl100k_base" });
  });

  test("a text for a model whose node counts", async () => {
    expect(await reply({ text: "hello world", model: "core-coder-1" }, exact)).toEqual({
      object: "tokenization",
      model: "core-coder-1",
      count: 66,
      exact: true,
      tokenizer: "model",
      max_model_len: 131_072,
    });
  });

  test("the ids of a text", async () => {
    const text = "hello <|endoftext|>";
    expect(await reply({ text, return_tokens: true, model: "core-3" }, exact)).toMatchObject({
      count: reference.encode_ordinary(text).length,
      exact: false,
      tokenizer: "o200k_base",
      tokens: [...reference.encode_ordinary(text)],
    });
  });

  test("messages, with a model and without", async () => {
    const messages = [{ role: "user", content: "Hi" }];
    expect(await reply({ messages, model: "core-3" }, exact)).toMatchObject({ count: 77, exact: true });
    const estimate = await reply({ messages }, exact);
    expect(estimate).toMatchObject({ model: null, exact: false, tokenizer: "o200k_base" });
    const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];
    const withTools = await reply({ messages, tools }, exact);
    expect((withTools as { count: number }).count).toBeGreaterThan((estimate as { count: number }).count);
  });

  test("4,000,000 bytes are counted, one more is too long", async () => {
    expect(await reply({ text: "a".repeat(4_000_000) })).toMatchObject({ count: 500_000 });
    expect(await reply({ text: "a".repeat(4_000_001) })).toEqual({ refusal: "text_too_long" });
    expect(read({ text: "é".repeat(2_000_000) })).toMatchObject({ kind: "text" });
    expect(read({ text: `${"é".repeat(2_000_000)}a` })).toEqual({ refusal: "text_too_long" });
  }, 120_000);

  test.each([
    [null, "body"],
    [[], "body"],
    ["text", "body"],
    [{}, "text"],
    [{ text: null }, "text"],
    [{ text: 1 }, "text"],
    [{ text: ["a"] }, "text"],
    [{ text: "a", messages: [] }, "not both"],
    [{ messages: "a" }, "messages"],
    [{ messages: [] }, "messages"],
    [{ messages: [{ role: "user" }] }, "messages[0]"],
    [{ text: "a", model: 1 }, "model"],
    [{ text: "a", return_tokens: "yes" }, "return_tokens"],
    [{ messages: [{ role: "user", content: "a" }], return_tokens: true }, "return_tokens"],
    [{ text: "a".repeat(262_145), return_tokens: true }, "262144"],
  ])("%j is refused with a reason that names %p", (body, named) => {
    const refusal = read(body);
    expect(refusal).toMatchObject({ refusal: "malformed" });
    expect(JSON.stringify(refusal)).toContain(named);
  });

  test("an unknown model is refused", () => {
    expect(read({ text: "a", model: "nope" })).toMatchObject({ refusal: "unknown_model" });
    expect(read({ messages: [{ role: "user", content: "a" }], model: "__proto__" })).toMatchObject({
      refusal: "unknown_model",
    });
  });
});

describe("the dialects' own endpoints", () => {
  const replyAt = ({ routes }: Dialect) => routes.find(({ counted }) => counted !== undefined)!.counted!;
  const messagesReply = replyAt(messages);
  const responsesReply = replyAt(
    responsesDialect({ sealingKey: new Uint8Array(32), clock: systemClock, storesResponses: false }),
  );

  test("messages: input_tokens", async () => {
    expect(await countInput(askOf(), messagesReply, exact, 1, stays)).toEqual({ input_tokens: 77 });
    const counted = await countInput(askOf(), messagesReply, estimates, 1, stays);
    expect(counted).toEqual({ input_tokens: expect.any(Number) });
  });

  test("responses: input_tokens of a response", async () => {
    expect(await countInput(askOf(), responsesReply, exact, 1, stays)).toEqual({
      object: "response.input_tokens",
      input_tokens: 77,
    });
  });

  test("a refusal is handed on", async () => {
    const cancelSignal = AbortSignal.abort();
    expect(await countInput(askOf(), messagesReply, estimates, 1, cancelSignal)).toMatchObject({ refusal: "busy" });
    expect(
      await tokenize({ kind: "text", text: "a", model: null, returnTokens: true }, estimates, 1, cancelSignal),
    ).toMatchObject({
      refusal: "busy",
    });
  });
});
