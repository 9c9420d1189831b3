// What a built binary must do wherever it runs: serve, stream, start its own child processes, and run every command
// that its help lists.
import { expect } from "bun:test";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { ways } from "../../src/commands/ways.ts";
import { allVerbs } from "../../src/office/registry.ts";
import { chat, run, Server } from "../commands/program.ts";
import { pdf } from "../fixtures/pdf.ts";

/** The commands that the help names: "accounts create", "nodes". */
const commandsOf = (help: string): string[] =>
  [...help.matchAll(/^tollgate ([a-z-]+(?: [a-z-]+)*)/gm)].map(([, name]) => name!);
const isCall = (words: readonly string[], name: string): boolean => words.join(" ").startsWith(`${name} `);

/** Copies the binary into the empty `folder` and tries it there, by the command that `starting` makes of its path. */
export async function tryBinary(
  built: string,
  folder: string,
  starting: (binary: string) => readonly string[],
): Promise<void> {
  const binary = join(folder, "tollgate");
  cpSync(built, binary);
  await tryEveryCommand(starting(binary), folder);
}

/** Runs the program in `folder`, which has no data yet. */
export async function tryEveryCommand(program: readonly string[], folder: string): Promise<void> {
  const options = { program, cwd: folder, variables: { HOME: folder } };
  const server = await Server.start(["--port", "0", "--data", "data"], options);
  await using _server = server;
  const key = /API key +(sk-tg-\S+)/.exec(server.stdout)![1]!;
  await tryRequests(server.url, key);

  const here = ["--data", "data", "--json"];
  const commands = [
    ["accounts", "create", "a@example.com", ...here],
    ["accounts", "invite", ...here],
    ["accounts", "list", ...here],
    ["accounts", "show", "a@example.com", ...here],
    ["accounts", "plan", "a@example.com", "plus", ...here],
    ["accounts", "credit", "a@example.com", "5", ...here],
    ["accounts", "password", "a@example.com", ...here],
    ["accounts", "password-link", "a@example.com", ...here],
    ["accounts", "disable", "a@example.com", ...here],
    ["accounts", "enable", "a@example.com", ...here],
    ["keys", "create", "a@example.com", "--name", "laptop", ...here],
    ["keys", "list", "a@example.com", ...here],
    ["keys", "rename", "a@example.com", "2", "desk", ...here],
    ["keys", "limits", "a@example.com", "2", "--limit-day", "1000", ...here],
    ["keys", "revoke", "a@example.com", "2", ...here],
    ["keys", "rotate", "a@example.com", ...here],
    ["invitations", "list", ...here],
    ["purchases", "list", ...here],
    ["end-users", "list", "a@example.com", ...here],
    ["models", ...here],
    ["usage", "operator@localhost", ...here],
    ["requests", "--reason", "failed", ...here],
    ["nodes", ...here],
    ["nodes", "drain", "demo", ...here],
    ["nodes", "resume", "demo", ...here],
    ["backup", "copy.db", ...here],
    ["check", "--json"],
    ["simulate", ...here],
    ["report", "--by", "day,model,key", ...here],
    ["statement", "operator@localhost", "--month", "2026-10", "--html", ...here],
    ["batches", "list", ...here],
    ["accounts", "export", "a@example.com", ...here],
    ["reload", ...here],
    ["health", ...here],
  ];
  // Verbs that only ask the office load nothing of their own.
  const alike = (await allVerbs())
    .flatMap(([, verbs]) => verbs.map(({ name }) => name))
    .filter((name) => !(name in ways));
  const listed = commandsOf((await run(["help"], options)).stdout);
  expect(listed.filter((name) => !commands.some((words) => isCall(words, name)) && !alike.includes(name))).toEqual([
    "init",
    "serve",
    "end-users export",
    "apply",
    "gateways",
    "webhooks test",
    "mail test",
    "doctor",
    "models suggest",
    "search",
    "search index",
    "restore",
    "move",
    "login",
    "logout",
    "help",
    "completion",
    "check-answers",
    "pdf-text",
    "complete",
    "help",
  ]); // below
  for (const words of commands) {
    const { code, stdout, stderr } = await run(words, options);
    // Long work says how far it is, where the machine is slow.
    expect([words, code, stderr.replace(/^checking every page of the copy\n?/m, "")]).toEqual([words, 0, ""]);
    JSON.parse(stdout);
  }
  expect((await run(["--version"], options)).code).toBe(0);
  expect((await run(["help", "config"], options)).stdout).toContain("`[[nodes]]`");
  expect((await run(["completion", "bash"], options)).stdout).toContain("complete -F _tollgate tollgate");
  expect((await run(["complete", "--", "accounts", "cr"], options)).stdout).toContain("create\t");
  const reading = Bun.spawnSync([...options.program, "pdf-text"], { stdin: pdf("Hello"), cwd: folder });
  expect(reading.stdout.toString()).toBe("Hello");
  const searched = ["--config", "search.toml", ...here];
  await Bun.write(join(folder, "search.toml"), '[search]\nprovider = "local"\nfolder = "notes"\n');
  await Bun.write(join(folder, "notes/tower.md"), "The tower is 300 metres tall.");
  expect((await run(["search", "index", ...searched], options)).code).toBe(0);
  expect((await run(["search", "tower", ...searched], options)).stdout).toContain("300 metres");
  const bot = ["keys", "create", "a@example.com", "--name", "bot", "--forwards-users", ...here];
  const { api_key } = JSON.parse((await run(bot, options)).stdout) as { api_key: string };
  expect((await chat(server.url, api_key, { user: "ada" })).status).toBe(200);
  const exported = await run(["end-users", "export", "a@example.com", "ada", ...here], options);
  expect(JSON.parse(exported.stdout)).toMatchObject({ end_user: "ada", usage: [{ kind: "charge" }] });
  expect((await run(["end-users", "erase", "a@example.com", "ada", "--yes", ...here], options)).code).toBe(0);
  expect((await run(["accounts", "delete", "a@example.com", "--yes", ...here], options)).code).toBe(0);
  expect((await run(["doctor", ...here], options)).code).toBe(0);
  expect((await run(["models", "suggest", ...here], options)).stderr).toContain("no node lists a model"); // the demo node
  expect((await run(["webhooks", "test", "ops", ...here], options)).stderr).toContain("there is no webhook");
  expect((await run(["check-answers", "--quick"], options)).stderr).toContain("is started by a server");
  expect((await run(["init", "--yes", "--node", "127.0.0.1:1"], options)).stderr).toContain("nothing listens");
  server.signal("SIGTERM");
  expect(await server.ended()).toBe(0);
  expect((await run(["move", "--to", "postgres://127.0.0.1:1/none", ...here], options)).stderr).toContain(
    "cannot be used",
  );
  expect((await run(["restore", "copy.db", ...here], options)).code).toBe(0);
  expect((await run(["accounts", "list", ...here], options)).code).toBe(0);
}

/** Requests that are answered by the demo node. */
export async function tryRequests(url: string, key: string): Promise<void> {
  const text = await (await chat(url, key, { stream: true })).text();
  expect(text).toContain('"content":');
  expect(text).toEndWith("data: [DONE]\n\n");
  // answers are checked, and PDFs read, by the program's own children
  const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };
  const checked = await chat(url, key, {
    response_format: { type: "json_schema", json_schema: { name: "book", strict: true, schema } },
  });
  expect([checked.status, await checked.text()]).toEqual([200, expect.stringContaining("title")]);
  const file = { file_data: `data:application/pdf;base64,${pdf("Pdftext").toBase64()}`, filename: "a.pdf" };
  const read = await chat(url, key, { messages: [{ role: "user", content: [{ type: "file", file }] }] });
  expect([read.status, await read.text()]).toEqual([200, expect.stringContaining("Pdftext")]);
  // the demo node cannot count: a Worker of the program does
  const headers = { authorization: `Bearer ${key}` };
  const counted = { method: "POST", headers, body: JSON.stringify({ model: "core-3", text: "tower" }) };
  expect(await (await fetch(`${url}/v1/tokenize`, counted)).json()).toMatchObject({ count: 1, exact: false });
  expect((await fetch(`${url}/docs`)).status).toBe(200);
  expect((await fetch(`${url}/openapi.json`)).status).toBe(200);
}
