// The official packages' own calls of batches: what a program that runs on OpenAI's or Anthropic's batches does.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { installed, missing } from "../fixtures/optional.ts";
import { runToEnd } from "../fixtures/children.ts";
import { type CountingNode, startCountingNode, tokensOf } from "./counting-node.ts";

setDefaultTimeout(60_000);

// the packages' own types are not there in a plain checkout
type Json = Record<string, any>;
const clients = join(import.meta.dir, "../clients");
const openai = await installed<Json>("openai", clients);
const anthropic = await installed<Json>("@anthropic-ai/sdk", clients);

const python = process.env["TOLLGATE_PYTHON"] ?? join(clients, ".venv/bin/python");
const withoutPython = missing(
  "the Python clients",
  existsSync(python),
  "make a virtual environment in test/clients/.venv with requirements.txt",
);

const line = (id: string, body: Json = {}, more: Json = {}): string =>
  JSON.stringify({
    custom_id: id,
    method: "POST",
    url: "/v1/chat/completions",
    body: { model: "m", max_tokens: 30, messages: [{ role: "user", content: id }], ...body },
    ...more,
  });

/** The packages' promises are none of the runtime's. */
const refusal = async (asked: Promise<unknown>): Promise<string | null> => {
  try {
    await asked;
    return null;
  } catch (error) {
    return (error as Error).message;
  }
};

describe.skipIf(openai === null || anthropic === null)("batches of the official packages", () => {
  let node: CountingNode;
  let gateway: GatewayProcess;
  let account: Account;
  let client: Json;
  beforeAll(async () => {
    node = startCountingNode({ model: "m", delayMs: 20 });
    gateway = await GatewayProcess.start({
      config: `
[[models]]
id = "m"
price = { input = 4, output = 8 }
[[plans]]
id = "free"
batch_discount = 0.5
[[nodes]]
name = "n"
url = "${node.url}"
slots = 8
`,
    });
    account = await gateway.account();
    client = new openai!["OpenAI"]({ apiKey: account.api_key, baseURL: `${gateway.url}/v1` });
  });
  afterAll(async () => {
    await gateway?.[Symbol.asyncDispose]();
    node?.[Symbol.dispose]();
  });

  const begin = async (text: string, more: Json = {}): Promise<Json> => {
    const file = await client["files"].create({
      file: await openai!["toFile"](new Blob([text]), "in.jsonl"),
      purpose: "batch",
    });
    const given = { input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h", ...more };
    return client["batches"].create(given);
  };
  const ended = async (id: string): Promise<Json> => {
    let batch: Json = {};
    await eventually(`batch ${id} ends`, async () => {
      batch = await client["batches"].retrieve(id);
      return ["completed", "failed", "cancelled", "expired"].includes(batch["status"]);
    });
    return batch;
  };
  const linesOf = async (file: string): Promise<Json[]> =>
    (await (await client["files"].content(file)).text())
      .trimEnd()
      .split("\n")
      .map((each: string) => JSON.parse(each));

  test("a batch is answered, charged at its discount, and beyond what flood protection lets a minute have", async () => {
    const ids = Array.from({ length: 200 }, (_, at) => `line ${at}`);
    const made = await begin([...ids.map((id) => line(id)), line("hot", { temperature: 9 })].join("\r\n"), {
      metadata: { run: "7" },
    });
    const batch = await ended(made["id"]);
    expect(batch).toMatchObject({
      status: "completed",
      metadata: { run: "7" },
      request_counts: { total: 201, completed: 200, failed: 1 },
      errors: null,
    });
    const output = await linesOf(batch["output_file_id"]);
    expect(output.map(({ custom_id }) => custom_id).sort()).toEqual(ids.toSorted());
    expect(output[0]).toMatchObject({
      error: null,
      response: { status_code: 200, body: { object: "chat.completion" } },
    });
    const [failed] = await linesOf(batch["error_file_id"]);
    expect(failed).toMatchObject({ custom_id: "hot", response: { status_code: 400 } });
    const usage = (await gateway.usage(account.email)).filter(({ endpoint }) => endpoint === "/v1/batches");
    expect(usage).toHaveLength(200);
    const tokens = ids.map((id) => tokensOf(JSON.stringify(id)));
    const input = tokens.reduce((sum, each) => sum + each.input, 0);
    expect([batch["usage"].input_tokens, usage.reduce((sum, row) => sum + row.input, 0)]).toEqual([input, input]);
    // 200 and 400 cents per million, half of the price
    for (const row of usage) {
      expect(row.billed_tokens).toBe(Math.floor((2 * (row.input * 200 + row.output * 400) + 500) / 1000));
    }
    expect(usage.reduce((sum, row) => sum + row.billed_tokens, 0)).toBe(batch["billed_tokens"]);
  });

  test.each([
    ["no JSON", `${line("a")}\nhello\n`, "invalid_json_line", 2],
    ["the end of a line is missing", `${line("a")}\n${line("b").slice(0, 40)}`, "invalid_json_line", 2],
    ["an id that came before", `${line("a")}\n\n${line("b")}\n${line("a")}`, "duplicate_custom_id", 4],
    ["another endpoint", line("a", {}, { url: "/v1/embeddings" }), "mismatched_url", 1],
    ["a model that is not served", `${line("a")}\n${line("b", { model: "nope" })}`, "model_not_found", 2],
    ["a stream", line("a", { stream: true }), "invalid_request", 1],
    ["a turn of a conversation", line("a", { conversation: "conv_1" }), "invalid_request", 1],
    ["no line", "\n \r\n", "empty_file", null],
  ])("%s: nothing runs, and the error has the line", async (_, text, code, number) => {
    const before = node.asked.size;
    const batch = await ended((await begin(text))["id"]);
    expect(batch["status"]).toBe("failed");
    expect(batch["errors"].data).toMatchObject([{ code, line: number }]);
    expect([batch["output_file_id"], node.asked.size]).toEqual([null, before]);
  });

  test("a cancelled batch has what was done, and says of the rest that it was not", async () => {
    const { id } = await begin(Array.from({ length: 2_000 }, (_, at) => line(`cancelled ${at}`)).join("\n"));
    await eventually("some are done", async () => (await client["batches"].retrieve(id)).request_counts.completed > 5);
    expect((await client["batches"].cancel(id)).status).toBe("cancelling");
    const batch = await ended(id);
    expect(batch["status"]).toBe("cancelled");
    const output = await linesOf(batch["output_file_id"]);
    const unrun = await linesOf(batch["error_file_id"]);
    expect([output.length, output.length + unrun.length]).toEqual([batch["request_counts"].completed, 2_000]);
    expect(unrun[0]).toMatchObject({ response: null, error: { code: "batch_cancelled" } });
    expect(await refusal(client["batches"].cancel(id))).toContain("Cannot cancel a batch with status 'cancelled'");
  });

  test("an operator sees and cancels it, which the audit log says; a revoked key stops its batch", async () => {
    const key = await gateway.makeKey(account.email, { name: "night" });
    const { id } = await begin(Array.from({ length: 2_000 }, (_, at) => line(`op ${at}`)).join("\n"));
    const [newest] = await gateway.cli<Json[]>("batches", "list", "--limit", "1");
    expect(newest).toMatchObject({ id, account: account.email });
    await gateway.cli("batches", "cancel", id);
    expect((await ended(id))["status"]).toBe("cancelled");
    const own = client;
    client = new openai!["OpenAI"]({ apiKey: key.api_key, baseURL: `${gateway.url}/v1` });
    const other = await begin(Array.from({ length: 2_000 }, (_, at) => line(`void ${at}`)).join("\n"));
    client = own;
    await gateway.revokeKey(account.email, key.id);
    const batch = await ended(other["id"]);
    expect([batch["status"], batch["errors"].data[0].code]).toEqual(["failed", "invalid_api_key"]);
  });

  test("batches that wait hold up no other", async () => {
    const { email, api_key } = await gateway.account();
    const { api_key: poor } = await gateway.makeKey(email, { name: "poor", limit_day: 1 });
    const own = client;
    client = new openai!["OpenAI"]({ apiKey: poor, baseURL: `${gateway.url}/v1` });
    const waiting: string[] = [];
    for (let each = 0; each < 6; each += 1) waiting.push((await begin(line(`waits ${each}`)))["id"]);
    client = new openai!["OpenAI"]({ apiKey: api_key, baseURL: `${gateway.url}/v1` });
    const { id } = await begin(line("does not wait"));
    expect((await ended(id))["status"]).toBe("completed");
    const batches = await Promise.all(waiting.map((each) => client["batches"].retrieve(each)));
    for (const { status } of batches) expect(["validating", "in_progress"]).toContain(status);
    for (const each of waiting) await client["batches"].cancel(each);
    for (const each of waiting) expect((await ended(each))["status"]).toBe("cancelled");
    client = own;
  });

  test("Anthropic's batches", async () => {
    const { messages } = new anthropic!["Anthropic"]({ apiKey: account.api_key, baseURL: gateway.url });
    const params = { model: "m", max_tokens: 20, messages: [{ role: "user", content: "hey" }] };
    const { id } = await messages.batches.create({
      requests: [
        { custom_id: "good", params },
        { custom_id: "bad", params: { ...params, temperature: 9 } },
      ],
    });
    await eventually("it ends", async () => (await messages.batches.retrieve(id)).processing_status === "ended");
    const results: Json[] = [];
    for await (const result of await messages.batches.results(id)) results.push(result);
    expect(results.toSorted((a, b) => (a["custom_id"] < b["custom_id"] ? 1 : -1))).toMatchObject([
      { custom_id: "good", result: { type: "succeeded", message: { role: "assistant" } } },
      { custom_id: "bad", result: { type: "errored", error: { error: { type: "invalid_request_error" } } } },
    ]);
    const listed: string[] = [];
    for await (const batch of messages.batches.list()) listed.push(batch.id);
    expect(listed).toEqual([id]);
    expect(await messages.batches.delete(id)).toMatchObject({ type: "message_batch_deleted" });
    expect(await refusal(messages.batches.retrieve(id))).toContain("No batch found");
    expect(await refusal(messages.batches.create({ requests: [] }))).toContain("requests: must be a list");
  });

  test.skipIf(withoutPython)("the Python packages", async () => {
    const program = [python, join(import.meta.dir, "clients_python.py"), gateway.url, account.api_key];
    const { stdout, stderr } = await runToEnd(program, { cwd: clients, env: process.env });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual({
      status: "completed",
      completed: 20,
      answers: true,
      found: true,
      results: [["one", "succeeded"]],
      deleted: "message_batch_deleted",
    });
  });

  afterAll(() => expect(gateway.output).not.toContain("invariant"));
});
