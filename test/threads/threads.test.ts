// Two threads share a port and one ledger: what must be exact with one thread is exact with two. The real process, real
// connections; every request takes whichever thread the system gives it to.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { run } from "../commands/program.ts";
import { CountingNode } from "./counting-node.ts";

/** TOLLGATE_TEST_THREADS tries more. */
const threads = Number(process.env["TOLLGATE_TEST_THREADS"] ?? 2);

let node: CountingNode;
let gateway: GatewayProcess;

const nodesOf = (counting: CountingNode, slots: number): string =>
  `[[nodes]]\nname = "counting"\nurl = "${counting.url}"\nslots = ${slots}\n[queue]\nmax_wait_seconds = 60\n`;

beforeAll(async () => {
  node = new CountingNode();
  gateway = await GatewayProcess.start({ config: nodesOf(node, 1), threads });
}, 120_000);
afterEach(() => gateway.expectNothingReserved(), 60_000);
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  node.stop();
}, 120_000);

/** Each on a connection of its own, so that both threads get some. */
const ask = (key: string, more: object = {}, signal?: AbortSignal): Promise<Response> =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, connection: "close" },
    body: JSON.stringify({ model: "core-3", max_tokens: 1_000, messages: [{ role: "user", content: "x" }], ...more }),
    ...(signal === undefined ? {} : { signal }),
  });

const statusesOf = async (replies: readonly Promise<Response>[]): Promise<Record<number, number>> => {
  const statuses: Record<number, number> = {};
  for (const reply of await Promise.all(replies)) {
    await reply.text();
    statuses[reply.status] = (statuses[reply.status] ?? 0) + 1;
  }
  return statuses;
};

/** So many accounts, because each may send 120 requests a minute. */
const accountsOf = (count: number): Promise<Account[]> =>
  Promise.all(Array.from({ length: count }, () => gateway.account()));

test("exactly 120 of 300 requests in a minute pass, whichever thread they meet", async () => {
  const { api_key } = await gateway.account();
  node.answer = "at once";
  expect(await statusesOf(Array.from({ length: 300 }, () => ask(api_key)))).toEqual({ 200: 120, 429: 180 });
}, 120_000);

test("at the balance's edge exactly those are admitted whose budgets fit, of 1,000 at once", async () => {
  // 30,000 of the day and 65,000 of credit are room for 95 budgets of 1,000 tokens; none ends before all have asked.
  const { api_key, email } = await gateway.account(65_000);
  const leave = new AbortController();
  node.answer = "when told";
  const asked = Array.from({ length: 1_000 }, () => ask(api_key, {}, leave.signal));
  const refused: Response[] = [];
  for (const one of asked) {
    one.then(
      (reply) => void refused.push(reply),
      () => {}, // those that were admitted are left below
    );
  }
  await eventually("all others are refused", async () => refused.length === 905);
  expect((await gateway.show(email)).reserved).toBe(95_000);
  const texts = await Promise.all(refused.map((reply) => reply.text()));
  // The first 120 count for the balance, the others for the flood.
  const overdrawn = texts.filter((text) => text.includes("quota"));
  expect(overdrawn.length).toBe(120 - 95);
  for (const text of overdrawn) {
    expect(JSON.parse(text).error).toMatchObject({ requested: 1_000, resets_at: expect.any(Number) });
  }
  leave.abort();
  await Promise.allSettled(asked);
  node.answer = "at once";
  await eventually("nothing is held", async () => (await gateway.show(email)).reserved === 0);
}, 120_000);

test("of 100 long inputs at once that are more than the account has, one is served and the others are refused", async () => {
  const { api_key, email } = await gateway.account(0);
  const leave = new AbortController();
  node.answer = "when told";
  node.inputTokens = 190_000;
  const before = node.served;
  const long = { max_tokens: 1, messages: [{ role: "user", content: "word ".repeat(80_000) }] };
  const asked = Array.from({ length: 99 }, () => ask(api_key, long));
  const leaver = ask(api_key, long, leave.signal);
  leaver.catch(() => {}); // it is left below
  await eventually("all have reserved their budgets", async () => (await gateway.show(email)).reserved === 100);
  leave.abort();
  await eventually("the place of one that left is free", async () => (await gateway.show(email)).reserved === 99);
  node.answer = "at once";
  // Whoever is first, also where it was the one that left.
  await eventually("the first one is on the node", async () => node.running === 1);
  node.finish();
  const refused: string[] = [];
  for (const reply of await Promise.all(asked)) if (reply.status !== 200) refused.push(await reply.text());
  expect(node.served - before).toBeLessThanOrEqual(2);
  expect(refused.filter((text) => text.includes("Quota exceeded")).length).toBe(98);
  // 190,005 tokens at $3.35 are 127,303 of balance.
  expect(await gateway.show(email)).toMatchObject({ credit: 30_000 - 127_303, reserved: 0, allowance: { left: 0 } });
  node.inputTokens = 10;
}, 120_000);

test("a node with one slot never has two requests at once", async () => {
  const accounts = await accountsOf(4);
  node.answer = "at once";
  node.mostAtOnce = 0;
  const before = node.served;
  const replies = Array.from({ length: 200 }, (_, place) => ask(accounts[place % 4]!.api_key));
  expect(await statusesOf(replies)).toEqual({ 200: 200 });
  expect([node.served - before, node.mostAtOnce]).toEqual([200, 1]);
}, 120_000);

test("at the edge of what keys may spend exactly those are admitted whose budgets fit, and no key takes another's", async () => {
  const { email, api_key: first } = await gateway.account(200_000);
  node.answer = "when told";
  const keys = await Promise.all(
    [7, 11].map((fitting) => gateway.makeKey(email, { name: `may ${fitting}`, limit_day: fitting * 1_000 + 999 })),
  );
  const leave = new AbortController();
  const asked = Array.from({ length: 80 }, (_, index) => ask(keys[index % 2]!.api_key, {}, leave.signal));
  const refused: Response[] = [];
  for (const one of asked)
    one.then(
      (reply) => void refused.push(reply),
      () => {},
    );
  await eventually("all others are refused", async () => refused.length === 80 - 7 - 11);
  expect((await gateway.show(email)).reserved).toBe(18_000);
  const messages = await Promise.all(
    refused.map(async (reply): Promise<string> => ((await reply.json()) as any).error.message),
  );
  const told = (name: string, limit: number) =>
    messages.filter(
      (text) => text === `Quota exceeded for the API key \`${name}\`: it may use ${limit} balance tokens a day.`,
    );
  expect([told("may 7", 7_999).length, told("may 11", 11_999).length]).toEqual([33, 29]);
  const others = Array.from({ length: 3 }, () => ask(first, {}, leave.signal));
  await eventually("the first key has room", async () => (await gateway.show(email)).reserved === 21_000);
  leave.abort();
  await Promise.allSettled([...asked, ...others]);
}, 120_000);

/** Ways to take a key from an account, which has another then. */
const waysToVoid: readonly (readonly [string, (email: string) => Promise<{ old: string; take(): Promise<string> }>])[] =
  [
    ["rotated away", async (email) => ({ old: await gateway.rotate(email), take: () => gateway.rotate(email) })],
    [
      "revoked",
      async (email) => {
        const { id, api_key: old } = await gateway.makeKey(email, { name: "revoked" });
        const { api_key: other } = await gateway.makeKey(email, { name: "other" });
        const take = async (): Promise<string> => {
          await gateway.revokeKey(email, id);
          return other;
        };
        return { old, take };
      },
    ],
  ];

test.each(waysToVoid)(
  "a key that was %s is void at once on every thread",
  async (_, prepare) => {
    node.answer = "at once";
    for (let round = 0; round < 5; round += 1) {
      const { email } = await gateway.account();
      const { old, take } = await prepare(email);
      // Both threads know the key.
      expect(await statusesOf(Array.from({ length: 20 }, () => ask(old)))).toEqual({ 200: 20 });
      const other = await take();
      expect(await statusesOf(Array.from({ length: 20 }, () => ask(old)))).toEqual({ 401: 20 });
      expect(await statusesOf(Array.from({ length: 5 }, () => ask(other)))).toEqual({ 200: 5 });
    }
  },
  120_000,
);

test.each(waysToVoid)(
  "a key that is %s while bodies are on their way is void for them on every thread",
  async (_, prepare) => {
    const { email } = await gateway.account();
    const { old: api_key, take } = await prepare(email);
    node.answer = "at once";
    const { hostname, port } = new URL(gateway.url);
    const body = JSON.stringify({ model: "core-3", max_tokens: 1_000, messages: [{ role: "user", content: "x" }] });
    const head = [
      "POST /v1/chat/completions HTTP/1.1",
      "host: x",
      `authorization: Bearer ${api_key}`,
      `content-length: ${body.length}`,
      "connection: close",
    ];
    const begun = Array.from({ length: 20 }, () => {
      const { promise, resolve } = Promise.withResolvers<string>();
      let text = "";
      const socket = connect(Number(port), hostname, () => socket.write(`${head.join("\r\n")}\r\n\r\n${body[0]}`));
      socket.on("data", (data) => void (text += data)).on("close", () => resolve(text.split(" ")[1] ?? ""));
      return { finish: () => socket.write(body.slice(1)), status: promise };
    });
    expect(await statusesOf(Array.from({ length: 20 }, () => ask(api_key)))).toEqual({ 200: 20 }); // they wait by now
    await take();
    for (const { finish } of begun) finish();
    expect(new Set(await Promise.all(begun.map(({ status }) => status)))).toEqual(new Set(["401"]));
  },
  120_000,
);

test("a client that leaves frees node and hold, running or in line", async () => {
  const { api_key, email } = await gateway.account();
  node.answer = "when told";
  const leave = new AbortController();
  const asked = Array.from({ length: 6 }, () => ask(api_key, { stream: true }, leave.signal));
  await eventually("six are open and one runs", async () => {
    return (await gateway.show(email)).reserved === 6_000 && node.running === 1;
  });
  leave.abort();
  await Promise.allSettled(asked);
  await eventually("nothing is held", async () => (await gateway.show(email)).reserved === 0);
  await eventually("the node is free", async () => node.running === 0);
  node.answer = "at once";
  expect(await statusesOf([ask(api_key)])).toEqual({ 200: 1 });
}, 120_000);

test("metrics are those of all threads", async () => {
  const counted = async () => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    return Number(/^tollgate_requests_total\{.*model="core-3",status="200"\} (\d+)$/m.exec(text)?.[1] ?? 0);
  };
  const before = await counted();
  const { api_key } = await gateway.account();
  expect(await statusesOf(Array.from({ length: 50 }, () => ask(api_key)))).toEqual({ 200: 50 });
  await eventually("all are counted", async () => (await counted()) - before === 50);
}, 120_000);

test("a reload reaches every thread before it is reported, and drops no stream", async () => {
  const { api_key } = await gateway.account();
  node.answer = "when told";
  const open = await ask(api_key, { stream: true });
  const other = new CountingNode();
  try {
    await gateway.configure(nodesOf(other, 4));
    expect(await gateway.reload()).toMatchObject({ applied: expect.arrayContaining(["nodes"]) });
    expect(await statusesOf(Array.from({ length: 40 }, () => ask(api_key)))).toEqual({ 200: 40 });
    expect(other.served).toBe(40);
    node.finish();
    expect(await open.text()).toEndWith("data: [DONE]\n\n");
  } finally {
    node.answer = "at once";
    await gateway.configure(nodesOf(node, 1));
    await gateway.reload();
    other.stop();
  }
}, 120_000);

test("a stop lets open streams end, and ends with 0", async () => {
  await using stopping = await GatewayProcess.start({ config: nodesOf(node, 8), threads });
  const { api_key } = await stopping.account();
  node.answer = "when told";
  const streams = await Promise.all(
    Array.from({ length: 8 }, () =>
      fetch(`${stopping.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${api_key}`, connection: "close" },
        body: JSON.stringify({ model: "core-3", stream: true, messages: [{ role: "user", content: "x" }] }),
      }),
    ),
  );
  const ended = stopping.kill("SIGTERM");
  await eventually("no new request is taken", () =>
    fetch(`${stopping.url}/healthz`).then(
      () => false,
      () => true,
    ),
  );
  node.finish();
  for (const stream of streams) expect(await stream.text()).toEndWith("data: [DONE]\n\n");
  expect(await ended).toBe(0);
  node.answer = "at once";
}, 120_000);

test("a conversation goes on at once on whichever thread is asked next", async () => {
  const accounts = await accountsOf(2);
  for (const { api_key } of accounts) {
    let previous: string | null = null;
    for (let turn = 0; turn < 20; turn += 1) {
      const reply: Response = await fetch(`${gateway.url}/v1/responses`, {
        method: "POST",
        headers: { authorization: `Bearer ${api_key}`, connection: "close" },
        body: JSON.stringify({ model: "core-3", input: "x", previous_response_id: previous, stream: turn % 2 === 0 }),
      });
      const text = await reply.text();
      expect([turn, reply.status, text.includes("word")]).toEqual([turn, 200, true]);
      previous = /"id":"(resp_\w+)"/.exec(text)![1]!;
    }
  }
}, 120_000);

test("what is passed on is whole both ways, and a client that leaves stops it", async () => {
  const { api_key, email } = await gateway.account();
  const headers = { authorization: `Bearer ${api_key}`, connection: "close" };
  const text = "word ".repeat(600_000); // 3 MB, in a body of unknown length
  const body = new ReadableStream({
    start(controller) {
      const json = JSON.stringify({ text });
      for (let from = 0; from < json.length; from += 100_000) controller.enqueue(json.slice(from, from + 100_000));
      controller.close();
    },
  }).pipeThrough(new TextEncoderStream());
  const counted = await fetch(`${gateway.url}/v1/tokenize`, { method: "POST", headers, body });
  expect([counted.status, await counted.text()]).toEqual([200, expect.stringContaining("600001")]);
  expect((await fetch(`${gateway.url}/v1/models`, { headers })).status).toBe(200);
  expect((await fetch(`${gateway.url}/nothing/here`, { method: "DELETE", headers })).status).toBe(404);
  expect((await fetch(gateway.url, { method: "HEAD", headers })).status).toBe(200);

  const stored = await fetch(`${gateway.url}/v1/responses`, {
    method: "POST",
    headers,
    body: JSON.stringify({ model: "core-3", input: "x" }),
  });
  const { id } = (await stored.json()) as { id: string };
  node.answer = "when told";
  const leave = new AbortController();
  const open = await fetch(`${gateway.url}/v1/responses`, {
    method: "POST",
    headers,
    body: JSON.stringify({ model: "core-3", input: "x", previous_response_id: id, stream: true }),
    signal: leave.signal,
  });
  expect([open.status, node.running]).toEqual([200, 1]);
  leave.abort();
  await eventually("the node is stopped", async () => node.running === 0);
  await eventually("nothing is held", async () => (await gateway.show(email)).reserved === 0);
  node.answer = "at once";
}, 120_000);

test("another gateway is refused the port, whether it has threads or not", async () => {
  for (const threads of ["1", "2"]) {
    const words = [
      "serve",
      "--port",
      new URL(gateway.url).port,
      "--data",
      `${gateway.folder}/other`,
      "--threads",
      threads,
    ];
    const { code, stderr } = await run([...words, "--node", node.url]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("is taken by another program")]);
  }
}, 120_000);
