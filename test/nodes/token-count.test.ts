// Counts that nodes make: what each engine is asked, which answers are trusted, and when none is asked.
import { afterEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/core/clock.ts";
import { nodeCountBytesMax } from "../../src/core/limits.ts";
import { NodePool } from "../../src/nodes/queue/pool.ts";
import type { NodeCounter } from "../../src/tokens/node-count.ts";
import type { Ask } from "../../src/core/types.ts";
import { askOf, hostedModel, preparedOf, toolOf } from "../fixtures/asks.ts";
import { RawNode, type RawRequest, wholeReply } from "../fixtures/raw-node.ts";
import { recorded } from "../fixtures/recorded-node.ts";

const open: { stop(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});
const stays = new AbortController().signal;
const unreadFile = { part: { kind: "file", url: "data:application/pdf;base64,AA==", name: null }, places: 1 } as const;

const json = (value: unknown, status = "200 OK"): string => wholeReply(status, JSON.stringify(value));

/** A node that lists models as the engine does, and a pool that has found out which engine it is. */
async function poolOn(
  owner: string,
  answer: string | null | ((request: RawRequest) => string),
  models: Record<string, string> = { "*": "m" },
) {
  const node = new RawNode((request, reply) => {
    const { method, path } = request;
    if (path === "/v1/models")
      reply.write(json({ object: "list", data: [{ id: "m", object: "model", owned_by: owner }] }));
    else if (owner === "library" && path === "/api/version") reply.write(recorded("ollama", "02b-api-version"));
    else if (method === "GET") reply.write(wholeReply("404 Not Found", ""));
    else if (answer !== null) reply.write(typeof answer === "string" ? answer : answer(request));
  });
  open.push(node);
  const pool = new NodePool([{ name: "a", url: node.url, apiKey: "node-key", slots: 1, models }], {
    clock: systemClock,
    queueMaxWaitMs: 1_000,
    log: () => {},
  });
  open.push({ stop: () => void pool.close() });
  while (pool.states()[0]!.engine.models.length === 0) await Bun.sleep(1);
  const counter: NodeCounter = pool;
  return { counter, asked: () => node.requests.filter(({ method }) => method === "POST"), pool };
}

const ask = (changes: Partial<Ask> = {}) => askOf({ tools: [toolOf("get_weather")], ...changes });

describe("what an engine is asked", () => {
  test.each([
    ["vllm", "/tokenize", json({ count: 151, max_model_len: 4096, tokens: [1, 2, 3] })],
    [
      "sglang",
      "/tokenize",
      json({ tokens: Array.from({ length: 5_000 }, (_none, id) => id), count: 151, max_model_len: 4096 }),
    ],
    ["llamacpp", "/v1/chat/completions/input_tokens", json({ input_tokens: 151, object: "response.input_tokens" })],
  ])("%s: the whole request", async (owner, path, answer) => {
    const { counter, asked } = await poolOn(owner, answer);
    expect(await counter.countAsk(ask(), stays)).toBe(151);
    const [request] = asked();
    expect(request!.path).toBe(path);
    expect(request!.head).toContain("authorization: Bearer node-key");
    const body = JSON.parse(request!.body);
    expect(body).toMatchObject({ model: "m", messages: [{ role: "user", content: "Hello" }] });
    expect(body.tools[0].function.name).toBe("get_weather");
    for (const field of ["stream", "stream_options", "max_tokens"]) expect(body).not.toHaveProperty(field);
  });

  test("sglang, as recorded: it counts nothing that asks for a stream", async () => {
    const refusal = recorded("sglang", "05b-tokenize-messages");
    const { counter } = await poolOn("sglang", ({ body }) =>
      "stream" in (JSON.parse(body) as object) ? refusal : recorded("sglang", "05c-tokenize-tools"),
    );
    expect(await counter.countAsk(ask(), stays)).toBe(156);
  });

  test.each([
    [
      "vllm",
      { model: "m", prompt: "a, b", add_special_tokens: false },
      json({ count: 3, max_model_len: 9, tokens: [1, 2, 3] }),
    ],
    [
      "sglang",
      { model: "m", prompt: "a, b", add_special_tokens: false },
      json({ tokens: [1, 2, 3], count: 3, max_model_len: 9 }),
    ],
    ["llamacpp", { content: "a, b", add_special: false }, json({ tokens: [1, 2, 3] })],
  ])("%s: a text", async (owner, body, answer) => {
    const { counter, asked } = await poolOn(owner, answer);
    expect(await counter.countText(hostedModel, "a, b", stays)).toBe(3);
    expect(asked()[0]!.path).toBe("/tokenize");
    expect(JSON.parse(asked()[0]!.body)).toEqual(body);
  });

  test("a list of ids that comes in many parts is counted without being kept", async () => {
    const { counter } = await poolOn("llamacpp", json({ tokens: Array.from({ length: 200_000 }, (_none, id) => id) }));
    expect(await counter.countText(hostedModel, "a", stays)).toBe(200_000);
  });
});

describe("no count", () => {
  test.each([
    ["an error status", json({ count: 1 }, "400 Bad Request")],
    ["an empty list, which llama-server gives for an unknown field", json({ tokens: [] })],
    ["no JSON", wholeReply("200 OK", "hello")],
    ["a negative count", json({ count: -1 })],
    ["a fraction", json({ count: 1.5 })],
    ["a broken answer", "nonsense\r\n\r\n"],
  ])("%s", async (_what, answer) => {
    const { counter } = await poolOn("vllm", answer);
    expect(await counter.countAsk(ask(), stays)).toBeNull();
  });

  test("a node that is silent, until the time limit or the client's leaving", async () => {
    const { counter } = await poolOn("vllm", null);
    const cancelSignal = new AbortController();
    const abandoned = counter.countAsk(ask(), cancelSignal.signal);
    cancelSignal.abort();
    expect(await abandoned).toBeNull();
    expect(await counter.countAsk(ask(), stays)).toBeNull();
  });

  test("Ollama has to read a prompt for it, which is asked only where the input is charged", async () => {
    const { counter, asked: posted } = await poolOn("library", ({ path }) =>
      recorded("ollama", path === "/api/chat" ? "82-api-chat-read" : "83-api-generate-read"),
    );
    const asked = () => posted().filter(({ path }) => path !== "/api/show");
    expect(await counter.countAsk(ask(), stays)).toBeNull();
    expect(asked()).toEqual([]);
    expect(await counter.countAsk(ask(), stays, true)).toBe(10);
    const turns = [{ role: "prompt", content: "a b", tokens: null }] as const;
    const plain = { echo: false, suffix: "c" };
    expect(await counter.countAsk(askOf({ turns, plain }), stays, true)).toBe(17);
    const bodies = asked().map(({ body }) => JSON.parse(body) as Record<string, unknown>);
    const once = { model: "m", stream: false, truncate: false, options: { num_predict: 1 } };
    expect(bodies).toMatchObject([
      { ...once, messages: [{ role: "user", content: "Hello" }] },
      { ...once, prompt: "a b", suffix: "c" },
    ]);
    const large = preparedOf();
    expect(await counter.countAsk(ask({ prepared: large, turns: [] }), stays, true)).toBeNull();
  });

  test("drained nodes are not asked", async () => {
    const { counter, asked, pool } = await poolOn("vllm", json({ count: 1 }));
    pool.drain(new Map([["a", 0]]));
    expect(await counter.countAsk(ask(), stays)).toBeNull();
    expect(asked()).toEqual([]);
    pool.drain(new Map());
    expect(await counter.countAsk(ask(), stays)).toBe(1);
  });

  test("engines that cannot count, other models, images, unread files and large requests are not asked for", async () => {
    const unknown = await poolOn("somebody", json({ count: 1 }));
    expect(await unknown.counter.countAsk(ask(), stays)).toBeNull();
    expect(await unknown.counter.countText(hostedModel, "a", stays)).toBeNull();
    const { counter, asked } = await poolOn("vllm", json({ count: 1 }), { "core-3": "m" });
    expect(await counter.countText(hostedModel, "a", stays)).toBeNull();
    const vllm = await poolOn("vllm", json({ count: 1 }));
    const image = { kind: "image", url: "data:image/png;base64,AA==", detail: null } as const;
    expect(await vllm.counter.countAsk(ask({ turns: [{ role: "user", content: [image] }] }), stays)).toBeNull();
    expect(await vllm.counter.countAsk(ask({ bodyBytes: nodeCountBytesMax + 1 }), stays)).toBeNull();
    const unread = preparedOf({ unready: [unreadFile] });
    expect(await vllm.counter.countAsk(ask({ prepared: unread, turns: [] }), stays)).toBeNull();
    expect([...asked(), ...vllm.asked()]).toEqual([]);
    expect(unknown.asked().some(({ path }) => path === "/tokenize")).toBe(false);
  });

  test("what all nodes count at once is bounded, and room comes back", async () => {
    const { counter, asked } = await poolOn("vllm", null);
    const cancelSignal = new AbortController();
    const large = ask({ bodyBytes: nodeCountBytesMax });
    const counts = Array.from({ length: 6 }, () => counter.countAsk(large, cancelSignal.signal));
    while (asked().length < 4) await Bun.sleep(1);
    cancelSignal.abort();
    expect(await Promise.all(counts)).toEqual(Array(6).fill(null));
    expect(asked()).toHaveLength(4);
    const again = new AbortController();
    const count = counter.countAsk(large, again.signal);
    while (asked().length < 5) await Bun.sleep(1);
    again.abort();
    expect(await count).toBeNull();
  });
});
