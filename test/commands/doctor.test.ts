// `tollgate doctor`: what it finds on a machine that is well, and each thing that is not.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Database } from "bun:sqlite";
import { systemClock } from "../../src/core/clock.ts";
import { configFindings } from "../../src/commands/doctor-config.ts";
import { saltFindings, sharedFindings } from "../../src/commands/doctor-prefix-cache.ts";
import { clockFinding, fileLimitFinding } from "../../src/commands/doctor-machine.ts";
import type { Finding } from "../../src/commands/finding.ts";
import { type Environment, readConfig } from "../../src/config/config.ts";
import { startDemoNode } from "../../src/nodes/demo/demo.ts";
import { run, Server, temporaryFolder } from "./program.ts";

setDefaultTimeout(120_000); // processes are started and disks flushed, and the machine may be busy

type Report = { ok: boolean; findings: Finding[] };

async function doctor(...words: string[]): Promise<Report & { code: number }> {
  const { code, stdout } = await run(["doctor", "--json", ...words]);
  return { code, ...(JSON.parse(stdout) as Report) };
}

const levels = ({ findings }: Report) => Object.fromEntries(findings.map(({ what, level }) => [what, level]));
const detailOf = ({ findings }: Report, what: string) => findings.find((finding) => finding.what === what)?.detail;

test("beside a running server with a node that is well, nothing is wrong", async () => {
  using folder = temporaryFolder();
  const node = startDemoNode({ models: [{ id: "core-3", contextTokens: 1 }], clock: systemClock });
  const data = join(folder.path, "data");
  await using server = await Server.start(["--port", "0", "--data", data, "--node", node.url]);
  expect(server.url).not.toBe("");
  const report = await doctor("--data", data, "--node", node.url);
  await node.stop();
  expect(report.code).toBe(0);
  // how quick this machine's disk is, and how full, is not for a test to say
  expect(levels(report)).toMatchObject({
    configuration: "ok",
    "node node-1": "ok",
    server: "ok",
    "data folder": "ok",
    database: "ok",
    clock: "ok",
  });
  expect(detailOf(report, "server")).toContain("runs");
  expect(detailOf(report, "database")).toContain("journal mode wal");
  expect(detailOf(report, "disk flushes")).toMatch(/half within [\d.]+ ms, 99 in 100 within [\d.]+ ms/);
});

test("a model of the configuration that no node has is named, and what its row does not promise is no fault", async () => {
  using folder = temporaryFolder();
  const data = [{ id: "llama", object: "model", owned_by: "vllm", max_model_len: 8_192 }];
  using node = Bun.serve({ port: 0, fetch: () => Response.json({ object: "list", data }) });
  const config = join(folder.path, "gate.toml");
  const box = `[[nodes]]\nname = "box"\nurl = "http://127.0.0.1:${node.port}/v1"\n`;
  writeFileSync(config, `${box}[[models]]\nid = "llama"\n[[models]]\nid = "house"\nnode_model = "qwen3:8b"\n`);
  const report = await doctor("--config", config, "--data", join(folder.path, "none"));
  expect(report.findings).toContainEqual({ what: "model house", level: "problem", detail: "no node lists qwen3:8b" });
  expect(JSON.stringify(report.findings)).not.toContain("promise");
  expect(levels(report)).not.toHaveProperty("model llama");
  const suggestion = await run(["models", "suggest", "--config", config, "--data", join(folder.path, "none")]);
  expect(suggestion).toMatchObject({
    code: 1,
    stderr: "tollgate: the configuration has everything that the nodes list",
  });
});

test("a proxy that a running server has seen and was not told of is a warning", async () => {
  using folder = temporaryFolder();
  const node = startDemoNode({ models: [{ id: "core-3", contextTokens: 1 }], clock: systemClock });
  const data = join(folder.path, "data");
  await using server = await Server.start(["--port", "0", "--data", data, "--node", node.url]);
  await fetch(`${server.url}/console/api/session`, { headers: { "cf-connecting-ip": "198.51.100.1" } });
  const { findings } = await doctor("--data", data, "--node", node.url);
  await node.stop();
  expect(findings.filter(({ what }) => what === "server")).toEqual([
    expect.objectContaining({ level: "ok" }),
    { what: "server", level: "warning", detail: expect.stringContaining("address_header of [console] is missing") },
  ]);
  await server.says(/browsers come through a proxy/);
});

test("a ledger that was just restored is well", async () => {
  using folder = temporaryFolder();
  const data = join(folder.path, "data");
  const copy = join(folder.path, "copy.db");
  await run(["accounts", "create", "a@x", "--data", data]);
  await run(["backup", copy, "--data", data]);
  expect((await run(["restore", copy, "--data", data])).code).toBe(0);
  const report = await doctor("--data", data);
  expect(levels(report)).toMatchObject({ database: "ok" });
  expect(detailOf(report, "database")).toContain("becomes wal at the next start");
});

test("a folder that serve is to make is looked at where it will be", async () => {
  using folder = temporaryFolder();
  const future = await doctor("--data", join(folder.path, "later", "data"));
  expect(detailOf(future, "data folder")).toEndWith("/later/data does not exist yet; serve creates it");
  expect(detailOf(future, "free disk")).toMatch(/^[\d.]+ [GM]iB free of [\d.]+ [GM]iB/);
  const lost = await doctor("--data", "/dev/shm/tollgate-later/data");
  expect(detailOf(lost, "data folder")).toBe(
    "/dev/shm/tollgate-later/data is in memory: a restart of the machine loses every balance",
  );
});

test("a node that is away is a problem, and a person reads so in one line", async () => {
  using folder = temporaryFolder();
  const words = ["--data", folder.path, "--node", "http://127.0.0.1:9"];
  const { code, stdout } = await run(["doctor", ...words]);
  expect(code).toBe(1);
  expect(stdout).toMatch(
    /^PROBLEM +node node-1 +http:\/\/127\.0\.0\.1:9\/v1: it cannot be reached: nothing listens at its address$/m,
  );
});

test("a configuration that cannot be read is a problem, and the rest is looked at all the same", async () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "gate.toml");
  writeFileSync(file, "[serve]\nport = 1\n");
  const report = await doctor("--data", folder.path, "--config", file);
  expect(report.code).toBe(1);
  expect(levels(report)).toMatchObject({ configuration: "problem", "disk flushes": expect.any(String), clock: "ok" });
});

test("a folder in which others may change something, or read a database, is told of; one whose names they see is not", async () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "tollgate.db");
  writeFileSync(file, "");
  const told = async (ofFolder: number, ofFile: number): Promise<string> => {
    chmodSync(folder.path, ofFolder);
    chmodSync(file, ofFile);
    return detailOf(await doctor("--data", folder.path), "data folder")!;
  };
  expect(await told(0o755, 0o600)).toBe(folder.path);
  expect(await told(0o700, 0o640)).toBe(`others may look into ${file}: chmod 600`);
  expect(await told(0o775, 0o600)).toBe(`others may change what is in ${folder.path}: chmod 700`);
});

test("a database of a newer version, and one that is none, are problems", async () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "tollgate.db");
  const database = new Database(file, { create: true });
  database.run("PRAGMA user_version = 0");
  database.run("CREATE TABLE journal (sequence INTEGER PRIMARY KEY, at INTEGER)");
  database.run("PRAGMA user_version = 999");
  database.close();
  const newer = await doctor("--data", folder.path);
  expect(levels(newer)).toMatchObject({ database: "problem" });
  expect(detailOf(newer, "database")).toContain("made by a newer tollgate");
  writeFileSync(file, "this is no database, but a text that is long enough to look like the head of one".repeat(20));
  const broken = await doctor("--data", folder.path);
  expect(broken.code).toBe(1);
  expect(levels(broken)).toMatchObject({ database: "problem" });
});

describe("warnings of a configuration", () => {
  const warned = (toml: string, mode = 0o600, environment: Environment = {}) =>
    configFindings(readConfig("gate.toml", `${node}${toml}`, {}, environment), `${node}${toml}`, mode)
      .filter(({ level }) => level === "warning")
      .map(({ detail }) => detail);
  const node = '[[nodes]]\nname = "a"\nurl = "http://127.0.0.1:1"\n';

  test("none where all is said", () => {
    expect(warned("")).toEqual([]);
    expect(
      warned(
        '[server]\nhost = "0.0.0.0"\nbase_url = "https://a.b"\n[metrics]\ntoken = "t"\n[console]\naddress_header = "x-real-ip"\n',
      ),
    ).toEqual([]);
  });

  test.each([
    ['[server]\nhost = "0.0.0.0"\n[metrics]\ntoken = "t"\n', 0o600, "base_url is missing"],
    [
      '[server]\nhost = "0.0.0.0"\nbase_url = "https://a.b"\n[console]\naddress_header = "x-real-ip"\n',
      0o600,
      "/metrics answers this machine",
    ],
    ['[server]\nbase_url = "http://a.b"\n', 0o600, "is not https"],
    ['[server]\nbase_url = "https://a.b"\n', 0o600, "address_header"],
    ['[metrics]\ntoken = "t"\n', 0o644, "others may read it"],
  ])("%j with mode %o: %s", (toml, mode, detail) => {
    expect(warned(toml, mode)).toEqual([expect.stringContaining(detail)]);
  });

  test("no nodes", () => {
    expect(configFindings(readConfig(null, "", {}, {}), "", 0)).toEqual([
      expect.objectContaining({ level: "warning", detail: expect.stringContaining("no nodes") }),
    ]);
  });
});

describe("prefix caches", () => {
  const box = { name: "box", engine: "vllm", sharing: undefined } as const;
  const recent = { model: "m", accounts: 20, input: 50_000, cached: 12_000 };
  const said = (...words: Parameters<typeof saltFindings>) => saltFindings(...words).map(({ detail }) => detail);

  test("that accounts share cost nothing, and those of engines that know no salt neither", () => {
    expect(saltFindings([{ ...box, sharing: true }], [recent])).toEqual([]);
    expect(saltFindings([{ ...box, engine: "ollama" }], [recent])).toEqual([]);
  });
  test("that accounts do not share cost what engines reported, or what was measured", () => {
    expect(said([box], [recent])).toEqual([
      expect.stringMatching(
        /^each account has its own on box: .*; m, with 20 accounts, had 24 % of its latest 50,000 /,
      ),
    ]);
    for (const recents of [[], [{ ...recent, accounts: 1 }]])
      expect(said([box], recents)).toEqual([expect.stringContaining("24 % of the input was cached instead of 94 %")]);
    expect(said([box], [{ ...recent, cached: 0 }])).toEqual([
      expect.stringContaining("--enable-prompt-tokens-details"),
    ]);
  });
  test("are told by how they are shared", () => {
    const nodes = [box, { ...box, name: "other", sharing: "plan" }, { ...box, name: "third", sharing: false }] as const;
    expect(said(nodes, []).map((detail) => detail.split(":")[0])).toEqual([
      "each account has its own on box, third",
      "each plan has its own on other",
    ]);
  });
  test("that cannot be kept apart as configured are a warning", () => {
    expect(sharedFindings({ ...box, engine: "ollama", sharing: "plan" })).toEqual([
      expect.objectContaining({ level: "warning", detail: expect.stringContaining('share_prefix_cache = "plan"') }),
    ]);
    expect(sharedFindings({ ...box, engine: "ollama" })).toEqual([]);
  });
});

test("few open files are a warning", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "limits");
  writeFileSync(file, "Max open files            1024                 4096                 files\n");
  expect(fileLimitFinding(file)).toMatchObject({
    level: "warning",
    detail: expect.stringContaining("about 462 streams"),
  });
  writeFileSync(file, "Max open files            65536                65536                files\n");
  expect(fileLimitFinding(file)).toMatchObject({ level: "ok" });
});

test("a clock behind the journal's newest line is a problem", () => {
  using folder = temporaryFolder();
  mkdirSync(join(folder.path, "data"));
  const now = systemClock.wall();
  const look = (newestLineAt: number | null) => clockFinding(join(folder.path, "data"), newestLineAt, now).level;
  expect([look(null), look(now - 1), look(now + 120_000)]).toEqual(["ok", "ok", "problem"]);
});

test("accounts on a plan that is not configured are told of, beside a running server and without one", async () => {
  using folder = temporaryFolder();
  const data = join(folder.path, "data");
  const config = join(folder.path, "gate.toml");
  const offer = (id: string) => writeFileSync(config, `[[plans]]\nid = "${id}"\n`);
  offer("gold");
  expect((await run(["accounts", "create", "a@x.org", "--data", data, "--config", config])).code).toBe(0);
  const words = ["--data", data, "--config", config];
  expect(JSON.stringify(await doctor(...words))).not.toContain("not configured");
  offer("base");
  const told = '1 account is on the plan "gold", which is not configured: what "base" has holds';
  expect(detailOf(await doctor(...words), "plans")).toContain(told);
  await using server = await Server.start([...words, "--port", "0", "--demo"]);
  expect(server.stdout).toContain(told);
  const ofServer = (await doctor(...words)).findings.filter(
    ({ what, level }) => what === "server" && level === "warning",
  );
  expect(ofServer.map(({ detail }) => detail)).toEqual([expect.stringContaining(told)]);
});
