// What operators see of a running server: metrics, the log and traces. None of them reveals a secret.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { missing } from "../fixtures/optional.ts";
import { OtlpCollector } from "../fixtures/otlp-collector.ts";
import { type SearchService, startSearchService } from "../fixtures/search-service.ts";
import { nodeTable } from "../fixtures/stack.ts";

const promtool = Bun.which("promtool");
const nodeKey = "canary-node-key-5d1f";
const prompt = "canary-prompt-93b7";
const otlpKey = "canary-otlp-key-7a10";
const cookie = "canary-cookie-c04e";
const wrongKey = `sk-tg-${"Canary".repeat(7)}9`;
const callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736";

let node: ScriptedNode;
let gateway: GatewayProcess;
let collector: OtlpCollector;
let service: SearchService;
let config: string;
let key: string;

beforeAll(async () => {
  node = await ScriptedNode.start();
  collector = new OtlpCollector();
  service = startSearchService();
  config = `
${nodeTable(node, 8).replace("[nodes.models]", `api_key = "${nodeKey}"\n[nodes.models]`)}
[[nodes]]
name = "away"
url = "http://127.0.0.1:9/v1"
[nodes.models]
"core-1.6-lite" = "x"
[log]
level = "debug"
[telemetry]
otlp_endpoint = "${collector.url}"
otlp_protocol = "http/json"
otlp_headers_env = "OTLP_HEADERS"
content = true
redact = ["\\\\bcanary-[a-z]+-secret\\\\b"]
[backups]
every_hours = 1
[[webhooks]]
name = "nobody"
url = "http://127.0.0.1:1/"
${service.config}
`;
  const env = { OTLP_HEADERS: `authorization=Basic%20${otlpKey},x-scope=a` };
  gateway = await GatewayProcess.start({ config, env });
  key = (await gateway.account()).api_key;
  await askAll();
}, 120_000);
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await node?.[Symbol.asyncDispose]();
  collector?.[Symbol.dispose]();
  service?.[Symbol.dispose]();
});

async function ask(path: string, body: object | string, headers: Record<string, string> = {}): Promise<string> {
  const reply = await fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, cookie: `session=${cookie}`, ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  await reply.text();
  return reply.headers.get("x-request-id")!;
}

const messages = [{ role: "user", content: `text ${prompt}` }];

/** Answers, refusals and failures of every dialect; the first is the one in 64 whose gaps are measured. */
async function askAll(): Promise<void> {
  await ask("/v1/chat/completions", {
    model: "core-3",
    stream: true,
    messages: [{ role: "user", content: `[[${node.marker("slow")}]]` }],
  });
  for (const stream of [true, false]) {
    await ask("/v1/chat/completions", { model: "core-3", stream, messages });
    await ask("/v1/messages", { model: "core-3", stream, max_tokens: 9, messages });
    await ask("/v1/responses", { model: "core-3", stream, input: `text ${prompt}` });
  }
  await ask("/v1/chat/completions", { model: "core-1.6-lite", messages }); // its node is away
  await ask("/v1/chat/completions", { model: prompt, messages });
  await ask("/v1/chat/completions", `{"model": ${prompt}`);
  await ask("/v1/chat/completions", { model: "core-3", messages: prompt });
  await ask("/v1/chat/completions", { model: "core-3", messages }, { authorization: `Bearer ${wrongKey}` });
}

const scrape = async (headers: Record<string, string> = {}): Promise<string> =>
  (await fetch(`${gateway.url}/metrics`, { headers })).text();

/** The span of a request, when its trace has come. */
const spanOf = (requestId: string) =>
  eventually(
    "the span came",
    async () => collector.spans.find(({ attributes }) => attributes["tollgate.request.id"] === requestId) ?? null,
  );

const eventLines = (event: string): Record<string, unknown>[] =>
  gateway.output
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line["event"] === event);

describe("metrics", () => {
  test("count requests by endpoint, model and status, and no model that a stranger made up", async () => {
    const text = await scrape();
    expect(text).toContain('tollgate_requests_total{endpoint="/v1/messages",model="core-3",status="200"} 2');
    expect(text).toContain(
      'tollgate_requests_total{endpoint="/v1/chat/completions",model="core-1.6-lite",status="429"} 1',
    );
    expect(text).toContain('tollgate_requests_total{endpoint="/v1/chat/completions",model="other",status="401"} 1');
    expect(text).toContain('tollgate_refusals_total{reason="unknown_model"} 1');
    expect(text).toContain('tollgate_answers_total{ending="end"} 7');
    expect(text).toMatch(/^tollgate_time_to_first_token_seconds_count\{model="core-3"\} 7$/m);
    expect(text).toMatch(/^tollgate_queue_wait_seconds_count\{priority="standard"\} [89]$/m);
    expect(text).toMatch(/^tollgate_work_total\{priority="standard"\} [1-9]/m);
    expect(text).toMatch(/^tollgate_account_work_ratio\{account="\d+"\} 1$/m);
    expect(text).toMatch(/^tollgate_settle_duration_seconds_count 7$/m);
    expect(text).toMatch(/^tollgate_journal_batch_entries_sum [1-9]/m);
    expect(text).toMatch(/^tollgate_tokens_total\{model="core-3",kind="output"\} [1-9]/m);
    expect(text).toMatch(/^tollgate_token_gap_seconds_count [1-9]/m);
    expect(text).not.toContain(prompt);
  });

  test("count searches, rounds, repeated answers and media", async () => {
    const marked = (script: string) => [{ role: "user", content: `[[${node.marker(script)}]]` }];
    const searchId = await ask("/v1/chat/completions", {
      model: "core-3",
      web_search: true,
      messages: marked("web-search"),
    });
    const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };
    const response_format = { type: "json_schema", json_schema: { name: "book", strict: true, schema } };
    await ask("/v1/chat/completions", { model: "core-3", response_format, messages: marked("wrong-json") });
    const image = { type: "image_url", image_url: { url: "http://127.0.0.1:1/a.png" } };
    const content = [{ type: "text", text: "what is it?" }, image];
    await ask("/v1/chat/completions", { model: "core-3", messages: [{ role: "user", content }] });
    const text = await scrape();
    expect(text).toContain('tollgate_searches_total{result="found"} 1');
    expect(text).toContain('tollgate_tool_calls_total{kind="search",result="done"} 1');
    expect(text).toContain("tollgate_tool_rounds_total 1");
    expect(text).toContain("tollgate_structured_output_repeats_total 2");
    expect(text).toContain('tollgate_refusals_total{reason="answer_misfit"} 1');
    expect(text).toContain('tollgate_media_fetches_total{result="refused"} 1');
    const root = await spanOf(searchId);
    const children = collector.spans.filter(({ parentSpanId }) => parentSpanId === root.spanId);
    expect(children.map(({ name }) => name).sort()).toEqual([
      "chat core-3",
      "chat core-3",
      "execute_tool web_search",
      "queue",
      "queue",
      "settle",
    ]);
  });

  test.skipIf(missing("promtool", promtool !== null, "it is in Debian's package prometheus"))(
    "are as promtool wants them",
    async () => {
      const check = Bun.spawn([promtool!, "check", "metrics"], { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
      void check.stdin.write(await scrape());
      await check.stdin.end();
      const said = await new Response(check.stderr).text();
      expect({ said, code: await check.exited }).toEqual({ said: "", code: 0 });
    },
  );

  test("are all that the dashboard asks for", async () => {
    const dashboard = await Bun.file(`${import.meta.dir}/../../data/grafana-dashboard.json`).text();
    await eventually("the ledger was checked", async () => (await scrape()).includes("tollgate_ledger_whole_pass"));
    await eventually("a backup was made", async () => (await scrape()).includes("tollgate_backup_timestamp"));
    const types = new Map(
      [...(await scrape()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]),
    );
    const asked = new Set([...dashboard.matchAll(/tollgate_[a-z_]+/g)].map(([name]) => name));
    const unknown = [...asked].filter((name) => {
      if (/^tollgate_(?:lane|node_share)_/.test(name)) return false; // where several gateways share a database
      const ofHistogram = name.replace(/_(?:bucket|sum|count)$/, "");
      return !types.has(name) && types.get(ofHistogram) !== "histogram";
    });
    expect(asked.size).toBeGreaterThan(20);
    expect(unknown).toEqual([]);
    const panels = (JSON.parse(dashboard) as { panels: { id: number; type: string; targets?: { expr: string }[] }[] })
      .panels;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(panels.every(({ type, targets }) => type === "row" || targets!.length > 0)).toBe(true);
    // what is exposed and not shown would be forgotten
    expect([...types.keys()].filter((name) => !dashboard.includes(name!))).toEqual([]);
  });

  test("are not for those for whom a proxy asks", async () => {
    const reply = await fetch(`${gateway.url}/metrics`, { headers: { "x-forwarded-for": "203.0.113.7" } });
    expect(reply.status).toBe(403);
    expect(await reply.text()).toContain("token_env");
  });
});

describe("the log", () => {
  test("has a line for each request at debug level, under the id that its client got", async () => {
    const id = await ask("/v1/chat/completions", { model: "core-3", messages });
    const line = await eventually(
      "the line is there",
      async () => eventLines("request").find(({ requestId }) => requestId === id) ?? null,
    );
    expect(line).toMatchObject({
      level: "debug",
      endpoint: "/v1/chat/completions",
      model: "core-3",
      status: 200,
      ending: "end",
      refusal: null,
      node: "scripted",
    });
    expect(line["output"]).toBeGreaterThan(0);
  });

  test("says no key, prompt, cookie or address of a node at debug level", () => {
    expect(eventLines("request").length).toBeGreaterThan(8);
    // what the start prints for its operator is on standard output: the first key, and the nodes' addresses
    const log = gateway.output
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .join("\n");
    for (const secret of [
      key,
      gateway.operatorKey,
      wrongKey,
      nodeKey,
      otlpKey,
      prompt,
      cookie,
      `:${node.port}`,
      "127.0.0.1:9",
    ]) {
      expect(log).not.toContain(secret);
    }
  });
});

describe("traces", () => {
  test("have a span for each request with its parts below it, in the caller's trace", async () => {
    const id = await ask(
      "/v1/chat/completions",
      { model: "core-3", messages },
      { traceparent: `00-${callersTrace}-00f067aa0ba902b7-01` },
    );
    const root = await spanOf(id);
    expect(root).toMatchObject({ name: "POST /v1/chat/completions", traceId: callersTrace, kind: 2 });
    expect(root.parentSpanId).toBe("00f067aa0ba902b7");
    expect(root.attributes).toMatchObject({
      "http.response.status_code": 200,
      "gen_ai.operation.name": "chat",
      "gen_ai.request.model": "core-3",
      "gen_ai.request.max_tokens": 4096,
    });
    const children = collector.spans.filter(({ parentSpanId }) => parentSpanId === root.spanId);
    expect(children.map(({ name }) => name)).toEqual(["queue", "chat core-3", "settle"]);
    const generation = children[1]!;
    expect(generation.kind).toBe(3);
    expect(generation.attributes).toMatchObject({ "tollgate.node": "scripted" });
    expect(Number(generation.attributes["gen_ai.usage.output_tokens"])).toBeGreaterThan(0);
    for (const { startTimeUnixNano, endTimeUnixNano } of children) {
      expect(BigInt(startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(root.startTimeUnixNano));
      expect(BigInt(endTimeUnixNano)).toBeLessThanOrEqual(BigInt(root.endTimeUnixNano));
    }
  });

  test("name the session, the user and tags, and what was asked of the model, for the tools that read them", async () => {
    const asked = { model: "core-3", messages, temperature: 0.5, stop: ["END"], stream: true };
    const headers = { "x-session-id": "session-1", "x-tags": "a, b", "x-trace-content": "no" };
    const root = await spanOf(await ask("/v1/chat/completions", asked, headers));
    const generation = collector.spans.find((span) => span.parentSpanId === root.spanId && span.kind === 3)!;
    for (const { attributes } of [root, generation]) {
      expect(attributes).toMatchObject({ "session.id": "session-1", "gen_ai.conversation.id": "session-1" });
      expect(attributes["user.id"]).toMatch(/^[0-9a-f]{32}$/);
    }
    expect(JSON.stringify(root.attributes["langfuse.trace.tags"])).toContain('"b"');
    expect(generation.attributes).toMatchObject({
      "gen_ai.provider.name": "tollgate",
      "gen_ai.request.temperature": 0.5,
      "gen_ai.request.stream": true,
      "gen_ai.response.model": "core-3",
      "openinference.span.kind": "LLM",
    });
    expect(Number(generation.attributes["gen_ai.response.time_to_first_chunk"])).toBeGreaterThan(0);
    expect(root.attributes).not.toHaveProperty(["gen_ai.usage.output_tokens"]); // it would count twice
    expect(collector.headers!.get("authorization")).toBe(`Basic ${otlpKey}`);
    expect(collector.headers!.get("x-scope")).toBe("a");
  });

  test("have contents where a request asks for it, without what the operator redacts", async () => {
    const marked = `[[${node.marker("one-tool")}]] my canary-word-secret is wanted`;
    const body = {
      model: "core-3",
      messages: [{ role: "user", content: marked }],
      tools: [{ type: "function", function: { name: "get_weather", parameters: { type: "object" } } }],
    };
    const root = await spanOf(await ask("/v1/chat/completions", body, { "x-trace-content": "true" }));
    const { attributes } = collector.spans.find((span) => span.parentSpanId === root.spanId && span.kind === 3)!;
    const [input] = JSON.parse(String(attributes["gen_ai.input.messages"]));
    expect(input.parts[0].content).toEndWith("my [redacted] is wanted");
    const [output] = JSON.parse(String(attributes["gen_ai.output.messages"]));
    expect(output).toMatchObject({ role: "assistant", finish_reason: "tool_calls" });
    expect(output.parts).toMatchObject([{ type: "tool_call", name: "get_weather", arguments: '{"city":"Paris"}' }]);
    expect(collector.text).not.toContain("canary-word-secret");
  });

  test("have contents of the accounts that opted in, unless a request says no, and of nobody else", async () => {
    const optedIn = await gateway.account();
    await gateway.configure(config.replace("content = true", `content = true\ncontent_accounts = [${optedIn.id}]`));
    await gateway.reload();
    const generationOf = async (key: string, headers: Record<string, string> = {}) => {
      const body = { model: "core-3", messages: [{ role: "user", content: "hello" }] };
      const root = await spanOf(
        await ask("/v1/chat/completions", body, { authorization: `Bearer ${key}`, ...headers }),
      );
      return collector.spans.find((span) => span.parentSpanId === root.spanId && span.kind === 3)!.attributes;
    };
    expect(await generationOf(optedIn.api_key)).toHaveProperty(["gen_ai.output.messages"]);
    const said = [generationOf(optedIn.api_key, { "x-trace-content": "false" })];
    said.push(generationOf(key, { "x-trace-content": "true" }));
    for (const attributes of await Promise.all(said)) {
      expect(attributes).not.toHaveProperty(["gen_ai.input.messages"]);
      expect(attributes).not.toHaveProperty(["gen_ai.output.messages"]);
    }
  });

  test("say which requests failed, and no secret", async () => {
    const failed = await eventually(
      "the failed span came",
      async () => collector.spans.find(({ attributes }) => attributes["error.type"] === "busy_unreachable") ?? null,
    );
    expect(failed.attributes).toMatchObject({
      "gen_ai.request.model": "core-1.6-lite",
      "http.response.status_code": 429,
    });
    for (const secret of [key, wrongKey, nodeKey, otlpKey, prompt, cookie, `:${node.port}`]) {
      expect(collector.text).not.toContain(secret);
    }
  });
});
