// Codex, OpenAI's agent for the command line, run headless: whole tasks, images, schemas, namespaced and custom tools,
// compaction in both of its forms, refusals, and the WebSocket of its built-in provider.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import catalog from "../../data/catalog.json" with { type: "json" };
import { longForm, missing } from "../fixtures/optional.ts";
import type { NodeReply } from "../fixtures/scripts.ts";
import { callArguments, callStart, finish, nodeError, reasoning, stream, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";
import { Codex, codexInstalled, codexPlatform, type CodexRun } from "./codex.ts";

const absent = missing("Codex", codexInstalled, "run npm ci in test/clients (Linux on x64 only)", codexPlatform);

const redSquare =
  "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAF0lEQVR4nGP4z8BAEiJN9aiGUQ1DSgMAkPn/Afnh+ngAAAAASUVORK5CYII=";
/** An id that Codex knows: only for those it has custom tools. */
const knownId = "gpt-5.5";

type Message = {
  role: string;
  content: string | null | { type: string; text?: string; image_url?: { url: string } }[];
  reasoning_content?: string;
  tool_calls?: { function: { name: string; arguments: string } }[];
};

const calls = (name: string, json: object, thought = "Now this."): NodeReply =>
  stream(
    reasoning(thought),
    callStart(0, `call_${++called}`, name),
    callArguments(0, JSON.stringify(json)),
    finish("tool_calls"),
  );
let called = 0;
const says = (words: string): NodeReply => stream(text(words), finish("stop"));

describe.skipIf(absent)("Codex", () => {
  let codex: Codex;
  let folder: string;
  const stack = useStack(async () => {
    folder = await mkdtemp(join(tmpdir(), "tollgate-codex-test-"));
    const file = join(folder, "catalog.json");
    const models = [...catalog.models, { ...catalog.models[0], id: knownId }];
    await writeFile(file, JSON.stringify({ ...catalog, models }));
    return { search: true, config: `[catalog]\nfile = "${file}"\n` };
  });
  beforeAll(async () => void (codex = await Codex.start(stack.gateway.url)));
  afterAll(async () => {
    await codex[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  /** A marker whose requests the node answers in this order; rounds count from the prompt that holds it. */
  const scripted = async (name: string, ...replies: NodeReply[]): Promise<string> => {
    await stack.node.define(name, { advance: "rounds", replies });
    return stack.node.marker(name);
  };
  const messagesOf = async (marker: string): Promise<Message[][]> =>
    (await stack.node.requests(marker)).map(({ body }) => body?.["messages"] as Message[]);
  const expectServed = (run: CodexRun, requests: number): void => {
    expect(run.errors).not.toContain("panicked");
    expect(run.failures).toEqual([]);
    expect(run.exitCode).toBe(0);
    expect(run.exchanges).toEqual(
      Array.from({ length: requests }, () => ({ method: "POST", path: "/v1/responses", status: 200 })),
    );
  };

  test("a whole task: it looks, patches, checks and reports", async () => {
    const account = await stack.gateway.account();
    await writeFile(join(codex.work, "greeting.txt"), "hello\n");
    const patch = "*** Begin Patch\n*** Update File: greeting.txt\n@@\n-hello\n+hello, world\n*** End Patch\n";
    const marker = await scripted(
      "codex-task",
      calls("exec_command", { cmd: "cat greeting.txt" }, "Let me look."),
      calls("exec_command", { cmd: `apply_patch <<'EOF'\n${patch}EOF\n` }),
      calls("exec_command", { cmd: "grep -c world greeting.txt" }),
      says("Patched and checked."),
    );
    const run = await codex.run(`greet the world [[${marker}]]`, { key: account.api_key });
    expectServed(run, 4);
    expect(run.answer).toBe("Patched and checked.");
    expect(await readFile(join(codex.work, "greeting.txt"), "utf8")).toBe("hello, world\n");

    const last = (await messagesOf(marker)).at(-1)!;
    const rounds = last.filter(({ role }) => role === "assistant" || role === "tool");
    expect(rounds.map(({ role }) => role)).toEqual(["assistant", "tool", "assistant", "tool", "assistant", "tool"]);
    // what it thought comes back to the model, sealed on the way
    expect(rounds[0]).toMatchObject({ tool_calls: [{ function: { name: "exec_command" } }] });
    expect(JSON.stringify(rounds[0])).toContain("Let me look.");
    expect(JSON.stringify(rounds[1])).toContain("hello");
    expect(JSON.stringify(rounds[5])).toContain("Process exited with code 0");
    const rows = await stack.gateway.usage(account.email);
    expect(rows.map(({ endpoint }) => endpoint)).toEqual(Array.from({ length: 4 }, () => "/v1/responses"));
  });

  test("its own web search is ours where it is switched on", async () => {
    const account = await stack.gateway.account();
    for (const [mode, searches] of [
      ["live", 1],
      ["disabled", 0],
    ] as const) {
      const marker = stack.node.marker(mode === "live" ? "web-search" : "text");
      const options = { key: account.api_key, config: `web_search = "${mode}"\n` };
      const run = await codex.run(`look it up [[${marker}]]`, options);
      expectServed(run, 1);
      const [{ body }] = (await stack.node.requests(marker)) as unknown as [
        { body: { tools: { function: { name: string } }[] } },
      ];
      expect(body.tools.map((tool) => tool.function.name).includes("web_search")).toBe(searches === 1);
      if (searches === 1) {
        expect(run.answer).toBe("Bun is fast [1]. Elysia runs on it [2].");
        expect(run.events.map(({ item }) => item?.type)).toContain("web_search");
      }
      expect((await stack.gateway.show(account.email)).searches.used).toBe(1);
    }
  });

  test("a conversation goes on in a second run", async () => {
    const account = await stack.gateway.account();
    const first = await scripted("codex-first", calls("exec_command", { cmd: "echo one" }), says("That was one."));
    expectServed(await codex.run(`begin [[${first}]]`, { key: account.api_key }), 2);
    const second = await scripted("codex-second", says("And this is two."));
    const run = await codex.run(`go on [[${second}]]`, { key: account.api_key, resume: true });
    expectServed(run, 1);
    expect(run.answer).toBe("And this is two.");
    expect(JSON.stringify(await messagesOf(second))).toContain("That was one.");
  });

  test("images: one given with -i, one that it looks at itself", async () => {
    const account = await stack.gateway.account();
    const file = join(codex.work, "red.png");
    await writeFile(file, Buffer.from(redSquare, "base64"));
    const marker = await scripted("codex-image", calls("view_image", { path: file }), says("It is red."));
    const run = await codex.run(`describe [[${marker}]]`, { key: account.api_key, args: ["-i", file, "--"] });
    expectServed(run, 2);
    expect(run.answer).toBe("It is red.");
    const images = (await messagesOf(marker)).map((messages) =>
      messages.flatMap(({ role, content }) =>
        Array.isArray(content) ? content.filter(({ type }) => type === "image_url").map(() => role) : [],
      ),
    );
    expect(images[0]).toEqual(["user"]);
    expect(images[1]).toHaveLength(2);
  });

  test("--output-schema is taken, and the answer is written as it is", async () => {
    const account = await stack.gateway.account();
    const schema = {
      type: "object",
      properties: { title: { type: "string" } },
      required: ["title"],
      additionalProperties: false,
    };
    await writeFile(join(codex.work, "schema.json"), JSON.stringify(schema));
    const marker = await scripted("codex-schema", says('{"title":"Dune"}'));
    const args = ["--output-schema", join(codex.work, "schema.json"), "-o", join(codex.work, "answer.json")];
    expectServed(await codex.run(`a book [[${marker}]]`, { key: account.api_key, args }), 1);
    expect(JSON.parse(await readFile(join(codex.work, "answer.json"), "utf8"))).toEqual({ title: "Dune" });
  });

  test("a namespaced tool is flat for the model and found again by Codex", async () => {
    const account = await stack.gateway.account();
    const marker = await scripted(
      "codex-namespace",
      calls("multi_agent_v1__wait_agent", { targets: ["nobody"], timeout_ms: 1000 }),
      says("Nobody there."),
    );
    const run = await codex.run(`wait [[${marker}]]`, { key: account.api_key });
    expectServed(run, 2);
    const [, second] = await messagesOf(marker);
    expect(JSON.stringify(second!.at(-1))).toContain("invalid agent id nobody");
  });

  test("a custom tool is a function for the model, and its patch is applied", async () => {
    const account = await stack.gateway.account();
    const input = '*** Begin Patch\n*** Add File: new.txt\n+hi, "you"\n*** End Patch\n';
    const marker = await scripted("codex-custom", calls("apply_patch", { input }), says("Added."));
    const run = await codex.run(`add [[${marker}]]`, { key: account.api_key, args: ["-m", knownId] });
    expectServed(run, 2);
    expect(await readFile(join(codex.work, "new.txt"), "utf8")).toBe('hi, "you"\n');
    const [, second] = await messagesOf(marker);
    expect(JSON.stringify(second!.at(-1))).toContain("Success");
  });

  test("compaction of a custom provider is an ordinary request, and the session goes on after it", async () => {
    const account = await stack.gateway.account();
    const usage = { prompt_tokens: 90_000, completion_tokens: 20, total_tokens: 90_020 };
    const large = stream(callStart(0, "call_big", "exec_command"), callArguments(0, '{"cmd":"echo a"}'));
    await stack.node.define("codex-summary", {
      advance: "attempts",
      replies: [
        { steps: [...large.steps, ...finish("tool_calls", usage)] },
        says("The summary of it all."),
        says("Went on."),
      ],
    });
    const marker = stack.node.marker("codex-summary");
    const config = "model_auto_compact_token_limit = 50000\n";
    const run = await codex.run(`work [[${marker}]]`, { key: account.api_key, config });
    expectServed(run, 3);
    expect(run.answer).toBe("Went on.");
    expect(JSON.stringify((await messagesOf(marker)).at(-1))).toContain("The summary of it all.");
  });

  test("the built-in provider works over one WebSocket", async () => {
    const account = await stack.gateway.account();
    const marker = await scripted("codex-builtin", calls("exec_command", { cmd: "echo a" }), says("Over a socket."));
    const run = await codex.run(`work [[${marker}]]`, { key: account.api_key, provider: "builtin" });
    expect(run.answer).toBe("Over a socket.");
    expect(run.failures).toEqual([]);
    expect(run.exchanges).toEqual([{ method: "GET", path: "/v1/responses", status: 101 }]);
  });

  test("the built-in provider's compaction yields one item, with which the session goes on", async () => {
    const account = await stack.gateway.account();
    const usage = { prompt_tokens: 90_000, completion_tokens: 20, total_tokens: 90_020 };
    const large = stream(
      callStart(0, "call_big", "exec_command"),
      callArguments(0, '{"cmd":"echo a"}'),
      finish("tool_calls", usage),
    );
    // by attempts: after the compaction the conversation begins anew
    await stack.node.define("codex-trigger", {
      advance: "attempts",
      replies: [large, says("The summary of it all."), says("Went on.")],
    });
    const marker = stack.node.marker("codex-trigger");
    const run = await codex.run(`work [[${marker}]]`, {
      key: account.api_key,
      provider: "builtin",
      config: "model_auto_compact_token_limit = 50000\n",
    });
    expect(run.failures).toEqual([]);
    expect(run.exitCode).toBe(0);
    expect(run.exchanges.map(({ status }) => status)).toEqual([101]);
    const last = JSON.stringify((await stack.node.requests(marker)).at(-1)?.body?.["messages"]);
    expect(last).toContain("The summary of it all.");
  });

  test("without balance it asks once and says why", async () => {
    const account = await stack.gateway.account(0, "free");
    const spend = await codex.run(`x [[${stack.node.marker("text")}]]`, { key: account.api_key });
    expectServed(spend, 1);
    // eight reservations of 4,096 do not fit in 30,000: hold seven, and the eighth is refused
    const hold = Array.from({ length: 7 }, () => stack.node.marker("endless"));
    const leave = new AbortController();
    const held = await Promise.all(
      hold.map((marker) =>
        fetch(`${stack.gateway.url}/v1/responses`, {
          method: "POST",
          headers: { authorization: `Bearer ${account.api_key}` },
          body: JSON.stringify({ model: "core-3", input: `[[${marker}]]`, stream: true }),
          signal: leave.signal,
        }),
      ),
    );
    expect(held.map(({ status }) => status)).toEqual(hold.map(() => 200));
    const run = await codex.run(`x [[${stack.node.marker("text")}]]`, { key: account.api_key });
    leave.abort();
    expect(run.exitCode).not.toBe(0);
    expect(run.exchanges).toEqual([{ method: "POST", path: "/v1/responses", status: 429 }]);
    expect(run.failures.join()).toContain("Quota exceeded");
  });

  test("a prompt that is too long ends with words about the context window", async () => {
    const account = await stack.gateway.account();
    const tooLong = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.";
    const marker = await scripted("codex-too-long", nodeError(400, tooLong, "BadRequestError"));
    const run = await codex.run(`x [[${marker}]]`, { key: account.api_key });
    expect(run.exitCode).not.toBe(0);
    expect(run.exchanges).toHaveLength(1);
    expect(run.failures.join()).toContain("ran out of room in the model's context window");
  });

  test("a wrong key ends with our words", async () => {
    const run = await codex.run("x", { key: "sk-tg-wrong" });
    expect(run.exitCode).not.toBe(0);
    expect(run.exchanges.every(({ status }) => status === 401)).toBe(true);
    expect(run.failures.join()).toContain("Invalid API key provided");
  });

  test.skipIf(!longForm)("after flood protection it waits for the window's end and succeeds by itself", async () => {
    const account = await stack.gateway.account();
    for (let request = 0; request < 120; request++) {
      const headers = { authorization: `Bearer ${account.api_key}` };
      const malformed = JSON.stringify({ model: "core-3", input: 42 });
      const reply = await fetch(`${stack.gateway.url}/v1/responses`, { method: "POST", headers, body: malformed });
      expect(reply.status).toBe(400);
    }
    const run = await codex.run(`x [[${stack.node.marker("text")}]]`, { key: account.api_key });
    expect(run.exitCode).toBe(0);
    expect(run.answer).toBe("Hi there!");
    expect(run.exchanges.map(({ status }) => status)).toEqual([429, 200]);
  });

  test("a node that dies in the middle is asked again, and the task is done", async () => {
    const account = await stack.gateway.account();
    await stack.node.define("codex-dies", {
      advance: "attempts",
      replies: [{ steps: [...text("Half an "), { waitMs: 20 }, { die: "rst" }] }, says("A whole answer.")],
    });
    const run = await codex.run(`x [[${stack.node.marker("codex-dies")}]]`, { key: account.api_key });
    expect(run.exitCode).toBe(0);
    expect(run.answer).toBe("A whole answer.");
    expect(run.exchanges.map(({ status }) => status)).toEqual([200, 200]);
    expect(await stack.gateway.usage(account.email)).toHaveLength(1); // the failed one was free
  });
});
