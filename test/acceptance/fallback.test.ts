// A model whose nodes are all away is served by the one that its row names, at that one's price, and the client is told.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { largeBodyMinBytes } from "../../src/core/limits.ts";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import type { RequestRow } from "../../src/account/request-row.ts";
import { TellingNode } from "../fixtures/telling-node.ts";

setDefaultTimeout(120_000);

describe.each([[1], [2]])("with %i threads", (threads) => {
  const [first, second] = [new TellingNode(), new TellingNode()];
  let gateway: GatewayProcess;
  let account: Account;

  beforeAll(async () => {
    const node = (name: string, { url }: TellingNode, model: string) =>
      `[[nodes]]\nname = "${name}"\nurl = "${url}"\nmodels = { ${model} = "teller" }\n`;
    const nodes = `${node("a", first, "one")}${node("b", second, "two")}`;
    const models = `[[models]]\nid = "one"\nfallback = ["two", "three"]\naliases = ["uno"]\n[[models]]\nid = "two"\nprice = 5\n`;
    const third = `[[models]]\nid = "three"\npreset_of = "two"\n`;
    gateway = await GatewayProcess.start({ config: `[server]\nthreads = ${threads}\n${nodes}${models}${third}` });
    account = await gateway.account();
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    first[Symbol.dispose]();
    second[Symbol.dispose]();
  });

  async function ask(model: string, path = "chat/completions", more: object = {}, key = account.api_key, headers = {}) {
    const reply = await fetch(`${gateway.url}/v1/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, ...headers },
      body: JSON.stringify({ model, max_tokens: 9, messages: [{ role: "user", content: "Hi" }], ...more }),
    });
    const body = (await reply.json()) as { model?: string };
    return { status: reply.status, from: reply.headers.get("x-fallback-from"), model: body.model };
  }

  test("each serves its own while both are there", async () => {
    await eventually("the nodes are well", async () => (await ask("one")).model === "one");
    expect(await ask("one")).toEqual({ status: 200, from: null, model: "one" });
    expect(await ask("two")).toEqual({ status: 200, from: null, model: "two" });
  });

  test("the other serves while the node is drained, in every dialect, small and large", async () => {
    await gateway.cli("nodes", "drain", "a");
    const instead = { status: 200, from: "one", model: "two" };
    await eventually("it is drained", async () => (await ask("one")).from === "one");
    expect(await ask("uno")).toEqual(instead);
    expect(await ask("one", "messages")).toEqual(instead);
    expect(await ask("one", "chat/completions", { padding: "x".repeat(largeBodyMinBytes) })).toEqual(instead);
    expect(await ask("two")).toEqual({ ...instead, from: null });
    // what the key may not ask stands in for nothing: the next one does, or none
    const large = { padding: "x".repeat(largeBodyMinBytes) };
    for (const more of [{}, large]) {
      const third = await gateway.makeKey(account.email, { name: crypto.randomUUID(), models: ["one", "three"] });
      expect(await ask("one", "chat/completions", more, third.api_key)).toEqual({ ...instead, model: "three" });
      const alone = await gateway.makeKey(account.email, { name: crypto.randomUUID(), models: ["one"] });
      const hurried = await ask("one", "chat/completions", more, alone.api_key, { "x-deadline-ms": "1" });
      expect(hurried.status).toBe(429); // it would wait until the node is back
    }
    const rows = await gateway.cli<RequestRow[]>("requests", "--limit", "50");
    expect(
      rows
        .filter(({ asked_model: asked }) => asked === "one")
        .map(({ model }) => model)
        .toSorted(),
    ).toEqual([...["three", "three", "two", "two", "two", "two"]]);
    await gateway.cli("nodes", "resume", "a");
    await eventually("it is back", async () => (await ask("one")).from === null);
  });
});
