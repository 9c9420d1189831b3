// A fourth dialect is one folder and one line in a registry: the toy is given to the real server beside the three others,
// and is served, refused, billed, counted and listed like them.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mkdtempSync, rmSync } from "node:fs";
import { prepare, type PrepareOrder } from "../../src/bodies/prepare.ts";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { floodRequestsMax } from "../../src/core/limits.ts";
import { noUsage } from "../../src/core/types.ts";
import { Dialects, everyDialect } from "../../src/dialects/registry.ts";
import { usageInFile } from "../../src/store/usage/usage-file.ts";
import { FaultGateway } from "../faults/gateway.ts";
import { wholeReply } from "../fixtures/reading.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { text } from "../golden/pieces.ts";
import { toy } from "./toy/toy.ts";

const registry = [...everyDialect, () => toy];
const context = { sealingKey: new Uint8Array(32), clock: systemClock, storesResponses: false };
setDefaultTimeout(60_000);

describe("every dialect", () => {
  const dialects = new Dialects(context, registry).all;

  test("has a name, an endpoint and routes of its own", () => {
    const own = dialects.flatMap(({ name, endpoint, routes }) => [
      name,
      ...new Set([endpoint, ...routes.map(({ path }) => path)]),
    ]);
    expect(new Set(own).size).toBe(own.length);
  });

  test.each(dialects.map((dialect) => [dialect.name, dialect] as const))("%s keeps to the rules", (_, dialect) => {
    const { endpoint, routes, replyIdPrefix, keyHeaders, clientHeaders } = dialect;
    for (const { path } of routes) {
      // Its endpoint, below it, or the same word below another: /v1/fim/completions.
      const isOwn = path === endpoint || path.startsWith(`${endpoint}/`) || path.endsWith(endpoint.replace("/v1", ""));
      expect([path, isOwn]).toEqual([path, true]);
      expect(path.split("*").length).toBeLessThanOrEqual(2);
    }
    expect(routes.some(({ counted }) => counted === undefined)).toBe(true);
    expect(replyIdPrefix).toMatch(/^[a-z]+[_-]$/); // by which a reply's id is found on the usage page
    for (const name of [...keyHeaders, ...clientHeaders]) expect(name).toBe(name.toLowerCase());
  });
});

describe("the toy, served", () => {
  let node: ScriptedNode;
  let gateway: FaultGateway;
  let usage: ReturnType<typeof usageInFile>;
  const folder = mkdtempSync(join(tmpdir(), "tollgate-toy-"));
  beforeAll(async () => {
    node = await ScriptedNode.start();
    gateway = await FaultGateway.start([node.url], undefined, { dialects: registry });
    usage = usageInFile(folder, gateway.accounting.databaseFile, () => {});
  });
  afterAll(async () => {
    await usage.close();
    await gateway[Symbol.asyncDispose]();
    await node[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const send = (key: string, path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${gateway.url}${path}`, {
      method: "POST",
      headers: { "x-toy-key": key, ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  const eventsOf = (stream: string): unknown[] =>
    stream
      .split("\n\n")
      .filter((event) => event !== "")
      .map((event) => JSON.parse(event.slice("data: ".length)));

  test("an answer is whole, billed by its tokens, and listed with its endpoint", async () => {
    const { key, email } = await gateway.caller();
    const reply = await send(key, "/v2/toys/core-3:say?loud=yes", { words: "hello", budget: 50 });
    const id = reply.headers.get("x-request-id")!;
    expect([reply.status, reply.headers.get("content-type")]).toEqual([200, "application/json; charset=utf-8"]);
    const body = (await reply.json()) as { tokens: number };
    expect(body).toEqual({
      id: `toy-${id.slice("req_".length)}`,
      said: expect.stringMatching(/\w/),
      loud: true,
      tokens: expect.any(Number),
    } as never);
    const [row] = await gateway.usage({ email, key });
    expect(row).toMatchObject({ request_id: id, endpoint: "/v2/toys", model: "core-3" });
    expect(row!.billed_tokens).toBeGreaterThan(0);
    expect(row!.input + row!.output).toBe(body.tokens);
    await gateway.expectQuiet();
  });

  test("a stream says the same in events", async () => {
    const { key } = await gateway.caller();
    const whole = (await (await send(key, "/v2/toys/core-3:say", { words: "hello" })).json()) as { said: string };
    const reply = await send(key, "/v2/toys/core-3:stream", { words: "hello" });
    expect(reply.headers.get("content-type")).toStartWith("text/event-stream");
    const events = eventsOf(await reply.text()) as { said?: string; tokens?: number }[];
    expect(events.map(({ said = "" }) => said).join("")).toBe(whole.said);
    expect(events.at(-1)).toMatchObject({ id: expect.stringMatching(/^toy-/), tokens: expect.any(Number) });
    expect(events.slice(0, -1).every(({ tokens }) => tokens === undefined)).toBe(true);
  });

  test("headers and body reach the model; Claude Code's billing line does not", async () => {
    const { key } = await gateway.caller();
    const marker = node.marker("text");
    const words = `[[${marker}]] hello`;
    const rules = "x-anthropic-billing-header: cch=1a2b;\nBe brief.";
    await (await send(key, "/v2/toys/core-3:say", { words, rules }, { "x-toy-language": "French" })).text();
    expect((await node.request(marker)).body).toMatchObject({
      messages: [
        { role: "system", content: "Be brief.\nSpeak French." },
        { role: "user", content: words },
      ],
    });
  });

  test("an encoded model name and every base address that clients make up reach the same route", async () => {
    const { key } = await gateway.caller();
    for (const path of [
      "/v2/toys/core%2D3%3Asay",
      "/toys/core-3:say",
      "/openai/v2/toys/core-3:say",
      "//v2/toys/core-3:say",
      "/v2/toys/core-3:say/",
    ]) {
      const reply = await send(key, path, { words: "hello" });
      expect([path, reply.status]).toEqual([path, 200]);
      await reply.text();
    }
  });

  test("its key header holds on every route, and the others' on its own; two different keys are none", async () => {
    const { key } = await gateway.caller();
    const chat = { model: "core-3", messages: [{ role: "user", content: "hello" }] };
    expect((await send(key, "/v1/chat/completions", chat)).status).toBe(200);
    const named = (headers: Record<string, string>) =>
      fetch(`${gateway.url}/v2/toys/core-3:say`, { method: "POST", headers, body: '{"words":"hello"}' });
    expect((await named({ authorization: `Bearer ${key}` })).status).toBe(200);
    expect((await named({ "x-api-key": key })).status).toBe(200);
    expect((await named({ "x-api-key": key, "x-toy-key": key })).status).toBe(200);
    expect((await named({ "x-api-key": key, "x-toy-key": "another" })).status).toBe(401);
    expect((await named({})).status).toBe(401);
  });

  test("refusals have its form: a wrong key, model, field, body, or address below its own", async () => {
    const { key } = await gateway.caller();
    const refused = async (path: string, body: unknown, of = key) => {
      const reply = await send(of, path, body);
      const { oops, why, of: id } = (await reply.json()) as { oops: string; why: string; of: string };
      expect(id).toBe(reply.headers.get("x-request-id")!);
      return [reply.status, why, oops];
    };
    expect((await refused("/v2/toys/core-3:say", { words: "x" }, "wrong")).slice(0, 2)).toEqual([
      401,
      "invalid_api_key",
    ]);
    expect(await refused("/v2/toys/core-9:say", { words: "x" })).toEqual([
      400,
      "unknown_model",
      "The model `core-9` does not exist. GET /v1/models lists the models.",
    ]);
    expect(await refused("/v2/toys/core-3:say", { words: 7 })).toEqual([
      400,
      "malformed",
      "words must be a string, is 7",
    ]);
    expect((await refused("/v2/toys/core-3:say", "{")).slice(0, 2)).toEqual([400, "unreadable"]);
    expect((await refused("/v2/toys/core-3:sing", { words: "x" })).slice(0, 2)).toEqual([404, "not_found"]);
    // At an address that says no dialect, by what the client says of itself.
    expect((await refused("/v1/nothing", {})).slice(0, 2)).toEqual([404, "not_found"]);
    expect(gateway.accounting.ledger.totals().holds).toBe(0);
  });

  test("a flood of its requests is refused in its form, and told when to come again", async () => {
    const { key } = await gateway.caller();
    for (let sent = 0; sent < floodRequestsMax; sent++) {
      const reply = await send(key, "/v2/toys/core-3:say", { words: 7 });
      expect(reply.status).toBe(400);
    }
    const flooded = await send(key, "/v2/toys/core-3:say", { words: "hello" });
    expect([flooded.status, await flooded.json()]).toEqual([
      429,
      expect.objectContaining({ why: "too_many_requests" }),
    ]);
    expect(Number(flooded.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test("a coder model is billed in calls where the dialect says so", async () => {
    const { key, email } = await gateway.caller(0);
    for (let call = 0; call < 3; call++) {
      expect((await send(key, "/v2/toys/core-coder-1:say", { words: "hello" })).status).toBe(200);
    }
    expect(
      (await gateway.usage({ key, email })).map(({ endpoint, billed_tokens }) => [endpoint, billed_tokens]),
    ).toEqual([
      ["/v2/toys", 0],
      ["/v2/toys", 0],
      ["/v2/toys", 0],
    ]);
    const refused = await send(key, "/v2/toys/core-coder-1:say", { words: "hello" });
    expect([refused.status, await refused.json()]).toEqual([
      429,
      expect.objectContaining({ why: "coder_quota_reached" }),
    ]);
  });

  test("its input is counted for nothing", async () => {
    const { key, email } = await gateway.caller();
    const reply = await send(key, "/v2/toys/core-3:count", { words: "one two three" });
    expect(await reply.json()).toEqual({ counted: expect.any(Number) });
    expect(await gateway.usage({ key, email })).toEqual([]);
  });

  test("the usage page finds its replies by endpoint and by their ids", async () => {
    const { key, email } = await gateway.caller();
    const reply = await send(key, "/v2/toys/core-3:say", { words: "hello" });
    const { id } = (await reply.json()) as { id: string };
    await (
      await send(key, "/v1/messages", { model: "core-3", max_tokens: 9, messages: [{ role: "user", content: "x" }] })
    ).text();
    const account = gateway.accounting.keys.principal(key)?.account ?? null!;
    const everything = { model: null, endpoint: null, key: null, from: null, to: null, text: "" };
    const found = async (filter: object) =>
      (await usage.page(account, { ...everything, ...filter }, null, 10)).rows.map(({ endpoint }) => endpoint);
    expect((await found({})).sort()).toEqual(["/v1/messages", "/v2/toys"]);
    expect(await found({ endpoint: "/v2/toys" })).toEqual(["/v2/toys"]);
    expect(await found({ text: id })).toEqual(["/v2/toys"]);
    expect((await usage.summary(account, 0)).endpoints).toEqual(["/v1/messages", "/v2/toys"]);
    expect(await gateway.usage({ key, email })).toHaveLength(2);
  });

  test("its clients read the models' capabilities in its words", async () => {
    const { key } = await gateway.caller();
    const list = await fetch(`${gateway.url}/v1/models/core-3`, {
      headers: { "x-toy-key": key, "x-toy-language": "French" },
    });
    expect(await list.json()).toMatchObject({ id: "core-3", capabilities: { pictures: expect.any(Boolean) } });
  });
});

test("the toy's large bodies are read by a Worker and written here", () => {
  const catalog = embeddedCatalog();
  const body = new TextEncoder().encode(JSON.stringify({ words: "hello".repeat(100_000), budget: 50 }));
  const order: PrepareOrder = structuredClone({
    reading: {
      dialect: "toy",
      tokenizes: false,
      route: "/v2/toys/*:say",
      id: "core-3",
      search: "?loud=yes",
      headers: [["x-toy-language", "French"] as [string, string]],
    },
    wanted: "request",
    body,
    bodyBytes: body.length,
    models: [...catalog.models.values()],
    finds: false,
    earlier: null,
    found: null,
  });
  const prepared = structuredClone(prepare(order, new Dialects(context, registry)));
  if (prepared.kind !== "request") throw new Error(`it was ${prepared.kind}`);
  expect(new TextDecoder().decode(prepared.turns.messages)).toStartWith('{"role":"system","content":"Speak French."},');
  const { writer } = toy.unpack(prepared.ask, { ...prepared.ask, model: catalog.models.get("core-3")!, turns: [] });
  const encoder = writer.encoder({ requestId: "req_1", createdSeconds: 0 }, "whole");
  const end = { reason: "stop", stopSequence: null, usage: { ...noUsage, output: 2 } } as const;
  expect(wholeReply(encoder, text("Sa", "lut"), end)).toBe('{"id":"toy-1","said":"Salut","loud":true,"tokens":2}');
});
