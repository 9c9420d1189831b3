// Named keys on the running program, by the command line and the official client: what they are refused, and that usage
// knows them.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { CountingNode } from "../threads/counting-node.ts";
import { run } from "./program.ts";

type Key = Readonly<{ id: number; name: string; api_key: string }>;

let node: CountingNode;
let gateway: GatewayProcess;

beforeAll(async () => {
  node = new CountingNode();
  node.answer = "at once";
  const nodes = `[[nodes]]\nname = "counting"\nurl = "${node.url}"\nslots = 64\n`;
  gateway = await GatewayProcess.start({ config: `${nodes}[console]\naddress_header = "x-real-ip"\n` });
}, 120_000);
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  node.stop();
}, 120_000);

const keyOf = (email: string, name: string, ...limits: string[]): Promise<Key> =>
  gateway.cli<Key>("keys", "create", email, "--name", name, ...limits);

const post = (key: string, path: string, body: object, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify(body),
  });

const messages = [{ role: "user" as const, content: "x" }];
const chat = (key: string, headers?: Record<string, string>, model = "core-3") =>
  post(key, "/v1/chat/completions", { model, max_tokens: 1_000, messages }, headers);

test("a key is made, listed, used and revoked, and usage names it", async () => {
  const { email, api_key: first } = await gateway.account();
  const made = await keyOf(email, "bot", "--limit-day", "20000", "--models", "core-3, core-2-pro");
  expect(made).toMatchObject({ id: 2, name: "bot", limit_day: 20_000, models: ["core-3", "core-2-pro"] });
  for (const key of [made.api_key, first, made.api_key]) expect((await chat(key)).status).toBe(200);
  const rows = await gateway.usage(email);
  expect(rows.map((row) => (row as unknown as { key: string }).key)).toEqual(["bot", "default", "bot"]);
  const [ofFirst, ofBot] = await gateway.cli<Record<string, unknown>[]>("keys", "list", email);
  expect(ofFirst).toMatchObject({ id: 1, name: "default", last_used_at: expect.any(String) });
  expect(ofBot).toMatchObject({ id: 2, name: "bot", used_day: rows[0]!.billed_tokens + rows[2]!.billed_tokens });
  expect(JSON.stringify(ofBot)).not.toContain("sk-tg-");
  expect(await gateway.cli<object>("keys", "revoke", email, "2")).toEqual({ id: 2, name: "bot" });
  expect((await chat(made.api_key)).status).toBe(401);
  expect(await gateway.cli<object[]>("keys", "list", email)).toHaveLength(1);
  for (const key of ["1", "2", "7"]) {
    const { code, stderr } = await run(["keys", "revoke", email, key, "--data", gateway.dataFolder]);
    expect([code, stderr.split("\n").length]).toEqual([1, 1]);
  }
}, 120_000);

test("a key has limits of the line, which are changed, lifted and named where they are wrong", async () => {
  const { email } = await gateway.account();
  const given = ["--weight", "3", "--priority", "bulk", "--priority-max", "standard", "--parallel", "4"];
  const perMinute = ["--requests-per-minute", "60", "--tokens-per-minute", "90000"];
  const limits = { weight: 3, priority: "bulk", priority_max: "standard", parallel: 4 };
  const ofMinute = { requests_per_minute: 60, tokens_per_minute: 90_000 };
  const made = await keyOf(email, "bot", ...given, ...perMinute);
  expect(made).toMatchObject({ ...limits, ...ofMinute });
  const lifted = await gateway.cli<object>("keys", "limits", email, "2", "--parallel", "none", "--priority", "none");
  expect(lifted).toMatchObject({ ...limits, ...ofMinute, priority: null, parallel: null });
  for (const [flag, value] of [
    ["weight", "101"],
    ["weight", "0"],
    ["priority", "urgent"],
    ["priority-max", "1"],
    ["parallel", "0.5"],
    ["requests-per-minute", "1000001"],
    ["tokens-per-minute", "-1"],
  ]) {
    const { code, stderr } = await run([
      ...["keys", "limits", email, "2", `--${flag}=${value}`, "--data", gateway.dataFolder],
    ]);
    expect([flag, code === 0, stderr.replaceAll("_", "-").includes(flag!)]).toEqual([flag, false, true]);
  }
});

describe.each([
  ["/v1/chat/completions", { max_tokens: 1_000, messages }, (body: any) => body.error],
  ["/v1/messages", { max_tokens: 1_000, messages }, (body: any) => (body.type === "error" ? body.error : null)],
  ["/v1/responses", { max_output_tokens: 1_000, input: "x" }, (body: any) => body.error],
])("%s", (path, body, errorOf) => {
  test("a key's limit and its models are refused in the dialect's form, and both are free", async () => {
    const { email } = await gateway.account();
    const { api_key } = await keyOf(email, "bot", "--limit-month", "999", "--models", "core-3");
    const full = await post(api_key, path, { model: "core-3", ...body });
    expect([full.status, full.headers.get("x-should-retry")]).toEqual([429, "false"]);
    expect(errorOf(await full.json())).toMatchObject({
      type: "rate_limit_error",
      message: "Quota exceeded for the API key `bot`: it may use 999 balance tokens a month.",
    });
    const other = await post(api_key, path, { model: "core-2-pro", ...body });
    expect(other.status).toBe(403);
    expect(errorOf(await other.json())).toMatchObject({
      type: "permission_error",
      message: expect.stringContaining("`bot`"),
    });
    expect(await gateway.usage(email)).toEqual([]);
  }, 120_000);
});

test("the official client has the errors that it knows", async () => {
  const { email } = await gateway.account();
  const { api_key: apiKey } = await keyOf(email, "bot", "--limit-day", "999", "--models", "core-3");
  const client = new OpenAI({ apiKey, baseURL: `${gateway.url}/v1` });
  const asked = async (model: string) => client.chat.completions.create({ model, max_tokens: 1_000, messages });
  await expect(asked("core-3")).rejects.toBeInstanceOf(OpenAI.RateLimitError);
  await expect(asked("core-3")).rejects.toMatchObject({
    code: "insufficient_quota",
    error: { key: "bot", limit: 999 },
  });
  await expect(asked("core-2-pro")).rejects.toBeInstanceOf(OpenAI.PermissionDeniedError);
}, 120_000);

test("a key for some addresses is refused from others, as the proxy's header names them, on every route", async () => {
  const { email } = await gateway.account();
  const { api_key } = await keyOf(email, "office", "--addresses", "10.1.0.0/16,2001:db8::/32");
  const from = async (address: string) => {
    const headers = { "x-real-ip": address };
    const counting = await post(api_key, "/v1/messages/count_tokens", { model: "core-3", messages }, headers);
    const list = await fetch(`${gateway.url}/v1/models`, {
      headers: { ...headers, authorization: `Bearer ${api_key}` },
    });
    return [(await chat(api_key, headers)).status, counting.status, list.status];
  };
  for (const address of ["10.1.2.3", "::ffff:10.1.2.3", "2001:db8::7", "1.2.3.4, 10.1.255.255"]) {
    expect([address, ...(await from(address))]).toEqual([address, 200, 200, 200]);
  }
  for (const address of ["10.2.0.1", "10.1.0.1, 192.0.2.1", "127.0.0.1", "2001:db9::1", "::a01:203"]) {
    expect([address, ...(await from(address))]).toEqual([address, 403, 403, 403]);
  }
  expect((await chat(api_key)).status).toBe(403);
}, 120_000);

test("a key that expires while its body is on its way starts nothing", async () => {
  const { email } = await gateway.account();
  const expires = new Date(Date.now() + 4_000);
  const { api_key } = await keyOf(email, "short", "--expires", expires.toISOString());
  const text = JSON.stringify({ model: "core-3", max_tokens: 10, messages });
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(new TextEncoder().encode(text.slice(0, 5)));
      await Bun.sleep(Math.max(0, expires.getTime() - Date.now()) + 50); // the key's own time passes, nothing is waited for
      controller.enqueue(new TextEncoder().encode(text.slice(5)));
      controller.close();
    },
  });
  const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${api_key}` },
    body,
  });
  expect(reply.status).toBe(401);
  expect((await chat(api_key)).status).toBe(401);
}, 120_000);

test("what was charged to a key is known after a kill, to the token", async () => {
  const { email } = await gateway.account();
  const { api_key } = await keyOf(email, "bot", "--limit-day", "5000");
  const replies = Promise.allSettled(Array.from({ length: 40 }, () => chat(api_key)));
  await Promise.race([replies, Bun.sleep(30)]);
  await gateway.kill("SIGKILL");
  await replies;
  await gateway.restart();
  const sum = (await gateway.usage(email)).reduce((total, { billed_tokens }) => total + billed_tokens, 0);
  const [, key] = await gateway.cli<{ used_day: number }[]>("keys", "list", email);
  expect(key!.used_day).toBe(sum);
  await gateway.expectNothingReserved();
}, 120_000);
