// The tool loop in the running gateway, with a scripted node and a search service: every number of rounds in every
// dialect, what the ledger books, what of the day's searches is left, and who hears what when something ends early.
import { beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asking, type Dialect, dialectOf, dialects, eachDialect, failedIn, toldIn } from "../fixtures/dialects.ts";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { messagesCaptures } from "../fixtures/messages-captures.ts";
import { expectWellFormedMessage, messagesEventsOf } from "../fixtures/messages-events.ts";
import { post } from "../fixtures/requests.ts";
import {
  callArguments,
  callStart,
  finish,
  type NodeReply,
  nodeError,
  type Script,
  stream,
  text,
} from "../fixtures/scripts.ts";
import { foundPages } from "../fixtures/search-service.ts";
import { Stack, useStack } from "../fixtures/stack.ts";

const stack = useStack({ search: true });
let account: Account;
beforeEach(async () => void (account = await stack.gateway.account(100_000_000, "pro")));

// ---------------------------------------------------------------------------------------------------------------
// Scripts: rounds that search, and an answer that cites
// ---------------------------------------------------------------------------------------------------------------

const roundUsage = {
  prompt_tokens: 100,
  completion_tokens: 10,
  total_tokens: 110,
  prompt_tokens_details: { cached_tokens: 16 },
  completion_tokens_details: { reasoning_tokens: 2 },
};
const searchRound = (query = "bun runtime", index = 0): NodeReply =>
  stream(
    text("Searching. "),
    callStart(index, "call_1", "web_search"),
    callArguments(index, '{"que', `ry":"${query}"}`),
    finish("tool_calls", roundUsage),
  );
const citing = stream(text("Bun is fast [", "1]. ", "Elysia runs on it [2]."), finish("stop", roundUsage));
const searching = (rounds: number): Script => ({
  advance: "rounds",
  replies: [...Array.from({ length: rounds - 1 }, () => searchRound()), citing],
});

const define = async (script: Script): Promise<string> => {
  const name = `loop-${Bun.randomUUIDv7()}`;
  await stack.node.define(name, script);
  return name;
};

const ask = async (dialect: Dialect, script: string, more: object = {}, by = account): Promise<Response> =>
  post(stack, by, asking(dialect, `go [[${script}]]`, { ...dialect.searches[0], ...more }), { path: dialect.endpoint });
const onlyUsage = async (by = account) => {
  const rows = await eventually("the charge is listed", async () => {
    const listed = await stack.gateway.usage(by.email);
    return listed.length > 0 && listed;
  });
  expect(rows).toHaveLength(1); // one charge, one record
  return rows[0]!;
};
const searchesUsed = async (by = account): Promise<number> => (await stack.gateway.show(by.email)).searches.used;

// ---------------------------------------------------------------------------------------------------------------

test("searches that find nothing have an end too: then requests are answered without search", async () => {
  const own = await stack.gateway.account(0, "free"); // 3 searches a day, so 15 calls of the service
  const script = await define({
    advance: "rounds",
    replies: Array.from({ length: 10 }, () => searchRound("nothing")),
  });
  const first = stack.search.queries.length;
  for (let request = 0; request < 4; request += 1) {
    const reply = await ask(dialectOf.chat, script, {}, own);
    expect(reply.status).toBe(200);
    await reply.text();
  }
  expect(stack.search.queries.length - first).toBe(15);
  expect(await searchesUsed(own)).toBe(0);
  await stack.gateway.kill("SIGKILL");
  await stack.gateway.restart();
  await (await ask(dialectOf.chat, script, {}, own)).text();
  expect(stack.search.queries.length - first).toBe(15);
});

describe.each(eachDialect)("%s", (_, dialect) => {
  test.each(Array.from({ length: 11 }, (_, rounds) => rounds + 1))(
    "%i rounds, streamed and not: one answer, one charge of their sum, one search of the day",
    async (rounds) => {
      const script = await define(searching(rounds));
      const done = Math.min(rounds, 10);
      const first = stack.search.queries.length;
      for (const streams of [false, true]) {
        const own = await stack.gateway.account(100_000_000, "pro");
        const reply = await ask(dialect, script, { stream: streams, model: "open-05-3BIT-REAP" }, own);
        expect(reply.status).toBe(200);
        const written = await reply.text();
        const { text } = toldIn(dialect, written, streams, dialect.searches[0]);
        expect(text).toContain(rounds <= 10 ? "Elysia runs on it" : "Searching.");
        expect(await onlyUsage(own)).toMatchObject({
          input: 100 * done,
          cached_input: 16 * done,
          output: 10 * done,
          reasoning: 2 * done,
          estimated: false,
          billed_tokens: Math.floor((2 * (84 * done * 50 + 16 * done * 5 + 10 * done * 200) + 500) / 1000),
        });
        expect(await searchesUsed(own)).toBe(rounds === 1 ? 0 : 1);
      }
      expect(stack.search.queries.length - first).toBe(2 * (done - 1));
      expect(new Set(stack.search.queries.slice(first))).toEqual(new Set(rounds === 1 ? [] : ["bun runtime"]));
    },
  );

  test("[n] is the n-th source that the citations name, streamed and not, and what the model wrote is what it reads again", async () => {
    const wrote = ["The tower [", "2] is tall [2", "]. "];
    const again = stream(
      text(...wrote),
      callStart(0, "call_2", "web_search"),
      callArguments(0, '{"query":"bridges"}'),
      finish("tool_calls", roundUsage),
    );
    const last = stream(text("The bridge [1", "] is long, the tower [2] not."), finish("stop", roundUsage));
    const script = await define({ advance: "rounds", replies: [searchRound(), again, last] });
    for (const streams of [false, true]) {
      const marker = stack.node.marker(script);
      const reply = await ask(dialect, marker, { stream: streams });
      const { text, cited } = toldIn(dialect, await reply.text(), streams, dialect.searches[0]);
      expect(text).toContain("The tower [1] is tall [1]. ");
      expect(text).toContain("The bridge [2] is long, the tower [1] not.");
      const [bridge, tower] = foundPages.map(({ url }) => url) as [string, string];
      expect(cited).toEqual([tower, tower, bridge, tower]);
      const [, , third] = await stack.node.requests(marker);
      expect(JSON.stringify(third!.body)).toContain(wrote.join("").trim());
    }
  });

  test("a node that fails in a later round: the dialect's error, charge 0, no search counted", async () => {
    const script = await define({ advance: "rounds", replies: [searchRound(), nodeError(500, "out of memory")] });
    const whole = await ask(dialect, script);
    expect(whole.status).toBe(500);
    expect(await whole.text()).not.toContain("out of memory");
    const streamed = await (await ask(dialect, script, { stream: true })).text();
    expect(failedIn(dialect, streamed).last).toEqual(dialect.failed("The model stopped answering. Please retry."));
    await stack.gateway.expectNothingReserved();
    expect([await stack.gateway.usage(account.email), await searchesUsed()]).toEqual([[], 0]);
  });

  test("a search that fails or finds nothing is no error and counts nothing", async () => {
    for (const query of ["broken thing", "nothing here"]) {
      const script = await define({ advance: "rounds", replies: [searchRound(query), citing] });
      expect((await ask(dialect, script)).status).toBe(200);
    }
    expect(await searchesUsed()).toBe(0);
  });

  test("a client that leaves during a search stops it and pays for the rounds so far", async () => {
    const script = await define({ advance: "rounds", replies: [searchRound("slow one"), citing] });
    const leaving = new AbortController();
    const left = stack.search.left;
    const body = asking(dialect, `go [[${script}]]`, { ...dialect.searches[0], stream: true });
    const reply = await post(stack, account, body, { path: dialect.endpoint, signal: leaving.signal });
    const reader = reply.body!.getReader();
    await eventually("the search runs", async () => stack.search.queries.at(-1) === "slow one");
    leaving.abort();
    await reader.cancel().catch(() => {}); // the connection is gone
    await eventually("the search is stopped", async () => stack.search.left > left);
    expect(await onlyUsage()).toMatchObject({ input: 100, output: 10 });
    expect(await searchesUsed()).toBe(0);
  });
});

// ---------------------------------------------------------------------------------------------------------------

test("50 parallel searches with 3 left count exactly 3; all are answered", async () => {
  const free = await stack.gateway.account(100_000_000, "free"); // 3 a day
  const script = await define(searching(2));
  const replies = await Promise.all(Array.from({ length: 50 }, () => ask(dialectOf.chat, script, {}, free)));
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
  await Promise.all(replies.map((reply) => reply.text()));
  expect(await searchesUsed(free)).toBe(3);
  // used up: the model is not offered the tool, and the answer comes without
  expect((await ask(dialectOf.messages, script, {}, free)).status).toBe(200);
  const requests = await stack.node.requests(script);
  expect(requests.at(-1)!.body).not.toHaveProperty("tools");
  expect(await searchesUsed(free)).toBe(3);
});

test("the results reach the model fenced and numbered, without a template's tokens, and change nothing of the request", async () => {
  const script = await define(searching(2));
  await (await ask(dialectOf.chat, script)).text();
  const [first, second] = (await stack.node.requests(script)).map(({ body }) => body as Record<string, any>);
  const { messages: turns } = second!;
  expect(turns.map(({ role }: { role: string }) => role)).toEqual(["user", "assistant", "tool"]);
  expect(turns[2].content).toMatch(/<<<(\w{12})\n\[1\] Bun\nhttps:\/\/bun\.example\/\n[^<]+\n\1>>>/);
  expect(turns[2].content).toContain("< |im_start|>system");
  expect(second!["tools"]).toEqual(first!["tools"]);
});

test("calls of ours and of the client's in one round: ours are shown, the client's are handed over", async () => {
  const both = stream(
    callStart(0, "call_1", "web_search"),
    callStart(1, "call_2", "bash"),
    callArguments(0, '{"query":"bun"}'),
    callArguments(1, '{"command":"ls"}'),
    finish("tool_calls", roundUsage),
  );
  const script = await define({ advance: "rounds", replies: [both] });
  const command = { type: "object", properties: { command: { type: "string" } } };
  const bash = { type: "function", function: { name: "bash", parameters: command } };
  const chat = (await (await ask(dialectOf.chat, script, { tools: [bash] })).json()) as Record<string, any>;
  expect(chat["choices"][0]).toMatchObject({
    finish_reason: "tool_calls",
    message: { tool_calls: [{ id: "call_2", function: { name: "bash", arguments: '{"command":"ls"}' } }] },
  });
  expect(chat["choices"][0].message.tool_calls).toHaveLength(1);
  const tools = [
    { type: "web_search_20250305", name: "web_search" },
    { name: "bash", input_schema: command },
  ];
  const message = (await (await ask(dialectOf.messages, script, { tools })).json()) as Record<string, any>;
  expect(message["stop_reason"]).toBe("tool_use");
  expect(message["content"].map(({ type }: { type: string }) => type)).toEqual([
    "tool_use",
    "server_tool_use",
    "web_search_tool_result",
  ]);
});

test("a caller's own function web_search is answered by our search and not handed over", async () => {
  const script = await define(searching(2));
  const parameters = { type: "object", properties: { query: { type: "string" } }, required: ["query"] };
  const tools = [{ type: "function", function: { name: "web_search", parameters } }];
  const named = { type: "function", function: { name: "web_search" } };
  const reply = await ask(dialectOf.chat, script, { web_search: false, tools, tool_choice: named });
  const { choices } = (await reply.json()) as { choices: Record<string, any>[] };
  expect(choices[0]).toMatchObject({ finish_reason: "stop" });
  expect(choices[0]!["message"]).not.toHaveProperty("tool_calls");
  const requests = await stack.node.requests(script);
  expect(requests.map(({ body }) => body!["tool_choice"])).toEqual([named, undefined]);
});

test("a coder call is one call, whatever its rounds", async () => {
  const script = await define(searching(4));
  expect((await ask(dialectOf.messages, script, { model: "core-coder-1" })).status).toBe(200);
  expect((await stack.gateway.show(account.email)).coder_calls.used).toBe(1);
  expect(await onlyUsage()).toMatchObject({ input: 400, output: 40, billed_tokens: 0 });
});

test("an input that no node reports is counted for each round", async () => {
  const silent = { chunk: { delta: {}, finish: "tool_calls" } };
  const first = stream(callStart(0, "call_1", "web_search"), callArguments(0, '{"query":"bun"}'), silent, {
    done: true,
  });
  const script = await define({ advance: "rounds", replies: [first, citing] });
  await (await ask(dialectOf.chat, script)).text();
  const row = await onlyUsage();
  expect(row.estimated).toBe(true);
  expect(row.input).toBeGreaterThan(100); // the second round's, reported, and the first one's
  expect(row.input).toBeLessThan(1_000);
});

test("a stored response keeps its searches, and the next request goes on from it", async () => {
  const script = await define(searching(2));
  const first = (await (await ask(dialectOf.responses, script)).json()) as {
    id: string;
    output: { type: string }[];
  };
  expect(first.output.map(({ type }) => type)).toEqual(["message", "web_search_call", "message"]);
  const marker = stack.node.marker("text");
  const body = { model: "core-3", previous_response_id: first.id, input: `and? [[${marker}]]` };
  expect((await post(stack, account, body, { path: "/v1/responses" })).status).toBe(200);
  const { messages: turns } = (await stack.node.request(marker)).body as { messages: Record<string, any>[] };
  expect(turns.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
  expect(turns[1]!["tool_calls"][0].function).toEqual({ name: "web_search", arguments: '{"query":"bun runtime"}' });
});

test("Claude Code's search request, as recorded, gets blocks of its search with links and citations", async () => {
  const script = await define(searching(2));
  const { body } = messagesCaptures.find(({ name }) => name.includes("cc_websearch 3"))!;
  const given = structuredClone(body) as { messages: { content: { text: string }[] }[] };
  given.messages[0]!.content[0]!.text += ` [[${script}]]`;
  const reply = await post(stack, account, given, { path: "/v1/messages?beta=true" });
  const events = messagesEventsOf(await reply.text());
  expectWellFormedMessage(events);
  const blocks = events.flatMap((event) => (event.type === "content_block_start" ? [event["content_block"]] : []));
  expect(blocks.map(({ type }) => type)).toEqual([
    "text",
    "server_tool_use",
    "web_search_tool_result",
    "text",
    "text",
    "text",
  ]);
  expect(blocks[2].content.map(({ url }: { url: string }) => url)).toEqual([
    "https://bun.example/",
    "https://elysia.example/docs",
  ]);
  const cited = events.flatMap((event) => event["delta"]?.citation?.url ?? []);
  expect(cited).toEqual(["https://bun.example/", "https://elysia.example/docs"]);
});

test("tools of an MCP server are run and shown in each dialect's own form", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tollgate-mcp-"));
  const program = join(import.meta.dir, "../tools/mcp/scripted-mcp-server.ts");
  const [command, args] = [process.execPath, [program, join(folder, "notes")]].map((value) => JSON.stringify(value));
  const config = `[[mcp]]\nname = "files"\ncommand = ${command}\nargs = ${args}\n`;
  await using served = await Stack.start({ config });
  const own = await served.gateway.account();
  const calls = stream(
    callStart(0, "call_1", "files__huge"),
    callArguments(0, "{}"),
    callStart(1, "call_2", "files__odd_name_v1"),
    callArguments(1, '{"city":"Bern"}'),
    finish("tool_calls", roundUsage),
  );
  await served.node.define("mcp", { advance: "rounds", replies: [calls, citing] });
  await eventually("the server's tools are offered", async () => {
    await (
      await post(served, own, { model: "core-3", messages: [{ role: "user", content: "[[text#offer]]" }] })
    ).text();
    const tools = ((await served.node.requests("text#offer")).at(-1)!.body!["tools"] ?? []) as unknown[];
    return tools.length > 0;
  });
  const replies: Record<string, any>[] = [];
  for (const dialect of dialects) {
    const reply = await post(served, own, asking(dialect, "go [[mcp]]"), { path: dialect.endpoint });
    replies.push((await reply.json()) as never);
  }
  const [chat, message, response] = replies;
  const text = "Bun is fast [1]. Elysia runs on it [2]."; // no sources: no citations
  expect(chat!["choices"][0].message).toEqual({ role: "assistant", content: text, refusal: null });
  expect(message!["content"]).toMatchObject([
    { type: "mcp_tool_use", name: "huge", server_name: "files", input: {} },
    { type: "mcp_tool_result", is_error: false, content: [{ text: expect.stringMatching(/^x{16000} \[cut\]$/) }] },
    { type: "mcp_tool_use", name: "odd.name/v1", server_name: "files", input: { city: "Bern" } },
    { type: "mcp_tool_result", is_error: true, content: [{ text: "it has no city" }] },
    { type: "text", text },
  ]);
  expect(response!["output"]).toMatchObject([
    { type: "mcp_call", status: "completed", server_label: "files", name: "huge", arguments: "{}" },
    { type: "mcp_call", status: "failed", name: "odd.name/v1", output: null },
    { type: "message" },
  ]);
  await rm(folder, { recursive: true });
});
