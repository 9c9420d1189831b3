// What a request is told that no node can serve: a shop's own model is away (503), a model of the catalog has the words and
// the 429 of the specification, and beside them why. Full nodes are busy for both.
import { expect, test } from "bun:test";
import { asking, type Dialect, dialects, hosted } from "../fixtures/dialects.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { refusalOf } from "../fixtures/requests.ts";
import { wholeReply } from "../fixtures/raw-node.ts";
import { recorded, recordedNode } from "../fixtures/recorded-node.ts";

const [own, house] = ["house", "tiny-chat"];
const busyWords = "Routes are temporarily busy. Please retry.";

const tables = (url: string): string => `[[nodes]]
name = "gpu"
url = "${url}"
[[models]]
id = "${own}"
node_model = "${house}"
`;

const list = (name: string) =>
  wholeReply("200 OK", JSON.stringify({ object: "list", data: [{ id: name, object: "model", owned_by: "vllm" }] }));

async function asked(gateway: GatewayProcess, key: string, dialect: Dialect, model: string, stream: boolean) {
  const reply = await fetch(`${gateway.url}${dialect.endpoint}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(asking(dialect, "hello", { model, stream })),
  });
  const headers = [reply.headers.get("retry-after"), reply.headers.get("x-should-retry")];
  return { ...(await refusalOf(dialect, reply)), headers };
}

const everyWay = dialects.flatMap((dialect) => [true, false].map((stream) => [dialect, stream] as const));

test("a node that is not there: a shop's own model is unavailable, not busy", async () => {
  const node = recordedNode("vllm");
  const { url } = node;
  node.stop();
  await using gateway = await GatewayProcess.start({ config: tables(url) });
  const account = await gateway.account();
  for (const [dialect, stream] of everyWay) {
    const words = `No node that serves the model \`${own}\` can be reached right now. Please retry later.`;
    expect(await asked(gateway, account.api_key, dialect, own, stream)).toEqual({
      status: 503,
      headers: [null, null],
      ...dialect.error({ type: "api_error", message: words, reason: "nodes_unreachable" }, "model_unreachable"),
    });
  }
  await gateway.expectUncharged(account);
});

test("nor does a node that is not there say that no engine knows a field: it may know it when it is back", async () => {
  const node = recordedNode("vllm");
  const { url } = node;
  node.stop();
  await using gateway = await GatewayProcess.start({ config: tables(url) });
  const account = await gateway.account();
  for (const field of [{ guided_choice: ["a", "b"] }, { enable_thinking: false }, { top_k: 3 }]) {
    const [chat] = dialects;
    const reply = await fetch(`${gateway.url}${chat!.endpoint}`, {
      method: "POST",
      headers: { authorization: `Bearer ${account.api_key}`, "content-type": "application/json" },
      body: JSON.stringify({ ...asking(chat!, "hello", { model: own }), ...field }),
    });
    expect(await reply.json()).toMatchObject({ error: { code: "model_unreachable", reason: "nodes_unreachable" } });
    expect(reply.status).toBe(503);
  }
  await gateway.expectUncharged(account);
});

test("the same for a model of the catalog has the specification's words, and says why beside them", async () => {
  const node = recordedNode("vllm");
  const { url } = node;
  node.stop();
  await using gateway = await GatewayProcess.start({ config: `[[nodes]]\nname = "gpu"\nurl = "${url}"\n` });
  const account = await gateway.account();
  for (const [dialect, stream] of everyWay) {
    expect(await asked(gateway, account.api_key, dialect, hosted, stream)).toEqual({
      status: 429,
      headers: ["5", null],
      ...dialect.error({ type: "rate_limit_error", message: busyWords, reason: "nodes_unreachable" }),
    });
  }
  await eventually("the request log says why", async () => {
    const log = await gateway.cli<{ reason: string | null }[]>("requests");
    return log.length === everyWay.length && log.every(({ reason }) => reason === "busy_unreachable");
  });
});

test("a model that its node lists no more is refused at once; the node is named as one that serves nothing", async () => {
  let listed = house;
  const node = recordedNode("vllm", {
    "/v1/models": (_, reply) => reply.write(list(listed)),
    "/v1/chat/completions": (_, reply) => reply.write(recorded("vllm", "41-unknown-model")),
  });
  await using gateway = await GatewayProcess.start({ config: tables(node.url) });
  const account = await gateway.account();
  listed = "other-model";
  for (const [dialect, stream] of everyWay) {
    expect(await asked(gateway, account.api_key, dialect, own, stream)).toEqual({
      status: 503,
      headers: [null, "false"],
      ...dialect.error(
        { type: "api_error", message: `No node has the model \`${own}\` loaded right now.`, reason: "not_listed" },
        "model_unlisted",
      ),
    });
  }
  type Told = { health: string; problem: string | null };
  const [told] = await gateway.cli<Told[]>("nodes");
  expect(told).toMatchObject({ health: "well", problem: "lists other-model, none of yours" });
  listed = house;
  await eventually("the model is there again", async () => {
    const [told] = await gateway.cli<Told[]>("nodes");
    return told!.problem === null;
  });
  node.stop();
});
