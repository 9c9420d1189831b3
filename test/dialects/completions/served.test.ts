// Plain completions through the real server: answered, billed and listed like every other request, cut where the client
// says, and refused in OpenAI's form where a node cannot.
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { prepare, type PrepareOrder } from "../../../src/bodies/prepare.ts";
import { embeddedCatalog } from "../../../src/core/catalog.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { completions } from "../../../src/dialects/completions/completions.ts";
import { Dialects } from "../../../src/dialects/registry.ts";
import { type DemoNode, startDemoNode } from "../../../src/nodes/demo/demo.ts";
import { countedPrompt, isPlain, plainRequest } from "../../../src/nodes/plain-request.ts";
import { FaultGateway } from "../../faults/gateway.ts";
import { preparedOf } from "../../fixtures/asks.ts";
import { billedTokens, viewOf } from "../../fixtures/client-view.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { chunk, doneEvent, lastChunk, RawNode, type RawRequest, streamHead } from "../../fixtures/raw-node.ts";
import { headOf } from "../../fixtures/reading.ts";
import { recordedNode } from "../../fixtures/recorded-node.ts";

setDefaultTimeout(60_000);
const model = "core-1.6-pro";
const endpoint = "/v1/completions";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function gatewayOn(...urls: readonly string[]) {
  const gateway = await FaultGateway.start(
    urls.map((url) => ({ url, models: { "*": "*" } })),
    undefined,
    { looks: true },
  );
  open.push(() => gateway[Symbol.asyncDispose]());
  await eventually("the nodes were looked at", async () =>
    gateway.pool.states().every(({ engine }) => engine.models.length > 0),
  );
  const caller = await gateway.caller();
  const send = async (body: object, key = caller.key) => {
    const response = await fetch(gateway.url + endpoint, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model, ...body }),
    });
    const text = await response.text();
    const { status } = response;
    const view = viewOf(endpoint, status === 200 && text.startsWith("data:"), text);
    expect(view.faults).toEqual([]);
    return { status, text, view, id: response.headers.get("x-request-id") };
  };
  return { gateway, caller, send };
}

function demo(): DemoNode {
  const node = startDemoNode({
    models: [{ id: model, contextTokens: 8_192 }],
    clock: systemClock,
    tokensPerSecond: Number.POSITIVE_INFINITY,
  });
  open.push(() => node.stop());
  return node;
}

function opened(node: RawNode): RawNode {
  open.push(() => node.stop());
  return node;
}

const event = (choice: object, more: object = {}): string =>
  `data: ${JSON.stringify({ id: "cmpl-1", object: "text_completion", choices: [{ index: 0, ...choice }], ...more })}\n\n`;
const usage = (prompt_tokens: number, completion_tokens: number): string =>
  `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens, completion_tokens } })}\n\n`;
const answered = (texts: readonly string[], ...end: readonly string[]): string =>
  streamHead + chunk([...texts.map((text) => event({ text, finish_reason: null })), ...end].join("")) + lastChunk;

/** A llama-server, by what it tells, that answers so. */
const llama = (answer: string | ((request: RawRequest) => string)): RawNode =>
  opened(
    recordedNode("llama-server", {
      "/v1/completions": (request, reply) => reply.write(typeof answer === "string" ? answer : answer(request)),
    }),
  );
const askedAt = ({ requests }: RawNode, path: string) => requests.filter((request) => request.path === path);

test("a stream and a reply say the same, cost what they say, and are listed with their endpoint", async () => {
  const { gateway, caller, send } = await gatewayOn(demo().url);
  const whole = await send({ prompt: "Once upon", max_tokens: 8 });
  const streamed = await send({ prompt: "Once upon", max_tokens: 8, stream: true });
  expect(whole.status).toBe(200);
  expect(streamed.view).toEqual(whole.view);
  expect(whole.view).toMatchObject({ complete: true, finish: "length", usage: { input: 2, output: 8 } });
  expect(whole.view.text).toStartWith(" (synthetic");
  const rows = await gateway.usage(caller);
  expect(rows.map(({ request_id }) => request_id)).toEqual([streamed.id!, whole.id!]);
  for (const row of rows) {
    expect(row).toMatchObject({ endpoint, model, input: 2, output: 8, estimated: false });
    expect(row.billed_tokens).toBe(billedTokens(row));
  }
  await gateway.expectQuiet();
});

test("at Mistral's address the answer has the form of a chat, and costs and is listed the same", async () => {
  const { gateway, caller, send } = await gatewayOn(demo().url);
  const asked = { model, prompt: "def f(x):", suffix: "return x", max_tokens: 8, echo: true, logprobs: 2 };
  const { view } = await send({ ...asked, echo: false });
  const ask = async (body: object, key = caller.key) => {
    const headers = { authorization: `Bearer ${key}` };
    return await fetch(`${gateway.url}/v1/fim/completions`, { method: "POST", headers, body: JSON.stringify(body) });
  };
  const whole = (await (await ask(asked)).json()) as Record<string, any>;
  const choice = { index: 0, message: { role: "assistant", content: view.text }, finish_reason: "length" };
  expect(whole).toMatchObject({ object: "chat.completion", usage: { completion_tokens: 8 } });
  expect(whole["choices"]).toEqual([choice]);
  const text = await (await ask({ ...asked, stream: true })).text();
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json!));
  expect(events.map(({ choices: [{ delta }] }) => delta.content).join("")).toBe(view.text);
  expect(events.at(-1)).toMatchObject({ object: "chat.completion.chunk", choices: [{}, { finish_reason: "length" }] });
  expect([events.at(-1).usage, text.endsWith("data: [DONE]\n\n")]).toEqual([whole["usage"], true]);
  const rows = await gateway.usage(caller);
  expect(rows.map((row) => [row.endpoint, row.output])).toEqual(Array(3).fill([endpoint, 8]));
  const refused = await ask(asked, "wrong");
  expect([refused.status, ((await refused.json()) as any).error.type]).toEqual([401, "authentication_error"]);
  await gateway.expectQuiet();
});

test("at Mistral's address a request without a budget gets a longer one", async () => {
  const node = llama(answered(["a"], event({ text: "", finish_reason: "stop" }), usage(3, 1), doneEvent));
  const { gateway, caller } = await gatewayOn(node.url);
  const headers = { authorization: `Bearer ${caller.key}` };
  const body = JSON.stringify({ model, prompt: "x" });
  expect((await fetch(`${gateway.url}/v1/fim/completions`, { method: "POST", headers, body })).status).toBe(200);
  expect(JSON.parse(askedAt(node, endpoint)[0]!.body)).toMatchObject({ prompt: "x", max_tokens: 1_024 });
});

test("the budget ends the answer of every model, and a coder model costs tokens", async () => {
  const { gateway, caller, send } = await gatewayOn(demo().url);
  for (const each of ["core-3", "core-coder-1", "open-05-3BIT-REAP"]) {
    const { view } = await send({ model: each, prompt: "x", max_tokens: 3 });
    expect([each, view.usage?.output, view.finish]).toEqual([each, 3, "length"]);
  }
  expect((await gateway.usage(caller)).every(({ billed_tokens }) => billed_tokens > 0)).toBe(true);
});

test("the node reads the prompt as it stands, and a fifth stop ends the answer here", async () => {
  const node = llama(answered(["def ", "f():", " re", "turn EN", "D and", " more"], usage(7, 9), doneEvent));
  const { gateway, caller, send } = await gatewayOn(node.url);
  const stop = ["a", "b", "c", "d", "END"];
  const { view } = await send({ prompt: "<fim_prefix>é", stop, max_tokens: 50, stream: true });
  expect(view).toMatchObject({ text: "def f(): return ", finish: "stop", complete: true });
  const [request] = askedAt(node, endpoint);
  expect(JSON.parse(request!.body)).toMatchObject({ prompt: "<fim_prefix>é", stop: stop.slice(0, 4), max_tokens: 50 });
  const [row] = await gateway.usage(caller);
  expect(row!.output).toBe(5); // 18 of the characters that came, at 4 a token
  await gateway.expectQuiet();
});

test("white space and tags of thoughts are text like any other", async () => {
  const text = ["\n\n", "<think>", "  x</think>", "\n"];
  const node = llama(answered(text, event({ text: "", finish_reason: "stop" }), usage(3, 4), doneEvent));
  const { send } = await gatewayOn(node.url);
  for (const stream of [false, true]) expect((await send({ prompt: "x", stream })).view.text).toBe(text.join(""));
});

test("a node that writes on beyond the budget is stopped there", async () => {
  const node = llama(
    answered(
      Array.from({ length: 40 }, () => "word "),
      usage(3, 40),
      doneEvent,
    ),
  );
  const { send, gateway, caller } = await gatewayOn(node.url);
  const { view } = await send({ model: "core-3", prompt: "x", max_tokens: 5, stream: true });
  expect([view.text, view.finish]).toEqual(["word ".repeat(5), "length"]);
  expect((await gateway.usage(caller))[0]!.output).toBe(5);
});

test("a node without the route is not blamed, the client is told, and another kind of node is asked", async () => {
  const without = opened(recordedNode("litellm"));
  const alone = await gatewayOn(without.url);
  const refused = await alone.send({ prompt: "x", stream: true });
  expect([refused.status, refused.view.error?.message]).toEqual([
    400,
    `The model \`${model}\` gives no plain completions here: ask it at /v1/chat/completions.`,
  ]);
  expect(alone.gateway.pool.states()[0]!.health).toBe("well");
  expect(await alone.gateway.usage(alone.caller)).toEqual([]);
  await alone.gateway.expectQuiet();

  const both = await gatewayOn(without.url, demo().url);
  for (let request = 0; request < 4; request++) expect((await both.send({ prompt: `x${request}` })).status).toBe(200);
  expect(both.gateway.pool.states().map(({ health }) => health)).toEqual(["well", "well"]);
});

test("what the engine would ignore is refused before it is asked", async () => {
  const node = llama("");
  const { send, gateway, caller } = await gatewayOn(node.url);
  expect((await send({ prompt: "x", suffix: "y" })).view.error?.message).toStartWith("suffix: the model");
  expect((await send({ prompt: "x", echo: true })).view.error?.message).toStartWith("echo: the model");
  expect(askedAt(node, endpoint)).toEqual([]);
  expect(await gateway.usage(caller)).toEqual([]);
});

test("refusals have OpenAI's form", async () => {
  const { send } = await gatewayOn(demo().url);
  const error = async (body: object, key?: string) => {
    const { status, text } = await send(body, key);
    const { type, message, param, code } = JSON.parse(text).error;
    expect([param, typeof message, code === null || typeof code === "string"]).toEqual([null, "string", true]);
    return [status, type];
  };
  expect(await error({ prompt: "x" }, "wrong")).toEqual([401, "authentication_error"]);
  expect(await error({ prompt: "x", model: "core-9" })).toEqual([400, "invalid_request_error"]);
  expect(await error({})).toEqual([400, "invalid_request_error"]);
  expect(await error({ prompt: "x", n: 2 })).toEqual([400, "invalid_request_error"]);
});

test.each([
  ["a text", "hello ".repeat(100_000), { texts: 1, extraTokens: 0 }],
  ["tokens", Array.from({ length: 120_000 }, (_, token) => token), { texts: 1, extraTokens: 120_000 }],
])("a large body with %s goes to the node as where it is small", (_, prompt, counted) => {
  const catalog = embeddedCatalog();
  const json = { model, prompt, suffix: "end", stop: ["a"], logprobs: 2, stream: true };
  const body = new TextEncoder().encode(JSON.stringify(json));
  const order: PrepareOrder = {
    reading: { dialect: "completions", tokenizes: false, route: endpoint, id: "", search: "", headers: [] },
    wanted: "request",
    body,
    bodyBytes: body.length,
    models: [...catalog.models.values()],
    finds: false,
    earlier: null,
    found: null,
  };
  const dialects = new Dialects({ sealingKey: new Uint8Array(32), clock: systemClock, storesResponses: false });
  const prepared = structuredClone(prepare(order, dialects));
  const texts = structuredClone(prepare({ ...order, wanted: "texts" }, dialects));
  if (prepared.kind !== "request" || texts.kind !== "texts") throw new Error(`it was ${prepared.kind}, ${texts.kind}`);
  expect([texts.rendering.texts.ends.length, texts.rendering.extraTokens]).toEqual([
    counted.texts,
    counted.extraTokens,
  ]);
  expect(JSON.stringify(prepared.ask).length).toBeLessThan(1_000);

  const known = catalog.models.get(model)!;
  const messages = Buffer.from(prepared.turns.messages);
  const large = completions.unpack(prepared.ask, {
    ...prepared.ask,
    model: known,
    turns: [],
    prepared: preparedOf({ messages }),
  }).ask;
  const small = completions.read({ head: headOf(completions), body: json, bodyBytes: 1, catalog });
  if (!isPlain(large) || !("ask" in small) || !isPlain(small.ask)) throw new Error("it is no plain completion");
  const sent = (ask: typeof large) =>
    [plainRequest(ask, 1, "m", "ollama").body, countedPrompt(ask, "m", "vllm")].map(textOf);
  expect(sent(large)).toEqual(sent(small.ask));
});

const textOf = (body: string | readonly Buffer[]): string =>
  typeof body === "string" ? body : Buffer.concat([...body]).toString();
