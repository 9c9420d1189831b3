// An MCP server and a searched folder behind the running gateway, in three dialects: what a model is offered and reads,
// who is offered it, and that a client that leaves reaches the server.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asking, dialectOf, eachDialect } from "../fixtures/dialects.ts";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { post } from "../fixtures/requests.ts";
import { callArguments, callStart, finish, type Script, stream, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";

const folder = mkdtempSync(join(tmpdir(), "tollgate-tools-"));
const notesFile = join(folder, "notes");
mkdirSync(join(folder, "docs"));
writeFileSync(join(folder, "docs/tower.md"), "# Tokyo Tower\n\nIt is 333 metres high.");
const command = [process.execPath, join(import.meta.dir, "../tools/mcp/scripted-mcp-server.ts"), notesFile];
const stack = useStack({
  config: `
    [search]
    provider = "local"
    folder = ${JSON.stringify(join(folder, "docs"))}
    base_url = "https://docs.example"
    [[mcp]]
    name = "srv"
    command = ${JSON.stringify(command[0])}
    args = ${JSON.stringify(command.slice(1))}
    models = ["core-3", "core-3-pro"]
    plans = ["pro"]
    tools = ["echo", "hang"]`,
});
let account: Account;
beforeAll(async () => {
  account = await stack.gateway.account(100_000_000, "pro");
  for (const said of ["an MCP server offers its tools", "search index was brought up"]) {
    await eventually(said, async () => stack.gateway.output.includes(said), 60_000);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const define = async (script: Script): Promise<string> => {
  const name = `tools-${Bun.randomUUIDv7()}`;
  await stack.node.define(name, script);
  return name;
};
const calling = (name: string, given: object, answer = "Done."): Script => ({
  advance: "rounds",
  replies: [
    stream(callStart(0, "call_1", name), callArguments(0, JSON.stringify(given)), finish("tool_calls")),
    stream(text(answer), finish("stop")),
  ],
});
const notes = (): string[] => (existsSync(notesFile) ? readFileSync(notesFile, "utf8").trim().split("\n") : []);
/** The body of the last request that the node got for a script. */
const lastAsked = async (script: string): Promise<string> =>
  JSON.stringify((await stack.node.requests(script)).at(-1)!.body);
const offered = async (script: string): Promise<string[]> => {
  const [first] = await stack.node.requests(script);
  const tools = (first!.body as { tools?: { function: { name: string } }[] }).tools ?? [];
  return tools.map((tool) => tool.function.name);
};

test.each(eachDialect)("a model calls the server's tool and reads its result: %s", async (_, dialect) => {
  const script = await define(calling("srv__echo", { city: "Tōkyō" }));
  for (const streams of [false, true]) {
    const body = asking(dialect, `go [[${script}]]`, { stream: streams });
    const reply = await post(stack, account, body, { path: dialect.endpoint });
    expect(reply.status).toBe(200);
    expect(await reply.text()).toContain("Done.");
    const asked = await lastAsked(script);
    expect(asked).toContain("Tōkyō");
    expect(asked).toContain('"role":"tool"');
  }
  expect((await offered(script)).toSorted()).toEqual(["srv__echo", "srv__hang"]);
});

test("only the models and plans that the operator allows are offered it", async () => {
  const plain: Script = { advance: "rounds", replies: [stream(text("Done."), finish("stop"))] };
  const plus = await stack.gateway.account(100_000_000, "plus");
  for (const [by, model] of [
    [plus, "core-3"],
    [account, "core-2-lite"],
  ] as const) {
    const script = await define(plain);
    await (await post(stack, by, { ...asking(dialectOf.chat, `go [[${script}]]`), model })).text();
    expect(await offered(script)).toEqual([]);
  }
});

test("a model searches the folder, reads the file and cites its address", async () => {
  const script = await define(calling("web_search", { query: "How tall is Tokyo Tower?" }, "333 metres [1]."));
  const body = { ...asking(dialectOf.chat, `go [[${script}]]`), web_search: true };
  const reply = (await (await post(stack, account, body)).json()) as {
    choices: { message: { annotations?: unknown } }[];
  };
  expect(await lastAsked(script)).toContain("It is 333 metres high.");
  expect(JSON.stringify(reply.choices[0]!.message.annotations)).toContain("https://docs.example/tower.md");
});

test("a client that leaves reaches the server, and nothing stays reserved", async () => {
  const script = await define(calling("srv__hang", {}));
  const client = new AbortController();
  const body = { ...asking(dialectOf.chat, `go [[${script}]]`), stream: true };
  const leaving = post(stack, account, body, { signal: client.signal }).then((reply) => reply.text());
  await eventually("the call arrives", async () => notes().includes("tools/call hang"));
  client.abort();
  expect(leaving).rejects.toThrow();
  await eventually("the server is told", async () => notes().includes("notifications/cancelled"));
  await stack.gateway.expectNothingReserved();
});
