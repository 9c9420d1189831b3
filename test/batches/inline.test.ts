// Requests that come with an Anthropic batch: read from the body as it comes, whatever it looks like, in flat memory.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { type CountingNode, startCountingNode } from "./counting-node.ts";

setDefaultTimeout(180_000);

let node: CountingNode;
let gateway: GatewayProcess;
let account: Account;
beforeAll(async () => {
  node = startCountingNode({ model: "m", delayMs: 100 });
  gateway = await GatewayProcess.start({
    config: `[[models]]\nid = "m"\ncontext = 1000000\n[[nodes]]\nname = "n"\nurl = "${node.url}"\nslots = 4\n`,
  });
  account = await gateway.account();
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  node?.[Symbol.dispose]();
});

type Shown = {
  id: string;
  processing_status: string;
  error?: { message: string };
  request_counts: { processing: number };
};

async function send(body: string | ReadableStream<Uint8Array>, init: RequestInit = {}): Promise<Shown> {
  const headers = { "x-api-key": account.api_key };
  const reply = await fetch(`${gateway.url}/v1/messages/batches`, { method: "POST", headers, body, ...init });
  return (await reply.json()) as Shown;
}
const ask = async (path: string, method = "GET"): Promise<Shown> =>
  (await (
    await fetch(`${gateway.url}/v1/messages/batches/${path}`, { method, headers: { "x-api-key": account.api_key } })
  ).json()) as Shown;
/** Folders of the account's batches. */
const left = async (): Promise<string[]> =>
  (await readdir(gateway.dataFolder, { recursive: true })).filter((name) => /msgbatch_\w+$/.test(name));

const request = (id: string, content = 'a "q" \\ [ { é 🙂'): string =>
  JSON.stringify({ custom_id: id, params: { model: "m", max_tokens: 5, messages: [{ role: "user", content }] } });
const ofRequests = (...requests: string[]): string => `{"requests":[${requests.join(",")}]}`;
const none = "requests: must be a list of one or more requests";
const noJson = "not valid JSON";

test.each([
  ["nothing", "{}", none],
  ["an empty list", '{"requests": [ ]}', none],
  ["another kind", '{"requests":"x"}', none],
  ["a list", `[${request("a")}]`, none],
  ["deeper ones", `{"a":${ofRequests(request("a"))}}`, none],
  ["a name that ends so", `{"x\\"requests":[${request("a")}]}`, none],
  ["a trailing comma", ofRequests(request("a"), ""), noJson],
  ["an end in the list", ofRequests(request("a"), request("b")).slice(0, -2), noJson],
  ["an end in a text", ofRequests(request("a"), request("b")).slice(0, -30), noJson],
  ["more behind it", `${ofRequests(request("a"))} x`, noJson],
  ["a number", ofRequests("1"), "requests.0.custom_id"],
  [
    "an id that came before",
    ofRequests(request("a"), request("b"), request("a")),
    "requests.2.custom_id: must be unique",
  ],
  ["a deep one", ofRequests(request("a"), `${"[".repeat(200)}${"]".repeat(200)}`), "requests.1"],
  ["much else", JSON.stringify({ much: "x".repeat(100_000), requests: [] }), "must be what the request body has"],
])("%s: a 400 that says so, and nothing is left", async (_, body, message) => {
  expect((await send(body)).error?.message).toContain(message);
  expect(await left()).toEqual([]);
});

test("members beside the list, and any layout", async () => {
  const value = JSON.parse(ofRequests(request("a"), request("b")));
  const body = JSON.stringify({ before: { requests: [1, "]"] }, ...value, after: [{ requests: [] }] }, null, 7);
  const { id } = await send(body);
  await eventually("it ends", async () => (await ask(id)).processing_status === "ended");
  expect([...node.asked]).toEqual([[JSON.stringify('a "q" \\ [ { é 🙂'), 2]]);
  await ask(id, "DELETE");
});

function streamOf(content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const pieces = Symbol.asyncIterator in content ? content[Symbol.asyncIterator]() : content[Symbol.iterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
  });
}

test("100 MB are taken in flat memory; of a body that breaks off nothing stays", async () => {
  const peakMb = async (): Promise<number> =>
    Number(/VmHWM:\s+(\d+)/.exec(await readFile(join("/proc", String(gateway.pid), "status"), "utf8"))![1]) / 1024;
  const count = 1_000;
  const text = "lorem ipsum ".repeat(8_400);
  const pieces = function* (from: number, to: number): Generator<Uint8Array> {
    if (from === 0) yield Buffer.from('{"requests":[');
    for (let at = from; at < to; at += 1) yield Buffer.from(`${at === 0 ? "" : ","}${request(`r${at}`, text)}`);
    if (to === count) yield Buffer.from("]}");
  };
  const before = await peakMb();
  const { id, request_counts } = await send(streamOf(pieces(0, count)));
  expect(request_counts.processing).toBe(count);
  expect((await peakMb()) - before).toBeLessThan(200);
  await ask(`${id}/cancel`, "POST");
  await eventually("it is cancelled", async () => (await ask(id)).processing_status === "ended");
  await ask(id, "DELETE");
  const leaves = new AbortController();
  const broken = async function* (): AsyncGenerator<Uint8Array> {
    yield* pieces(0, 100);
    await eventually("it is being taken", async () => (await left()).length === 1);
    leaves.abort();
    yield* pieces(100, count);
  };
  expect(await send(streamOf(broken()), { signal: leaves.signal }).catch(() => "left")).toBe("left");
  await eventually("nothing stays", async () => (await left()).length === 0);
});
