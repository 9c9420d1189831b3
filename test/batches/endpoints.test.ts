// Lines of every endpoint that a batch may ask, through the official package, on what engines were recorded to answer.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { installed } from "../fixtures/optional.ts";
import { type RawNode, wholeReply } from "../fixtures/raw-node.ts";
import { recordedAs, recordedNode } from "../fixtures/recorded-node.ts";
import { transcripts } from "../fixtures/transcripts.ts";

setDefaultTimeout(60_000);

// the package's own types are not there in a plain checkout
type Json = Record<string, any>;
const openai = await installed<Json>("openai", join(import.meta.dir, "../clients"));

const linesOf = (file: string): Json[] =>
  Buffer.from(Bun.gunzipSync(readFileSync(join(import.meta.dir, "../fixtures", file))))
    .toString()
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
const inputs = (name: string): string =>
  linesOf("transcripts/inputs.jsonl.gz").find((each) => each["engine"] === "vllm" && each["case"] === name)![
    "response"
  ];
const opened = (bytes: string): string => bytes.replace(/^connection: close\r\n/im, "");
const chat = transcripts.find(({ engine, name }) => engine === "vllm" && name === "11-stream-usage")!;
const plain = linesOf("plain-transcripts/vllm.jsonl.gz").find(({ name }) => name === "text")!;
const names = ["tiny-chat", "tiny-embedding", "tiny-rerank"];

describe.skipIf(openai === null)("lines of each endpoint", () => {
  let node: RawNode;
  let gateway: GatewayProcess;
  let account: Account;
  let client: Json;
  beforeAll(async () => {
    node = recordedNode("vllm", {
      "/v1/models": recordedAs("vllm", "01-models", (body) => {
        const list = JSON.parse(body);
        return JSON.stringify({ ...list, data: names.map((id) => ({ ...list.data[0], id, root: id })) });
      }),
      "/v1/chat/completions": opened(chat.bytes.toString("latin1")),
      "/v1/completions": opened(plain["response"]),
      "/v1/embeddings": ({ body }, reply) => {
        const { input, encoding_format: format } = JSON.parse(body);
        const name = format === "base64" ? "base64" : input.length === 1 || input === "Hi" ? "string" : "strings";
        reply.write(wholeReply("200 OK", inputs(name)));
      },
      "/v1/rerank": wholeReply("200 OK", inputs("rerank")),
    });
    const models = names.map(
      (id) => `[[models]]\nid = "${id}"\nkind = "${id.slice(5)}"\nprice = { input = 4, output = 8 }\n`,
    );
    gateway = await GatewayProcess.start({
      config: `${models.join("")}[[nodes]]\nname = "n"\nurl = "${node.url}"\nslots = 4\n`,
    });
    account = await gateway.account();
    client = new openai!["OpenAI"]({ apiKey: account.api_key, baseURL: `${gateway.url}/v1` });
  });
  afterAll(async () => {
    await gateway?.expectNothingReserved();
    await gateway?.[Symbol.asyncDispose]();
    node?.stop();
  });

  /** Of a batch with two good lines and one that is refused: its output, its errors, and itself. */
  async function ran(endpoint: string, good: Json, bad: Json) {
    const line = (id: string, body: Json): string =>
      JSON.stringify({ custom_id: id, method: "POST", url: endpoint, body });
    const text = [line("a", good), line("bad", bad), line("b", good)].join("\n");
    const file = await client["files"].create({
      file: await openai!["toFile"](new Blob([text]), "in.jsonl"),
      purpose: "batch",
    });
    const made = await client["batches"].create({ input_file_id: file.id, endpoint, completion_window: "24h" });
    let batch: Json = {};
    await eventually("it ends", async () => {
      batch = await client["batches"].retrieve(made["id"]);
      return ["completed", "failed"].includes(batch["status"]);
    });
    const read = async (id: string): Promise<Json[]> =>
      (await (await client["files"].content(id)).text())
        .trimEnd()
        .split("\n")
        .map((each: string) => JSON.parse(each));
    expect(batch).toMatchObject({ status: "completed", request_counts: { total: 3, completed: 2, failed: 1 } });
    const output = await read(batch["output_file_id"]);
    const [error] = await read(batch["error_file_id"]);
    expect(output.map(({ custom_id }) => custom_id).sort()).toEqual(["a", "b"]);
    expect(error).toMatchObject({ custom_id: "bad", response: { status_code: 400, body: { error: {} } } });
    return { batch, bodies: output.map(({ response }) => response.body), error: error!["response"].body.error };
  }

  /** What the same request is answered when it is no line: but for ids and times, the same. */
  async function asked(endpoint: string, body: Json): Promise<Json> {
    const headers = { authorization: `Bearer ${account.api_key}` };
    const reply = await fetch(gateway.url + endpoint, { method: "POST", headers, body: JSON.stringify(body) });
    return (await reply.json()) as Json;
  }
  const withoutOwn = (reply: Json): unknown =>
    JSON.parse(
      JSON.stringify(reply, (key, value) =>
        ["id", "created", "created_at", "completed_at", "call_id"].includes(key) ? undefined : value,
      ),
    );

  const tiny = "tiny-chat";
  const documents = ["one", "two", "three"];
  test.each([
    ["/v1/chat/completions", { model: tiny, messages: [{ role: "user", content: "Hi" }] }, { messages: "no" }],
    [
      "/v1/responses",
      { model: tiny, input: "Hi", store: false, instructions: "Be brief. ".repeat(10_000) },
      { input: 3 },
    ],
    ["/v1/completions", { model: tiny, prompt: "Once upon a time", max_tokens: 12 }, { prompt: {} }],
    ["/v1/embeddings", { model: "tiny-embedding", input: "Hi" }, { input: [] }],
    ["/v1/embeddings", { model: "tiny-embedding", input: ["Hi", "Ho"], encoding_format: "base64" }, { input: 5 }],
    ["/v1/embeddings", { model: "tiny-embedding", input: ["Hi", "Ho"] }, { encoding_format: "no" }],
    ["/v1/rerank", { model: "tiny-rerank", query: "one", documents, top_n: 2 }, { documents: 1 }],
  ])("%s %j: as the same request by itself", async (endpoint, good, bad) => {
    const own = await asked(endpoint, good);
    const before = (await gateway.usage(account.email)).length;
    const { batch, bodies, error } = await ran(endpoint, { ...good, store: true }, { ...good, ...bad });
    for (const body of bodies) expect(withoutOwn(body)).toEqual(withoutOwn(own));
    expect(error).toEqual((await asked(endpoint, { ...good, ...bad }))["error"]);
    const rows = (await gateway.usage(account.email)).slice(0, -before);
    expect(rows.map((row) => row.endpoint)).toEqual(["/v1/batches", "/v1/batches"]);
    const sum = (of: (row: (typeof rows)[number]) => number): number => rows.reduce((all, row) => all + of(row), 0);
    expect([batch["usage"].input_tokens, batch["usage"].output_tokens, batch["billed_tokens"]]).toEqual([
      sum((row) => row.input + row.cached_input),
      sum((row) => row.output),
      sum((row) => row.billed_tokens),
    ]);
    expect(sum((row) => row.input)).toBeGreaterThan(0);
  });
});
