// How urgent a request is: what it asks for, what its plan lets it have, and what the reply says that it got.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { TellingNode } from "../fixtures/telling-node.ts";

setDefaultTimeout(120_000);
const node = new TellingNode();

const plans = `
[[plans]]
id = "usual"
tokens_per_day = 1000000
[[plans]]
id = "first"
tokens_per_day = 1000000
priority = "interactive"
priority_max = "interactive"
[[plans]]
id = "last"
tokens_per_day = 1000000
priority = "bulk"
priority_max = "bulk"
`;

describe.each([[1], [2]])("with %i threads", (threads) => {
  let gateway: GatewayProcess;
  const accounts: Record<string, Account> = {};

  beforeAll(async () => {
    const nodes = `[[nodes]]\nname = "a"\nurl = "${node.url}"\nslots = 8\nmodels = { teller = "teller" }\n`;
    const config = `[server]\nthreads = ${threads}\n${nodes}[[models]]\nid = "teller"\n${plans}`;
    gateway = await GatewayProcess.start({ config });
    for (const plan of ["usual", "first", "last"]) accounts[plan] = await gateway.account(0, plan);
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  const send = (plan: string, path: string, body: object, asked?: string, key = accounts[plan]!.api_key) =>
    fetch(`${gateway.url}/v1/${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        ...(asked === undefined ? {} : { "x-priority": asked }),
      },
      body: JSON.stringify({ model: "teller", max_tokens: 9, ...body }),
    });
  const messages = [{ role: "user", content: "Hi" }];

  test.each([
    ["usual", undefined, null],
    ["usual", "interactive", "standard"],
    ["usual", "standard", "standard"],
    ["usual", "bulk", "bulk"],
    ["first", undefined, "interactive"],
    ["first", "standard", "standard"],
    ["last", undefined, "bulk"],
    ["last", "interactive", "bulk"],
  ])(`plan %s, asked for %s: the reply says %s`, async (plan, asked, got) => {
    for (const [path, body] of [
      ["chat/completions", { messages }],
      ["chat/completions", { messages, stream: true }],
      ["messages", { messages }],
      ["responses", { input: "Hi" }],
      ["completions", { prompt: "Hi" }],
    ] as const) {
      const reply = await send(plan, path, body, asked);
      await reply.text();
      expect([path, reply.status, reply.headers.get("x-priority")]).toEqual([path, 200, got]);
    }
  });

  test.each([
    ["usual", ["--priority", "bulk"], undefined, "bulk"],
    ["usual", ["--priority", "bulk"], "interactive", "standard"],
    ["usual", ["--priority-max", "interactive"], "interactive", "standard"],
    ["first", ["--priority-max", "bulk"], "interactive", "bulk"],
    ["first", ["--priority", "standard"], undefined, null],
    ["first", ["--priority", "standard"], "interactive", "interactive"],
  ])(`plan %s, a key with %p, asked for %s: the reply says %s`, async (plan, limits, asked, got) => {
    const { email } = accounts[plan]!;
    const name = crypto.randomUUID();
    const { api_key } = await gateway.cli<Account>("keys", "create", email, "--name", name, ...limits);
    const reply = await send(plan, "messages", { messages }, asked, api_key);
    await reply.text();
    expect([reply.status, reply.headers.get("x-priority")]).toEqual([200, got]);
    const quote = await send(plan, "quote", { messages }, asked, api_key);
    expect((await quote.json()) as object).toMatchObject({ priority: got ?? "standard" });
  });

  test(`service_tier is the same in the words of OpenAI, and is answered in them`, async () => {
    for (const [tier, got] of [
      ["priority", "default"],
      ["flex", "flex"],
      ["default", "default"],
    ]) {
      const chat = await send("usual", "chat/completions", { messages, service_tier: tier });
      expect((await chat.json()) as object).toMatchObject({ service_tier: got });
      const response = await send("usual", "responses", {
        input: "Hi",
        service_tier: tier,
        instructions: '"service_tier":"default"',
      });
      expect((await response.json()) as object).toMatchObject({ service_tier: got });
    }
    const open = await send("first", "responses", { input: "Hi", service_tier: "auto" });
    expect((await open.json()) as object).toMatchObject({ service_tier: "priority" });
  });

  test(`a word that is none is refused by its name and costs nothing`, async () => {
    const wrong = await send("usual", "messages", { messages }, "urgent");
    expect([wrong.status, await wrong.text()]).toEqual([
      400,
      expect.stringContaining("x-priority must be one of interactive"),
    ]);
    const tier = await send("usual", "chat/completions", { messages, service_tier: "urgent" });
    expect([tier.status, await tier.text()]).toEqual([400, expect.stringContaining("service_tier")]);
    await gateway.expectNothingReserved();
  });
});
afterAll(() => node[Symbol.dispose]());
