// Changing the configuration of a running server: what is applied at once, what needs a restart, and that a wrong file
// changes nothing. Also the nodes that `serve` starts itself.
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Database } from "bun:sqlite";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import catalogRows from "../../data/catalog.json" with { type: "json" };
import { askRunningServer } from "../../src/server/control-socket.ts";
import { eventually } from "../fixtures/eventually.ts";
import { makeDataFolder } from "../fixtures/first-ledger.ts";
import { longForm } from "../fixtures/optional.ts";
import { OtlpCollector } from "../fixtures/otlp-collector.ts";
import { chat, run, Server, temporaryFolder } from "../commands/program.ts";

setDefaultTimeout(300_000);

const program = join(import.meta.dir, "../fixtures/managed-program.ts");
const keyOf = (server: Server): string => /API key +(sk-tg-\S+)/.exec(server.stdout)![1]!;

type Reloaded = Readonly<{ applied: string[]; needsRestart: string[] }>;
type Rows = { models: { id: string; price: { cents?: number } }[]; plans: { id: string; tokens_per_day: number }[] };

class Site implements AsyncDisposable {
  readonly folder = temporaryFolder();
  readonly config = join(this.folder.path, "tollgate.toml");
  readonly data = join(this.folder.path, "data");
  readonly catalog = join(this.folder.path, "catalog.json");
  server!: Server;
  /** The operator's. */
  key!: string;

  static async start(toml: string, variables = {}): Promise<Site> {
    const site = new Site();
    site.write(toml);
    site.key = await makeDataFolder(site.data);
    site.server = await Server.start(["--port", "0", "--data", site.data, "--config", site.config], { variables });
    return site;
  }

  /** Stops it in order, lets something be done to its files and starts it again. */
  async restart(between: () => void): Promise<void> {
    this.server.signal("SIGTERM");
    await this.server.ended();
    between();
    this.server = await Server.start(["--port", "0", "--data", this.data, "--config", this.config]);
  }

  write(toml: string): void {
    writeFileSync(this.config, toml);
  }

  /** Writes a catalog that differs from the one that comes with the program. */
  writeCatalog(change: (rows: Rows) => void): void {
    const rows = structuredClone(catalogRows) as Rows;
    change(rows);
    writeFileSync(this.catalog, JSON.stringify(rows));
  }

  /** What `tollgate reload` asks of the server, without a process for each. */
  async reload(): Promise<Reloaded> {
    const answer = await askRunningServer(this.data, "reload", {}, () => {});
    return answer!.result as Reloaded;
  }

  /** The reply to a chat request as JSON. */
  async ask(
    body: object = {},
  ): Promise<{ usage: { total_tokens: number }; choices: { message: { content: string } }[] }> {
    return JSON.parse(await (await chat(this.server.url, this.key, { max_tokens: 20, ...body })).text());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.signal("SIGTERM");
    await this.server.ended();
    await this.server[Symbol.asyncDispose]();
    this.folder[Symbol.dispose]();
  }
}

/**
 * Not with `rejects`: until it knows, that runs an event loop inside of the one that runs, and what other tests of a
 * concurrent group wait for in there may never come.
 */
const refusalOf = (reload: Promise<Reloaded>): Promise<string> =>
  reload.then(
    () => "nothing",
    (error: Error) => error.message,
  );

describe.concurrent("a changed catalog", () => {
  test("has its models, prices and plans at once, while what began before pays the price of then", async () => {
    await using site = await Site.start("");
    const stream = await chat(site.server.url, site.key, { stream: true });
    site.writeCatalog(({ models, plans }) => {
      models.push({ ...models.find(({ id }) => id === "core-3")!, id: "core-new" });
      models.find(({ id }) => id === "core-3")!.price.cents = 5_000;
      plans.find(({ id }) => id === "pro")!.tokens_per_day = 700_000;
    });
    site.write('[catalog]\nfile = "catalog.json"\n');
    const described = async () =>
      (await (await fetch(`${site.server.url}/openapi.json`)).text()).includes('"core-new"');
    expect(await described()).toBe(false);
    expect(await site.reload()).toEqual({ applied: ["catalog"], needsRestart: [] });
    expect(await described()).toBe(true);

    const before = await stream.text();
    const began = JSON.parse(/"usage":(\{[^}]*\})/.exec(before)![1]!) as { total_tokens: number };
    const now = await site.ask();
    await site.ask({ model: "core-new" });
    const { stdout } = await run(["usage", "operator@localhost", "--data", site.data, "--json"]);
    const rows = (JSON.parse(stdout) as { model: string; billed_tokens: number }[]).toReversed();
    const billed = (tokens: number, cents: number) => Math.floor((2 * tokens * cents + 500) / 1000);
    expect(rows.map(({ model, billed_tokens }) => [model, billed_tokens])).toEqual([
      ["core-3", billed(began.total_tokens, 335)],
      ["core-3", billed(now.usage.total_tokens, 5_000)],
      ["core-new", expect.any(Number)],
    ]);
    const account = JSON.parse(
      (await run(["accounts", "show", "operator@localhost", "--data", site.data, "--json"])).stdout,
    );
    expect(account.allowance.granted).toBe(700_000);
  });
});

describe.concurrent("a changed configuration", () => {
  test("has another least level of the log at once", async () => {
    await using site = await Site.start('[log]\nlevel = "warn"\nformat = "json"\n');
    await site.ask();
    site.write('[log]\nlevel = "debug"\nformat = "json"\n');
    expect(await site.reload()).toEqual({ applied: ["log.level"], needsRestart: [] });
    await site.ask();
    await site.server.says(/"event":"request"/);
    const requests = (): number => site.server.stderr.split('"event":"request"').length - 1;
    expect(requests()).toBe(1);
    site.write('[log]\nlevel = "error"\nformat = "json"\n');
    await site.reload();
    await site.ask();
    site.server.signal("SIGTERM");
    await site.server.ended();
    expect(requests()).toBe(1);
  });

  test("asks for another token of the metrics at once, and logs neither", async () => {
    await using site = await Site.start('[metrics]\ntoken = "token-of-before"\n[log]\nlevel = "debug"\n');
    const status = async (token: string): Promise<number> =>
      (await fetch(`${site.server.url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).status;
    expect([await status("token-of-before"), await status("token-of-after")]).toEqual([200, 401]);
    site.write('[metrics]\ntoken = "token-of-after"\n[log]\nlevel = "debug"\n');
    expect(await site.reload()).toEqual({ applied: ["metrics.token"], needsRestart: [] });
    expect([await status("token-of-before"), await status("token-of-after")]).toEqual([401, 200]);
    expect(site.server.stderr).not.toMatch(/token-of-/);
  });

  test("keeps stored responses within other limits, and needs a restart to begin or end storing", async () => {
    await using site = await Site.start("");
    const stored = async (): Promise<number> => {
      const reply = await fetch(`${site.server.url}/v1/responses`, {
        method: "POST",
        headers: { authorization: `Bearer ${site.key}` },
        body: JSON.stringify({ model: "core-3", input: "x".repeat(600_000), store: true }),
      });
      const { id } = (await reply.json()) as { id: string };
      const headers = { authorization: `Bearer ${site.key}` };
      const found = await fetch(`${site.server.url}/v1/responses/${id}`, { headers });
      return found.status;
    };
    expect(await stored()).toBe(200);
    site.write("[responses]\nkeep_max_mib = 1\n");
    expect(await site.reload()).toEqual({ applied: ["responses"], needsRestart: [] });
    expect([await stored(), await stored()]).toEqual([200, 200]);
    using database = new Database(join(site.data, "responses.db"), { readonly: true });
    expect(database.query("SELECT count(*) AS kept FROM responses").get()).toEqual({ kept: 1 }); // the others made room
    site.write("[responses]\nkeep_days = 0\n");
    expect(await site.reload()).toEqual({ applied: [], needsRestart: ["responses"] });
  });

  test("folds lines that are older than it lets them be", async () => {
    await using site = await Site.start("");
    expect((await site.ask()).choices[0]!.message.content).not.toBe("");
    await site.restart(() => {
      using database = new Database(join(site.data, "tollgate.db"));
      database.run("UPDATE journal SET at = at - 10 * 86400000, period = period - 10");
      database.run("UPDATE quota_use SET period = period - 10");
    });
    expect((await site.ask()).choices[0]!.message.content).not.toBe("");
    site.write("[retention]\nusage_days = 5\n");
    expect(await site.reload()).toEqual({ applied: ["retention.usage_days"], needsRestart: [] });
    using database = new Database(join(site.data, "tollgate.db"), { readonly: true });
    const folded = database.prepare("SELECT coalesce(sum(lines), 0) AS lines FROM journal_folds");
    await eventually("the old line is a sum", async () => (folded.get() as { lines: number }).lines === 1, 60_000);
    expect(database.query("SELECT count(*) AS lines FROM journal WHERE kind = 'charge'").get()).toEqual({ lines: 1 });
  });

  test("is applied after the start where the signal came during it", async () => {
    using folder = temporaryFolder();
    const config = join(folder.path, "tollgate.toml");
    Bun.spawnSync(["mkfifo", config]); // it can be written once the server reads it, which shows how far that is
    let pid = 0;
    const starting = Server.start(["--port", "0", "--data", join(folder.path, "data"), "--config", config], {
      started: (id) => (pid = id),
    });
    const pipe = await open(config, "w");
    process.kill(pid, "SIGHUP");
    await pipe.writeFile("");
    await pipe.close();
    await using server = await starting;
    await writeFile(config, "[queue]\nmax_wait_seconds = 7\n");
    await server.says(/"event":"configuration applied","changed":"queue.max_wait_seconds"/);
  });

  test("is refused by a server that is not there", async () => {
    using folder = temporaryFolder();
    expect(await run(["reload", "--data", folder.path])).toEqual({
      code: 1,
      stdout: "",
      stderr: `tollgate: no server runs on the data folder ${folder.path}`,
    });
  });
});

describe("of one server, one after the other: a change", () => {
  let site: Site;
  beforeAll(async () => void (site = await Site.start("")));
  beforeEach(async () => {
    site.write("# nothing\n");
    await site.reload();
  });
  afterAll(() => site[Symbol.asyncDispose]());

  test("to a catalog that is wrong changes nothing, and says why", async () => {
    site.writeCatalog(({ models }) => (models[0]!.price = {}));
    site.write('[catalog]\nfile = "catalog.json"\n[queue]\nmax_wait_seconds = 1\n');
    expect(await refusalOf(site.reload())).toMatch(
      /catalog\.json: models\[0\] "core-1\.6-lite": price\.cents is missing/,
    );
    expect(await refusalOf(site.reload())).toMatch(/price\.cents is missing/);
    site.write("# nothing\n");
    expect(await site.reload()).toEqual({ applied: [], needsRestart: [] }); // the queue was not changed before
  });

  test("to a file without a byte changes nothing: it is being written", async () => {
    site.write("[queue]\nmax_wait_seconds = 1\n");
    expect((await site.reload()).applied).toEqual(["queue.max_wait_seconds"]);
    site.write("");
    expect(await refusalOf(site.reload())).toMatch(/tollgate\.toml is empty, as while it is written/);
    site.write("# nothing\n");
    expect((await site.reload()).applied).toEqual(["queue.max_wait_seconds"]);
  });

  test("applies nodes, queue, search and MCP servers, and names what needs a restart", async () => {
    site.write(`
      [server]
      stop_grace_seconds = 5
      cors_origins = ["*"]
      [queue]
      max_wait_seconds = 7
      [search]
      provider = "searxng"
      url = "http://127.0.0.1:9"
      [[mcp]]
      name = "away"
      url = "http://127.0.0.1:9/mcp"
      [console]
      sign_up = true
      [log]
      format = "text"
    `);
    expect(await site.reload()).toEqual({
      applied: ["server.cors_origins", "server.stop_grace_seconds", "queue.max_wait_seconds", "search", "mcp"],
      needsRestart: ["console.sign_up", "log.format"],
    });
    expect(await site.reload()).toEqual({ applied: [], needsRestart: ["console.sign_up", "log.format"] });
    expect((await site.ask()).choices[0]!.message.content).not.toBe("");
    site.write("# nothing\n");
    expect(await site.reload()).toEqual({
      applied: ["server.cors_origins", "server.stop_grace_seconds", "queue.max_wait_seconds", "search", "mcp"],
      needsRestart: [],
    });
  });

  test("has another output budget of requests that name none at once", async () => {
    const finish = async (path: string, body: object) => {
      const { url } = site.server;
      const headers = { authorization: `Bearer ${site.key}` };
      const hosted = JSON.stringify({ model: "open-05-3BIT-REAP", ...body });
      const reply = (await (await fetch(url + path, { method: "POST", headers, body: hosted })).json()) as any;
      return reply.choices?.[0].finish_reason ?? reply.stop_reason ?? reply.status;
    };
    const messages = [{ role: "user", content: "Say hello" }];
    const finishes = async () => [
      await finish("/v1/chat/completions", { messages }),
      await finish("/v1/messages", { messages }),
      await finish("/v1/responses", { input: "Say hello" }),
      await finish("/v1/chat/completions", { messages, max_tokens: 4_096 }),
    ];
    expect(await finishes()).toEqual(["stop", "end_turn", "completed", "stop"]);
    site.write("[limits]\ndefault_output_tokens = 5\n");
    expect(await site.reload()).toEqual({ applied: ["catalog", "limits.default_output_tokens"], needsRestart: [] });
    expect(await finishes()).toEqual(["length", "max_tokens", "incomplete", "stop"]);
    site.write("[limits]\ndefault_output_tokens = 0\n");
    expect(await refusalOf(site.reload())).toMatch(
      "limits.default_output_tokens must be a whole number from 1 to 65536",
    );
  });

  test("sends traces to the collector that it names, also where there was none before", async () => {
    using one = new OtlpCollector();
    using other = new OtlpCollector();
    const traced = async (collector: OtlpCollector): Promise<void> => {
      const before = collector.spans.length;
      await site.ask();
      await eventually("a trace came", async () => collector.spans.length > before, 30_000);
    };
    for (const collector of [one, other]) {
      site.write(`[telemetry]\notlp_endpoint = "${collector.url}"\notlp_protocol = "http/json"\n`);
      expect(await site.reload()).toEqual({ applied: ["telemetry"], needsRestart: [] });
      await traced(collector);
    }
    const toOne = one.spans.length;
    await traced(other);
    expect(one.spans.length).toBe(toOne);
    site.write("# nothing\n");
    expect(await site.reload()).toEqual({ applied: ["telemetry"], needsRestart: [] });
  });

  test("searches another folder, a service and no longer a folder, without a restart", async () => {
    for (const name of ["one", "two"]) {
      mkdirSync(join(site.folder.path, name));
      writeFileSync(join(site.folder.path, name, `${name}.md`), `# Towers\n\nThe tower of folder ${name} is tall.\n`);
    }
    const indexed = (): string[] => {
      using database = new Database(join(site.data, "search.db"), { readonly: true });
      return (database.query("SELECT path FROM files").all() as { path: string }[]).map(({ path }) => path);
    };
    for (const name of ["one", "two"]) {
      site.write(`[search]\nprovider = "local"\nfolder = "${name}"\n`);
      expect(await site.reload()).toEqual({ applied: ["search"], needsRestart: [] });
      await eventually(`folder ${name} is indexed`, async () => String(indexed()) === `${name}.md`, 30_000);
    }
    site.write('[search]\nprovider = "local"\nfolder = "three"\n');
    expect(await refusalOf(site.reload())).toMatch(/three/);
    site.write('[search]\nprovider = "searxng"\nurl = "http://127.0.0.1:9"\n');
    expect(await site.reload()).toEqual({ applied: ["search"], needsRestart: [] });
    expect((await site.ask()).choices[0]!.message.content).not.toBe("");
  });
});

describe.concurrent("nodes with a command", () => {
  const table = (folder: string, name = "own") => `
    [[nodes]]
    name = "${name}"
    command = ["${process.execPath}", "${program}", "{port}", "${folder}"]
    [nodes.env]
    OWN = "yes"
  `;
  const pidsIn = (folder: string): number[] =>
    existsSync(join(folder, "pids")) ? readFileSync(join(folder, "pids"), "utf8").trim().split("\n").map(Number) : [];
  const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);

  test("serve, are back after a crash, go when the configuration drops them, and end with the gateway", async () => {
    using folder = temporaryFolder();
    const site = await Site.start(table(folder.path));
    {
      await using _ = site;
      await site.server.says(/a node answers/);
      const [first] = pidsIn(folder.path);
      expect((await site.ask()).choices[0]!.message.content).toBe(`from ${first}`);
      process.kill(first!, "SIGKILL");
      await eventually(
        "another process answers",
        async () => {
          const reply = await site.ask();
          return reply.choices?.[0]?.message.content === `from ${pidsIn(folder.path)[1]}`;
        },
        30_000,
      );
      site.write("[[nodes]]\nname = 'other'\nurl = 'http://127.0.0.1:9/v1'\n");
      expect(await site.reload()).toEqual({ applied: ["nodes"], needsRestart: [] });
      await eventually("it is gone", async () => !isAlive(pidsIn(folder.path)[1]!));
      site.write(table(folder.path));
      expect(await site.reload()).toEqual({ applied: ["nodes"], needsRestart: [] });
      await eventually("another one is there", async () => pidsIn(folder.path).length === 3);
    }
    expect(pidsIn(folder.path).filter(isAlive)).toEqual([]);
  });

  test("keep their streams through a reload, and another program of theirs waits for the end of these", async () => {
    using folder = temporaryFolder();
    const withOwn = (value: string): string =>
      table(folder.path).replace(`"${folder.path}"`, `"${folder.path}", "waits-to-end"`).replace("yes", value);
    await using site = await Site.start(withOwn("one"));
    await site.server.says(/a node answers/);
    const stream = await chat(site.server.url, site.key, { stream: true });
    site.write(withOwn("one").replace('"own"', '"renamed"\nslots = 2\napi_key = "none"'));
    expect(await site.reload()).toEqual({ applied: ["nodes"], needsRestart: [] });
    site.write(withOwn("two").replace('"own"', '"renamed"'));
    expect(await site.reload()).toEqual({ applied: ["nodes"], needsRestart: [] });
    const { stdout } = await run(["nodes", "--data", site.data, "--json"]);
    expect(JSON.parse(stdout)).toMatchObject([{ name: "renamed", health: "starting" }]);
    expect((await chat(site.server.url, site.key, {})).status).toBe(429);
    expect(pidsIn(folder.path)).toHaveLength(1);

    writeFileSync(join(folder.path, "go-on"), "");
    const [first] = pidsIn(folder.path);
    const text = await stream.text();
    expect(text).toContain(`from ${first}`);
    expect(text).toEndWith("data: [DONE]\n\n");
    await eventually("another process answers", async () => {
      const reply = await site.ask();
      return reply.choices?.[0]?.message.content === `from ${pidsIn(folder.path)[1]}`;
    });
    expect(pidsIn(folder.path).map(isAlive)).toEqual([false, true]);
    expect(JSON.parse(readFileSync(join(folder.path, "environment.json"), "utf8")).OWN).toBe("two");
  });

  test("get no key that was first named in a reload, when they are started again", async () => {
    using folder = temporaryFolder();
    await using site = await Site.start(table(folder.path), { SEARCH_KEY: "secret-of-search" });
    await site.server.says(/a node answers/);
    site.write(`${table(folder.path)}\n[search]\nprovider = "brave"\napi_key_env = "SEARCH_KEY"\n`);
    expect(await site.reload()).toEqual({ applied: ["search"], needsRestart: [] });
    process.kill(pidsIn(folder.path)[0]!, "SIGKILL");
    await eventually("it is started again", async () => pidsIn(folder.path).length === 2, 30_000);
    await site.server.says(/a node answers[^]*a node answers/);
    const seen = JSON.parse(readFileSync(join(folder.path, "environment.json"), "utf8"));
    expect([seen.OWN, seen.SEARCH_KEY]).toEqual(["yes", undefined]);
  });

  // test/nodes/managed has the same without a gateway
  test.skipIf(!longForm)("do not outlive a gateway that is killed", async () => {
    using folder = temporaryFolder();
    const site = await Site.start(table(folder.path));
    await site.server.says(/a node answers/);
    site.server.signal("SIGKILL");
    await eventually("the node is gone", async () => pidsIn(folder.path).filter(isAlive).length === 0, 30_000);
    await site[Symbol.asyncDispose]();
  });

  test("get the gateway's environment without the keys that it was given", async () => {
    using folder = temporaryFolder();
    const toml = `${table(folder.path)}\n[search]\nprovider = "brave"\napi_key_env = "SEARCH_KEY"\n`;
    await using site = await Site.start(toml, { SEARCH_KEY: "secret-of-search", CUDA_VISIBLE_DEVICES: "1" });
    await site.server.says(/a node answers/);
    const seen = JSON.parse(readFileSync(join(folder.path, "environment.json"), "utf8"));
    expect([seen.OWN, seen.CUDA_VISIBLE_DEVICES, seen.SEARCH_KEY]).toEqual(["yes", "1", undefined]);
  });

  test("whose program is missing keep the server from starting, with one line", async () => {
    using folder = temporaryFolder();
    const config = join(folder.path, "tollgate.toml");
    writeFileSync(config, '[[nodes]]\nname = "own"\ncommand = ["no-such-engine", "{port}"]\n');
    const words = ["--config", config, "--data", join(folder.path, "data")];
    for (const command of longForm ? ["serve", "check"] : ["serve"]) {
      const { code, stderr } = await run([command, ...words]);
      expect([code, stderr]).toEqual([1, 'tollgate: node "own": there is no program no-such-engine on the PATH']);
    }
  });

  test.skipIf(!longForm)("whose folder is missing do so, too", async () => {
    using folder = temporaryFolder();
    const config = join(folder.path, "tollgate.toml");
    writeFileSync(config, '[[nodes]]\nname = "own"\ncommand = ["true", "{port}"]\ncwd = "models"\n');
    const words = ["--config", config, "--data", join(folder.path, "data")];
    const missing = `tollgate: node "own": its cwd ${join(folder.path, "models")} is not a folder`;
    for (const command of ["serve", "check"]) {
      const { code, stderr } = await run([command, ...words]);
      expect([code, stderr]).toEqual([1, missing]);
    }
    await using site = await Site.start("");
    site.write(readFileSync(config, "utf8"));
    expect(await refusalOf(site.reload())).toMatch(/its cwd .* is not a folder/);
  });

  test.skipIf(!longForm)("--gguf needs a file that is there", async () => {
    using folder = temporaryFolder();
    const { code, stderr } = await run(["serve", "--gguf", "missing.gguf", "--data", join(folder.path, "data")], {
      cwd: folder.path,
    });
    expect([code, stderr]).toEqual([1, "tollgate: --gguf: there is no file missing.gguf"]);
  });

  test("--gguf FILE starts the llama-server of the PATH with the file on a free port", async () => {
    using folder = temporaryFolder();
    const binary = join(folder.path, "llama-server");
    // What llama-server is told, in its own words; the port comes after --port.
    writeFileSync(
      binary,
      `#!/bin/sh\necho "$@" > "${folder.path}/arguments"\nwhile [ "$1" != --port ]; do shift; done\nexec "${process.execPath}" "${program}" "$2" "${folder.path}"\n`,
    );
    chmodSync(binary, 0o755);
    const file = join(folder.path, "tiny.gguf");
    writeFileSync(file, "");
    const variables = { PATH: `${folder.path}:${process.env["PATH"]}` };
    const words = ["--port", "0", "--data", join(folder.path, "data"), "--gguf", file];
    const server = await Server.start(words, { variables });
    await using _ = server;
    await server.says(/a node answers/);
    expect(readFileSync(join(folder.path, "arguments"), "utf8")).toMatch(
      new RegExp(`^--model ${file} --host 127\\.0\\.0\\.1 --port \\d+ --jinja\\n$`),
    );
    const { choices } = JSON.parse(await (await chat(server.url, keyOf(server), {})).text());
    expect(choices[0].message.content).toBe(`from ${pidsIn(folder.path)[0]}`);
    const { stdout } = await run(["nodes", "--data", join(folder.path, "data"), "--json"]);
    expect(JSON.parse(stdout)[0]).toMatchObject({ name: "llama-server", slots: 4, health: "well" });
    server.signal("SIGTERM");
    expect(await server.ended()).toBe(0);
    expect(pidsIn(folder.path).filter(isAlive)).toEqual([]);
  });
});
