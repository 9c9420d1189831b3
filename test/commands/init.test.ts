// tollgate init, as somebody with an engine uses it: in a terminal, and where nobody answers. The engine is a server that
// lists models as vLLM does.
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readConfig } from "../../src/config/config.ts";
import { eventually } from "../fixtures/eventually.ts";
import { chat, run, Server, temporaryFolder, tollgate } from "./program.ts";

setDefaultTimeout(60_000);

const engineOf = (...ids: readonly string[]) =>
  Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname } = new URL(request.url);
      if (request.headers.get("authorization") !== "Bearer k-1") return new Response("no", { status: 401 });
      if (pathname === "/v1/models") {
        const listed = ids.map((id) => ({ id, object: "model", owned_by: "vllm", max_model_len: 4_096 }));
        return Response.json({ object: "list", data: listed });
      }
      if (pathname !== "/v1/chat/completions") return new Response("not found", { status: 404 });
      const event = (more: object) => `data: ${JSON.stringify({ object: "chat.completion.chunk", ...more })}\n\n`;
      const choice = { index: 0, delta: { role: "assistant", content: "Hello" }, finish_reason: "stop" };
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const events = `${event({ choices: [choice] })}${event({ choices: [], usage })}data: [DONE]\n\n`;
      return new Response(events, { headers: { "content-type": "text/event-stream" } });
    },
  });
const [one, two] = [engineOf("qwen3-8b", "bge-m3"), engineOf("llama-4")];
afterAll(() => Promise.all([one.stop(true), two.stop(true)]));
const variables = { NODE_KEY: "k-1", TOLLGATE_PORT: "0" };
const at = ["--node", `127.0.0.1:${one.port}`, "--node", `http://127.0.0.1:${two.port}`, "--api-key-env", "NODE_KEY"];

test("unattended: a file that starts, with the chosen models, the plan and an invitation; it is never lost", async () => {
  using folder = temporaryFolder();
  const options = { cwd: folder.path, variables };
  const init = (...words: string[]) => run(["init", "--yes", ...words], options);
  const file = join(folder.path, "tollgate.toml");

  expect(await init("--node", `127.0.0.1:${one.port}`)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("it wants an API key (status 401): name its variable with --api-key-env NAME"),
  });
  expect((await init("--node", "127.0.0.1:1")).stderr).toContain("nothing listens at its address");
  expect((await run(["init"], options)).code).toBe(2); // no terminal

  const chosen = ["--models", "qwen3-8b,3", "--plan", "5000", "--people", "ada@example.org"];
  const made = await init(...at, ...chosen);
  expect([made.code, made.stderr]).toEqual([0, ""]);
  expect(made.stdout).toContain("ok       node vllm-2");
  expect(made.stdout).toMatch(/For ada@example.org.*: http:\/\/127\.0\.0\.1:\d+\/join#/);
  const text = readFileSync(file, "utf8");
  const { models, nodes, plans } = readConfig(file, text, {}, variables);
  expect(models.map(({ id, price }) => [id, price?.kind])).toEqual([
    ["qwen3-8b", "split"],
    ["llama-4", "split"],
  ]);
  expect([nodes.map(({ name }) => name), plans[0]]).toEqual([
    ["vllm", "vllm-2"],
    expect.objectContaining({ id: "team", tokensPerDay: 5_000 }),
  ]);

  writeFileSync(file, text.replace('"vllm-2"', '"mine"'));
  const refused = await init(...at, ...chosen);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("stays as it was: --replace")]);
  expect(refused.stdout).toContain('- name = "mine"\n+ name = "vllm-2"');
  expect(readFileSync(file, "utf8")).toContain('"mine"');
  expect((await init(...at, ...chosen, "--replace")).code).toBe(0);
  expect(readFileSync(file, "utf8")).toBe(text);

  await using server = await Server.start(["--config", "tollgate.toml"], options);
  const [, key = ""] = (await server.says(/API key +(sk-\S+)/)) ?? [];
  expect((await chat(server.url, key, { model: "llama-4" })).status).toBe(200);
});

test("in a terminal: at most six questions, asked again where an answer is none, and then it serves", async () => {
  using folder = temporaryFolder();
  let said = "";
  const answers = ["", "9", "qwen3-8b", "much", "", "", "not an address", "ada@example.org", ""];
  const child = Bun.spawn([...tollgate, "init", ...at.slice(0, 2), ...at.slice(4)], {
    cwd: folder.path,
    env: { ...process.env, ...variables, NO_COLOR: "1" },
    terminal: {
      cols: 200,
      rows: 50,
      data: (_, bytes) => {
        said += new TextDecoder().decode(bytes);
      },
    },
  });
  try {
    for (const [asked, answer] of answers.slice(1).entries()) {
      await eventually(`question ${asked + 1}`, () => Promise.resolve(said.split(/ \[[^\]\n]+\]/).length > asked + 1));
      child.terminal!.write(`${answer}\n`);
    }
    await eventually("it serves", () => Promise.resolve(said.includes("Models of the configuration: qwen3-8b.")));
  } finally {
    child.kill("SIGTERM");
    await child.exited;
  }
  const questions = new Set(said.match(/^[^\n]*(?= \[[^\]\n]+\])/gm));
  expect(questions.size).toBeLessThanOrEqual(6);
  for (const words of ['no model "9"', "unlimited, or a number", "no e-mail address", "listening on"]) {
    expect(said).toContain(words);
  }
});

test("a terminal that is closed in the middle is no answer: nothing is written and nothing starts", async () => {
  using folder = temporaryFolder();
  let said = "";
  const child = Bun.spawn([...tollgate, "init", ...at.slice(0, 2), ...at.slice(4)], {
    cwd: folder.path,
    env: { ...process.env, ...variables, NO_COLOR: "1" },
    terminal: { cols: 40, rows: 20, data: (_, bytes) => void (said += new TextDecoder().decode(bytes)) },
  });
  await eventually("it asks", () => Promise.resolve(said.includes("[all]")));
  child.terminal!.write("\x04");
  expect(await child.exited).toBe(1);
  expect(said).toContain("the terminal has no more answers");
  expect(readdirSync(folder.path)).toEqual([]);
});
