// An MCP server and a searched folder behind the running gateway, in three dialects: what a model is offered and reads,
// who is offered it, and that a client that leaves reaches the server.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { post } from "../fixtures/requests.ts";
import { callArguments, callStart, finish, type Script, stream, text } from "../fixtures/scripts.ts";
import { Stack } from "../fixtures/stack.ts";

const timeLimit = 120_000;
let folder: string;
let notesFile: string;
let stack: Stack;
let account: Account;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-tools-"));
  notesFile = join(folder, "notes");
  mkdirSync(join(folder, "docs"));
  writeFileSync(join(folder, "docs/tower.md"), "# Tokyo Tower\n\nIt is 333 metres high.");
  const command = [process.execPath, join(import.meta.dir, "../tools/mcp/scripted-mcp-server.ts"), notesFile];
  stack = await Stack.start({
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
  account = await stack.gateway.account(100_000_000, "pro");
  await eventually("the server's tools are offered", async () => {
    return stack.gateway.output.includes("an MCP server offers its tools");
  });
  await eventually("the folder is indexed", async () => stack.gateway.output.includes("search index was brought up"));
}, timeLimit);
afterAll(async () => {
  await stack[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

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

const bodies = {
  "/v1/chat/completions": (content: string) => ({ model: "core-3", messages: [{ role: "user", content }] }),
  "/v1/messages": (content: string) => ({ model: "core-3", max_tokens: 100, messages: [{ role: "user", content }] }),
  "/v1/responses": (input: string) => ({ model: "core-3", input }),
};

test.each(Object.entries(bodies))(
  "a model calls the server's tool and reads its result: %s",
  async (path, body) => {
    const script = await define(calling("srv__echo", { city: "Tōkyō" }));
    for (const streams of [false, true]) {
      const reply = await post(stack, account, { ...body(`go [[${script}]]`), stream: streams }, { path });
      expect(reply.status).toBe(200);
      expect(await reply.text()).toContain("Done.");
      const asked = await lastAsked(script);
      expect(asked).toContain("Tōkyō");
      expect(asked).toContain('"role":"tool"');
    }
    expect((await offered(script)).toSorted()).toEqual(["srv__echo", "srv__hang"]);
  },
  timeLimit,
);

test(
  "only the models and plans that the operator allows are offered it",
  async () => {
    const plain: Script = { advance: "rounds", replies: [stream(text("Done."), finish("stop"))] };
    const plus = await stack.gateway.account(100_000_000, "plus");
    for (const [by, model] of [
      [plus, "core-3"],
      [account, "core-2-lite"],
    ] as const) {
      const script = await define(plain);
      await (await post(stack, by, { ...bodies["/v1/chat/completions"](`go [[${script}]]`), model })).text();
      expect(await offered(script)).toEqual([]);
    }
  },
  timeLimit,
);

test(
  "a model searches the folder, reads the file and cites its address",
  async () => {
    const script = await define(calling("web_search", { query: "How tall is Tokyo Tower?" }, "333 metres [1]."));
    const body = { ...bodies["/v1/chat/completions"](`go [[${script}]]`), web_search: true };
    const reply = (await (await post(stack, account, body)).json()) as {
      choices: { message: { annotations?: unknown } }[];
    };
    expect(await lastAsked(script)).toContain("It is 333 metres high.");
    expect(JSON.stringify(reply.choices[0]!.message.annotations)).toContain("https://docs.example/tower.md");
  },
  timeLimit,
);

test(
  "a client that leaves reaches the server, and nothing stays reserved",
  async () => {
    const script = await define(calling("srv__hang", {}));
    const client = new AbortController();
    const body = { ...bodies["/v1/chat/completions"](`go [[${script}]]`), stream: true };
    const leaving = post(stack, account, body, { signal: client.signal }).then((reply) => reply.text());
    await eventually("the call arrives", async () => notes().includes("tools/call hang"));
    client.abort();
    expect(leaving).rejects.toThrow();
    await eventually("the server is told", async () => notes().includes("notifications/cancelled"));
    await stack.gateway.expectNothingReserved();
  },
  timeLimit,
);
