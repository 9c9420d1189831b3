// The commands on accounts, keys, usage and backups do the same through a running server and on a stopped one's folder.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openControlSocket } from "../../src/server/control-socket.ts";
import { lockDataFolder } from "../../src/store/folder/data-folder.ts";
import { longForm } from "../fixtures/optional.ts";
import { releasedLedgers } from "../store/released-ledgers.ts";
import { chat, run, Server, temporaryFolder, tollgate } from "./program.ts";

setDefaultTimeout(120_000); // processes are started, and the machine may be busy

const day = /^\d{4}-\d\d-\d\d$/;

describe.each(["running", "stopped"])("on a %s server", (state) => {
  const folder = temporaryFolder();
  let server: Server | null = null;
  const here = ["--data", folder.path];

  beforeAll(async () => {
    if (state === "running") server = await Server.start(["--port", "0", ...here]);
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  const json = async (...words: string[]) => {
    const { code, stdout, stderr } = await run([...words, ...here, "--json"]);
    expect(stderr).toBe("");
    expect(code).toBe(0);
    return JSON.parse(stdout);
  };

  test("an account is made, shown, changed and credited", async () => {
    const created = await json("accounts", "create", "ann@example.com", "--plan", "plus", "--credit", "5000");
    expect(created).toEqual({
      id: expect.any(Number),
      email: "ann@example.com",
      plan: "plus",
      api_key: expect.stringMatching(/^sk-tg-[0-9A-Za-z]{43}$/),
    });
    const shown = {
      id: created.id,
      email: "ann@example.com",
      plan: "plus",
      disabled: false,
      cost_center: null,
      allowance: { day: expect.stringMatching(day), granted: 80_000, left: 80_000 },
      credit: 5_000,
      reserved: 0,
      spendable: 85_000,
      coder_calls: { window: expect.any(String), used: 0, limit: 20 },
      searches: { day: expect.stringMatching(day), used: 0, limit: 30 },
    };
    expect(await json("accounts", "show", "ann@example.com")).toEqual(shown);
    expect(await json("accounts", "plan", "ann@example.com", "pro")).toMatchObject({ plan: "pro", spendable: 670_000 });
    const credit = ["accounts", "credit", "ann@example.com", "1000", "--reference", "invoice-1"];
    expect(await json(...credit)).toMatchObject({ credit: 6_000, credited: true });
    expect(await json(...credit)).toMatchObject({ credit: 6_000, credited: false });
    expect(await json("usage", "ann@example.com")).toEqual([]);
  });

  test("all accounts are listed", async () => {
    await json("accounts", "create", "list@example.com");
    const emails = (await json("accounts", "list")).map(({ email }: { email: string }) => email);
    expect(emails).toContain("list@example.com");
  });

  test("a key is rotated", async () => {
    const { api_key: before } = await json("accounts", "create", "key@example.com");
    const { api_key: after } = await json("keys", "rotate", "key@example.com");
    expect(after).not.toBe(before);
    if (server !== null) {
      expect((await chat(server.url, before, {})).status).toBe(401);
      expect((await chat(server.url, after, { max_tokens: 1 })).status).toBe(200);
      expect(await json("usage", "key@example.com", "--limit", "5")).toEqual([
        expect.objectContaining({ endpoint: "/v1/chat/completions", model: "core-3", estimated: false }),
      ]);
    }
  });

  test("people get aligned text instead of JSON", async () => {
    await json("accounts", "create", "text@example.com", "--credit", "1234567");
    const { stdout } = await run(["accounts", "show", "text@example.com", ...here]);
    expect(stdout).toMatch(/^credit +1,234,567$/m);
    expect((await run(["accounts", "list", ...here])).stdout).toMatch(
      /^id +e-mail +plan +credit +operator +disabled +created\n/,
    );
    expect((await run(["usage", "text@example.com", ...here])).stdout).toStartWith("time  endpoint  model");
  });

  test("a backup is a whole database that only its owner may read, and overwrites nothing", async () => {
    await json("accounts", "create", "backup@example.com");
    const file = join(folder.path, "copy.db");
    expect(await json("backup", file)).toEqual({ file, bytes: statSync(file).size, integrity: "ok" });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(existsSync(`${file}.partial`)).toBe(false);
    const copy = new Database(file, { readonly: true });
    expect(copy.query("SELECT count(*) AS n FROM accounts WHERE email = 'backup@example.com'").get()).toEqual({ n: 1 });
    copy.close();
    const { code, stderr } = await run(["backup", file, ...here]);
    expect(stderr).toBe(`tollgate: ${file} exists already; a backup never overwrites a file`);
    expect(code).toBe(1);
  });

  const refusals: [string[], string][] = [
    [["accounts", "show", "no@example.com"], "no account has the e-mail no@example.com"],
    [["accounts", "create", "no-address"], '"no-address" is not an e-mail address'],
    [
      ["accounts", "create", "x@example.com", "--plan", "gold"],
      "no plan is called gold; the plans are free, plus, standard, pro",
    ],
    [
      ["backup", "/nowhere/copy.db"],
      "cannot write the backup /nowhere/copy.db: ENOENT: no such file or directory, open '/nowhere/copy.db.partial'",
    ],
  ];
  test("a reference that is another account's is an error that says whose", async () => {
    for (const name of ["first", "second"]) await json("accounts", "create", `${name}-buyer@example.com`);
    const credit = (name: string) =>
      run(["accounts", "credit", `${name}-buyer@example.com`, "5", "--reference", "inv-1", ...here]);
    expect((await credit("first")).code).toBe(0);
    expect((await credit("first")).stdout).toStartWith("This reference was credited before; nothing was added.");
    expect(await credit("second")).toEqual({
      code: 1,
      stdout: "",
      stderr: "tollgate: nothing was added: the reference inv-1 was credited to first-buyer@example.com",
    });
    expect(await json("accounts", "show", "second-buyer@example.com")).toMatchObject({ credit: 0 });
  });

  // They are refused by the same code on either: the long form tries all on both.
  test.each(state === "running" && !longForm ? refusals.slice(0, 2) : refusals)(
    "what cannot be done is one line: %j",
    async (words, message) => {
      expect(await run([...words, ...here])).toEqual({ code: 1, stdout: "", stderr: `tollgate: ${message}` });
    },
  );
});

describe("without a server", () => {
  test("a data folder that is not there is not made by looking at it", async () => {
    using folder = temporaryFolder();
    const data = join(folder.path, "typo");
    expect(await run(["accounts", "list", "--data", data])).toEqual({
      code: 1,
      stdout: "",
      stderr: `tollgate: there is no data folder ${data}; name it with --data DIR`,
    });
    expect(existsSync(data)).toBe(false);
  });

  test("two commands at once wait for each other", async () => {
    using folder = temporaryFolder();
    const create = (name: string) => run(["accounts", "create", `${name}@example.com`, "--data", folder.path]);
    const finished = await Promise.all(["a", "b", "c"].map(create));
    expect(finished.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ""],
      [0, ""],
      [0, ""],
    ]);
    const { stdout } = await run(["accounts", "list", "--data", folder.path, "--json"]);
    expect(JSON.parse(stdout)).toHaveLength(3);
  });

  test("the data folder may come from the environment", async () => {
    using folder = temporaryFolder();
    const variables = { TOLLGATE_DATA: folder.path };
    expect((await run(["accounts", "create", "env@example.com"], { variables })).code).toBe(0);
    expect(existsSync(join(folder.path, "tollgate.db"))).toBe(true);
  });
});

test.skipIf(!longForm)(
  "a command waits for as long as the server takes, also where it says nothing meanwhile",
  async () => {
    using folder = temporaryFolder();
    const held = lockDataFolder(folder.path);
    const file = join(folder.path, "copy.db");
    writeFileSync(file, "whole");
    const answer = { file, bytes: 5, integrity: "ok" };
    const control = openControlSocket(
      folder.path,
      () => Bun.sleep(15_000).then(() => answer), // Bun would cut a silent connection after 10 s
      () => true,
    );
    expect(await run(["backup", file, "--data", folder.path])).toMatchObject({ code: 0, stderr: "" });
    await control.close();
    held.release();
  },
);

test("a backup that the server wrote where the command cannot see it is told as such", async () => {
  using folder = temporaryFolder();
  const held = lockDataFolder(folder.path);
  const control = openControlSocket(
    folder.path,
    async (_, given) => ({ file: (given as { file: string }).file, bytes: 5, integrity: "ok" }),
    () => true,
  );
  const file = join(folder.path, "copy.db");
  const backup = () => run(["backup", file, "--data", folder.path]);
  const hidden = await backup();
  expect([hidden.code, hidden.stdout]).toEqual([1, ""]);
  expect(hidden.stderr).toBe(
    `tollgate: the server wrote ${file} where this command cannot see it (a private /tmp?); name a file in the data folder`,
  );
  writeFileSync(file, "whole");
  expect((await backup()).code).toBe(0);
  await control.close();
  held.release();
});

test("a backup of a stopped folder leaves the database at its version: it is the way back from an upgrade", async () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "tollgate.db");
  const before = new Database(file);
  for (const sql of releasedLedgers.slice(0, -1)) before.run(sql);
  before.run(`PRAGMA user_version = ${releasedLedgers.length - 1}`);
  before.close();
  const copy = join(folder.path, "copy.db");
  expect((await run(["backup", copy, "--data", folder.path])).code).toBe(0);
  for (const each of [copy, file]) {
    using database = new Database(each, { readonly: true });
    expect(database.query("PRAGMA user_version").get()).toEqual({ user_version: releasedLedgers.length - 1 });
  }
  const empty = join(folder.path, "empty");
  mkdirSync(empty);
  expect((await run(["backup", join(folder.path, "none.db"), "--data", empty])).stderr).toBe(
    `tollgate: there is no ledger in ${empty}; name its folder with --data DIR`,
  );
});

test("a running server answers although the command's own configuration cannot be read", async () => {
  using folder = temporaryFolder();
  const config = join(folder.path, "gate.toml");
  const data = join(folder.path, "data");
  writeFileSync(config, '[[nodes]]\nname = "a"\nurl = "http://127.0.0.1:9/v1"\napi_key_env = "NODE_KEY"\n');
  await using server = await Server.start(["--port", "0", "--config", config, "--data", data], {
    variables: { NODE_KEY: "k" },
  });
  expect(await run(["accounts", "list", "--config", config, "--data", data])).toMatchObject({ code: 0, stderr: "" });
  server.signal("SIGTERM");
  await server.ended();
  expect((await run(["accounts", "list", "--config", config, "--data", data])).stderr).toContain("NODE_KEY is not set");
});

test("an export whose reader wants no more ends without a stack", async () => {
  using folder = temporaryFolder();
  await run(["accounts", "create", "a@x", "--data", folder.path]);
  const piped = await run(["-c", `${tollgate.join(" ")} accounts export a@x --data ${folder.path} | true`], {
    program: ["sh"],
  });
  expect(piped).toEqual({ code: 0, stdout: "", stderr: "" });
});
