// dist/tollgate alone in an empty folder: nothing of the source tree is needed. `npm run build` makes it; without it
// these tests are skipped, and say so.
import { expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { pdf } from "../fixtures/pdf.ts";
import { chat, run, Server, temporaryFolder } from "./program.ts";

setDefaultTimeout(60_000); // the binary has 100 MiB and is copied

const built = join(import.meta.dir, "../../dist/tollgate");
const source = join(import.meta.dir, "../../src");
const reason = whyNot();
if (reason !== null) console.log(`dist/tollgate is not tested: ${reason}`);

/** Starts a program for which the sources and packages are not there; nothing where the system does not let us. */
const hiding = 'mount -t tmpfs none "$1"; mount -t tmpfs none "$2"; shift 2; exec "$@"';
const hidden = ["unshare", "--mount", "sh", "-ec", hiding, "sh", source, join(source, "../node_modules")];
const canHide = Bun.which("unshare") !== null && Bun.spawnSync([...hidden, "true"]).success;
const withoutSources = canHide ? hidden : [];
if (!canHide) console.log("dist/tollgate is tested beside its sources: they cannot be hidden from it here");

function whyNot(): string | null {
  if (!existsSync(built)) return "it is not built; npm run build makes it";
  const builtAt = statSync(built).mtimeMs;
  const newer = [...new Bun.Glob("**/*.ts").scanSync(source)].find(
    (file) => statSync(join(source, file)).mtimeMs > builtAt,
  );
  return newer === undefined ? null : `src/${newer} is newer; npm run build makes it anew`;
}

/** The commands that the help names: "accounts create", "nodes". */
const commandsOf = (help: string): string[] =>
  [...help.matchAll(/^tollgate ([a-z-]+,?(?: [a-z]+)*)/gm)].map(([, name]) => name!.trim());
const isCall = (words: readonly string[], name: string): boolean => words.join(" ").startsWith(`${name} `);

test.skipIf(reason !== null)("the binary serves, streams and does every command away from its source", async () => {
  using folder = temporaryFolder();
  const binary = join(folder.path, "tollgate");
  cpSync(built, binary);
  const options = { program: [...withoutSources, binary], cwd: folder.path, variables: { HOME: folder.path } };
  const server = await Server.start(["--port", "0", "--data", "data"], options);
  await using _server = server;
  const key = /API key +(sk-tg-\S+)/.exec(server.stdout)![1]!;
  const text = await (await chat(server.url, key, { stream: true })).text();
  expect(text).toContain('"content":');
  expect(text).toEndWith("data: [DONE]\n\n");

  const here = ["--data", "data", "--json"];
  const commands = [
    ["accounts", "create", "a@example.com", ...here],
    ["accounts", "list", ...here],
    ["accounts", "show", "a@example.com", ...here],
    ["accounts", "plan", "a@example.com", "plus", ...here],
    ["accounts", "credit", "a@example.com", "5", ...here],
    ["keys", "rotate", "a@example.com", ...here],
    ["usage", "operator@localhost", ...here],
    ["nodes", ...here],
    ["backup", "copy.db", ...here],
    ["check", "--json"],
    ["accounts", "export", "a@example.com", ...here],
    ["reload", ...here],
    ["health", ...here],
  ];
  expect(
    commandsOf((await run(["help"], options)).stdout).filter((name) => !commands.some((words) => isCall(words, name))),
  ).toEqual([
    "serve",
    "accounts delete",
    "search",
    "search index",
    "doctor",
    "check-answers",
    "pdf-text",
    "help, help config",
  ]); // below
  for (const words of commands) {
    const { code, stdout, stderr } = await run(words, options);
    expect([words, code, stderr]).toEqual([words, 0, ""]);
    JSON.parse(stdout);
  }
  expect((await run(["--version"], options)).code).toBe(0);
  expect((await run(["help", "config"], options)).stdout).toContain("`[[nodes]]`");
  const reading = Bun.spawnSync([binary, "pdf-text"], { stdin: pdf("Hello"), cwd: folder.path });
  expect(reading.stdout.toString()).toBe("Hello");
  const searched = ["--config", "search.toml", ...here];
  await Bun.write(join(folder.path, "search.toml"), '[search]\nprovider = "local"\nfolder = "notes"\n');
  await Bun.write(join(folder.path, "notes/tower.md"), "The tower is 300 metres tall.");
  expect((await run(["search", "index", ...searched], options)).code).toBe(0);
  expect((await run(["search", "tower", ...searched], options)).stdout).toContain("300 metres");
  expect((await run(["accounts", "delete", "a@example.com", "--yes", ...here], options)).code).toBe(0);
  expect((await run(["doctor", ...here], options)).code).toBe(0);
  expect((await run(["check-answers"], options)).stderr).toContain("is started by a server");
  expect((await fetch(`${server.url}/docs`)).status).toBe(200);
  expect((await fetch(`${server.url}/openapi.json`)).status).toBe(200);
  server.signal("SIGTERM");
  expect(await server.ended()).toBe(0);
  expect((await run(["accounts", "list", ...here], options)).code).toBe(0);
});
