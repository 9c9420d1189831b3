// What people learn about the line: a quote before they ask, a comment while they wait, and a refusal at once where their
// deadline cannot be met.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { TellingNode } from "../fixtures/telling-node.ts";

setDefaultTimeout(120_000);

describe.each([[1], [2]])("with %i threads", (threads) => {
  const node = new TellingNode();
  let gateway: GatewayProcess;
  let account: Account;
  const hold = new AbortController();
  /** Kept: a response that is collected is cancelled. */
  let held: Response;

  beforeAll(async () => {
    const nodes = `[[nodes]]\nname = "a"\nurl = "${node.url}"\nslots = 1\nmodels = { teller = "teller" }\n`;
    const model = `[[models]]\nid = "teller"\nprice = { input = 0, output = 5 }\n`;
    gateway = await GatewayProcess.start({ config: `[server]\nthreads = ${threads}\n${nodes}${model}` });
    account = await gateway.account();
    held = await send("chat/completions", { ...say("endless"), stream: true }, {}, hold.signal);
    expect(held.status).toBe(200); // the only slot is taken
  });
  afterAll(async () => {
    hold.abort();
    await gateway[Symbol.asyncDispose]();
    node[Symbol.dispose]();
  });

  const say = (content: string) => ({ messages: [{ role: "user", content }] });
  const send = (path: string, body: object, headers: Record<string, string> = {}, signal?: AbortSignal) =>
    fetch(`${gateway.url}/v1/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${account.api_key}`, ...headers },
      body: JSON.stringify({ model: "teller", max_tokens: 9, ...body }),
      ...(signal === undefined ? {} : { signal }),
    });
  const spent = async () => {
    const { allowance, credit, reserved } = await gateway.show(account.email);
    return { left: allowance.left, credit, reserved };
  };

  test.each([
    ["messages", say("Hi"), {}, "/v1/chat/completions"],
    ["messages with a system prompt", { ...say("Hi"), system: "Be kind" }, {}, "/v1/messages"],
    ["a client of the Messages API", say("Hi"), { "anthropic-version": "2023-06-01" }, "/v1/messages"],
    ["input", { input: "Hi", max_output_tokens: 9 }, {}, "/v1/responses"],
    ["prompt", { prompt: "Hi" }, {}, "/v1/completions"],
  ] as const)("a quote reads %s, and says price and place", async (_what, body, headers, endpoint) => {
    const before = await spent();
    const reply = await send("quote", body, headers);
    expect(reply.status).toBe(200);
    expect(await reply.json()).toMatchObject({
      object: "quote",
      model: "teller",
      endpoint,
      output_tokens_max: 9,
      price_max: 9, // at 5 dollars per million, as a balance token costs
      price_max_usd: 0.000045,
      priority: "standard",
      position: 1,
      expected_first_token_ms: expect.any(Number),
    });
    expect(await spent()).toEqual(before);
  });

  test("a quote refuses what is no request, and names why, in the client's form", async () => {
    const unknown = await send("quote", {});
    expect([unknown.status, ((await unknown.json()) as any).error.message]).toEqual([
      400,
      "The body must be that of a request: messages, input, prompt or documents",
    ]);
    const wrong = await send("quote?endpoint=/v1/messages", { messages: [] });
    expect([wrong.status, ((await wrong.json()) as any).type]).toEqual([400, "error"]);
    const nowhere = await send("quote?endpoint=/v1/nothing", say("Hi"));
    expect(nowhere.status).toBe(400);
  });

  test.each([["chat/completions"], ["messages"]])(
    "%s: a request that cannot begin before its deadline is refused, and costs nothing",
    async (path) => {
      const before = await spent();
      const reply = await send(path, say("Hi"), { "x-deadline-ms": "400" });
      expect(reply.status).toBe(429);
      expect(reply.headers.get("x-should-retry")).toBe("false");
      const { error } = (await reply.json()) as { error: { message: string } };
      expect(error.message).toContain("cannot begin within its x-deadline-ms: it is number 1 in line");
      // With several threads, the reply may leave before the main one has taken the hold back.
      await eventually("nothing is held", async () => Bun.deepEquals(await spent(), before));
    },
  );

  test.each(["", "0", "-1", "1.5", "soon", "99999999"])("a deadline of %j is a 400 that names it", async (deadline) => {
    const reply = await send("chat/completions", say("Hi"), { "x-deadline-ms": deadline });
    expect(reply.status).toBe(400);
    expect(((await reply.json()) as any).error.message).toContain("x-deadline-ms");
  });

  test("a stream that waits says where it is in line, in a comment", async () => {
    const gone = new AbortController();
    const reply = await send("chat/completions", { ...say("Hi"), stream: true }, {}, gone.signal);
    const { value } = await reply.body!.getReader().read();
    expect(new TextDecoder().decode(value)).toMatch(/^: waiting\n\n: number 1 in line, first token in about \d+ s\n\n/);
    gone.abort();
  });
});
