// The pool of nodes: slots, health as requests find it, models, and changes of the configuration while it runs.
import { afterEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/core/clock.ts";
import type { NodeConfig } from "../../../src/config/config.ts";
import type { EngineFieldName } from "../../../src/core/engine-fields.ts";
import { nodeSlotsDefault } from "../../../src/core/limits.ts";
import { autoSlotsStart } from "../../../src/nodes/queue/auto-slots.ts";
import { problemOf } from "../../../src/nodes/health/look.ts";
import { nodeLooksAtOnceMax, NodePool, type PoolOptions } from "../../../src/nodes/queue/pool.ts";
import { isRefusal } from "../../../src/core/refusals.ts";
import { usualStanding } from "../../../src/core/standing.ts";
import type { Ask, Refusal, Slot } from "../../../src/core/types.ts";
import { askOf, firstPartyModel, hostedModel } from "../../fixtures/asks.ts";
import {
  chunk,
  doneEvent,
  finishEvent,
  lastChunk,
  RawNode,
  streamHead,
  textEvent,
  turns,
  usageEvent,
  wholeReply,
} from "../../fixtures/raw-node.ts";
import type { RawReply, RawRequest } from "../../fixtures/raw-node.ts";
import { type RecordedEngine, recordedNode } from "../../fixtures/recorded-node.ts";

const open: { stop(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});

const answer = streamHead + chunk(textEvent("a") + finishEvent() + usageEvent(10, 1) + doneEvent) + lastChunk;
const never = new AbortController().signal;

function nodeOf(
  reply: (request: RawRequest, reply: RawReply) => void | Promise<void> = (_, connection) => connection.write(answer),
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
  options: Partial<Omit<PoolOptions, "log">> & { log?: string[] } = {},
): NodePool {
  const pool = new NodePool(nodes, {
    clock: systemClock,
    queueMaxWaitMs: options.queueMaxWaitMs ?? 60_000,
    log: ({ node, message }) => options.log?.push(`${node} ${message}`),
    limits: { coolOffMs: 30, probeIntervalMs: 40, idleLookIntervalMs: 40, probeTimeoutMs: 60_000, ...options.limits },
    looks: options.looks ?? false,
    ...(options.onFirstLook === undefined ? {} : { onFirstLook: options.onFirstLook }),
  });
  open.push({ stop: () => void pool.close() });
  return pool;
}

function granted(entered: Slot | Refusal): Slot {
  if (isRefusal(entered)) throw new Error(`refused: ${entered.refusal}`);
  return entered;
}
const generate = (slot: Slot, ask: Ask = askOf()) => slot.run(ask, 1, never, { piece() {}, flush: () => null });

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(2);
}

describe("fields that only some engines know", () => {
  const own = { ...hostedModel, id: "m", tier: "own" } as const;
  const asking = (name: EngineFieldName): Ask => askOf({ model: own, engineFields: [{ name, at: name, value: true }] });
  const listing = (owner: string, posts: string[]): RawNode =>
    nodeOf(({ method, path }, reply) => {
      const list = `{"object":"list","data":[{"id":"m","object":"model","owned_by":"${owner}"}]}`;
      if (method === "GET")
        reply.write(path === "/v1/models" ? wholeReply("200 OK", list) : wholeReply("404 Not Found", ""));
      else {
        posts.push(owner);
        reply.write(answer);
      }
    });

  test("go to nodes that know them, and are refused by name where none does", async () => {
    const posts: string[] = [];
    const looked = new Set<string>();
    const owners = ["me", "llamacpp", "vllm"];
    const pool = poolOf(
      owners.map((owner) => config(listing(owner, posts), { name: owner, slots: 4 })),
      { looks: true, onFirstLook: ({ name }) => void looked.add(name) },
    );
    await until(() => looked.size === owners.length);
    for (const [name, owner] of [
      ["min_tokens", "vllm"],
      ["typical_p", "llamacpp"],
    ] as const) {
      for (let time = 0; time < 3; time++) {
        using slot = granted(await pool.enter(asking(name), 1, never));
        expect((await generate(slot, asking(name))).kind).toBe("end");
        expect(posts.splice(0)).toEqual([owner]);
      }
    }
    expect(await pool.enter(asking("prompt_logprobs"), 1, never)).toMatchObject({
      refusal: "malformed",
      detail: { reason: expect.stringContaining("prompt_logprobs: no engine") },
    });
    expect(posts).toEqual([]);
  });

  test("a node that nobody has looked at is looked at for the request", async () => {
    const posts: string[] = [];
    const pool = poolOf([config(listing("llamacpp", posts))]);
    using slot = granted(await pool.enter(asking("min_tokens"), 1, never));
    expect(await generate(slot, asking("min_tokens"))).toMatchObject({
      kind: "failed",
      refusal: { refusal: "malformed" },
    });
    expect(posts).toEqual([]);
  });
});

describe("slots", () => {
  test("of llama-cpp-python, which ends what it does for any other request, are one, and it is not looked at meanwhile", async () => {
    const list = '{"object":"list","data":[{"id":"m","object":"model","owned_by":"me","permissions":[]}]}';
    const held: RawReply[] = [];
    const node = nodeOf(({ method, path }, reply) => {
      if (method === "POST") held.push(reply);
      else reply.write(path === "/v1/models" ? wholeReply("200 OK", list) : wholeReply("404 Not Found", ""));
    });
    const found = Promise.withResolvers<void>();
    const pool = poolOf([config(node, { slots: 8 })], {
      looks: true,
      onFirstLook: () => found.resolve(),
      limits: { factsIntervalMs: 20 },
    });
    await found.promise;
    const looks = () => node.requests.filter(({ path }) => path === "/v1/models").length;
    expect(pool.states()[0]).toMatchObject({ slots: 1, engine: { kind: "llama-cpp-python" } });
    await until(() => looks() > 2);
    const ends = [1, 2].map(async () => {
      using slot = granted(await pool.enter(askOf(), 1, never));
      return await generate(slot);
    });
    await until(() => held.length === 1);
    await Bun.sleep(30); // a look that was under way has come
    const before = looks();
    await Bun.sleep(150);
    expect([held.length, looks()]).toEqual([1, before]);
    held[0]!.write(answer);
    await until(() => held.length === 2);
    held[1]!.write(answer);
    expect(await Promise.all(ends)).toMatchObject([{ kind: "end" }, { kind: "end" }]);
    await until(() => looks() > before);
  });
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
    expect(await pool.enter(ask, 1, never, new Set(["one"]))).toMatchObject({ refusal: "busy_unreachable" });
  });
  test("no node for the model", async () => {
    const pool = poolOf([config(nodeOf(), { models: { "core-3": "m" } })]);
    expect(pool.serves(hostedModel.id)).toBe(false);
    expect(await pool.enter(askOf(), 1, never)).toMatchObject({ refusal: "busy_unlisted" });
  });
});

describe("health", () => {
  test("a node that refuses is down, those in line are told, and it is taken back when it answers", async () => {
    const node = new RawNode((_, reply) => reply.write(answer));
    const { port, url } = node;
    const log: string[] = [];
    const pool = poolOf([config({ url })], { log });
    const slot = granted(await pool.enter(askOf(), 1, never));
    const waiting = pool.enter(askOf(), 2, never);
    node.stop();
    expect(await generate(slot)).toMatchObject({
      kind: "failed",
      refusal: { refusal: "busy_unreachable" },
      elsewhere: true,
    });
    expect(await waiting).toMatchObject({ refusal: "busy_unreachable" });
    slot[Symbol.dispose]();
    const back = Bun.listen({
      hostname: "127.0.0.1",
      port,
      socket: { data: (socket) => void socket.write(wholeReply("404 x", "")) },
    });
    open.push({ stop: () => back.stop(true) });
    await until(() => pool.states()[0]!.health === "well");
    expect(log).toEqual([
      "a generation failed: ECONNREFUSED",
      "a is down: it cannot be reached: nothing listens at its address",
      "a is well: it answers, but with no list of models (status 404 at /models): is this an engine's address?",
    ]);
  });
  test("a node that is down is not well because an answer of before breaks off", async () => {
    const running = Promise.withResolvers<void>();
    const sockets: { terminate(): void }[] = [];
    const node = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data(socket) {
          sockets.push(socket);
          socket.write(streamHead + chunk(textEvent("a")));
        },
      },
    });
    const log: string[] = [];
    const pool = poolOf([config({ url: `http://127.0.0.1:${node.port}/v1` }, { slots: 2 })], {
      log,
      limits: { probeIntervalMs: 60_000 },
    });
    using slot = granted(await pool.enter(askOf(), 1, never));
    const sink = { piece: () => running.resolve(), flush: () => null };
    const ending = slot.run(askOf(), 1, never, sink);
    await running.promise;
    node.stop(false); // what runs goes on, nothing new is taken
    using next = granted(await pool.enter(askOf(), 1, never));
    expect(await generate(next)).toMatchObject({ refusal: { refusal: "busy_unreachable" } });
    sockets[0]!.terminate();
    expect(await ending).toMatchObject({ kind: "failed", refusal: { refusal: "node_failed" } });
    expect(pool.states()).toMatchObject([{ health: "down" }]);
    expect(log.filter((line) => line.includes("well"))).toEqual([]);
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
  test("one that fails every request at once meets one of them, not all that begin alike", async () => {
    const broken = nodeOf((_, reply) => reply.write(wholeReply("500 Internal Server Error", "{}")));
    const pool = poolOf([config(broken, { slots: 8 }), config(nodeOf(), { name: "b", slots: 8 })]);
    let failed = 0;
    for (let request = 0; request < 40; request++) {
      // Prompts that begin differently belong to different nodes; each comes twice, as from a client that asks again.
      const ask = askOf({ turns: [{ role: "user", content: `${request >> 1}` }] });
      using slot = granted(await pool.enter(ask, 1, never));
      if ((await generate(slot, ask)).kind === "failed") failed++;
    }
    expect([failed, broken.requests.length]).toEqual([1, 1]);
    expect(pool.states()[0]).toMatchObject({
      health: "well",
      lastError: { message: "a request failed there: status 500: {}" },
    });
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
});

describe("looks", () => {
  const listOf = (...ids: string[]): string =>
    wholeReply(
      "200 OK",
      JSON.stringify({
        object: "list",
        data: ids.map((id) => ({ id, object: "model", owned_by: "vllm", max_model_len: 4_096 })),
      }),
    );
  const lists = ({ method }: RawRequest, reply: RawReply) => reply.write(method === "GET" ? listOf("m") : answer);
  const state = (pool: NodePool) => pool.states()[0]!;

  test("a node that nobody asks is looked at, at the start and while it is idle, and told once", async () => {
    const node = nodeOf(lists);
    const log: string[] = [];
    const first: string[] = [];
    const pool = poolOf([config(node)], {
      looks: true,
      log,
      onFirstLook: ({ name, health }) => first.push(name + health),
    });
    await until(() => node.requests.length >= 3);
    expect(first).toEqual(["awell"]);
    expect(log).toEqual([]);
    expect(state(pool)).toMatchObject({ health: "well", problem: null, lastError: null, url: node.url });
  });
  test("one that dies while it is idle is down, and well again without a request, with what it has then", async () => {
    const node = new RawNode(lists);
    const { port, url } = node;
    const log: string[] = [];
    const pool = poolOf([config({ url })], { looks: true, log });
    await until(() => state(pool).engine.kind === "vllm");
    node.stop();
    await until(() => state(pool).health === "down");
    const { problem, lastError, since } = state(pool);
    expect(problem).toBe("it cannot be reached: nothing listens at its address");
    expect(lastError).toMatchObject({ message: problem! });
    expect(since).toBeGreaterThan(Date.now() - 60_000);
    expect([pool.serves("x"), pool.takes("x")]).toEqual([true, false]);
    const back = Bun.listen({
      hostname: "127.0.0.1",
      port,
      socket: { data: (socket) => void socket.write(listOf("m", "n")) },
    });
    open.push({ stop: () => back.stop(true) });
    await until(() => state(pool).health === "well");
    expect(state(pool)).toMatchObject({ problem: null, engine: { models: [{ name: "m" }, { name: "n" }] } });
    expect(log).toEqual([`a is down: ${problem}`, "a answers: vllm, 2 models, context of 4096 tokens", "a is well"]);
    expect(pool.takes("x")).toBe(true);
  });
  test("one that runs requests is looked at where none of them ended for a while, too", async () => {
    const finish = Promise.withResolvers<void>();
    const node = nodeOf(async ({ method }, reply) => {
      if (method === "GET") return reply.write(listOf("m"));
      await finish.promise;
      return reply.write(answer);
    });
    const pool = poolOf([config(node)], { looks: true });
    await until(() => state(pool).engine.kind === "vllm");
    using slot = granted(await pool.enter(askOf(), 1, never));
    const ending = generate(slot);
    const looks = () => node.requests.filter(({ method }) => method === "GET").length;
    await until(() => node.requests.some(({ method }) => method === "POST"));
    const before = looks();
    await until(() => looks() > before + 1);
    expect(state(pool)).toMatchObject({ health: "well", problem: null });
    finish.resolve();
    await ending;
  });
  test("one that has requests and answers nothing is passed over until it answers, and stays well", async () => {
    const held: RawReply[] = [];
    let hangs = false;
    const hanging = nodeOf(({ method }, reply) => {
      if (hangs) held.push(reply);
      else reply.write(method === "GET" ? listOf("m") : answer);
    });
    const log: string[] = [];
    const pool = poolOf([config(hanging, { slots: 8 }), config(nodeOf(lists), { name: "b", slots: 8 })], {
      looks: true,
      log,
      limits: { probeTimeoutMs: 250 },
    });
    await until(() => pool.states().every(({ engine }) => engine.kind === "vllm"));
    /** At once: alone each would go to the idle one. */
    const nodesOf = async (requests: number): Promise<Set<string>> => {
      using slots = new DisposableStack();
      const names = new Set<string>();
      for (let request = 0; request < requests; request++) {
        const ask = askOf({ turns: [{ role: "user", content: `${request}` }] });
        names.add(slots.use(granted(await pool.enter(ask, 1, never))).nodeName);
      }
      return names;
    };
    expect(await nodesOf(7)).toEqual(new Set(["a", "b"]));
    hangs = true;
    using slot = granted(await pool.enter(askOf(), 1, never, new Set(["b"])));
    const ending = generate(slot);
    await until(() => state(pool).problem !== null);
    expect(await nodesOf(7)).toEqual(new Set(["b"]));
    const silent = "it has requests and answers nothing beside them: it is busy, or hangs";
    expect(state(pool)).toMatchObject({ health: "well", problem: silent });
    await until(() => held.length > 6); // the request, and more looks than an idle one may leave unanswered
    expect(state(pool)).toMatchObject({ health: "well", problem: silent });
    expect(log).toEqual([`a ${silent}`]);
    hangs = false;
    await until(() => state(pool).problem === null); // a look
    expect(await nodesOf(7)).toEqual(new Set(["a", "b"])); // while the request goes on
    for (const reply of held) reply.write(answer); // looks have hung up
    expect(await ending).toMatchObject({ kind: "end" });
    expect(state(pool)).toMatchObject({ health: "well", problem: null });
    expect(await nodesOf(7)).toEqual(new Set(["a", "b"]));
  });
  test("one that became another between two looks is found out while it is busy, and when it is asked for", async () => {
    let listed = "m";
    const node = nodeOf(({ path }, reply) => {
      if (path === "/v1/models") reply.write(listOf(listed));
      else if (path === "/version") reply.write(wholeReply("404 x", ""));
    });
    const log: string[] = [];
    const limits = { idleLookIntervalMs: 40, factsIntervalMs: 100 };
    const pool = poolOf([config(node, { models: { "*": "*" } })], { looks: true, log, limits });
    await until(() => state(pool).engine.kind === "vllm");
    using slot = granted(await pool.enter(askOf(), 1, never));
    const leaving = new AbortController();
    const ending = slot.run(askOf(), 1, leaving.signal, { piece() {}, flush: () => null });
    listed = "n";
    await until(() => state(pool).engine.chatModels[0] === "n");
    expect(log).toEqual(["a answers: vllm, model n, context of 4096 tokens"]);
    listed = "o";
    await pool.lookNow();
    expect(state(pool).engine.chatModels).toEqual(["o"]);
    leaving.abort();
    await ending;
  });
  test("requests that come before its list wait for the first look, which says what to ask for", async () => {
    const list = Promise.withResolvers<void>();
    const node = nodeOf(async ({ method, path }, reply) => {
      if (method === "POST") return reply.write(answer);
      if (path !== "/v1/models") return reply.write(wholeReply("404 x", ""));
      await list.promise;
      return reply.write(listOf("listed"));
    });
    const pool = poolOf([config(node, { slots: 2, models: { "*": "*" } })], {
      looks: true,
      limits: { idleLookIntervalMs: 60_000 },
    });
    const slots = [granted(await pool.enter(askOf(), 1, never)), granted(await pool.enter(askOf(), 2, never))];
    const endings = slots.map((slot) => generate(slot));
    await until(() => node.requests.length > 0);
    list.resolve();
    expect((await Promise.all(endings)).map(({ kind }) => kind)).toEqual(["end", "end"]);
    for (const slot of slots) slot[Symbol.dispose]();
    const models = (path: string) =>
      node.requests.filter((each) => each.path === path).map(({ body }) => /"model":"(\w+)"/.exec(body)?.[1]);
    expect(models("/v1/chat/completions")).toEqual(["listed", "listed"]);
    expect(models("/v1/models")).toHaveLength(1);
  });
  test("one that says nothing of its models, or cannot be reached, is waited for no further", async () => {
    const node = nodeOf(({ method }, reply) => reply.write(method === "POST" ? answer : wholeReply("404 x", "")));
    const pool = poolOf([config(node, { models: { "*": "*" } })], { looks: true });
    const slot = granted(await pool.enter(askOf(), 1, never));
    expect(await generate(slot)).toMatchObject({ kind: "end" });
    slot[Symbol.dispose]();
    const gone = new RawNode(() => {});
    gone.stop();
    const without = poolOf([config(gone, { models: { "*": "*" } })], { looks: true });
    const other = granted(await without.enter(askOf(), 1, never));
    expect(await generate(other)).toMatchObject({ kind: "failed", refusal: { refusal: "busy_unreachable" } });
    other[Symbol.dispose]();
  });
  test("one that lists others than those that it is asked for is told, until it has answered", async () => {
    const node = nodeOf(lists);
    const pool = poolOf([config(node, { models: { "*": "qwen" } })], { looks: true });
    await until(() => state(pool).problem !== null);
    expect(state(pool)).toMatchObject({ health: "well", problem: "does not list qwen, but m" });
    const slot = granted(await pool.enter(askOf(), 1, never));
    await generate(slot);
    slot[Symbol.dispose]();
    const looks = node.requests.length;
    await until(() => node.requests.length > looks + 1);
    expect(state(pool).problem).toBeNull();
  });
  const wrong: [string, string | null, string, RegExp][] = [
    ["401 without a key", null, wholeReply("401 x", ""), /^it wants an API key \(status 401\)/],
    ["401 with one", "k", wholeReply("401 x", ""), /^it does not take the API key that it is given/],
    ["503", null, wholeReply("503 x", ""), /status 503\): it may be loading/],
    ["502", null, wholeReply("502 x", ""), /^a proxy answers, but no engine/],
    ["no HTTP", null, "220 mail.example.org ESMTP\r\n", /does not speak HTTP/],
  ];
  for (const [name, apiKey, reply, problem] of wrong)
    test(`${name} is down, but a request may show that it is not`, async () => {
      const node = nodeOf(({ method }, connection) => connection.write(method === "GET" ? reply : answer));
      const pool = poolOf([config(node, { apiKey })], { looks: true, limits: { probeIntervalMs: 60_000 } });
      await until(() => state(pool).health === "down");
      expect(state(pool).problem).toMatch(problem);
      using slot = granted(await pool.enter(askOf(), 1, never));
      expect(await generate(slot)).toMatchObject({ kind: "end" });
      expect(state(pool)).toMatchObject({ health: "well", problem: null });
    });
  test("one whose certificate is not trusted says what to do", async () => {
    const file = (name: string) => Bun.file(`${import.meta.dir}/../../fixtures/tls/${name}`);
    const server = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      tls: { key: file("localhost.key.pem"), cert: file("localhost.cert.pem") },
      socket: { data() {}, error() {} },
    });
    open.push({ stop: () => server.stop(true) });
    const pool = poolOf([config({ url: `https://localhost:${server.port}/v1` })], { looks: true });
    await until(() => state(pool).health === "down");
    expect(state(pool).problem).toMatch(
      /^it cannot be reached by https: no authority trusted here .* NODE_EXTRA_CA_CERTS \(TLS failed: /,
    );
  });
  test.each([
    ["ERR_TLS_CERT_ALTNAME_INVALID", "its certificate is for another name than its address has"],
    ["CERT_HAS_EXPIRED", "its certificate has expired"],
  ])("of %s it is said in words", (code, words) => {
    const cause = `TLS failed: ${code}`;
    const told = problemOf({ kind: "unreachable", cause });
    expect(told).toBe(`it cannot be reached by https: ${words} (${cause})`);
  });
  test("an address without /v1 is named as such", async () => {
    const node = nodeOf(({ path }, reply) =>
      reply.write(path === "/api/v1/models" ? listOf("m") : wholeReply("404 x", "")),
    );
    const pool = poolOf([config({ url: node.url.replace("/v1", "/api") })], { looks: true });
    await until(() => state(pool).health === "down");
    expect(state(pool).problem).toBe("its API is one step further down: add /v1 to its address");
  });
  test("one that lists nothing is taken to be well, with a problem, until a request was answered", async () => {
    const node = nodeOf(({ method }, reply) => reply.write(method === "GET" ? wholeReply("500 x", "") : answer));
    const pool = poolOf([config(node)], { looks: true, limits: { idleLookIntervalMs: 60_000 } });
    await until(() => state(pool).problem !== null);
    expect(state(pool)).toMatchObject({
      health: "well",
      problem: expect.stringContaining("no list of models (status 500"),
    });
    using slot = granted(await pool.enter(askOf(), 1, never));
    await generate(slot);
    expect(state(pool).problem).toBeNull();
  });
  test("one look without an answer is not enough, several are", async () => {
    let silent = false;
    const node = nodeOf(({ method }, reply) => {
      if (!silent || method !== "GET") reply.write(method === "GET" ? listOf("m") : answer);
    });
    const limits = { probeTimeoutMs: 500, probeIntervalMs: 60_000 };
    const pool = poolOf([config(node)], { looks: true, limits });
    await until(() => state(pool).engine.kind === "vllm");
    const looks = node.requests.length;
    silent = true;
    await until(() => state(pool).health === "down");
    expect(node.requests.length - looks).toBeGreaterThanOrEqual(3);
    expect(state(pool).problem).toBe("it takes the connection, but gives no answer within 0.5 s");
  });
  test("many nodes are looked at a few at a time", async () => {
    let [running, most] = [0, 0];
    const node = nodeOf(async (_, reply) => {
      most = Math.max(most, ++running);
      await Bun.sleep(5);
      running -= 1;
      reply.write(listOf("m"));
    });
    const nodes = Array.from({ length: 200 }, (_, index) => config(node, { name: `node-${index}` }));
    const pool = poolOf(nodes, { looks: true, limits: { idleLookIntervalMs: 60_000 } });
    await until(() => pool.states().every(({ engine }) => engine.kind === "vllm"));
    expect(most).toBeLessThanOrEqual(nodeLooksAtOnceMax);
  });
});

describe("nodes that are alike", () => {
  test("are those with the same model on the same engine", async () => {
    const [one, two, three] = [nodeOf(), nodeOf(), nodeOf()];
    const pool = poolOf([
      config(one, { name: "one" }),
      config(two, { name: "two" }),
      config(three, { name: "three", models: { "*": "sees" } }),
    ]);
    using slot = granted(await pool.enter(askOf(), 1, never, new Set(["two", "three"])));
    expect([...slot.alike(hostedModel.id)].sort()).toEqual(["one", "two"]);
  });
});

describe("engines", () => {
  test("are asked for once, and the request is made for them", async () => {
    const list = JSON.stringify({
      object: "list",
      data: [{ id: "m", object: "model", owned_by: "vllm", max_model_len: 32_768 }],
    });
    const node = nodeOf(({ method }, reply) => reply.write(method === "GET" ? wholeReply("200 OK", list) : answer));
    const pool = poolOf([config(node, { apiKey: "secret" })], { looks: true });
    await until(() => pool.states()[0]!.engine.kind === "vllm");
    using slot = granted(await pool.enter(askOf(), 1, never));
    await generate(slot);
    expect(JSON.parse(node.requests.at(-1)!.body)).toHaveProperty("cache_salt");
    expect(node.requests.map(({ path }) => path)).toEqual(["/v1/models", "/version", "/v1/chat/completions"]);
    for (const { head } of node.requests) expect(head).toContain("authorization: Bearer secret");
  });

  test("keep members of a team apart like accounts, unless the team is to share; their keys they do not", async () => {
    const list = JSON.stringify({ object: "list", data: [{ id: "m", object: "model", owned_by: "vllm" }] });
    const node = nodeOf(({ method }, reply) => reply.write(method === "GET" ? wholeReply("200 OK", list) : answer));
    const pool = poolOf([config(node)], { looks: true });
    await until(() => pool.states()[0]!.engine.kind === "vllm");
    const saltOf = async (member: string) => {
      using slot = granted(await pool.enter(askOf(), 1, never, undefined, { ...usualStanding, member }));
      await generate(slot);
      return (JSON.parse(node.requests.at(-1)!.body) as { cache_salt: string }).cache_salt;
    };
    const [ada, bob, service] = [await saltOf("person 1"), await saltOf("person 2"), await saltOf("key 2")];
    expect(new Set([ada, bob, service]).size).toBe(3);
    expect([await saltOf("key 3"), await saltOf("user eve")]).toEqual([service, service]);
    pool.sharePrefixCaches("team");
    expect([await saltOf("person 1"), await saltOf("person 2")]).toEqual([service, service]);
  });

  test("tell their context; of several nodes of a model the least counts", async () => {
    const nodeWith = (...models: readonly Readonly<{ id: string; max_model_len?: number }>[]) => {
      const data = models.map((model) => ({ ...model, object: "model", owned_by: "vllm" }));
      return nodeOf((_, reply) => reply.write(wholeReply("200 OK", JSON.stringify({ object: "list", data }))));
    };
    const nodes = [
      config(nodeWith({ id: "m", max_model_len: 32_768 }), { name: "a", models: { "core-3": "m", "core-2-pro": "m" } }),
      config(nodeWith({ id: "m", max_model_len: 16_384 }), { name: "b", models: { "core-3": "m" } }),
      config(nodeWith({ id: "m" }, { id: "n", max_model_len: 1 }), { name: "c", models: { "*": "n" } }),
    ];
    const pool = poolOf(nodes, { looks: true });
    await until(() => pool.states().every(({ engine }) => engine.kind === "vllm"));
    const ids = ["core-3", "core-2-pro", "core-3-pro"];
    expect(ids.map((id) => pool.contextTokensOf(id))).toEqual([16_384, 32_768, null]);
  });
});

describe("slots that follow the engine's load", () => {
  /** An engine that runs so many at once; what it is asked is answered when `end` is called. */
  function engine(runs: number) {
    const held: RawReply[] = [];
    const looked = { count: 0 };
    const others = { count: 0 };
    const told = { status: "200 OK" };
    const node = nodeOf(({ path }, reply) => {
      if (path !== "/metrics") return void held.push(reply);
      looked.count += 1;
      const has = held.length + others.count;
      const running = Math.min(runs, has);
      const text = `llamacpp:requests_processing ${running}\nllamacpp:requests_deferred ${has - running}\n`;
      reply.write(wholeReply(told.status, text));
    });
    const end = (): void => held.shift()?.write(answer);
    return { node, held, looked, others, told, end };
  }
  const soon = { loadIntervalMs: 1, loadFullIntervalMs: 1, loadUnreportedIntervalMs: 1 };
  const poolOn = (node: RawNode, slots: NodeConfig["slots"] = "auto") =>
    poolOf([config(node, { slots })], { limits: soon });
  /** So many requests, which are answered when the engine is told to; each gives its slot back then. */
  const ask = (pool: NodePool, count: number) =>
    Array.from({ length: count }, async () => {
      using slot = granted(await pool.enter(askOf(), 1, never));
      return await generate(slot);
    });
  const state = (pool: NodePool) => pool.states()[0]!;

  test("come to what it runs, and everybody is answered", async () => {
    const { node, looked, held, end } = engine(3);
    const pool = poolOn(node);
    const answers = ask(pool, 30);
    await until(() => state(pool).slots <= 4);
    expect(state(pool).load).toMatchObject({ running: 3, cacheUse: null });
    // What is on its way there is in no answer of the engine, and may look like room: only then may there be more slots.
    const settled = async (): Promise<void> => {
      for (let before = -1; before !== state(pool).busy;) {
        before = state(pool).busy;
        await until(() => held.length === state(pool).busy);
        const looks = looked.count;
        await until(() => looked.count > looks + 3);
      }
    };
    for (let ended = 0; ended < 30; ended++) {
      await settled();
      if (pool.waiting > 0) expect(state(pool).slots).toBeWithin(3, 5);
      end();
    }
    for (const each of answers) expect(await each).toMatchObject({ kind: "end" });
    expect([pool.waiting, state(pool).busy]).toEqual([0, 0]);
  });
  test("make room for those in line as soon as they grow", async () => {
    const { node, held, end } = engine(100);
    const pool = poolOn(node);
    const answers = ask(pool, 60);
    await until(() => held.length === 60); // none has ended
    for (let ended = 0; ended < 60; ended++) end();
    await Promise.all(answers);
  });
  test("shrink for what others have there", async () => {
    const { node, others, held, end } = engine(20);
    const pool = poolOn(node);
    others.count = 40;
    const answers = ask(pool, 16);
    await until(() => state(pool).slots < 8);
    others.count = 0;
    await until(() => state(pool).load?.waiting === 0);
    for (let ended = 0; ended < 16; ended++) {
      await until(() => held.length > 0);
      end();
    }
    await Promise.all(answers);
  });
  test("nobody looks while nothing runs, nor where slots are a number", async () => {
    const { node, looked, held, end } = engine(4);
    const pool = poolOn(node);
    expect(looked.count).toBe(0);
    const [answered] = ask(pool, 1);
    await until(() => held.length === 1 && looked.count > 2);
    end();
    await answered;
    await until(() => state(pool).load === null); // it has seen that nothing runs
    const before = looked.count;
    pool.reconfigure([config(node, { slots: 4 })]);
    const [again] = ask(pool, 1);
    await until(() => held.length === 1);
    await turns(20);
    end();
    await again;
    expect(looked.count).toBe(before);
    expect(state(pool)).toMatchObject({ slots: 4, isAuto: false, load: null });
  });
  test("follow a number and back at once when the configuration changes, also under requests that run", async () => {
    const { node, looked, held, end } = engine(4);
    const pool = poolOn(node, 2);
    const answers = ask(pool, 8);
    await until(() => held.length === 2);
    expect(looked.count).toBe(0);
    pool.reconfigure([config(node, { slots: "auto" })]);
    await until(() => held.length === 8 && looked.count > 0);
    pool.reconfigure([config(node, { slots: 1 })]);
    expect(state(pool)).toMatchObject({ slots: 1, busy: 8, isAuto: false });
    for (let ended = 0; ended < 8; ended++) end();
    await Promise.all(answers);
  });
  /** What a node of this engine gets where nobody wrote down how much. */
  async function unwritten(engine: RecordedEngine, metrics: string | null) {
    const looked = Promise.withResolvers<void>();
    const node = recordedNode(engine, {
      "/metrics": (_, reply) => {
        reply.write(wholeReply(metrics === null ? "404 Not Found" : "200 OK", metrics ?? ""));
        looked.resolve();
      },
    });
    open.push(node);
    const firstLook = Promise.withResolvers<void>();
    const pool = poolOf([config(node, { slots: null })], {
      limits: soon,
      looks: true,
      onFirstLook: () => firstLook.resolve(),
    });
    await firstLook.promise;
    return { pool, looked: looked.promise };
  }
  const idleVllm = "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0\n";

  test("are the default where the engine tells it, from the first look on", async () => {
    const { pool } = await unwritten("vllm", idleVllm);
    await until(() => state(pool).isAuto);
    expect(state(pool)).toMatchObject({ slots: autoSlotsStart, isAuto: true });
  });
  test("are not the default where it tells none, or is an engine that has none to tell", async () => {
    const { pool, looked } = await unwritten("vllm", null);
    await looked;
    await turns(20);
    expect(state(pool)).toMatchObject({ slots: nodeSlotsDefault, isAuto: false });
    const { pool: ollama } = await unwritten("ollama", idleVllm);
    await turns(20);
    expect(state(ollama)).toMatchObject({ slots: nodeSlotsDefault, isAuto: false });
    const { pool: single } = await unwritten("llama-cpp-python", idleVllm);
    await turns(20);
    expect(state(single)).toMatchObject({ slots: 1, isAuto: false });
  });
  test("are the usual number where the engine tells no load, and follow it again when it does", async () => {
    const { node, told, held, end } = engine(2);
    told.status = "501 Not Implemented";
    const pool = poolOn(node);
    const answers = ask(pool, 30);
    await until(() => held.length === 30);
    expect(state(pool)).toMatchObject({ slots: 64, load: null });
    told.status = "200 OK";
    await until(() => state(pool).slots <= 4);
    told.status = "501 Not Implemented";
    await until(() => state(pool).load === null);
    expect(state(pool).slots).toBeLessThanOrEqual(4); // what it was known to take
    for (let ended = 0; ended < 30; ended++) end();
    await Promise.all(answers);
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
    expect(await waiting).toMatchObject({ refusal: "busy_unreachable" });
    expect(await pool.enter(askOf(), 1, never)).toMatchObject({ refusal: "busy_unreachable" });
    expect(pool.states()).toMatchObject([{ name: "a", health: "starting", busy: 1 }]);
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
