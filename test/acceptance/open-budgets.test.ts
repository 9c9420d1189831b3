// Requests to a shop's own models that name no output budget: what they hold, how long their answers may be, and what is
// said where a named one does not fit.
import { expect, test } from "bun:test";
import { useStack } from "../fixtures/stack.ts";
import { finish, type NodeUsage, once, type Script, text } from "../fixtures/scripts.ts";

const context = 32_768;
const daily = 5_000;
/** A model token costs one of balance. */
const config = `
[[plans]]
id = "free"
tokens_per_day = 30_000

[[plans]]
id = "small"
tokens_per_day = ${daily}

[[models]]
id = "own"
price = 5
context = ${context}

[[models]]
id = "dear"
price = { input = 0.5, output = 50 }
context = ${context}
`;
const stack = useStack({ config });
const promptTokens = 20;

const usageOf = (tokens: number): NodeUsage => ({
  prompt_tokens: promptTokens,
  completion_tokens: tokens,
  total_tokens: promptTokens + tokens,
});
const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "ab " } }] })}\n\n`;

/** Writes so many tokens, each in an event of its own, as many in a write as there may be, and says how many they are. */
const writes = (tokens: number): Script => once({ raw: event.repeat(tokens) }, finish("stop", usageOf(tokens)));

type Reply = Readonly<{
  usage: Readonly<Record<string, number>>;
  choices: readonly Readonly<{ finish_reason: string }>[];
  error: Readonly<Record<string, string | number>>;
  status: string;
}>;

async function post(path: string, key: string, body: object): Promise<Readonly<{ status: number; json: Reply }>> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const reply = await fetch(`${stack.gateway.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: reply.status, json: (await reply.json()) as Reply };
}

const chat = (key: string, marker: string, more: object = {}) =>
  post("/v1/chat/completions", key, {
    model: "own",
    messages: [{ role: "user", content: `Hi [[${marker}]]` }],
    ...more,
  });

/** The budget of which the node was told. */
const toldNode = async (marker: string) => (await stack.node.request(marker)).body!["max_tokens"];

test("the first request of an allowance below the usual budget is answered, and its node is told what there is", async () => {
  const { api_key: key } = await stack.gateway.account(0, "small");
  await stack.node.define("short", writes(5));
  const marker = stack.node.marker("short");
  expect((await chat(key, marker)).status).toBe(200);
  expect(await toldNode(marker)).toBe(daily);
  // Of what costs a tenth of a cent a token there is a tenth as much.
  const dear = stack.node.marker("short");
  expect((await chat(key, dear, { model: "dear" })).status).toBe(200);
  expect(await toldNode(dear)).toBe(Math.floor((daily - 25) / 10));
});

test("with balance enough an answer may be as long as the context, and is not cut on its way there", async () => {
  const { email, api_key: key } = await stack.gateway.account(1_000_000, "small");
  await stack.node.define("long", writes(20_000));
  const marker = stack.node.marker("long");
  const { status, json } = await post("/v1/responses", key, { model: "own", input: `Go on [[${marker}]]` });
  expect([status, json.status, json.usage["output_tokens"]]).toEqual([200, "completed", 20_000]);
  expect(await toldNode(marker)).toBe(context);
  expect(await stack.gateway.usage(email)).toMatchObject([{ billed_tokens: 20_000 + promptTokens }]);
});

test("with a small balance an answer is cut where that ends, and not before", async () => {
  const { email, api_key: key } = await stack.gateway.account(0, "small");
  await stack.node.define("long", writes(20_000));
  const { status, json } = await chat(key, stack.node.marker("long"), { stream: false });
  expect([status, json.choices[0]!.finish_reason]).toEqual([200, "length"]);
  expect(json.usage["completion_tokens"]).toBe(daily);
  const [row] = await stack.gateway.usage(email);
  expect(row!.output).toBe(daily);
});

test("many at once behind a small limit are all answered: they wait for each other, and stay within it", async () => {
  const { email } = await stack.gateway.account();
  const { api_key: key } = await stack.gateway.makeKey(email, {
    name: "people",
    forwards_users: true,
    limit_end_user_day: 2_000,
  });
  await stack.node.define(
    "brief",
    once(...text(...Array<string>(50).fill("ab ")), { waitMs: 5 }, finish("stop", usageOf(50))),
  );
  const answers = await Promise.all(
    Array.from({ length: 16 }, () => chat(key, stack.node.marker("brief"), { user: "ada" })),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(16).fill(200));
  const rows = await stack.gateway.usage(email);
  expect(rows.reduce((sum, { billed_tokens: billed }) => sum + billed, 0)).toBe(16 * (50 + promptTokens));
});

test("long answers at once never come to more than the limit and one input", async () => {
  const { email, api_key: key } = await stack.gateway.account(0, "small");
  await stack.node.define("long", writes(20_000));
  const answers = await Promise.all(Array.from({ length: 4 }, () => chat(key, stack.node.marker("long"))));
  for (const { status } of answers) expect([200, 429]).toContain(status);
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(0);
  const rows = await stack.gateway.usage(email);
  const output = rows.reduce((sum, { output }) => sum + output, 0);
  expect(output).toBeLessThanOrEqual(daily);
  const input = Math.max(...rows.map(({ billed_tokens: billed, output }) => billed - output));
  expect(rows.reduce((sum, { billed_tokens: billed }) => sum + billed, 0)).toBeLessThanOrEqual(daily + input);
});

test("a named budget that does not fit is refused with one that does; what is used up is another refusal", async () => {
  const account = await stack.gateway.account(0, "small");
  const refused = await chat(account.api_key, "text", { max_tokens: 8_000 });
  expect([refused.status, refused.json.error]).toEqual([
    429,
    expect.objectContaining({
      type: "rate_limit_error",
      code: "insufficient_quota",
      message: expect.stringContaining(`Send max_tokens of at most ${daily}`),
      spendable: daily,
      requested: 8_000,
      max_tokens: daily,
    }),
  ]);
  await stack.node.define("long", writes(20_000));
  const fitting = await chat(account.api_key, stack.node.marker("long"), { max_tokens: daily });
  expect(fitting.status).toBe(200);
  const after = await chat(account.api_key, "text", { max_tokens: 1 });
  expect(after.json.error["message"]).toStartWith("Quota exceeded. Upgrade your plan at ");
  expect((await chat(account.api_key, "text")).json.error["message"]).toStartWith("Quota exceeded. Upgrade your plan");
  // Longer than the context it cannot be, whoever asks for it.
  const rich = await stack.gateway.account();
  const marker = stack.node.marker("text");
  expect((await chat(rich.api_key, marker, { max_tokens: 65_536 })).status).toBe(200);
  expect(await toldNode(marker)).toBe(context);
});

test("a key's limit and that of its end users say the same of themselves", async () => {
  const { email } = await stack.gateway.account();
  const { api_key: key } = await stack.gateway.makeKey(email, { name: "cron", limit_day: 1_000 });
  const refused = await chat(key, "text", { max_tokens: 1_001 });
  expect(refused.json.error).toMatchObject({ key: "cron", limit: 1_000, spendable: 1_000, max_tokens: 1_000 });
  expect(refused.json.error["message"]).toEndWith("1000 of its 1000 a day are free. Send max_tokens of at most 1000.");
  await stack.node.define("long", writes(20_000));
  expect((await chat(key, stack.node.marker("long"))).json.usage["completion_tokens"]).toBe(1_000);
  expect((await chat(key, "text", { max_tokens: 1 })).json.error["message"]).toBe(
    "Quota exceeded for the API key `cron`: it may use 1000 balance tokens a day.",
  );
});

test("the list of models says one number of how long an answer may be", async () => {
  const { api_key: key } = await stack.gateway.account();
  const reply = await fetch(`${stack.gateway.url}/v1/models/own`, { headers: { authorization: `Bearer ${key}` } });
  expect(await reply.json()).toMatchObject({
    context_window: context,
    max_tokens: context,
    max_output_tokens: context,
  });
});
