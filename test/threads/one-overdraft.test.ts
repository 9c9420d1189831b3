// Many requests at once, each of which reads more than its text says: the engine puts a template and a system prompt around
// it. Whatever a node reports, a limit is exceeded by at most one request. The real process, with one thread and with two.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { inputsConfig } from "../fixtures/inputs-node.ts";

setDefaultTimeout(120_000);

/** Says that it read so many tokens of each request (null: of each any number), or of each byte of its inputs, and writes five. */
class TemplateNode implements Disposable {
  templateTokens: number | null = 0;
  tokensPerByte = 0;
  readonly #held = new Set<() => void>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  readonly #server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: (request) => this.#reply(request),
  });

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/v1`;
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
  }

  async #reply(request: Request): Promise<Response> {
    if (request.method !== "POST")
      return Response.json({ object: "list", data: ["chat-tiny", "vectors"].map((id) => ({ id, object: "model" })) });
    const text = await request.text();
    await this.#together();
    const { pathname } = new URL(request.url);
    if (pathname.endsWith("/embeddings")) {
      const { input: inputs } = JSON.parse(text) as { input: string[] };
      const data = inputs.map((_, index) => ({ object: "embedding", index, embedding: [0.5] }));
      const usage = { prompt_tokens: this.tokensPerByte * Buffer.byteLength(inputs.join("")), total_tokens: 0 };
      return Response.json({ object: "list", data, model: "m", usage });
    }
    const input = this.templateTokens ?? 1 + Math.floor(Math.random() ** 4 * 100_000);
    const isChat = pathname.includes("chat");
    const choice = isChat ? { delta: { role: "assistant", content: "word" } } : { text: "word" };
    const end = isChat ? { delta: {} } : { text: "" };
    const events = [
      { choices: [{ index: 0, ...choice, finish_reason: null }] },
      { choices: [{ index: 0, ...end, finish_reason: "stop" }] },
      { choices: [], usage: { prompt_tokens: input, completion_tokens: 5, total_tokens: 0 } },
    ];
    const body = [...events.map((event) => JSON.stringify(event)), "[DONE]"]
      .map((data) => `data: ${data}\n\n`)
      .join("");
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }

  /** With all that come while it is quiet for a moment: those that the gateway lets begin together end together. */
  #together(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held.add(resolve);
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      for (const end of this.#held) end();
      this.#held.clear();
    }, 100);
    return promise;
  }
}

const node = new TemplateNode();
afterAll(() => node[Symbol.dispose]());

describe.each([1, 2])("with %d threads", (threads) => {
  let gateway: GatewayProcess;

  beforeAll(async () => {
    const models = inputsConfig(node, [
      ["vectors", "embedding", "price = 5"],
      ["chat-tiny", "chat", "price = { input = 5, output = 5 }\ncontext = 131072"],
    ]);
    const plans = '[[plans]]\nid = "ten"\ntokens_per_day = 10000\n[[plans]]\nid = "free"\ntokens_per_day = 30000\n';
    gateway = await GatewayProcess.start({ config: `${models}\n${plans}`, threads });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  const hi = { model: "chat-tiny", max_tokens: 10 };
  const chat = { ...hi, messages: [{ role: "user", content: "hi" }] };

  /** What those that were answered are told that they have read. */
  async function atOnce(key: string, path: string, body: object, count: number): Promise<number[]> {
    const replies = await Promise.all(
      Array.from({ length: count }, () =>
        fetch(gateway.url + path, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, connection: "close" },
          body: JSON.stringify(body),
        }),
      ),
    );
    const told: number[] = [];
    for (const reply of replies) {
      const { usage } = (await reply.json()) as { usage?: { prompt_tokens: number } };
      expect([200, 429]).toContain(reply.status);
      if (reply.status === 200) told.push(usage!.prompt_tokens);
    }
    return told;
  }

  type Case = Readonly<{
    name: string;
    path?: string;
    body?: object;
    count: number;
    template: number | null;
    tokensPerByte?: number;
    limited: "key" | "end user" | "plan";
    limit?: number;
  }>;
  const cases: readonly Case[] = [
    { name: "60 of a key", count: 60, template: 520, limited: "key" },
    { name: "50 of an end user", count: 50, template: 520, limited: "end user" },
    { name: "110 of a plan", count: 110, template: 520, limited: "plan" },
    {
      name: "60 completions",
      path: "/v1/completions",
      body: { ...hi, prompt: "hi" },
      count: 60,
      template: 520,
      limited: "key",
    },
    {
      name: "60 embeddings",
      path: "/v1/embeddings",
      body: { model: "vectors", input: ["x".repeat(1_000)] },
      count: 60,
      template: 0,
      tokensPerByte: 2,
      limited: "key",
      limit: 30_000,
    },
    { name: "60 of a key, with a short template", count: 60, template: 100, limited: "key" },
    { name: "60 of a key, whatever is reported", count: 60, template: null, limited: "key" },
    { name: "60 of a plan, whatever is reported", count: 60, template: null, limited: "plan" },
  ];

  test.each(cases.map((each) => [each.name, each] as const))("%s at once", async (_, each) => {
    const { path = "/v1/chat/completions", body = chat, count, template, tokensPerByte = 0, limited } = each;
    const limit = limited === "plan" ? 10_000 : (each.limit ?? 3_000);
    node.templateTokens = template;
    node.tokensPerByte = tokensPerByte;
    const { email, api_key } = await gateway.account(limited === "plan" ? 0 : 1_000_000, "ten");
    const limits = limited === "key" ? { limit_day: limit } : { forwards_users: true, limit_end_user_day: limit };
    const key = limited === "plan" ? api_key : (await gateway.makeKey(email, { name: "limited", ...limits })).api_key;
    const told = await atOnce(key, path, limited === "end user" ? { ...body, user: "ada" } : body, count);
    const rows = await gateway.usage(email);
    const left = limit - rows.reduce((sum, { billed_tokens }) => sum + billed_tokens, 0);
    // What is charged is what the client is told, and of a node that adds the same to each request all that it says.
    expect(rows.map(({ input }) => input).sort()).toEqual(told.sort());
    if (template !== null) expect(new Set(told)).toEqual(new Set([template + tokensPerByte * 1_000]));
    const costliest = Math.max(...rows.map(({ billed_tokens }) => billed_tokens));
    expect(-left).toBeLessThanOrEqual(costliest);
    await eventually("nothing is reserved", async () => (await gateway.show(email)).reserved === 0);
  });
});
