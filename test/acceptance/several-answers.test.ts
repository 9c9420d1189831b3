// Several prompts, and several answers of each, in one request to a shop's own model: what the client gets, what it pays, and
// what it meets where it leaves or a node fails.
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { TellingNode } from "../fixtures/telling-node.ts";

setDefaultTimeout(120_000);
const node = new TellingNode();
const echoing = new TellingNode("vllm");
let gateway: GatewayProcess;
let account: Account;

beforeAll(async () => {
  const model = '[[models]]\nid = "teller"\nprice = 5\n'; // a token of balance for each of the model's
  const nodes = [
    `[[nodes]]\nname = "a"\nurl = "${node.url}"\nslots = 8\nmodels = { teller = "teller" }\n`,
    `[[nodes]]\nname = "b"\nurl = "${echoing.url}"\nslots = 8\nmodels = { echoing = "teller" }\n`,
  ];
  const config = `${nodes.join("")}${model}${model.replace("teller", "echoing")}`;
  gateway = await GatewayProcess.start({ config });
  account = await gateway.account(1_000_000);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  node[Symbol.dispose]();
  echoing[Symbol.dispose]();
});
afterEach(() => gateway.expectNothingReserved());

async function send(path: string, body: object, signal: AbortSignal | null = null) {
  return fetch(`${gateway.url}/v1/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${account.api_key}` },
    signal,
    body: JSON.stringify({ model: "teller", ...body }),
  });
}
type Json = Record<string, any>;
const completed = async (body: object): Promise<Json> => (await send("completions", body)).json() as Promise<Json>;
const chunksOf = (text: string): Json[] =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json!) as Json);
const lastRow = async () => (await gateway.usage(account.email, 1))[0]!;
const textsOf = ({ choices }: Json): string[] => choices.map(({ text }: Json) => text);

test("several prompts in one completion: an answer each in their order, one charge, which is the sum", async () => {
  const before = (await gateway.usage(account.email)).length;
  const reply = await completed({ prompt: ["one", "two words", "and three words"] });
  expect(reply["choices"].map(({ index }: Json) => index)).toEqual([0, 1, 2]);
  expect(textsOf(reply)).toEqual(["<one 0>", "<two words 0>", "<and three words 0>"]);
  expect(reply["usage"]).toMatchObject({ prompt_tokens: 6, completion_tokens: 6, total_tokens: 12 });
  expect((await gateway.usage(account.email)).length).toBe(before + 1);
  expect(await lastRow()).toMatchObject({ input: 6, output: 6, estimated: false });
});

test("token lists, and a list of many in a body that a Worker reads", async () => {
  const small = await completed({ prompt: [[1, 2, 3], [4]] });
  expect(textsOf(small)).toEqual(["<1,2,3 0>", "<4 0>"]);
  const long = Array.from({ length: 20_000 }, (_, token) => token);
  const large = await completed({ prompt: [long, [5, 6], long.slice(1)], max_tokens: 20_000 });
  expect(textsOf(large).map((text) => text.length)).toEqual(
    [long, [5, 6], long.slice(1)].map((tokens) => tokens.join(",").length + 4),
  );
  expect(large["usage"]["prompt_tokens"]).toBe(40_001);
  const texts = ["x".repeat(400_000), "a\nb", "y".repeat(300_000)];
  expect(textsOf(await completed({ prompt: texts, max_tokens: 20_000 }))).toEqual(texts.map((text) => `<${text} 0>`));
});

test("n of each prompt: answers of a prompt stand together, and its input is charged once", async () => {
  const reply = await completed({ prompt: ["red fish", "blue"], n: 2, seed: 7 });
  expect(reply["choices"].map(({ index }: Json) => index)).toEqual([0, 1, 2, 3]);
  expect(textsOf(reply).map((text) => text.replace(/\d/, ""))).toEqual([
    ...["<red fish >", "<red fish >"],
    ...["<blue >", "<blue >"],
  ]);
  expect(reply["usage"]).toMatchObject({ prompt_tokens: 3, completion_tokens: 8 });
  expect(await lastRow()).toMatchObject({ input: 3, output: 8 });
  const seeds = node.requests.slice(-4).map(({ body }) => body["seed"]);
  expect(seeds.sort()).toEqual([7, 7, 8, 8]);
});

test("best_of gives the likeliest, pays for all, and shows no log probabilities that nobody asked for", async () => {
  const reply = await completed({ prompt: "pick", n: 2, best_of: 4 });
  expect(textsOf(reply)).toEqual(["<pick 3>", "<pick 2>"]);
  expect(reply["choices"]).toMatchObject([
    { index: 0, logprobs: null },
    { index: 1, logprobs: null },
  ]);
  expect(reply["usage"]).toMatchObject({ prompt_tokens: 1, completion_tokens: 8 });
  for (const [body, message] of [
    [{ best_of: 3, stream: true }, "best_of must not be above n in a stream"],
    [{ best_of: 2, n: 3 }, "best_of must be at least n, 3"],
    [{ prompt: Array(100).fill("x"), n: 3 }, "prompt: a request may ask for 256 answers, n of each prompt, not 300"],
    [{ prompt: Array(257).fill("x") }, "prompt: a request may have 256 prompts, not 257"],
  ] as const) {
    const response = await send("completions", { prompt: "x", ...body });
    expect([response.status, ((await response.json()) as Json)["error"].message]).toEqual([400, message]);
  }
});

test.each([false, true])(
  "a stream has each answer's index, its finish once, and the usage last (apart: %p)",
  async (apart) => {
    const response = await send("completions", {
      prompt: ["a b", "c"],
      n: 2,
      stream: true,
      ...(apart ? { stream_options: { include_usage: true } } : {}),
    });
    const text = await response.text();
    expect(text).toEndWith("data: [DONE]\n\n");
    const chunks = chunksOf(text);
    const last = chunks.pop()!;
    expect(last["usage"]).toMatchObject({ prompt_tokens: 3, completion_tokens: 8 });
    expect(last["choices"].map(({ index, text }: Json) => [index, text])).toEqual(
      apart
        ? []
        : [
            [0, ""],
            [0, ""],
          ],
    );
    const texts = ["", "", "", ""];
    const finished: number[] = [];
    for (const { usage, choices } of chunks) {
      expect([usage, choices.length]).toEqual([undefined, 1]);
      const [{ index, text, finish_reason }] = choices;
      expect(finished).not.toContain(index);
      texts[index] += text;
      if (finish_reason !== null) finished.push(index);
    }
    expect(finished.sort()).toEqual([0, 1, 2, 3]);
    expect(texts.map((text) => text.replace(/\d/, ""))).toEqual(["<a b >", "<a b >", "<c >", "<c >"]);
    expect(await lastRow()).toMatchObject({ input: 3, output: 8 });
  },
);

test("n in chat, whole and streamed", async () => {
  const body = { messages: [{ role: "user", content: "hi you" }], n: 3 };
  const whole = (await (await send("chat/completions", body)).json()) as Json;
  expect(whole["choices"].map(({ index }: Json) => index)).toEqual([0, 1, 2]);
  for (const { message } of whole["choices"]) expect(message.content).toMatch(/^<hi you [012]>$/);
  expect(whole["usage"]).toMatchObject({ prompt_tokens: 2, completion_tokens: 6 });
  const chunks = chunksOf(await (await send("chat/completions", { ...body, stream: true })).text());
  for (const index of [0, 1, 2]) {
    const own = chunks
      .slice(0, -1)
      .flatMap(({ choices }) => choices.filter((choice: Json) => choice["index"] === index));
    expect(own.map(({ delta }) => delta.role).filter((role) => role !== undefined)).toEqual(["assistant"]);
    expect(own.map(({ delta }) => delta.content ?? "").join("")).toMatch(/^<hi you [345]>$/);
    expect(own.at(-1).finish_reason).toBe("stop");
  }
});

test("a node that fails one answer fails the request: nothing is charged, the others are stopped", async () => {
  const before = (await gateway.usage(account.email)).length;
  const aborted = node.aborted;
  const response = await send("completions", { prompt: ["endless a", "endless b", "please fail"] });
  expect(response.status).toBeGreaterThanOrEqual(429);
  expect((await gateway.usage(account.email)).length).toBe(before);
  await eventually("the other two are stopped", async () => node.aborted === aborted + 2);
});

test("a client that leaves a stream pays for what came, once", async () => {
  const before = (await gateway.usage(account.email)).length;
  const leaving = new AbortController();
  const aborted = node.aborted;
  const body = { prompt: ["short", "endless one", "endless two"], stream: true };
  const response = await send("completions", body, leaving.signal);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!["short 0>", "one 0>", "two 0>"].every((end) => joined(text).includes(end))) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`it ended after ${text}`);
    text += value;
  }
  leaving.abort();
  await reader.read().catch(() => null);
  await eventually("both are stopped", async () => node.aborted === aborted + 2);
  await eventually("it is charged", async () => (await gateway.usage(account.email)).length === before + 1);
  // Of the two that were cut, a token for 4 of their 15 characters.
  expect(await lastRow()).toMatchObject({ output: 2 + 4 + 4, estimated: true });
});
const joined = (text: string): string => {
  const texts: string[] = [];
  for (const { choices } of chunksOf(text)) {
    for (const { index, text } of choices) texts[index] = (texts[index] ?? "") + text;
  }
  return texts.join("|");
};

test("so much is held as all answers may come to", async () => {
  const { spendable } = await gateway.show(account.email);
  const leaving = new AbortController();
  const opened = send("completions", { prompt: ["endless x", "endless y"], n: 2, max_tokens: 100 }, leaving.signal);
  opened.catch(() => null);
  await eventually("it is held", async () => (await gateway.show(account.email)).reserved >= 400);
  expect((await gateway.show(account.email)).reserved).toBeLessThan(800);
  leaving.abort();
  await eventually("it came back", async () => (await gateway.show(account.email)).spendable === spendable);
  const refused = await send("completions", { prompt: Array(200).fill("x"), max_tokens: 65_536 });
  expect(refused.status).toBe(429);
  // What it is told to name instead fits, for all of them.
  const { error } = (await refused.json()) as Json;
  expect(error.max_tokens).toBe(Math.floor(error.spendable / 200));
  expect((await send("completions", { prompt: Array(200).fill("x"), max_tokens: error.max_tokens })).status).toBe(200);
});

test("the models of the specification give one answer", async () => {
  for (const body of [{ prompt: ["a", "b"] }, { prompt: "a", n: 2 }, { prompt: "a", best_of: 2 }]) {
    expect((await send("completions", { model: "core-3", ...body })).status).toBe(400);
  }
});

test("a prompt alone, with its log probabilities, where the engine gives that: nothing written is charged", async () => {
  const body = { prompt: ["one two", "three"], echo: true, max_tokens: 0, logprobs: 1 };
  const reply = await completed({ model: "echoing", ...body });
  expect(textsOf(reply)).toEqual(["one two", "three"]);
  expect(reply["choices"][0].logprobs.token_logprobs).toEqual([-9]);
  expect(reply["usage"]).toMatchObject({ prompt_tokens: 3, completion_tokens: 0 });
  expect(await lastRow()).toMatchObject({ input: 3, output: 0, estimated: false });
  expect(echoing.requests.map(({ body }) => body["max_tokens"])).toEqual([0, 0]);
  expect((await send("completions", body)).status).toBe(400);
});
