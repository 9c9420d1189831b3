// Presets of a shop's models: one node model under several ids, whose rows set, default or remove fields of requests and
// put instructions in front, whatever the dialect.
import { beforeAll, expect, test } from "bun:test";
import { readConfig } from "../../src/config/config.ts";
import { modelOf, nothingTold } from "../../src/config/models.ts";
import { largeBodyMinBytes } from "../../src/core/limits.ts";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { post } from "../fixtures/requests.ts";
import { useStack } from "../fixtures/stack.ts";

const rows = `
[[models]]
id = "base"
node_model = "scripted"
price = { input = 1, output = 2 }

[[models]]
id = "base:fast"
preset_of = "base"
price = 0
set = { temperature = 0.25, reasoning_effort = "none", top_k = 7 }
default = { top_p = 0.5, stop = ["END"], seed = 3 }
remove = ["presence_penalty"]
system = "Be brief."
`;
const stack = useStack({ config: rows });
let account: Account;

type Asked = Readonly<{ messages: readonly { role: string; content: unknown }[] } & Record<string, unknown>>;

async function asked(path: string, body: (text: string) => object, more: object = {}): Promise<Asked> {
  const marker = stack.node.marker("text");
  const response = await post(stack, account, { ...body(`hello [[${marker}]]`), ...more }, { path });
  expect([response.status, await response.text()]).toEqual([200, expect.anything()]);
  return (await stack.node.request(marker)).body as Asked;
}

const chat = (text: string) => ({ model: "base:fast", messages: [{ role: "user", content: text }] });
const dialects = [
  ["/v1/chat/completions", chat],
  ["/v1/messages", (text: string) => ({ ...chat(text), max_tokens: 9 })],
  ["/v1/responses", (text: string) => ({ model: "base:fast", input: text })],
] as const;

beforeAll(async () => {
  account = await stack.gateway.account();
  // The node gets more fields once its engine is known.
  await eventually("the engine is known", async () => {
    const { stream_options: options } = await asked("/v1/chat/completions", chat);
    return Object.hasOwn(options as object, "continuous_usage_stats");
  });
});

test.each(dialects)("%s: what the row sets, defaults and removes is what the node gets", async (path, body) => {
  const { messages, ...fields } = await asked(path, body);
  expect(fields).toMatchObject({ model: "scripted", temperature: 0.25, top_p: 0.5, top_k: 7, seed: 3, stop: ["END"] });
  expect(fields["chat_template_kwargs"]).toMatchObject({ enable_thinking: false });
  expect(messages[0]).toEqual({ role: "system", content: "Be brief." });
  expect(messages).toHaveLength(2);
});

test.each(dialects)("%s: the client wins over a default, and not over what is set", async (path, body) => {
  const more = { temperature: 1, top_p: 0.75, top_k: 2, presence_penalty: 0.5 };
  const { presence_penalty: removed, ...fields } = await asked(path, body, more);
  expect(fields).toMatchObject({ temperature: 0.25, top_p: 0.75, top_k: 7 });
  expect(removed).toBeUndefined();
});

test("a response repeats the settings that hold, as the stored one does", async () => {
  const body = { ...dialects[2][1](`hello [[${stack.node.marker("text")}]]`), temperature: 1, presence_penalty: 0.5 };
  const reply = (await (await post(stack, account, body, { path: "/v1/responses" })).json()) as { id: string };
  const held = { temperature: 0.25, top_p: 0.5, presence_penalty: 0, reasoning: { effort: "none" } };
  expect(reply).toMatchObject(held);
  const headers = { authorization: `Bearer ${account.api_key}` };
  const stored = await fetch(`${stack.gateway.url}/v1/responses/${reply.id}`, { headers });
  expect(await stored.json()).toMatchObject(held);
});

test("a client cannot switch thoughts on where the row sets the depth", async () => {
  const thinking = { thinking: { type: "enabled", budget_tokens: 2048 }, max_tokens: 4096 };
  const messages = await asked("/v1/messages", chat, thinking);
  expect(messages["chat_template_kwargs"]).toMatchObject({ enable_thinking: false });
  const switched = await asked("/v1/chat/completions", chat, { chat_template_kwargs: { enable_thinking: true, x: 1 } });
  expect(switched["chat_template_kwargs"]).toMatchObject({ enable_thinking: false, x: 1 });
});

test("the row's instructions stand before the client's own, also in a large body", async () => {
  const body = (text: string) => ({ model: "base:fast", instructions: "Rhyme.", input: text });
  for (const more of [{}, { padding: "x".repeat(largeBodyMinBytes) }]) {
    const { messages, temperature } = await asked("/v1/responses", body, more);
    expect(messages[0]).toEqual({ role: "system", content: "Be brief.\n\nRhyme." });
    expect(temperature).toBe(0.25);
  }
});

test("the model that it is a preset of stays as it is, and each has its price", async () => {
  const { messages, temperature } = await asked("/v1/chat/completions", (text) => ({ ...chat(text), model: "base" }));
  expect([messages.length, temperature]).toEqual([1, undefined]);
  const usage = await stack.gateway.cli<readonly { model: string; billed_tokens: number }[]>("usage", account.email);
  const billed = (model: string) => usage.find((row) => row.model === model)!.billed_tokens;
  expect(billed("base:fast")).toBe(0);
  expect(billed("base")).toBeGreaterThan(0);
});

test("a node that names a model serves its presets", () => {
  const node = `[[nodes]]\nname = "a"\nurl = "http://127.0.0.1:1"\nmodels = { base = "scripted" }\n`;
  const { nodes, models } = readConfig("f.toml", node + rows, {}, {});
  expect(nodes[0]!.models).toEqual({ base: "scripted", "base:fast": "scripted" });
  expect(models[1]).toMatchObject({ id: "base:fast", nodeModel: "scripted", kind: "chat" });
});

test("a preset has what its row does not say of the one that it starts from", () => {
  const base = `[[models]]\nid = "base"\nsystem = "Obey."\nset = { top_k = 7 }\nremove = ["stop"]\n`;
  const more = `[[models]]\nid = "more"\npreset_of = "base"\nset = { top_k = 9 }\n[[models]]\nid = "as"\npreset_of = "base"\n`;
  const { models } = readConfig("f.toml", base + more, {}, {});
  const [first, second, third] = models.map((model) => modelOf(model, nothingTold, null).preset);
  expect(second).toMatchObject({ system: "Obey.", remove: ["stop"], set: { sampling: { top_k: 9 } } });
  expect(third).toEqual(first);
});

test.each([
  ['preset_of = "bas"', 'preset_of must be the id of a row without preset_of, is "bas", did you mean "base"?'],
  ['preset_of = "base"\nnode_model = "x"', "node_model must be absent beside preset_of"],
  ["set = { temperature = 3 }", "temperature must be"],
  ["default = { max_tokens = 3 }", "max_tokens is not a field that a preset can have"],
  ["set = { chat_template_kwargs = { messages = 1 } }", "chat_template_kwargs.messages must be left out"],
  ['set = { reasoning_effort = "a lot" }', "reasoning_effort must be one of"],
  ["default = { stop = [1] }", "stop must be a string or a list of strings"],
  ['remove = ["temprature"]', "remove[0]"],
])("a row with %s is refused, and says why", (row, why) => {
  const toml = `[[models]]\nid = "base"\n[[models]]\nid = "p"\n${row}\n`;
  expect(() => readConfig("f.toml", toml, {}, {})).toThrow(why);
});
