// tollgate serve: first start, what keeps it from starting, stopping and reloading.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startDemoNode } from "../../src/nodes/demo/demo.ts";
import { systemClock } from "../../src/core/clock.ts";
import { eventually } from "../fixtures/eventually.ts";
import { chat, run, Server, temporaryFolder } from "./program.ts";

setDefaultTimeout(120_000); // processes are started, and the machine may be busy

const models = [{ id: "core-3", contextTokens: 196_608 }];
const keyOf = (server: Server): string => /API key +(sk-tg-\S+)/.exec(server.stdout)![1]!;

describe.concurrent("a first start", () => {
  test("makes an operator, says its password and key once, and serves with them", async () => {
    using folder = temporaryFolder();
    const data = join(folder.path, "data");
    await using server = await Server.start(["--port", "0", "--data", data]);
    expect(server.stdout).toMatch(/e-mail +operator@localhost\n +password +\S{20}\n +API key +sk-tg-/);
    expect(server.stdout).toMatch(/^Tollgate \S+ listening on http:\/\/127\.0\.0\.1:\d+, data in /m);
    const { choices } = JSON.parse(await (await chat(server.url, keyOf(server), {})).text());
    expect(choices[0].message.content).not.toBe("");
    expect(statSync(join(data, "tollgate.sock")).mode & 0o777).toBe(0o600);
    expect(statSync(data).mode & 0o777).toBe(0o700);

    server.signal("SIGTERM");
    expect(await server.ended()).toBe(0);
    expect(readdirSync(data).filter((name) => /\.sock|flush-test/.test(name))).toEqual([]);

    await using again = await Server.start(["--port", "0", "--data", data]);
    expect(again.stdout).not.toContain("API key");
    expect((await chat(again.url, keyOf(server), { max_tokens: 1 })).status).toBe(200);
  });

  test("keeps its data in a folder of its own, and finds what an earlier version kept above it", async () => {
    using folder = temporaryFolder();
    const cwd = folder.path;
    mkdirSync(join(cwd, "data/ops"), { recursive: true }); // as in a repository
    const here = (...words: string[]) => run(words, { cwd });
    await using server = await Server.start(["--port", "0"], { cwd });
    expect(server.stdout).toContain(", data in ./data/var");
    expect(readdirSync(join(cwd, "data"))).toEqual(["ops", "var"]);
    expect(statSync(join(cwd, "data/var")).mode & 0o777).toBe(0o700);
    expect((await here("accounts", "list")).stdout).toContain("operator@localhost");
    server.signal("SIGTERM");
    await server.ended();
    expect((await here("accounts", "list")).stdout).toContain("operator@localhost");

    for (const name of readdirSync(join(cwd, "data/var"))) {
      renameSync(join(cwd, "data/var", name), join(cwd, "data", name));
    }
    await using older = await Server.start(["--port", "0"], { cwd });
    expect(older.stdout).toContain("The data stays in ./data, where it was; a new start makes ./data/var.");
    expect(older.stdout).not.toContain("A first account was made");
    expect((await here("accounts", "list")).stdout).toContain("operator@localhost");
    expect((await here("doctor")).stdout).toMatch(/runs on the data folder and answers/);
  });

  test("stopped as soon as it listens leaves no file of its flush test", async () => {
    using folder = temporaryFolder();
    for (let stop = 0; stop < 6; stop++) {
      await using server = await Server.start(["--port", "0", "--demo", "--data", folder.path]);
      server.signal("SIGTERM");
      expect(await server.ended()).toBe(0);
      expect(readdirSync(folder.path).filter((name) => name.includes("flush-test"))).toEqual([]);
    }
  });

  test("makes no operator where an account exists", async () => {
    using folder = temporaryFolder();
    await run(["accounts", "create", "first@example.com", "--data", folder.path]);
    await using server = await Server.start(["--port", "0", "--data", folder.path]);
    expect(server.stdout).not.toContain("API key");
  });

  test("after kill -9 takes the dead server's folder and socket", async () => {
    using folder = temporaryFolder();
    await using server = await Server.start(["--port", "0", "--data", folder.path]);
    server.signal("SIGKILL");
    await server.ended();
    const left = join(folder.path, "tollgate.flush-test-1"); // it was still being measured
    writeFileSync(left, "");
    await using again = await Server.start(["--port", "0", "--data", folder.path]);
    await eventually("the dead server's flush test is gone", async () => !existsSync(left)); // while it measures its own
    const { code, stdout } = await run(["accounts", "list", "--data", folder.path]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("operator@localhost")]);
    expect(again.stderr).not.toContain("error");
  });

  test("says which nodes it works with", async () => {
    using folder = temporaryFolder();
    const node = startDemoNode({ models, clock: systemClock });
    await using server = await Server.start(["--port", "0", "--data", folder.path, "--node", node.url]);
    await server.says(new RegExp(`^Nodes: node-1 at ${node.url}\\.$`, "m"));
    const { stdout } = await run(["nodes", "--data", folder.path, "--json"]);
    expect(JSON.parse(stdout)).toEqual([
      expect.objectContaining({ name: "node-1", health: "well", busy: 0, slots: 64, models: { "*": "*" } }),
    ]);
    await node.stop();
  });
});

test("tells of a node that is not there, wherever it is asked, and of its coming without a request", async () => {
  using folder = temporaryFolder();
  const place = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = place;
  place.stop(true);
  const url = `http://127.0.0.1:${port}/v1`;
  await using server = await Server.start(["--port", "0", "--data", folder.path, "--node", url]);
  await server.says(
    new RegExp(`^Node node-1 at ${url} is down: it cannot be reached: nothing listens at its address`, "m"),
  );
  const ready = await fetch(`${server.url}/readyz`);
  expect([ready.status, await ready.json()]).toEqual([
    503,
    { ready: false, reason: "no node can serve: the only one is down" },
  ]);
  const problem = "it cannot be reached: nothing listens at its address";
  const told = await run(["nodes", "--data", folder.path, "--json"]);
  expect(JSON.parse(told.stdout)).toMatchObject([
    { name: "node-1", url, health: "down", problem, since: expect.any(String), last_error: { message: problem } },
  ]);
  expect((await run(["nodes", "--data", folder.path])).stdout).toContain(`\nnode-1: ${problem}`);
  expect(await run(["health", "--data", folder.path])).toEqual({
    code: 0,
    stdout: `ready, but no node can serve: the only one is down; node-1: ${problem}`,
    stderr: "",
  });
  const metrics = async () => (await fetch(`${server.url}/metrics`)).text();
  expect(await metrics()).toMatch(/^tollgate_node_health\{node="node-1",health="down"\} 1$/m);
  expect(await metrics()).toMatch(/^tollgate_node_last_error_timestamp_seconds\{node="node-1"\} 1\d{9}/m);

  using _back = Bun.serve({
    hostname: "127.0.0.1",
    port,
    fetch: () => Response.json({ object: "list", data: [{ id: "m", object: "model", owned_by: "vllm" }] }),
  });
  await server.says(/"event":"is well"/);
  const isReady = await fetch(`${server.url}/readyz`);
  expect([isReady.status, await isReady.json()]).toEqual([200, { ready: true }]);
});

test("--demo is the demo node alone, also where the configuration names another", async () => {
  using folder = temporaryFolder();
  const config = join(folder.path, "gate.toml");
  writeFileSync(config, '[[nodes]]\nname = "gpu"\nurl = "http://127.0.0.1:9/v1"\n');
  const words = ["--port", "0", "--data", join(folder.path, "data"), "--config", config, "--demo"];
  await using server = await Server.start(words);
  await server.says(/^Nodes: the built-in demo node alone, as --demo asks\.$/m);
  await server.says(/^Node demo at \S+: the built-in demo node, whose answers are made up: no model runs\.$/m);
  expect(server.stderr).not.toContain("unknown");
  expect((await chat(server.url, keyOf(server), { max_tokens: 1 })).status).toBe(200);
  server.signal("SIGHUP");
  await server.says(/configuration applied/);
  expect((await chat(server.url, keyOf(server), { max_tokens: 1 })).status).toBe(200);
  expect(await run(["serve", "--demo", "--node", "http://127.0.0.1:9"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("leave out --node and --gguf"),
  });
});

describe.concurrent("a start is refused with one line", () => {
  const refused = async (words: string[], variables = {}) => {
    const { code, stdout, stderr } = await run(["serve", ...words], { variables });
    expect([code, stdout]).toEqual([1, ""]);
    return stderr;
  };

  test("when another server has the data folder", async () => {
    using folder = temporaryFolder();
    await using _server = await Server.start(["--port", "0", "--data", folder.path]);
    expect(await refused(["--port", "0", "--data", folder.path])).toBe(
      `tollgate: the data folder ${folder.path} is in use by another running tollgate`,
    );
  });

  test("when the port is taken", async () => {
    using folder = temporaryFolder();
    const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("") });
    // behind a line of the log, where the machine is too busy to reach the demo node in time
    expect(await refused(["--port", String(other.port), "--data", folder.path])).toEndWith(
      `tollgate: port ${other.port} on 127.0.0.1 is taken by another program; choose another with --port N`,
    );
    await other.stop();
  });

  test("when the data folder cannot be written", async () => {
    const line = await refused(["--port", "0", "--data", "/proc/tollgate"]);
    expect(line).toMatch(/^tollgate: cannot write to the data folder \/proc\/tollgate: .*$/);
  });

  test("when a file is where the data folder should be", async () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "file");
    writeFileSync(file, "");
    expect(await refused(["--port", "0", "--data", file])).toBe(
      `tollgate: ${file} is not a folder; name the data folder with --data DIR`,
    );
  });

  test.each([
    ["a broken file", "[server]\nport = = 1", /^tollgate: .*gate\.toml:2: TOML Parse error: .*$/],
    ["a wrong key", "[server]\nprot = 1", /^tollgate: .*gate\.toml:2: server\.prot is unknown; did you mean "port"\?$/],
    [
      "a model that no catalog has",
      '[[nodes]]\nname = "a"\nurl = "http://127.0.0.1:1/v1"\n[nodes.models]\n"core-33" = "x"',
      /^tollgate: .*gate\.toml: node "a": models\."core-33" must be a model id of the catalog, did you mean "core-3"\?$/,
    ],
    ["a catalog that is none", '[catalog]\nfile = "none.json"', /^tollgate: .*none\.json: cannot be read as JSON: .*$/],
  ])("when the configuration has %s", async (_, toml, line) => {
    using folder = temporaryFolder();
    const config = join(folder.path, "gate.toml");
    writeFileSync(config, toml);
    expect(await refused(["--config", config, "--data", join(folder.path, "data")])).toMatch(line);
    expect(existsSync(join(folder.path, "data"))).toBe(false);
  });

  test("when the port of the environment is no port", async () => {
    expect(await refused([], { TOLLGATE_PORT: "eighty" })).toBe(
      'tollgate: TOLLGATE_PORT must be a whole number from 0 to 65535, is "eighty"',
    );
  });
});

describe.concurrent("a running server", () => {
  /** A slow node, so that a stream is open for as long as the test needs. */
  const slowNode = () => startDemoNode({ models, clock: systemClock, tokensPerSecond: 40 });

  async function openStream(server: Server): Promise<{ text: Promise<string> }> {
    const response = await chat(server.url, keyOf(server), { stream: true });
    expect(response.status).toBe(200);
    return { text: response.text() };
  }

  test("lets open streams end after SIGTERM, and takes no new requests", async () => {
    using folder = temporaryFolder();
    const node = slowNode();
    await using server = await Server.start(["--port", "0", "--data", folder.path, "--node", node.url]);
    const { text } = await openStream(server);
    server.signal("SIGTERM");
    await server.says(/"stopping","openRequests":1/);
    // Not with `rejects`: that runs an event loop inside of this one until it knows, and other tests' work in there.
    expect(await chat(server.url, keyOf(server), {}).catch((error: Error) => error)).toBeInstanceOf(Error);
    expect(await text).toEndWith("data: [DONE]\n\n");
    expect(await server.ended()).toBe(0);
    const { stdout } = await run(["usage", "operator@localhost", "--data", folder.path, "--json"]);
    expect(JSON.parse(stdout)).toHaveLength(1);
    await node.stop();
  });

  test("ends at once at a second signal that is not the first one's echo", async () => {
    using folder = temporaryFolder();
    const node = startDemoNode({ models, clock: systemClock, tokensPerSecond: 2 });
    await using server = await Server.start(["--port", "0", "--data", folder.path, "--node", node.url]);
    const stream = (await chat(server.url, keyOf(server), { stream: true })).body!.getReader();
    await stream.read();
    server.signal("SIGINT");
    server.signal("SIGTERM"); // a terminal and npm both pass Ctrl-C on
    await server.says(/"stopping"/);
    expect((await stream.read()).done).toBe(false);
    await Bun.sleep(600); // longer than signals count as one
    server.signal("SIGINT");
    expect(await server.ended()).toBe(1);
    await node.stop();
  });

  test("applies another node on SIGHUP without dropping a stream, and keeps the old ones when the file is broken", async () => {
    using folder = temporaryFolder();
    const [first, second] = [slowNode(), slowNode()];
    const config = join(folder.path, "gate.toml");
    const write = (name: string, url: string) => writeFileSync(config, `[[nodes]]\nname = "${name}"\nurl = "${url}"\n`);
    write("first", first.url);
    const data = join(folder.path, "data");
    await using server = await Server.start(["--port", "0", "--data", data, "--config", config]);
    const names = async () =>
      JSON.parse((await run(["nodes", "--data", data, "--json"])).stdout).map(({ name }: { name: string }) => name);
    const { text } = await openStream(server);

    writeFileSync(config, "[[nodes]]\nname = 7\n");
    server.signal("SIGHUP");
    await server.says(/configuration not applied.*nodes\[0\]\.name must be a name/);
    expect(await names()).toEqual(["first"]);

    write("second", second.url);
    server.signal("SIGHUP");
    await server.says(/configuration applied/);
    expect(await names()).toContain("second");
    expect(await text).toEndWith("data: [DONE]\n\n");
    expect(await names()).toEqual(["second"]);
    expect((await chat(server.url, keyOf(server), { max_tokens: 1 })).status).toBe(200);
    await Promise.all([first.stop(), second.stop()]);
  });
});

test("says how to make an operator where all accounts are others", async () => {
  using folder = temporaryFolder();
  const data = join(folder.path, "data");
  await run(["accounts", "create", "a@x", "--data", data]);
  const start = () => Server.start(["--port", "0", "--data", data]);
  const hint = "No account is an operator";
  {
    await using server = await start();
    expect(server.stdout).toContain(
      `${hint}: tollgate accounts create EMAIL --operator --password PASSWORD makes one.`,
    );
    expect(server.stdout).not.toContain("A first account was made");
    await run(["accounts", "create", "head@x", "--operator", "--password", "correct horse", "--data", data]);
  }
  await using server = await start();
  expect(server.stdout).not.toContain(hint);
});
