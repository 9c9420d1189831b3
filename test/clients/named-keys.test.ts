// Named keys under attack: limits in tool loops and in parallel, revoke, expiry, removed models and new prices while
// answers stream in each dialect, addresses that are forged, and a kill at a key's limit.
import { beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { eventually } from "../fixtures/eventually.ts";
import { finish, once, type Step, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";

const model = "core-3";
const slow: Step = { repeat: text("tick "), times: 100, everyMs: 20 };
const usage = (input: number, output: number) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});
const dialects = {
  chat: ["/v1/chat/completions", { max_tokens: 1_000 }],
  messages: ["/v1/messages", { max_tokens: 1_000 }],
  responses: ["/v1/responses", { max_output_tokens: 1_000 }],
} as const;
type DialectName = keyof typeof dialects;
const names = Object.keys(dialects) as DialectName[];

describe.each([1, 2])("named keys with %i threads", (threads) => {
  const own = `[console]\naddress_header = "x-forwarded-for"\n`;
  const stack = useStack({ threads, search: true, config: own });
  beforeAll(async () => {
    await stack.node.define("slow", once(slow, finish("stop", usage(10, 100))));
    await stack.node.define("hundred", once(text("Hi"), finish("stop", usage(50, 50))));
  });

  const send = (name: DialectName, apiKey: string, words: string, more: object = {}, headers: object = {}) => {
    const [path, budget] = dialects[name];
    const asked = name === "responses" ? { input: words } : { messages: [{ role: "user", content: words }] };
    return fetch(stack.gateway.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}`, ...headers },
      body: JSON.stringify({ model, ...budget, ...asked, ...more }),
    });
  };
  /** A stream of which the first words came. */
  async function opened(name: DialectName, apiKey: string, more: object = {}) {
    const reply = await send(name, apiKey, "[[slow]]", { stream: true, ...more });
    expect(reply.status).toBe(200);
    const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
    let read = "";
    while (!read.includes("tick")) read += (await reader.read()).value ?? "";
    const rest = (async () => {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return read;
        read += value;
      }
    })();
    return { rest };
  }
  const wholeEnd = /\[DONE\]|message_stop|response\.completed/;
  const usedBy = async (email: string, id: number) =>
    (await stack.gateway.keys(email)).find((key) => key.id === id)?.used_day;

  test.each(names)(
    "a revoke in mid-stream lets the answer end, is billed, and refuses what comes next: %s",
    async (name) => {
      const { email } = await stack.gateway.account();
      const key = await stack.gateway.makeKey(email, { name: "a" });
      const streams = await Promise.all(Array.from({ length: 4 }, () => opened(name, key.api_key)));
      await stack.gateway.revokeKey(email, key.id);
      for (let i = 0; i < 8; i++) expect((await send(name, key.api_key, "[[text]]")).status).toBe(401);
      for (const { rest } of streams) expect(await rest).toMatch(wholeEnd);
      expect((await stack.gateway.usage(email)).map((row) => row.key)).toEqual(["a", "a", "a", "a"]);
    },
  );

  test.each(names)("an expiry in mid-stream does so, too: %s", async (name) => {
    const { email } = await stack.gateway.account();
    const expires_at = new Date(Date.now() + 1_500).toISOString();
    const key = await stack.gateway.makeKey(email, { name: "a", expires_at });
    const { rest } = await opened(name, key.api_key);
    await eventually("it expires", async () => (await send(name, key.api_key, "[[text]]")).status === 401);
    expect(await rest).toMatch(wholeEnd);
    expect((await stack.gateway.usage(email)).some((row) => row.output === 100)).toBe(true);
  });

  test("each round of a tool loop is within the key's limit, and what was charged is what usage says", async () => {
    const { email } = await stack.gateway.account();
    for (const limit_day of [300, 1_400, 5_000]) {
      const key = await stack.gateway.makeKey(email, { name: `loop ${limit_day}`, limit_day });
      const client = new OpenAI({ apiKey: key.api_key, baseURL: `${stack.gateway.url}/v1`, maxRetries: 0 });
      for (let tries = 0; tries < 6; tries++) {
        const reply = await client.chat.completions
          .create({
            ...({ model, max_tokens: 200, web_search: true } as { model: string }),
            messages: [{ role: "user", content: "[[web-search]]" }],
          })
          .catch((error: InstanceType<typeof OpenAI.APIError>) => error.status);
        if (typeof reply === "number") expect(reply).toBe(429);
      }
      const used = (await usedBy(email, key.id)) ?? 0;
      const rows = (await stack.gateway.usage(email)).filter((row) => row.key === `loop ${limit_day}`);
      expect(rows.reduce((sum, { billed_tokens }) => sum + billed_tokens, 0)).toBe(used);
      expect(used).toBeLessThanOrEqual(limit_day);
    }
  });

  test("a response that one key stored is the account's: another key reads it and goes on from it, other accounts do not", async () => {
    const { email } = await stack.gateway.account();
    const [a, b] = await Promise.all(["a", "b"].map((name) => stack.gateway.makeKey(email, { name })));
    const stranger = await stack.gateway.account();
    const stored = (await (await send("responses", a!.api_key, "[[text]]", { store: true })).json()) as { id: string };
    const read = (apiKey: string) =>
      fetch(`${stack.gateway.url}/v1/responses/${stored.id}`, { headers: { authorization: `Bearer ${apiKey}` } });
    expect((await read(b!.api_key)).status).toBe(200);
    expect((await read(stranger.api_key)).status).toBe(404);
    const next = { previous_response_id: stored.id };
    expect((await send("responses", b!.api_key, "[[text]]", next)).status).toBe(200);
    expect([400, 404]).toContain((await send("responses", stranger.api_key, "[[text]]", next)).status);
    await stack.gateway.revokeKey(email, a!.id);
    expect((await read(a!.api_key)).status).toBe(401);
    expect((await read(b!.api_key)).status).toBe(200);
  });

  test.each([
    [["10.0.0.0/8"], "10.1.2.3", 200],
    [["10.0.0.0/8"], "11.1.2.3", 403],
    [["10.0.0.0/8"], "::ffff:10.1.2.3", 200],
    [["10.0.0.0/8"], "::ffff:a01:203", 200],
    [["10.0.0.0/8"], "[::ffff:a01:203]:443", 200],
    [["::ffff:10.0.0.0/104"], "10.1.2.3", 200],
    [["::ffff:10.0.0.0/104"], "11.1.2.3", 403],
    [["0.0.0.0/0"], "203.0.113.9", 200],
    [["0.0.0.0/0"], "2001:db8::1", 403],
    [["::/0"], "2001:db8::1", 200],
    [["::/0"], "203.0.113.9", 403],
    [["2001:db8::/32", "192.0.2.7"], "192.0.2.7:50123", 200],
    [["192.0.2.7"], "192.0.2.7, 203.0.113.9", 403],
    [["192.0.2.7"], "203.0.113.9, 192.0.2.7", 200],
    [["192.0.2.7"], "192.0.2.7,", 403],
    [["127.0.0.0/8"], "unknown", 403],
    [["127.0.0.0/8"], "", 403],
    [["127.0.0.0/8"], "127.0.0.1 evil", 403],
    [["127.0.0.0/8"], "127.0.0.01", 403],
    [["127.0.0.0/8"], "2130706433", 403],
    [["127.0.0.0/8", "::1"], "::1%lo", 403],
    [["127.0.0.0/8"], `${"1.".repeat(40)}1`, 403],
  ])("a key for %p from %p is answered with %d", async (addresses, from, status) => {
    const { email } = await stack.gateway.account();
    const key = await stack.gateway.makeKey(email, { name: "a", addresses });
    const headers = { "x-forwarded-for": from };
    for (const name of names) expect((await send(name, key.api_key, "[[text]]", {}, headers)).status).toBe(status);
    const list = { headers: { ...headers, authorization: `Bearer ${key.api_key}` } };
    expect((await fetch(`${stack.gateway.url}/v1/models`, list)).status).toBe(status);
  });

  test("of several headers the proxy's is the last", async () => {
    const { email } = await stack.gateway.account();
    const key = await stack.gateway.makeKey(email, { name: "a", addresses: ["192.0.2.7"] });
    const ask = (...forwarded: string[]) => rawStatus(stack.gateway.url, key.api_key, forwarded);
    expect(await ask("192.0.2.7")).toBe(200);
    expect(await ask("192.0.2.7", "203.0.113.9")).toBe(403);
    expect(await ask("203.0.113.9", "192.0.2.7")).toBe(200);
    expect(await ask("192.0.2.7", "")).toBe(403);
  });

  test("of 200 requests at once for one end user exactly those that fit are served", async () => {
    const { email } = await stack.gateway.account();
    const key = await stack.gateway.makeKey(email, { name: "bot", forwards_users: true, limit_end_user_day: 700 });
    await stack.node.define("tenth", once(text("Hi"), finish("stop", usage(50, 50))));
    const replies = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        send("chat", key.api_key, "[[tenth]]", { max_tokens: 50, user: i % 2 === 0 ? "ada" : "bob" }),
      ),
    );
    const statuses = new Set(replies.map(({ status }) => status));
    for (const status of statuses) expect([200, 429]).toContain(status);
    const rows = await stack.gateway.usage(email);
    for (const user of ["ada", "bob"]) {
      const used = rows.filter((row) => row.end_user === user).reduce((sum, row) => sum + row.billed_tokens, 0);
      expect(used).toBeLessThanOrEqual(700);
    }
    expect(rows.length).toBe(replies.filter(({ status }) => status === 200).length);
    expect(rows.length).toBeGreaterThan(0);
  });

  test("what streams while a reload takes its model away, or sets another price, ends as it began", async () => {
    const models = (price: number, ...ids: string[]) =>
      `${own}${ids.map((id) => `[[models]]\nid = "${id}"\nprice = ${price}\n`).join("")}`;
    await stack.configure(models(1, model, "second"));
    await stack.gateway.reload();
    const { email } = await stack.gateway.account();
    const key = await stack.gateway.makeKey(email, { name: "a", models: ["second"] });
    const streams = await Promise.all(names.map((name) => opened(name, key.api_key, { model: "second" })));
    await stack.configure(models(9, model, "second"));
    await stack.gateway.reload();
    const later = await opened("chat", key.api_key, { model: "second" });
    await stack.configure(models(9, model));
    await stack.gateway.reload();
    expect([400, 404]).toContain((await send("chat", key.api_key, "[[text]]", { model: "second" })).status);
    for (const { rest } of [...streams, later]) expect(await rest).toMatch(wholeEnd);
    const billed = (await stack.gateway.usage(email)).map(({ billed_tokens }) => billed_tokens).sort((x, y) => x - y);
    const [least] = billed;
    expect(billed).toEqual([least!, least!, least!, 9 * least!]);
    await stack.configure(own);
    await stack.gateway.reload();
  });

  test("a kill at the limit loses nothing and gives nothing away", async () => {
    const { email } = await stack.gateway.account();
    const key = await stack.gateway.makeKey(email, { name: "a", limit_day: 3_000 });
    const asked = Array.from({ length: 60 }, () =>
      send("chat", key.api_key, "[[hundred]]", { max_tokens: 100 }).then(
        async (reply) => (await reply.text(), reply.status),
        () => 0,
      ),
    );
    await Promise.race(asked);
    await stack.gateway.kill("SIGKILL");
    const before = (await Promise.all(asked)).filter((status) => status === 200).length;
    await stack.gateway.restart();
    const used = (await usedBy(email, key.id)) ?? 0;
    const rows = await stack.gateway.usage(email);
    expect(rows.length).toBeGreaterThanOrEqual(before);
    expect(rows.reduce((sum, { billed_tokens }) => sum + billed_tokens, 0)).toBe(used);
    expect(used).toBeLessThanOrEqual(3_000);
    const after = await Promise.all(
      Array.from({ length: 60 }, () => send("chat", key.api_key, "[[hundred]]", { max_tokens: 100 })),
    );
    for (const { status } of after) expect([200, 429]).toContain(status);
    expect((await usedBy(email, key.id)) ?? 0).toBeLessThanOrEqual(3_000);
  });
});

/** With these headers line by line, as no client library sends them. */
async function rawStatus(url: string, apiKey: string, forwarded: readonly string[]): Promise<number> {
  const { hostname, port, host } = new URL(url);
  const body = JSON.stringify({ model, max_tokens: 100, messages: [{ role: "user", content: "[[text]]" }] });
  const head = [
    "POST /v1/chat/completions HTTP/1.1",
    ...[`host: ${host}`, `authorization: Bearer ${apiKey}`, "content-type: application/json", "connection: close"],
    ...[`content-length: ${body.length}`, ...forwarded.map((address) => `x-forwarded-for: ${address}`)],
  ].join("\r\n");
  const read = Promise.withResolvers<number>();
  await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      open: (socket) => void socket.write(`${head}\r\n\r\n${body}`),
      data: (_, bytes) => read.resolve(Number(bytes.toString().slice(9, 12))),
      close: () => read.reject(new Error("closed without a reply")),
      error: (_, error) => read.reject(error),
    },
  });
  return read.promise;
}
