// The nodes as one: slots, health by what requests meet, models, and another configuration under way.
import { afterEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import type { NodeConfig } from "../../src/config.ts";
import { NodePool } from "../../src/nodes/pool.ts";
import { isRefusal } from "../../src/refusals.ts";
import type { Ask, Refusal, Slot } from "../../src/types.ts";
import { askOf, firstPartyModel, hostedModel } from "../fixtures/asks.ts";
import {
  chunk,
  doneEvent,
  finishEvent,
  lastChunk,
  RawNode,
  streamHead,
  textEvent,
  usageEvent,
  wholeReply,
} from "../fixtures/raw-node.ts";
import type { RawReply, RawRequest } from "../fixtures/raw-node.ts";

const open: { stop(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});

const answer = streamHead + chunk(textEvent("a") + finishEvent() + usageEvent(10, 1) + doneEvent) + lastChunk;
const never = new AbortController().signal;

function nodeOf(
  reply: (request: RawRequest, reply: RawReply) => void = (_, connection) => connection.write(answer),
): RawNode {
  const node = new RawNode(reply);
  open.push(node);
  return node;
}

function config(node: { url: string }, changes: Partial<NodeConfig> = {}): NodeConfig {
  return { name: "a", url: node.url, apiKey: null, slots: 1, models: { "*": "m" }, ...changes };
}

function poolOf(
  nodes: readonly NodeConfig[],
  options: { queueMaxWaitMs?: number; detectEngines?: boolean; log?: string[] } = {},
): NodePool {
  const pool = new NodePool(nodes, {
    clock: systemClock,
    queueMaxWaitMs: options.queueMaxWaitMs ?? 60_000,
    log: ({ node, message }) => options.log?.push(`${node} ${message}`),
    limits: { coolOffMs: 30, probeIntervalMs: 40, probeTimeoutMs: 1_000 },
    detectEngines: options.detectEngines ?? false,
  });
  open.push({ stop: () => void pool.close() });
  return pool;
}

function granted(entered: Slot | Refusal): Slot {
  if (isRefusal(entered)) throw new Error(`refused: ${entered.refusal}`);
  return entered;
}
const generate = (slot: Slot, ask: Ask = askOf()) => slot.generate(ask, 1, never, { piece() {}, flush: () => null });

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(2);
}

describe("slots", () => {
  test("are given at once, then in line, and given back by dispose, once", async () => {
    const pool = poolOf([config(nodeOf())]);
    const first = pool.enter(askOf(), 1, never);
    expect(first).not.toBeInstanceOf(Promise);
    const second = pool.enter(askOf(), 1, never);
    expect(second).toBeInstanceOf(Promise);
    expect([pool.waiting, pool.states()[0]!.busy]).toEqual([1, 1]);
    const slot = granted((await first) as Slot);
    slot[Symbol.dispose]();
    const next = granted(await second);
    expect(next.nodeName).toBe("a");
    next[Symbol.dispose]();
    expect(() => next[Symbol.dispose]()).toThrow("once");
    expect([pool.waiting, pool.states()[0]!.busy]).toEqual([0, 0]);
  });
  test("a client that leaves the line is forgotten", async () => {
    const pool = poolOf([config(nodeOf())]);
    using _held = granted(await pool.enter(askOf(), 1, never));
    const client = new AbortController();
    const waiting = pool.enter(askOf(), 1, client.signal);
    client.abort();
    expect(await waiting).toMatchObject({ refusal: "busy" });
    expect(pool.waiting).toBe(0);
    expect(await pool.enter(askOf(), 1, AbortSignal.abort())).toMatchObject({ refusal: "busy" });
  });
  test("waiting ends as busy after the longest wait", async () => {
    const pool = poolOf([config(nodeOf())], { queueMaxWaitMs: 30 });
    using _held = granted(await pool.enter(askOf(), 1, never));
    expect(await pool.enter(askOf(), 1, never)).toMatchObject({ refusal: "busy", detail: { seconds: 5 } });
  });
  test("several generations run on one slot, one after another", async () => {
    const node = nodeOf();
    const pool = poolOf([config(node)]);
    using slot = granted(await pool.enter(askOf(), 1, never));
    for (let round = 0; round < 3; round++) expect(await generate(slot)).toMatchObject({ kind: "end" });
    expect(node.requests.length).toBe(3);
  });
});

describe("models", () => {
  test("a named model goes to the nodes that name it, * to those that take any other", async () => {
    const [one, two] = [nodeOf(), nodeOf()];
    const pool = poolOf([
      config(one, { name: "one", models: { "core-3": "big", "*": "small" } }),
      config(two, { name: "two", models: { "*": "any" }, slots: 9 }),
    ]);
    expect(pool.serves("core-3") && pool.serves("anything")).toBe(true);
    const ask = askOf({ model: firstPartyModel });
    using slot = granted(await pool.enter(ask, 1, never));
    expect(slot.nodeName).toBe("one");
    await generate(slot, ask);
    expect(JSON.parse(one.requests[0]!.body)).toMatchObject({ model: "big" });
    expect(await pool.enter(ask, 1, never, new Set(["one"]))).toMatchObject({ refusal: "busy" });
  });
  test("no node for the model", async () => {
    const pool = poolOf([config(nodeOf(), { models: { "core-3": "m" } })]);
    expect(pool.serves(hostedModel.id)).toBe(false);
    expect(await pool.enter(askOf(), 1, never)).toMatchObject({ refusal: "busy" });
  });
});

describe("health", () => {
  test("a node that refuses is down, those in line are told, and it is taken back when it answers", async () => {
    const node = new RawNode((_, reply) => reply.write(answer));
    const { port, url } = node;
    const log: string[] = [];
    const pool = poolOf([config({ url })], { log });
    using slot = granted(await pool.enter(askOf(), 1, never));
    const waiting = pool.enter(askOf(), 2, never);
    node.stop();
    expect(await generate(slot)).toMatchObject({ kind: "failed", refusal: { refusal: "busy" }, elsewhere: true });
    expect(await waiting).toMatchObject({ refusal: "busy" });
    expect(await pool.enter(askOf(), 1, never)).toMatchObject({ refusal: "busy" });
    const back = Bun.listen({
      hostname: "127.0.0.1",
      port,
      socket: { data: (socket) => void socket.write(wholeReply("404 x", "")) },
    });
    open.push({ stop: () => back.stop(true) });
    await until(() => pool.states()[0]!.health === "well");
    expect(log).toEqual(["a generation failed: ECONNREFUSED", "a is down", "a is well"]);
  });
  test("another node is asked", async () => {
    const dead = new RawNode(() => {});
    dead.stop();
    const pool = poolOf([config(dead, { name: "dead" }), config(nodeOf(), { name: "alive" })]);
    const excluded = new Set<string>();
    let ending;
    do {
      using slot = granted(await pool.enter(askOf(), 1, never, excluded));
      ending = await generate(slot);
      excluded.add(slot.nodeName);
    } while (ending.kind === "failed" && ending.elsewhere);
    expect(ending.kind).toBe("end");
  });
  test("a node that says 503 cools off; those in line wait and are served", async () => {
    let overloaded = true;
    const node = nodeOf((_, reply) => reply.write(overloaded ? wholeReply("503 x", "") : answer));
    const pool = poolOf([config(node)]);
    const slot = granted(await pool.enter(askOf(), 1, never));
    expect(await generate(slot)).toMatchObject({ kind: "failed", refusal: { refusal: "busy" } });
    expect(pool.states()).toMatchObject([{ health: "cooling" }]);
    overloaded = false;
    slot[Symbol.dispose]();
    using next = granted(await pool.enter(askOf(), 1, never));
    expect(await generate(next)).toMatchObject({ kind: "end" });
  });
  test("a healthy idle node is left in peace", async () => {
    const node = nodeOf();
    poolOf([config(node)]);
    await Bun.sleep(100);
    expect(node.connections).toBe(0);
  });
});

describe("engines", () => {
  test("are asked for once, and the request is made for them", async () => {
    const list = JSON.stringify({
      object: "list",
      data: [{ id: "m", object: "model", owned_by: "vllm", max_model_len: 4_096 }],
    });
    const node = nodeOf(({ method }, reply) => reply.write(method === "GET" ? wholeReply("200 OK", list) : answer));
    const pool = poolOf([config(node, { apiKey: "secret" })], { detectEngines: true });
    await until(() => pool.states()[0]!.engine.kind === "vllm");
    using slot = granted(await pool.enter(askOf(), 1, never));
    await generate(slot);
    expect(JSON.parse(node.requests.at(-1)!.body)).toHaveProperty("cache_salt");
    expect(node.requests.map(({ method }) => method)).toEqual(["GET", "POST"]);
    for (const { head } of node.requests) expect(head).toContain("authorization: Bearer secret");
  });
});

describe("another configuration", () => {
  test("keeps what runs, moves those in line, and forgets a node that went", async () => {
    const finish = Promise.withResolvers<void>();
    const old = nodeOf(async (_, reply) => {
      reply.write(streamHead + chunk(textEvent("a")));
      await finish.promise;
      reply.write(chunk(finishEvent() + usageEvent(1, 1) + doneEvent) + lastChunk);
    });
    const pool = poolOf([config(old, { name: "old" })]);
    const slot = granted(await pool.enter(askOf(), 1, never));
    const running = generate(slot);
    const waiting = pool.enter(askOf(), 1, never);
    pool.reconfigure([config(nodeOf(), { name: "new" })]);
    using moved = granted(await waiting);
    expect(moved.nodeName).toBe("new");
    expect(pool.states().map(({ name }) => name)).toEqual(["new"]);
    finish.resolve();
    expect(await running).toMatchObject({ kind: "end" });
    expect(await generate(slot)).toMatchObject({ kind: "end" });
    slot[Symbol.dispose]();
  });
  test("has a node down whose program does not answer yet, and knows who runs on where it was", async () => {
    const node = nodeOf();
    const pool = poolOf([config(node)]);
    const before = granted(await pool.enter(askOf(), 1, never));
    const waiting = pool.enter(askOf(), 1, never);
    const arrival = Promise.withResolvers<void>();
    pool.reconfigure([config(node, { slots: 2 })], undefined, new Map([["a", arrival.promise]]));
    expect(await waiting).toMatchObject({ refusal: "busy" });
    expect(await pool.enter(askOf(), 1, never)).toMatchObject({ refusal: "busy" });
    expect(pool.states()).toMatchObject([{ name: "a", health: "down", busy: 1 }]);
    expect(await generate(before)).toMatchObject({ kind: "end" });
    expect(pool.busyAt(node.url)).toBe(1);
    before[Symbol.dispose]();
    expect(pool.busyAt(node.url)).toBe(0);
    arrival.resolve();
    await until(() => pool.states()[0]!.health === "well");
    granted(await pool.enter(askOf(), 1, never))[Symbol.dispose]();
  });
  test("close refuses those who wait and everybody after", async () => {
    const pool = poolOf([config(nodeOf())]);
    const slot = granted(await pool.enter(askOf(), 1, never));
    const waiting = pool.enter(askOf(), 1, never);
    await pool.close();
    expect(await waiting).toMatchObject({ refusal: "busy" });
    expect(await pool.enter(askOf(), 1, never)).toMatchObject({ refusal: "busy" });
    slot[Symbol.dispose]();
  });
});
