// The launcher, run by Node: it finds Bun, and signals and exit codes go through it.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runToEnd } from "../fixtures/children.ts";
import { temporaryFolder } from "./program.ts";

setDefaultTimeout(120_000); // processes are started, and the machine may be busy

const node = Bun.which("node");
const launcher = join(import.meta.dir, "../../src/launch.mjs");

/** A copy of the launcher in a folder of its own, so that only what the test puts there is found. */
function launcherIn(folder: string): string {
  mkdirSync(join(folder, "src"));
  cpSync(launcher, join(folder, "src/launch.mjs"));
  return join(folder, "src/launch.mjs");
}

async function launch(file: string, words: string[], variables: Record<string, string>) {
  const { code, stdout, stderr } = await runToEnd([node!, file, ...words], { env: variables });
  return { code, stdout: stdout.trim(), stderr: stderr.trim() };
}

describe.skipIf(node === null)("the launcher", () => {
  // Where Bun is put, relative to the launcher's folder.
  test.each([
    "node_modules/@oven/bun-linux-x64/bin/bun",
    "node_modules/bun/bin/bun.exe",
    "node_modules/bun/bin/bun",
    "somewhere/on/path/bun",
  ])("finds Bun at %s", async (place) => {
    using folder = temporaryFolder();
    const file = launcherIn(folder.path);
    const target = join(folder.path, place);
    mkdirSync(join(target, ".."), { recursive: true });
    symlinkSync(process.execPath, target);
    const finished = await launch(file, ["--version"], { PATH: join(folder.path, "somewhere/on/path") });
    expect(finished).toEqual({ code: 0, stdout: Bun.version, stderr: "" });
  });

  test("takes the Bun of $BUN, and passes by one that does not run", async () => {
    using folder = temporaryFolder();
    const file = launcherIn(folder.path);
    mkdirSync(join(folder.path, "node_modules/bun/bin"), { recursive: true });
    writeFileSync(join(folder.path, "node_modules/bun/bin/bun.exe"), "not a program", { mode: 0o755 });
    expect(await launch(file, ["--version"], { BUN: process.execPath, PATH: "" })).toMatchObject({ code: 0 });
    symlinkSync(process.execPath, join(folder.path, "bun"));
    expect(await launch(file, ["--version"], { PATH: folder.path })).toMatchObject({ code: 0 });
  });

  test("tells the allocator what the unit and the image tell it, and the engine only where its version is known", async () => {
    using folder = temporaryFolder();
    const file = launcherIn(folder.path);
    symlinkSync(process.execPath, join(folder.path, "bun"));
    const show =
      "for (const [name, value] of Object.entries(process.env)) if (/^(?:MIMALLOC|BUN_JSC)_/.test(name)) console.log(`${name}=${value}`)";
    const told = async (bun: string, text = JSON.stringify({ dependencies: { bun } })) => {
      writeFileSync(join(folder.path, "package.json"), text);
      return (await launch(file, ["-e", show], { PATH: folder.path })).stdout.split("\n");
    };
    const [known, other] = [await told(Bun.version), await told("0.0.1")];
    for (const name of ["tollgate.service", "Dockerfile"]) {
      const said = await Bun.file(join(import.meta.dir, "../../data/ops", name)).text();
      expect(/^(?:ENV |Environment=)(MIMALLOC_.*)$/m.exec(said)?.[1]?.split(" ")).toEqual(known);
    }
    expect(other).toEqual(known.filter((each) => each.startsWith("MIMALLOC_")));
    for (const odd of ["{}", "null", "{", ""]) expect(await told("", odd)).toEqual(other);
    expect(known).toHaveLength(3);
  });

  test("says so where there is no Bun", async () => {
    using folder = temporaryFolder();
    expect(await launch(launcherIn(folder.path), ["--version"], { PATH: "/nowhere" })).toEqual({
      code: 1,
      stdout: "",
      stderr: 'Bun was not found. Run "npm install" first, or name a Bun executable in the variable BUN.',
    });
  });

  test("passes the exit code on", async () => {
    const variables = { BUN: process.execPath, PATH: "" };
    expect((await launch(launcher, ["-e", "process.exit(7)"], variables)).code).toBe(7);
    expect((await launch(launcher, ["-e", "process.kill(process.pid, 'SIGKILL')"], variables)).code).toBe(137);
  });

  test.each(["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"] as const)("passes %s on", async (signal) => {
    const script = `process.on("${signal}", () => process.exit(9)); setTimeout(() => process.exit(1), 5000); console.log("ready")`;
    const child = Bun.spawn([node!, launcher, "-e", script], {
      env: { BUN: process.execPath },
      stdin: "ignore",
      stdout: "pipe",
    });
    for await (const _ready of child.stdout) break;
    child.kill(signal);
    expect(await child.exited).toBe(9);
  });
});
