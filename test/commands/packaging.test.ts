// The files that install Tollgate on a machine: the files they name exist, the commands in them are commands of the
// program, and the programs that read them accept them.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { checkModelIds, readConfig } from "../../src/config/config.ts";
import { targets } from "../../src/build/targets.ts";
import { stopGraceMs } from "../../src/config/options.ts";
import { missing } from "../fixtures/optional.ts";
import { run, temporaryFolder, tollgate } from "./program.ts";

const { port: portDefault } = readConfig(null, "", {}, {});

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "../..");
const ops = join(root, "data/ops");
const read = (file: string): string => readFileSync(join(ops, file), "utf8");

/** The words of `tollgate ...` as a command with flags that it has; run where nothing is, so that it fails at its work. */
async function isCommand(words: readonly string[]): Promise<void> {
  using folder = temporaryFolder();
  const { code, stderr } = await run([...words, "--no-such-flag"], { cwd: folder.path });
  expect([words, code]).toEqual([words, 2]);
  expect(stderr).toContain("unknown flag --no-such-flag"); // and not one of the others
}

describe("the unit of systemd", () => {
  const unit = read("tollgate.service");
  const settings = unit
    .split("\n")
    .flatMap((line) => [/^(\w+)=(.*)$/.exec(line)].filter((found) => found !== null))
    .map(([, name, value]) => [name!, value!] as const);
  const setting = (name: string): string => settings.find(([each]) => each === name)![1];

  test("runs commands of the program", async () => {
    for (const name of ["ExecStart", "ExecReload"]) {
      const [program, ...words] = setting(name).split(" ");
      expect(program).toBe("/usr/local/bin/tollgate");
      await isCommand(words);
    }
  });

  test("waits longer than open streams may take, and keeps the data where it lets the program write", () => {
    expect(Number(setting("TimeoutStopSec"))).toBeGreaterThan(stopGraceMs / 1000 + 10);
    expect(setting("Environment")).toBe(`TOLLGATE_DATA=/var/lib/${setting("StateDirectory")}`);
    expect(Number(setting("LimitNOFILE"))).toBeGreaterThanOrEqual(65_536);
  });

  const withoutSystemd = missing("systemd-analyze", Bun.which("systemd-analyze") !== null, "it comes with systemd");
  test.skipIf(withoutSystemd)("is taken by systemd, and leaves the program little to do harm with", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "tollgate.service");
    writeFileSync(file, unit.replaceAll("/usr/local/bin/tollgate", tollgate[0]!));
    const verified = Bun.spawnSync(["systemd-analyze", "verify", "--man=no", file]);
    expect([verified.exitCode, verified.stderr.toString()]).toEqual([0, ""]);
    // Tenths of systemd's scale, on which 0 is a program that can do nothing and 100 one without any limit.
    const exposed = Bun.spawnSync(["systemd-analyze", "security", "--offline=true", "--threshold=20", file]);
    expect([exposed.exitCode, exposed.stdout.toString().split("\n").at(-2)]).toEqual([
      0,
      expect.stringContaining("OK"),
    ]);
  });
});

describe("the image", () => {
  const lines = read("Dockerfile").replaceAll("\\\n", " ").split("\n");
  const instructions = lines
    .flatMap((line) => [/^([A-Z]+) (.*)$/.exec(line)].filter((found) => found !== null))
    .map(([, name, rest]) => [name!, rest!] as const);
  const all = (name: string): string[] => instructions.filter(([each]) => each === name).map(([, rest]) => rest);

  test("copies what is there and what its ignore file lets through", () => {
    const ignored = read("Dockerfile.dockerignore").split("\n");
    const sources = all("COPY")
      .filter((rest) => !rest.includes("--from"))
      .flatMap((rest) => rest.split(" ").slice(0, -1));
    expect(sources).toContain("src");
    for (const source of sources) {
      expect([source, existsSync(join(root, source))]).toEqual([source, true]);
      expect(ignored).toContain(`!${source}`);
    }
    expect(ignored).not.toContain("!data"); // the ledger and the keys of who started from this folder are in there
  });

  test("builds with what the program imports: nothing of the tests, no development package", async () => {
    const { scripts, devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    for (const [, script] of all("RUN")
      .join(" && ")
      .matchAll(/npm run (\S+)/g))
      expect(scripts).toHaveProperty([script!]);
    const scanners = {
      ts: new Bun.Transpiler({ loader: "ts" }),
      tsx: new Bun.Transpiler({ loader: "tsx" }),
    };
    const files = [...new Bun.Glob("src/**/*.{ts,tsx}").scanSync(root)].map((file) => join(root, file));
    const importsOf = (file: string) => scanners[file.endsWith("x") ? "tsx" : "ts"].scanImports(readFileSync(file));
    const imported = new Set(files.flatMap((file) => importsOf(file).map(({ path }) => path)));
    expect(imported).toContain("elysia");
    expect(Object.keys(devDependencies).filter((name) => imported.has(name))).toEqual([]);
  });

  test("runs the program as somebody else than root, with commands that it has", async () => {
    expect(all("USER")).toEqual(["nonroot"]);
    const [program, ...words] = JSON.parse(all("ENTRYPOINT")[0]!) as string[];
    expect([program, words]).toEqual(["/usr/local/bin/tollgate", []]);
    await isCommand(JSON.parse(all("CMD").at(-1)!) as string[]);
    const [health, ...asked] = JSON.parse(/\[.*\]/.exec(all("HEALTHCHECK")[0]!)![0]) as string[];
    expect(health).toBe(program!);
    await isCommand(asked);
    expect(all("EXPOSE")).toEqual([String(portDefault)]);
    expect(all("FROM").at(-1)).toMatch(/^gcr\.io\/distroless\/.*:nonroot$/);
  });
});

describe("the compose file", () => {
  type Service = { command: string[]; volumes: string[]; ports?: string[]; build?: Record<string, string> };
  const compose = Bun.YAML.parse(read("compose.yaml")) as { services: Record<string, Service>; volumes: object };

  test("runs a command of the program with a configuration that is right and names its node", async () => {
    const { tollgate, node } = compose.services;
    await isCommand(tollgate!.command);
    expect(existsSync(join(ops, tollgate!.build!["context"]!, tollgate!.build!["dockerfile"]!))).toBe(true);
    const [, mounted] = tollgate!.volumes;
    expect(tollgate!.command).toContain(mounted!.split(":")[1]!);
    const config = readConfig("tollgate.toml", read("tollgate.toml"), {}, {});
    checkModelIds(config, embeddedCatalog());
    const { url, slots } = config.nodes[0]!;
    const flag = (name: string): string => node!.command[node!.command.indexOf(name) + 1]!;
    expect([url, String(slots)]).toEqual([`http://node:${flag("--port")}/v1`, flag("--parallel")]);
    expect(tollgate!.ports).toEqual([`127.0.0.1:${portDefault}:${portDefault}`]);
    expect(Object.keys(compose.volumes)).toEqual([tollgate!.volumes[0]!.split(":")[0]!]);
  });

  const client = ["docker", "compose"];
  const withoutClient = missing(
    "docker compose",
    Bun.which("docker") !== null && Bun.spawnSync([...client, "version"]).success,
    "install its plugin; it needs no daemon here",
    false,
  );
  test.skipIf(withoutClient)("is taken by docker compose", () => {
    const { exitCode, stderr } = Bun.spawnSync([...client, "-f", join(ops, "compose.yaml"), "config", "--quiet"]);
    expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  });
});

describe("the workflows", () => {
  const folder = join(root, ".github/workflows");
  const workflows = ["ci.yml", "release.yml"].map((name) => readFileSync(join(folder, name), "utf8"));

  test("run scripts of the package, and a release builds, tries and publishes a binary for each machine", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: object };
    const named = workflows.join("").matchAll(/npm run (?:--silent )?(\w+)/g);
    for (const [, script] of named) expect(scripts).toHaveProperty([script!]);
    const [, built] = /for target in (.*); do/.exec(workflows[1]!)!;
    expect(built!.split(" ").map((target) => `bun-${target}`)).toEqual([...targets]);
    const tried = [...workflows[1]!.matchAll(/binary: tollgate-([\w-]+)/g)].map(([, target]) => `bun-${target}`);
    expect(tried).toEqual([...targets].filter((target) => !target.endsWith("-musl")));
  });
});
