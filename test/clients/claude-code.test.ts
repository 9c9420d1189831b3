// Claude Code, an agent for the command line, run headless: whole tasks with tools, and every refusal that it may meet.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { missing } from "../fixtures/optional.ts";
import {
  callArguments,
  callStart,
  finish,
  type NodeReply,
  reasoning,
  type Script,
  scripts,
  type Step,
  stream,
  text,
} from "../fixtures/scripts.ts";
import { foundPages } from "../fixtures/search-service.ts";
import { useStack } from "../fixtures/stack.ts";
import { ClaudeCode, type ClaudeRun, claudeCodeInstalled, claudeCodePlatform } from "./claude-code.ts";

const absent = missing(
  "Claude Code",
  claudeCodeInstalled,
  "run npm ci in test/clients (Linux on x64 only)",
  claudeCodePlatform,
);

const calls = (id: string, name: string, input: object): NodeReply =>
  stream(...callSteps(id, name, input), finish("tool_calls"));
const callSteps = (id: string, name: string, input: object): Step[] => [
  callStart(0, id, name),
  ...callArguments(0, JSON.stringify(input)),
];
const says = (answer: string): NodeReply => stream(text(answer), finish("stop"));
const rounds = (...replies: NodeReply[]): Script => ({ advance: "rounds", replies });
const attempts = (...replies: NodeReply[]): Script => ({ advance: "attempts", replies });

describe.skipIf(absent)("Claude Code", () => {
  const stack = useStack({ search: true });
  let claude: ClaudeCode;
  beforeAll(async () => void (claude = await ClaudeCode.start(stack.gateway.url)));
  afterAll(() => claude[Symbol.asyncDispose]());

  /** Runs a task of a new account whose answers the script gives. */
  async function task(
    name: string,
    script: Script,
    options: Readonly<{ args?: readonly string[]; env?: Readonly<Record<string, string>> }> = {},
  ) {
    await stack.node.define(name, script);
    const account = await stack.gateway.account();
    const marker = stack.node.marker(name);
    const run = await claude.run(`do it [[${marker}]]`, { key: account.api_key, ...options });
    return { run, account, marker };
  }
  const nodeMessages = async (marker: string): Promise<Record<string, unknown>[]> =>
    (await stack.node.requests(marker)).at(-1)?.body?.["messages"] as Record<string, unknown>[];
  const statuses = ({ exchanges }: ClaudeRun): (number | null)[] => exchanges.map(({ status }) => status);
  const ended = (run: ClaudeRun) => ({ exitCode: run.exitCode, result: run.result.result, statuses: statuses(run) });

  test.each([true, false])(
    "reads a file, runs a command, edits the file and says so; with thinking: %p",
    async (thinking) => {
      const notes = join(claude.work, "notes.txt");
      await writeFile(notes, "hello from the file\n");
      const name = thinking ? "task-with-thinking" : "task-without-thinking";
      const { run, account, marker } = await task(
        name,
        rounds(
          stream(reasoning("Look ", "first."), callSteps("call_1", "Read", { file_path: notes }), finish("tool_calls")),
          stream(
            reasoning("Then run."),
            text("Running it."),
            callSteps("call_2", "Bash", { command: "echo made-$((40 + 2)) | tee made.txt", description: "make" }),
            finish("tool_calls"),
          ),
          calls("call_3", "Edit", { file_path: notes, old_string: "hello", new_string: "goodbye" }),
          says("All done."),
        ),
        { args: ["--allowedTools", "Read,Bash,Edit"], env: thinking ? {} : { CLAUDE_CODE_DISABLE_THINKING: "1" } },
      );
      expect(ended(run)).toEqual({ exitCode: 0, result: "All done.", statuses: [200, 200, 200, 200] });
      expect(run.result.is_error).toBe(false);
      expect(run.exchanges[0]).toMatchObject({ method: "POST", path: "/v1/messages?beta=true" });
      expect(await readFile(notes, "utf8")).toBe("goodbye from the file\n");
      expect(await readFile(join(claude.work, "made.txt"), "utf8")).toBe("made-42\n");

      // the thinking comes back with its signature, and the tools' results as the model is to see them
      const messages = await nodeMessages(marker);
      const thoughts = messages.filter(({ role }) => role === "assistant").map((turn) => turn["reasoning_content"]);
      expect(thoughts).toEqual(thinking ? ["Look first.", "Then run.", undefined] : [undefined, undefined, undefined]);
      const results = messages.filter(({ role }) => role === "tool");
      expect(results.map((turn) => turn["tool_call_id"])).toEqual(["call_1", "call_2", "call_3"]);
      expect(String(results[0]?.["content"])).toContain("hello from the file");
      expect(results[1]?.["content"]).toBe("made-42");

      expect(await stack.gateway.usage(account.email)).toHaveLength(4);
    },
  );

  test("a conversation goes on in another run", async () => {
    const account = await stack.gateway.account();
    await claude.run("remember this [[text]]", { key: account.api_key });
    const marker = stack.node.marker("text");
    const run = await claude.run(`what was it? [[${marker}]]`, { key: account.api_key, args: ["--continue"] });
    expect(ended(run)).toEqual({ exitCode: 0, result: "Hi there!", statuses: [200] });
    const history = JSON.stringify(await nodeMessages(marker));
    for (const turn of ["remember this", "Hi there!", "what was it?"]) expect(history).toContain(turn);
  });

  test("an image that it reads reaches the model", async () => {
    const picture = join(claude.work, "dot.png");
    const base64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";
    await writeFile(picture, Buffer.from(base64, "base64"));
    const { run, marker } = await task(
      "picture",
      rounds(calls("call_1", "Read", { file_path: picture }), says("A dot.")),
      { args: ["--allowedTools", "Read"] },
    );
    expect(ended(run)).toEqual({ exitCode: 0, result: "A dot.", statuses: [200, 200] });
    expect(JSON.stringify(await nodeMessages(marker))).toContain(`data:image/png;base64,${base64}`);
  });

  test("a subagent works on its own and reports", async () => {
    const marker = stack.node.marker("subtask");
    await stack.node.define(
      "subtask",
      rounds(calls("call_9", "Bash", { command: "echo from-below", description: "say" }), says("Below all is well.")),
    );
    const parent = await task(
      "delegate",
      rounds(
        calls("call_1", "Agent", {
          description: "look",
          prompt: `look below [[${marker}]]`,
          subagent_type: "general-purpose",
        }),
        says("Delegated."),
      ),
      { args: ["--allowedTools", "Agent,Bash"] },
    );
    expect(parent.run.exitCode).toBe(0);
    expect(parent.run.result).toMatchObject({ is_error: false, result: "Delegated." });
    expect(new Set(statuses(parent.run))).toEqual(new Set([200]));
    expect(JSON.stringify(await nodeMessages(marker))).toContain("from-below");
    // it ends in the background; the parent's last turn is told what it said
    expect(JSON.stringify(await nodeMessages(parent.marker))).toContain("Below all is well.");
  });

  test("--json-schema: the answer is the call of a tool with that schema", async () => {
    const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };
    const { run } = await task("structured", rounds(calls("call_1", "StructuredOutput", { title: "Dune" })), {
      args: ["--json-schema", JSON.stringify(schema)],
    });
    expect(run.exitCode).toBe(0);
    expect(run.result.structured_output).toEqual({ title: "Dune" });
    expect(new Set(statuses(run))).toEqual(new Set([200]));
  });

  test("its own search tool gets links and text from ours", async () => {
    await stack.node.define("scripted", scripts["web-search"]!); // the search's own request has no marker
    const { run, account, marker } = await task(
      "search",
      rounds(calls("call_1", "WebSearch", { query: "bun runtime" }), says("Searched.")),
      { args: ["--allowedTools", "WebSearch"] },
    );
    expect(run.exitCode).toBe(0);
    expect(statuses(run)).toEqual([200, 200, 200]);
    expect((await stack.gateway.show(account.email)).searches.used).toBe(1);
    const result = JSON.stringify((await nodeMessages(marker)).at(-1)?.["content"]);
    for (const { title, url } of foundPages)
      expect(result).toContain(JSON.stringify({ title, url }).replaceAll('"', '\\"'));
    expect(result).toContain("Elysia runs on it [2]");
    await stack.node.define("scripted", scripts["text"]!);
  });

  test("it finds the models of the gateway", async () => {
    const { run } = await task("text", scripts["text"]!, {
      env: { CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1" },
    });
    expect(run.exitCode).toBe(0);
    expect(run.exchanges).toContainEqual({ method: "GET", path: "/v1/models?limit=1000", status: 200 });
    expect(new Set(statuses(run))).toEqual(new Set([200]));
  });

  test("/context counts tokens, many requests at once", async () => {
    const account = await stack.gateway.account();
    const context = await claude.run("/context", { key: account.api_key });
    expect(context.exitCode).toBe(0);
    const counted = context.exchanges.filter(({ path }) => path === "/v1/messages/count_tokens?beta=true");
    expect(counted.length).toBeGreaterThan(10);
    expect(new Set(statuses(context))).toEqual(new Set([200]));
    expect(await stack.gateway.usage(account.email)).toEqual([]);
  });

  test("a conversation that outgrew the model's window is compacted and goes on", async () => {
    const account = await stack.gateway.account();
    await claude.run("hello [[text]]", { key: account.api_key });
    await stack.node.define(
      "outgrown",
      attempts(scripts["prompt-too-long"]!.replies[0]!, says("<summary>They said hello.</summary>"), says("Finished.")),
    );
    const marker = stack.node.marker("outgrown");
    const run = await claude.run(`go on [[${marker}]]`, { key: account.api_key, args: ["--continue"] });
    expect(run.exitCode).toBe(0);
    expect(run.result.is_error).toBe(false);
    expect(run.events.map(({ subtype }) => subtype)).toContain("compact_boundary");
    const [first, ...others] = statuses(run);
    expect(first).toBe(400);
    expect(new Set(others)).toEqual(new Set([200]));
  });

  test("a stream that breaks off is taken up again where it stopped", async () => {
    const { run } = await task("breaks-once", attempts(scripts["dies-rst"]!.replies[0]!, says("Recovered.")));
    expect(ended(run)).toEqual({ exitCode: 0, result: "Recovered.", statuses: [200, 200] });
  });

  test("a node that always breaks off ends the run with a message that shows nothing of the node", async () => {
    const { run, account } = await task("dies-rst", scripts["dies-rst"]!, { env: { CLAUDE_CODE_MAX_RETRIES: "1" } });
    expect(run.exitCode).toBe(1);
    expect(run.result.is_error).toBe(true);
    expect(run.result.result).toMatch(/^API Error: /);
    expect(JSON.stringify(run.events)).not.toContain(stack.node.url);
    expect(await stack.gateway.usage(account.email)).toEqual([]);
  });

  test("a wrong key ends the run after exactly one request", async () => {
    const run = await claude.run("hello", { key: `sk-tg-${"x".repeat(43)}` });
    expect(ended(run)).toEqual({
      exitCode: 1,
      result: "Failed to authenticate. API Error: 401 Invalid API key provided",
      statuses: [401],
    });
  });

  test("an empty balance ends the run after exactly one request, with the message", async () => {
    const { api_key: key } = await stack.gateway.account(0); // 30,000 tokens of today; it reserves 32,000
    const run = await claude.run("hello [[text]]", { key });
    expect(run.exitCode).toBe(1);
    expect(statuses(run)).toEqual([429]);
    expect(run.result.result).toMatch(/Quota exceeded\. Upgrade your plan at http:\/\/\S+\/plan$/);
  });

  test("coder calls that are used up end the run after exactly one request, with the message", async () => {
    const account = await stack.gateway.account(0);
    const body = { model: "core-coder-1", messages: [{ role: "user", content: "[[text]]" }] };
    for (let calls = 0; calls < 3; calls++) {
      const reply = await fetch(`${stack.gateway.url}/v1/messages`, {
        method: "POST",
        headers: { "x-api-key": account.api_key },
        body: JSON.stringify(body),
      });
      expect(reply.status, await reply.text()).toBe(200);
    }
    const run = await claude.run("hello [[text]]", { key: account.api_key, args: ["--model", "core-coder-1"] });
    expect(run.exitCode).toBe(1);
    expect(statuses(run)).toEqual([429]);
    expect(run.result.result).toMatch(/call quota reached\. Upgrade your plan at http:\/\/\S+\/plan$/);
  });

  test("a busy route is tried again after the time that the gateway names", async () => {
    const { run } = await task("busy-once", attempts(scripts["status-429"]!.replies[0]!, says("Now.")));
    expect(ended(run)).toEqual({ exitCode: 0, result: "Now.", statuses: [429, 200] });
  });
});
