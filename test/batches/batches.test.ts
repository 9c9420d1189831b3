// Batches on the real program.
import { expect, test } from "bun:test";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { startCountingNode } from "./counting-node.ts";
import { contradictions, killed } from "./killed.ts";

/** TOLLGATE_BATCH_LINES chooses a longer run. */
const lines = Number(process.env["TOLLGATE_BATCH_LINES"] ?? 1_000);

test(
  `of ${lines} lines each is answered and charged once, whatever is killed meanwhile`,
  async () => {
    const report = await killed(lines, 700, lines === 1_000 ? 3 : Number.POSITIVE_INFINITY);
    console.log(`batches under kills: ${JSON.stringify({ ...report, wrong: report.wrong.length })}`);
    expect(report.wrong).toEqual([]);
    expect(report.kills).toBeGreaterThan(0);
  },
  120_000 + lines * 40,
);

const config = (url: string): string => `
[[models]]
id = "m"
price = { input = 1, output = 2 }
[[nodes]]
name = "n"
url = "${url}"
slots = 8
`;

/** It reads everything, and says little. */
function startLargeNode(): Readonly<{ url: string }> & Disposable {
  const answer = [
    { choices: [{ index: 0, delta: { role: "assistant", content: "ok" }, finish_reason: "stop" }] },
    { choices: [], usage: { prompt_tokens: 4_000_000, completion_tokens: 1, total_tokens: 4_000_001 } },
  ];
  const server = Bun.serve({
    port: 0,
    maxRequestBodySize: 64 * 1024 * 1024,
    async fetch(request) {
      if (request.method === "GET") return Response.json({ object: "list", data: [{ id: "m", object: "model" }] });
      if ((await request.bytes()).length < 19_000_000) return new Response("too short", { status: 500 });
      const events = answer.map((each) => `data: ${JSON.stringify({ id: "c", ...each })}\n\n`).join("");
      return new Response(`${events}data: [DONE]\n\n`, { headers: { "content-type": "text/event-stream" } });
    },
  });
  return { url: `http://127.0.0.1:${server.port}/v1`, [Symbol.dispose]: () => void server.stop(true) };
}

async function begun(gateway: GatewayProcess, count: number) {
  const account = await gateway.account();
  const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(gateway.url + path, { ...init, headers: { "x-api-key": account.api_key } });
  const prompts = Array.from({ length: count }, (_, line) => `prompt ${line}`);
  const requests = prompts.map((content, line) => ({
    custom_id: `line-${line}`,
    params: { model: "m", max_tokens: 20, messages: [{ role: "user", content }] },
  }));
  const made = await ask("/v1/messages/batches", { method: "POST", body: JSON.stringify({ requests }) });
  const { id } = (await made.json()) as { id: string };
  type Shown = { processing_status: string; request_counts: { succeeded: number } };
  const shown = async (): Promise<Shown> => (await ask(`/v1/messages/batches/${id}`)).json() as Promise<Shown>;
  await eventually("some lines are done", async () => (await shown()).request_counts.succeeded > 40, 30_000);
  return { account, ask, prompts, id, shown };
}

test("damage in the middle of a batch's log costs the answers that it hit, and nothing is charged twice", async () => {
  using node = startCountingNode({ model: "m", delayMs: 20 });
  await using gateway = await GatewayProcess.start({ config: config(node.url) });
  const { account, ask, prompts, id, shown } = await begun(gateway, 300);
  await gateway.kill("SIGKILL");
  const names = await readdir(gateway.dataFolder, { recursive: true });
  const log = join(
    gateway.dataFolder,
    names.find((name) => name.endsWith(`${id}/log`))!,
  );
  const bytes = await readFile(log);
  const records = bytes.toString("latin1").split("\n");
  const flip = (record: number, at: number): void => {
    const start = records.slice(0, record).reduce((sum, { length }) => sum + length + 1, 0);
    bytes[start + at]! ^= 1;
  };
  const answers = records.flatMap((record, place) => (record.includes('{"answered"') ? [place] : []));
  const hit = [5, 12].map((each) => answers[each]!);
  flip(hit[0]!, 40); // in the head
  flip(hit[1]!, records[hit[1]!]!.length - 5); // in what the client gets
  flip(
    records.findIndex((record) => record.includes('{"model"')),
    20,
  );
  await writeFile(log, bytes);
  await gateway.restart();
  await eventually("the batch ends", async () => (await shown()).processing_status === "ended", 60_000);
  const results = (await (await ask(`/v1/messages/batches/${id}/results`)).text()).trimEnd().split("\n");
  const rows = await gateway.usage(account.email);
  const lost = hit.map((place) => Number(/"custom_id":"line-(\d+)"/.exec(records[place]!)![1])).sort((a, b) => a - b);
  const wrong = contradictions(
    prompts,
    results.map((line) => JSON.parse(line)),
    rows,
  );
  expect(wrong).toEqual(lost.map((line) => `line ${line} ended as errored`));
  expect(results.filter((line) => line.includes("lost its answer"))).toHaveLength(2);
}, 120_000);

test("the erasure of an account ends its batches, and nothing of them is left", async () => {
  using node = startCountingNode({ model: "m", delayMs: 20 });
  await using gateway = await GatewayProcess.start({ config: config(node.url) });
  const { account, id } = await begun(gateway, 3_000);
  // The first attempt disables it, and its lines end.
  const erased = (): Promise<boolean> =>
    gateway.cli("accounts", "delete", account.email, "--yes").then(
      () => true,
      () => false,
    );
  await eventually("it is erased", erased, 20_000);
  const left = async (): Promise<string[]> =>
    (await readdir(gateway.dataFolder, { recursive: true })).filter((name) => name.includes(id));
  await eventually("its files are gone", async () => (await left()).length === 0, 20_000);
  const asked = (): number => [...node.asked.values()].reduce((sum, times) => sum + times, 0);
  const before = asked();
  const other = await begun(gateway, 60);
  await eventually("another's runs", async () => (await other.shown()).processing_status === "ended", 30_000);
  expect(asked() - before).toBe(60); // nothing of the first went on
  expect(gateway.output).not.toMatch(/batches could not be looked at|a batch stopped/);
}, 120_000);

test("a batch goes on to its last line after its input file was deleted, through a kill, and gives what was charged", async () => {
  using node = startCountingNode({ model: "m", delayMs: 20 });
  await using gateway = await GatewayProcess.start({ config: config(node.url) });
  const account = await gateway.account();
  const ask = async <Reply>(path: string, method = "GET", body: string | FormData | null = null): Promise<Reply> => {
    const headers = { authorization: `Bearer ${account.api_key}` };
    return (await fetch(gateway.url + path, { method, body, headers })).json() as Promise<Reply>;
  };
  type Shown = { id: string; status: string; output_file_id: string; request_counts: { completed: number } };
  const line = (_: unknown, at: number): string =>
    JSON.stringify({
      custom_id: `line-${at}`,
      method: "POST",
      url: "/v1/chat/completions",
      body: { model: "m", max_tokens: 20, messages: [{ role: "user", content: `prompt ${at}` }] },
    });
  const form = new FormData();
  form.set("purpose", "batch");
  form.set("file", new Blob([Array.from({ length: 200 }, line).join("\n")]), "in.jsonl");
  const file = await ask<{ id: string }>("/v1/files", "POST", form);
  const wanted = { input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h" };
  const { id } = await ask<Shown>("/v1/batches", "POST", JSON.stringify(wanted));
  const shown = () => ask<Shown>(`/v1/batches/${id}`);
  await eventually("some lines are done", async () => (await shown()).request_counts.completed > 20, 30_000);
  expect(await ask<object>(`/v1/files/${file.id}`, "DELETE")).toMatchObject({ deleted: true });
  await gateway.kill("SIGKILL");
  await gateway.restart();
  await eventually("it ends", async () => /completed|failed/.test((await shown()).status), 60_000);
  const { output_file_id: output } = await shown();
  const answers = await fetch(`${gateway.url}/v1/files/${output}/content`, {
    headers: { authorization: `Bearer ${account.api_key}` },
  });
  expect((await answers.text()).trimEnd().split("\n")).toHaveLength(200);
  expect(await gateway.usage(account.email)).toHaveLength(200);
}, 120_000);

test("of many batches made at once no more begin than an account may have", async () => {
  using node = startCountingNode({ model: "other" });
  await using gateway = await GatewayProcess.start({ config: config(node.url) });
  const { api_key: key } = await gateway.account();
  const requests = [{ custom_id: "a", params: { model: "m", messages: [{ role: "user", content: "Hi" }] } }];
  const make = async (): Promise<number> =>
    (
      await fetch(`${gateway.url}/v1/messages/batches`, {
        method: "POST",
        headers: { "x-api-key": key },
        body: JSON.stringify({ requests }),
      })
    ).status;
  const statuses = await Promise.all(Array.from({ length: 100 }, make));
  expect(statuses.filter((status) => status === 200)).toHaveLength(64);
});

test("a batch that is cancelled before its turn ends at once, and none of its lines runs", async () => {
  using node = startCountingNode({ model: "m", delayMs: 500 });
  await using gateway = await GatewayProcess.start({ config: config(node.url) });
  const { api_key: key } = await gateway.account();
  const ask = async (path: string, init: RequestInit = {}): Promise<{ id: string; processing_status: string }> =>
    (
      await fetch(`${gateway.url}/v1/messages/batches${path}`, { ...init, headers: { "x-api-key": key } })
    ).json() as never;
  const make = async (name: string): Promise<string> => {
    const params = { model: "m", max_tokens: 20, messages: [{ role: "user", content: name }] };
    const requests = Array.from({ length: 150 }, (_, line) => ({ custom_id: `line-${line}`, params }));
    return (await ask("", { method: "POST", body: JSON.stringify({ requests }) })).id;
  };
  const first = await make("one");
  for (const name of ["two", "three", "four"]) await make(name);
  const id = await make("five");
  await ask(`/${id}/cancel`, { method: "POST" });
  await eventually("it ends", async () => (await ask(`/${id}`)).processing_status === "ended", 30_000);
  expect(await ask(`/${id}`)).toMatchObject({ request_counts: { canceled: 150 } });
  expect((await ask(`/${first}`)).processing_status).toBe("in_progress");
  expect([...node.asked.keys()]).not.toContain(JSON.stringify("five"));
}, 60_000);

test("a damaged batch hides and stops no other", async () => {
  using node = startCountingNode({ model: "m", delayMs: 20 });
  await using gateway = await GatewayProcess.start({ config: config(node.url) });
  const { id, ask } = await begun(gateway, 300);
  await gateway.kill("SIGKILL");
  const names = await readdir(gateway.dataFolder, { recursive: true });
  await writeFile(
    join(
      gateway.dataFolder,
      names.find((name) => name.endsWith(`${id}/batch.json`))!,
    ),
    "",
  );
  await gateway.restart();
  const other = await begun(gateway, 60);
  await eventually("another's runs", async () => (await other.shown()).processing_status === "ended", 30_000);
  expect((await ask("/v1/messages/batches")).status).toBe(200);
}, 120_000);

test("lines of 20 MB are answered, in the memory of those under way", async () => {
  using node = startLargeNode();
  await using gateway = await GatewayProcess.start({
    config: config(node.url).replace('id = "m"', 'id = "m"\ncontext = 100000000'),
  });
  const { api_key: key, email } = await gateway.account(10_000_000_000);
  const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(gateway.url + path, { ...init, headers: { authorization: `Bearer ${key}` } });
  const words = "lorem ipsum dolor ".repeat(1_100_000);
  const endpoint = "/v1/chat/completions";
  const lineOf = (id: number): string => {
    const body = { model: "m", max_tokens: 10, messages: [{ role: "user", content: words }] };
    return `${JSON.stringify({ custom_id: `large ${id}`, method: "POST", url: endpoint, body })}\n`;
  };
  const count = 16;
  type Batch = { id: string; status: string; request_counts: object };
  const form = new FormData();
  form.set("purpose", "batch");
  form.set("file", new Blob(Array.from({ length: count }, (_, id) => lineOf(id))), "in.jsonl");
  const { id: input_file_id } = (await (await ask("/v1/files", { method: "POST", body: form })).json()) as Batch;
  const body = JSON.stringify({ input_file_id, endpoint, completion_window: "24h" });
  const { id } = (await (await ask("/v1/batches", { method: "POST", body })).json()) as Batch;
  const shown = async (): Promise<Batch> => (await (await ask(`/v1/batches/${id}`)).json()) as Batch;
  const hasEnded = async (): Promise<boolean> => ["completed", "failed"].includes((await shown()).status);
  await eventually("they are answered", hasEnded, 60_000);
  expect((await shown()).request_counts).toEqual({ total: count, completed: count, failed: 0 });
  const status = await readFile(`/proc/${gateway.pid}/status`, "utf8");
  expect(Number(/VmHWM:\s+(\d+)/.exec(status)![1]) / 1024).toBeLessThan(1_600); // 48 need no more than 16: 1,200 MB
  expect(await gateway.usage(email)).toHaveLength(count);
  expect((await gateway.usage(email))[0]).toMatchObject({ input: 4_000_000, output: 1 });
}, 120_000);

test("the oracle finds a line that was lost, one that came twice, and a charge that is missing, doubled or another", () => {
  const usage = { input_tokens: 0, output_tokens: 0 };
  const result = { custom_id: "line-0", result: { type: "succeeded", message: { id: "msg_a", usage } } };
  expect(contradictions(["p"], [], [])).toContain("line 0 was delivered 0 times");
  expect(contradictions(["p"], [result, result], [])).toContain("line 0 was delivered 2 times");
  expect(contradictions(["p"], [result], [])).toContain("line 0 was charged 0 times");
  const row = { request_id: "req_a", input: 1, output: 1 } as never;
  expect(contradictions(["p"], [result], [row, row])).toContain("line 0 was charged 2 times");
  expect(contradictions(["p"], [result], [row])).toContain("line 0 was charged for other tokens");
});
