// The free counting routes, called by clients of all three dialects.
import { beforeAll, expect, test } from "bun:test";
import type { Account } from "../fixtures/gateway-process.ts";
import { useStack } from "../fixtures/stack.ts";

const stack = useStack();
let account: Account;
beforeAll(async () => void (account = await stack.gateway.account()));

const ask = (path: string, body: unknown, key = account.api_key) =>
  fetch(`${stack.gateway.url}${path}`, {
    method: "POST",
    headers: { "x-api-key": key },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
const json = async (path: string, body: unknown) => (await ask(path, body)).json() as Promise<Record<string, unknown>>;
const conversation = { model: "core-3", messages: [{ role: "user", content: "Say hello" }] };

test("a text is counted exactly as tiktoken does, special-token text as plain text, with ids on request", async () => {
  expect(await json("/v1/tokenize", { text: "Hello world", return_tokens: true })).toEqual({
    object: "tokenization",
    model: null,
    count: 2,
    exact: false,
    tokenizer: "o200k_base",
    max_model_len: null,
    tokens: [13225, 2375],
  });
  expect(await json("/v1/tokenize", { text: "<|endoftext|>" })).toMatchObject({ count: 7 });
});

test("one conversation counts the same in every dialect and by each address, tools included", async () => {
  const counts = [
    (await json("/v1/tokenize", conversation))["count"],
    (await json("/v1/messages/count_tokens?beta=true", conversation))["input_tokens"],
    (await json("/v1/responses/input_tokens", { model: "core-3", input: "Say hello" }))["input_tokens"],
  ];
  expect(await json("/v1/responses/input_tokens", { model: "core-3", input: "Say hello" })).toEqual({
    object: "response.input_tokens",
    input_tokens: counts[2]!,
  });
  expect(new Set(counts).size).toBe(1);
  const tools = [{ name: "get_weather", description: "The weather of a city", input_schema: { type: "object" } }];
  const more = await json("/v1/messages/count_tokens", { ...conversation, tools });
  expect(Number(more["input_tokens"])).toBeGreaterThan(Number(counts[0]));
});

test("counting is not counted by flood protection, and many at once are all answered", async () => {
  const replies = await Promise.all(Array.from({ length: 150 }, () => ask("/v1/messages/count_tokens", conversation)));
  expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 150 }, () => 200));
  const request = { ...conversation, messages: [{ role: "user", content: stack.node.marker("text") }] };
  expect((await ask("/v1/chat/completions", request)).status).toBe(200);
});

test("a text over 4,000,000 bytes is refused, one of that size is counted", async () => {
  const tooLong = await ask("/v1/tokenize", { text: "a".repeat(4_000_001) });
  expect(tooLong.status).toBe(413);
  expect(await tooLong.json()).toMatchObject({ error: { type: "invalid_request_error", message: "text too long" } });
  expect(await json("/v1/tokenize", { text: "a".repeat(4_000_000) })).toMatchObject({ count: 500_000 });
});

test("large bodies at once are all counted, with or without a declared length", async () => {
  const body = JSON.stringify({ text: "日 b ".repeat(200_000) });
  const chunked = async () => {
    const parts = [body.slice(0, 300_001), body.slice(300_001)].map((part) => Buffer.from(part));
    const stream = new ReadableStream({
      pull: (controller) => {
        const part = parts.shift();
        if (part === undefined) controller.close();
        else controller.enqueue(part);
      },
    });
    const headers = { "x-api-key": account.api_key };
    return fetch(`${stack.gateway.url}/v1/tokenize`, { method: "POST", headers, body: stream });
  };
  const replies = await Promise.all([ask("/v1/tokenize", body), chunked(), ask("/v1/tokenize", body), chunked()]);
  for (const reply of replies) expect(await reply.json()).toMatchObject({ count: 400_001 });
});

test.each([
  ["/v1/tokenize", "{", "not valid JSON"],
  ["/v1/tokenize", {}, "Send text"],
  ["/v1/tokenize", { text: 5 }, "text must be a string"],
  ["/v1/tokenize", { text: "a", model: "nobody" }, "does not exist"],
  ["/v1/messages/count_tokens", { model: "core-3" }, "messages is missing"],
  ["/v1/responses/input_tokens", { input: "x" }, "model is missing"],
])("%s with %p is a 400 that says what is wrong", async (path, body, reason) => {
  const reply = await ask(path, body);
  expect(reply.status).toBe(400);
  expect(await reply.text()).toContain(reason);
});

test("a key is needed, and its refusal has the shape of the dialect", async () => {
  const reply = await ask("/v1/messages/count_tokens", conversation, "sk-wrong");
  expect(reply.status).toBe(401);
  expect(await reply.json()).toMatchObject({ type: "error", error: { type: "authentication_error" } });
});
