// For whom a program asks, told as each official client tells it and as Open WebUI does by its headers: usage knows them, a
// limit a day holds for each of them, and a 429 names whose limit it was.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { installed, missing } from "../fixtures/optional.ts";
import { CountingNode } from "../threads/counting-node.ts";

type Key = Readonly<{ id: number; api_key: string }>;
type Row = Readonly<{ end_user: string | null; key: string; billed_tokens: number; endpoint: string }>;
type AnthropicModule = { Anthropic: new (options: object) => { messages: { create(body: object): Promise<object> } } };

const anthropic = await installed<AnthropicModule>("@anthropic-ai/sdk", import.meta.dir);
const lacksAnthropic = missing("@anthropic-ai/sdk", anthropic !== null, "run npm ci in test/clients");

const messages = [{ role: "user" as const, content: "Hello" }];
const budget = 1_000;

describe.each([1, 2])("with %i threads", (threads) => {
  let node: CountingNode;
  let gateway: GatewayProcess;
  beforeAll(async () => {
    node = new CountingNode();
    const config = `[[nodes]]\nname = "counting"\nurl = "${node.url}"\nslots = 64\n
      [usage]\nend_user_header = "X-OpenWebUI-User-Email"\n[log]\nlevel = "debug"\nformat = "json"\n`;
    gateway = await GatewayProcess.start({ config, threads });
  }, 120_000);
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    node.stop();
  }, 120_000);

  const bot = async (...more: string[]) => {
    const { email } = await gateway.account();
    const { api_key } = await gateway.cli<Key>("keys", "create", email, "--name", "bot", "--forwards-users", ...more);
    return { email, apiKey: api_key };
  };
  const openai = (apiKey: string, defaultHeaders: Record<string, string> = {}) =>
    new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, defaultHeaders, maxRetries: 0 });
  const rowsOf = async (email: string) => (await gateway.usage(email)).reverse() as unknown as Row[];
  const namesOf = async (email: string) => (await rowsOf(email)).map(({ end_user }) => end_user);

  test("chat and responses say it in user and safety_identifier", async () => {
    const { email, apiKey } = await bot();
    const client = openai(apiKey);
    const model = "core-3";
    await client.chat.completions.create({ model, max_tokens: budget, messages, user: "ada" });
    for await (const _ of await client.chat.completions.create({ model, messages, stream: true, user: "bob" })) void _;
    await client.chat.completions.create({ model, messages, safety_identifier: "eve", user: "old" } as never);
    await client.responses.create({ model, max_output_tokens: budget, input: "Hello", user: "ada" });
    await client.responses.create({ model, input: "Hello", safety_identifier: "eve" } as never);
    await client.chat.completions.create({ model, max_tokens: budget, messages });
    expect(await namesOf(email)).toEqual(["ada", "bob", "eve", "ada", "eve", null]);
  }, 120_000);

  test.skipIf(lacksAnthropic)(
    "messages say it in metadata.user_id, sessions of an agent left out",
    async () => {
      const { email, apiKey } = await bot();
      const client = new anthropic!.Anthropic({ baseURL: gateway.url, apiKey, maxRetries: 0 });
      const device = "0".repeat(64);
      for (const id of ["ada", JSON.stringify({ device_id: device, account_uuid: "", session_id: "1" })]) {
        await client.messages.create({ model: "core-3", max_tokens: budget, messages, metadata: { user_id: id } });
      }
      expect(await namesOf(email)).toEqual(["ada", device]);
    },
    120_000,
  );

  test("Open WebUI says it in a header, which wins, for every model and in a large body", async () => {
    const { email, apiKey } = await bot();
    const headers = {
      "X-OpenWebUI-User-Name": "Ada",
      "X-OpenWebUI-User-Id": "11111111-0000-4000-8000-000000000001",
      "X-OpenWebUI-User-Email": "ada@example.org",
      "X-OpenWebUI-User-Role": "user",
    };
    const client = openai(apiKey, headers);
    await client.chat.completions.create({ model: "core-3", messages, user: "somebody" });
    const long = [{ role: "user" as const, content: "word ".repeat(150_000) }];
    await client.chat.completions.create({ model: "core-3", max_tokens: 10, messages: long });
    await openai(apiKey).chat.completions.create({ model: "core-3", max_tokens: 10, messages: long, user: "bob" });
    expect(await namesOf(email)).toEqual(["ada@example.org", "ada@example.org", "bob"]);
    await eventually("the log knows it", async () => gateway.output.includes('"endUser":"ada@example.org"'));
  }, 120_000);

  test("who may not say it is not believed, and not written down", async () => {
    const { email, api_key: first } = await gateway.account();
    const { api_key } = await gateway.cli<Key>("keys", "create", email, "--name", "x", "--limit-day", "100000");
    for (const apiKey of [first, api_key]) {
      const client = openai(apiKey, { "X-OpenWebUI-User-Email": "ada@example.org" });
      await client.chat.completions.create({ model: "core-3", messages, user: "ada" });
    }
    expect(await namesOf(email)).toEqual([null, null]);
    expect(await gateway.cli<object[]>("end-users", "list", email)).toEqual([]);
  }, 120_000);

  test("each has a limit a day, exactly, however many ask at once; the refusal names whose it was, in each dialect", async () => {
    // Two fit, with the 4,096 tokens that a thread expects around a prompt before it has seen an answer; three do not.
    const { email, apiKey } = await bot("--limit-end-user-day", "33000");
    const client = openai(apiKey);
    const ask = (user: string) =>
      client.chat.completions.create({ model: "core-3", max_tokens: 12_000, messages, user });
    node.answer = "when told";
    let refusals = 0;
    const counted = (reason: unknown): never => {
      refusals += 1;
      throw reason;
    };
    const asked = Promise.allSettled(Array.from({ length: 20 }, () => ask("ada").catch(counted)));
    await eventually("two run", async () => node.running === 2);
    const other = ask("bob"); // another end user is served meanwhile
    await eventually("a third runs", async () => node.running === 3);
    await eventually("all others were refused", async () => refusals === 18);
    node.answer = "at once";
    node.finish();
    await other;
    const outcomes = await asked;
    const refused = outcomes.filter((outcome) => outcome.status === "rejected").map(({ reason }) => reason);
    expect([outcomes.length - refused.length, node.mostAtOnce]).toEqual([2, 3]);
    for (const reason of refused) {
      expect(reason).toBeInstanceOf(OpenAI.RateLimitError);
      expect(reason).toMatchObject({
        code: "insufficient_quota",
        error: { end_user: "ada", key: "bot", limit: 33_000 },
      });
    }
    // what is left is less than the budget, in every dialect
    const post = (path: string, body: object) =>
      fetch(gateway.url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}` },
        body: JSON.stringify({ model: "core-3", ...body }),
      });
    const replies = [
      await post("/v1/chat/completions", { max_tokens: 33_000, messages, user: "ada" }),
      await post("/v1/messages", { max_tokens: 33_000, messages, metadata: { user_id: "ada" } }),
      await post("/v1/responses", { max_output_tokens: 33_000, input: "x", user: "ada" }),
    ];
    for (const reply of replies) {
      expect([reply.status, reply.headers.get("x-should-retry")]).toEqual([429, "false"]);
      expect(await reply.text()).toContain(
        "Quota exceeded for the end user `ada` of the API key `bot`: it may use 33000 balance tokens a day.",
      );
    }
    expect((await post("/v1/messages", { max_tokens: 9_000, messages, metadata: { user_id: "bob" } })).status).toBe(
      200,
    );
    const list = await gateway.cli<{ name: string; used_last_day: number }[]>("end-users", "list", email);
    const rows = await rowsOf(email);
    for (const { name, used_last_day } of list) {
      const own = rows.filter(({ end_user }) => end_user === name);
      expect([name, used_last_day]).toEqual([name, own.reduce((sum, { billed_tokens }) => sum + billed_tokens, 0)]);
    }
    await gateway.expectNothingReserved();
  }, 120_000);

  test("one of them is exported, and erased, on a running server; odd names are shown as lines", async () => {
    const { email, apiKey } = await bot();
    const client = openai(apiKey);
    for (const user of ["ada", "=1+1", "a\nb\u001b[31m", "ada"]) {
      await client.chat.completions.create({ model: "core-3", max_tokens: 10, messages, user });
    }
    const names = await namesOf(email);
    expect(names).toEqual(["ada", "=1+1", expect.stringMatching(/^a\ufffdb\ufffd\[31m~[0-9a-f]{24}$/), "ada"]);
    const given = await gateway.cli<{ usage: object[]; keys: object[] }>("end-users", "export", email, "ada");
    expect([given.usage.length, given.keys]).toEqual([2, [expect.objectContaining({ key: "bot" })]]);
    await gateway.cli("end-users", "export", email, "a\nb\u001b[31m"); // as the program had it
    await expect(gateway.cli("end-users", "export", email, "nobody")).rejects.toThrow("no end user");
    await expect(gateway.cli("end-users", "erase", email, "ada")).rejects.toThrow("--yes");
    expect(await gateway.cli<object>("end-users", "erase", email, "ada", "--yes")).toEqual({ keys: ["bot"] });
    expect(await namesOf(email)).toEqual([null, "=1+1", names[2]!, null]);
    expect(await gateway.cli<object[]>("end-users", "list", email)).toHaveLength(2);
  }, 120_000);
});
