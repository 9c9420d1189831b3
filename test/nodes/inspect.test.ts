// What `check`, `doctor` and `nodes` find out of a node while no server runs: whether requests work there, and what of the
// catalog it is below.
import { afterEach, describe, expect, test } from "bun:test";
import { modelsByName } from "../../src/core/catalog.ts";
import type { NodeConfig } from "../../src/config/config.ts";
import { systemClock } from "../../src/core/clock.ts";
import { abilitiesInWords } from "../../src/nodes/abilities.ts";
import { inspectNodes } from "../../src/nodes/inspect.ts";
import { firstPartyModel, hostedModel } from "../fixtures/asks.ts";
import { type RawNode, wholeReply } from "../fixtures/raw-node.ts";
import { recorded, recordedNode } from "../fixtures/recorded-node.ts";

const open: { stop(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});

const chat = "/v1/chat/completions";

const catalog = modelsByName([hostedModel, firstPartyModel]);

async function inspect(node: RawNode, models: NodeConfig["models"] = { "*": "*" }) {
  open.push(node);
  const config = { name: "a", url: node.url, apiKey: null, slots: 4, models };
  const [inspected] = await inspectNodes([config], catalog, systemClock);
  return inspected!;
}
const asked = (node: RawNode) => node.requests.filter(({ path }) => path === chat).map(({ body }) => JSON.parse(body));

describe("a node whose list does not say whether requests work", () => {
  test("is asked for a token by the name that it is configured to have: transformers, which lists nothing", async () => {
    const node = recordedNode("transformers", { [chat]: recorded("transformers", "10-chat") });
    expect(await inspect(node, { "*": "/models/tiny" })).toMatchObject({ well: true, engine: null, problem: null });
    expect(asked(node)).toMatchObject([{ model: "/models/tiny", max_tokens: 1, stream: false }]);
  });
  test("a router that lists a placeholder", async () => {
    const node = recordedNode("sglang-router", { [chat]: recorded("sglang-router", "10-chat") });
    expect(await inspect(node, { "*": "tiny-chat" })).toMatchObject({ well: true, problem: null });
  });
  test("is wrong where it does not answer", async () => {
    const router = recordedNode("sglang-router", { [chat]: recorded("sglang-router", "41-unknown-model") });
    expect(await inspect(router)).toMatchObject({ problem: "lists no model that gives answers, but unknown" });
    expect(asked(router).map(({ model }) => model)).toEqual([hostedModel.id]);
    const pinned = recordedNode("transformers", { [chat]: recorded("transformers", "41-unknown-model") });
    expect((await inspect(pinned, { "*": "other" })).problem).toContain("no list of models (status 500");
  });
});

test("a list that is known to be whole is believed, and no token is asked for", async () => {
  const node = recordedNode("vllm", { [chat]: recorded("vllm", "11-stream-usage") });
  const misnamed = await inspect(node, { "*": "qwen" });
  expect(misnamed).toMatchObject({ problem: null, warning: "does not list qwen, but tiny-chat", serves: [] });
  expect(misnamed.lacks).toEqual([hostedModel.id, firstPartyModel.id]);
  expect(asked(node)).toEqual([]);
  const named = await inspect(recordedNode("ollama"), { "*": "tiny-chat" });
  expect(named).toMatchObject({ problem: null, warning: null, lacks: [] });
});

test("what an engine has, and what of the catalog that is below", async () => {
  const found = await inspect(recordedNode("ollama"), { "*": "tiny-chat" });
  expect(found).toMatchObject({ engine: "ollama", version: "0.0.0", context: 4_096, models: ["tiny-chat:latest"] });
  expect(found.abilities.models.map(abilitiesInWords)).toEqual(["tools, thinking, no images"]);
  expect(found.abilities.below).toEqual([
    "tiny-chat:latest has a context of 4096 tokens: 2 models of the catalog promise up to 262144",
    "tiny-chat:latest reads no images: 2 models of the catalog promise that",
  ]);
  const embedding = wholeReply("200 OK", '{"capabilities":["embedding"]}');
  const other = await inspect(recordedNode("ollama", { "/api/show": embedding }), { [hostedModel.id]: "tiny-chat" });
  expect(other.abilities.below.join()).toContain("gives no answers");
});
