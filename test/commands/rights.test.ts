// Commands beside a server whose nodes come from flags, by users without rights, and on folders that are not meant for
// them.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { finish, once, text } from "../fixtures/scripts.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { run, Server, temporaryFolder, tollgate } from "./program.ts";

setDefaultTimeout(120_000); // processes are started, and the machine may be busy

const folder = temporaryFolder();
const data = join(folder.path, "data");
const here = ["--data", data];
let node: ScriptedNode;
let server: Server;

beforeAll(async () => {
  node = await ScriptedNode.start();
  await node.define("text", once(text("word"), finish("stop")));
  server = await Server.start(["--port", "0", "--node", node.url, ...here]);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await node[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

describe("beside a server that was given its nodes by flags", () => {
  test.each(["check", "doctor"])("%s looks at them and says where they are from", async (command) => {
    const { stdout } = await run([command, ...here]);
    expect(stdout).toMatch(/^(?:ok +)?node node-1 .*by --node of the running server$/m);
    expect(stdout).not.toContain("none named");
  });

  test("a node that the command names itself is the one that it looks at", async () => {
    const { code, stdout } = await run(["check", ...here, "--node", "http://127.0.0.1:9/v1"]);
    expect([code, stdout]).toEqual([1, expect.stringContaining("node node-1  WRONG")]);
    expect(stdout).not.toContain("running server");
  });
});

describe.skipIf(process.getuid?.() !== 0 || Bun.which("setpriv") === null)("as another user", () => {
  const nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
  const copy = join(folder.path, "program"); // where others may run it
  const asNobody = (words: readonly string[]) => run(words, { program: [...nobody, copy, ...tollgate.slice(1)] });
  beforeAll(() => {
    chmodSync(folder.path, 0o755);
    copyFileSync(tollgate[0]!, copy);
    chmodSync(copy, 0o755);
  });

  test.each([
    "accounts list",
    "accounts create a@b.example",
    "accounts export a@b.example",
    "usage a@b.example",
    "nodes",
    "health",
    "reload",
    "backup /tmp/never.db",
    "restore /etc/hostname",
    "serve --port 0",
  ])("%s names the right that is missing", async (words) => {
    const { code, stdout, stderr } = await asNobody([...words.split(" "), ...here]);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toBe(
      `tollgate: this user (id 65534) has no right to ${data}, which belongs to the user with the id 0: run the command ` +
        "as that user or as root",
    );
  });

  test("check and doctor go on without the server", async () => {
    const checked = await asNobody(["check", ...here]);
    expect([checked.code, checked.stdout]).toEqual([0, expect.stringContaining("server         not asked: this user")]);
    const { code, stdout, stderr } = await asNobody(["doctor", ...here]);
    expect([code, stderr]).toEqual([1, ""]);
    expect(stdout).toContain("PROBLEM  server          this user (id 65534) has no right to");
  });

  test("a folder that may be looked into has a socket that may not", async () => {
    chmodSync(data, 0o777);
    const { code, stderr } = await asNobody(["accounts", "list", ...here]);
    chmodSync(data, 0o700);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`no right to ${join(data, "tollgate.sock")}`)]);
  });
});

test("a folder without a ledger, or what is none, is left as it is", async () => {
  const other = join(folder.path, "other");
  mkdirSync(other);
  const { code, stderr } = await run(["accounts", "list", "--data", other]);
  expect([code, stderr]).toEqual([1, `tollgate: there is no ledger in ${other}; name its folder with --data DIR`]);
  expect(readdirSync(other)).toEqual([]);
  const file = join(folder.path, "file");
  writeFileSync(file, "");
  const onFile = await run(["accounts", "list", "--data", file]);
  expect(onFile.stderr).toBe(`tollgate: ${file} is not a folder; name the data folder with --data DIR`);
  expect((await run(["nodes", "--data", join(folder.path, "none")])).stderr).not.toContain("typo");
  expect(existsSync(join(folder.path, "none"))).toBe(false);
});
