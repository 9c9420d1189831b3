// The npm package: packed from these sources and installed by npm or Bun in an empty folder, where its packages lie
// beside it. `npx tollgate` and `bunx tollgate` work from there, and nothing else travels along. It needs npm's registry.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { chat, run, Server, temporaryFolder } from "../commands/program.ts";
import { runToEnd } from "../fixtures/children.ts";
import { longForm, missing } from "../fixtures/optional.ts";
import { tryEveryCommand } from "./every-command.ts";

setDefaultTimeout(600_000); // packages are fetched

const root = join(import.meta.dir, "../..");
const wanted = longForm || process.env["TOLLGATE_PACKAGING"] === "1";
const skipped = missing("npm's registry", wanted && Bun.which("npm") !== null, "TOLLGATE_TESTS=all asks for it");

describe.skipIf(skipped)("the npm package", () => {
  const folder = temporaryFolder();
  afterAll(() => folder[Symbol.dispose]());
  let tarball = "";
  let files: string[] = [];

  beforeAll(async () => {
    const report = await perform(["npm", "pack", "--json", "--pack-destination", folder.path], root);
    const [packed] = JSON.parse(report) as [{ filename: string; files: { path: string }[] }];
    tarball = join(folder.path, packed.filename);
    files = packed.files.map(({ path }) => path);
  });

  test("holds the program, its guide and the files that operators copy, and nothing else", () => {
    const sources = files.filter((path) => path.startsWith("src/"));
    expect(files.filter((path) => !sources.includes(path)).sort()).toEqual([
      "LICENSE",
      "README.md",
      "data/catalog.json",
      "data/grafana-dashboard.json",
      ...["de", "en", "zh"].flatMap((language) =>
        ["alerts", "mail", "operators", "people", ...(language === "en" ? [] : ["phrases"])].map(
          (part) => `data/languages/${language}/${part}.json`,
        ),
      ),
      "data/ops/litestream.yml",
      "data/ops/tollgate.service",
      "package.json",
    ]);
    const program = /^src\/(?!build).*\.(?:tsx?|mjs)$/;
    const shown = /^src\/(?:console\/web|docs)\/.*\.(?:css|js|json|html|svg|woff2|txt|md|toml)$/;
    expect(sources.filter((path) => !program.test(path) && !shown.test(path))).toEqual([]);
  });

  const bunFolder = join(folder.path, "bun-on-path");
  beforeAll(() => {
    mkdirSync(bunFolder);
    for (const name of ["bun", "bunx"]) symlinkSync(process.execPath, join(bunFolder, name));
  });
  describe.each([
    {
      installer: "npm",
      install: ["npm", "install", "--no-audit", "--no-fund"],
      starter: ["npx", "--no-install"],
      path: [],
    },
    { installer: "bun", install: ["bun", "add"], starter: ["bunx", "--no-install"], path: [bunFolder] },
  ])("installed by $installer", ({ installer, install, starter, path }) => {
    const foreign = join(folder.path, installer);
    const variables = { PATH: [...path, process.env["PATH"]].join(delimiter) };
    const options = { program: [...starter, "tollgate"], cwd: foreign, variables };

    beforeAll(async () => {
      mkdirSync(foreign);
      writeFileSync(join(foreign, "package.json"), "{}");
      await perform([...install, tarball], foreign, variables);
    });

    test("starts, serves a stream and the console, and finds its data at the second start", async () => {
      expect(await run(["help"], options)).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("tollgate serve"),
      });
      let key: string | undefined;
      for (const start of ["first", "second"]) {
        await using server = await Server.start(["--demo", "--port", "0"], options);
        key ??= /API key +(sk-tg-\S+)/.exec(server.stdout)![1]!;
        expect(server.stdout.includes("API key")).toBe(start === "first");
        expect(server.stdout).toContain("data in ./data/var");
        const reply = await chat(server.url, key, { stream: true });
        expect([reply.status, await reply.text()]).toEqual([200, expect.stringMatching(/data: \[DONE\]\n\n$/)]);
        const page = await (await fetch(server.url)).text();
        const script = /src="(\/assets\/main-[^"]+\.js)"/.exec(page)?.[1];
        expect((await fetch(server.url + script)).headers.get("content-type")).toStartWith("text/javascript");
        expect((await fetch(`${server.url}/docs/guide`)).status).toBe(200);
        server.signal("SIGTERM"); // goes through npx or bunx and the launcher
        await server.ended();
      }
      expect(readdirSync(join(foreign, "data"))).toEqual(["var"]);
    });

    test("does every command", async () => {
      const empty = join(folder.path, `${installer}-data`);
      mkdirSync(empty);
      await tryEveryCommand([Bun.which("node")!, join(foreign, "node_modules/.bin/tollgate")], empty);
    });
  });
});

/** What the command printed. Throws with it where the command failed. */
async function perform(command: readonly string[], cwd: string, variables: Record<string, string> = {}) {
  const env = { ...process.env, ...variables };
  const { code, stdout, stderr } = await runToEnd(command, { cwd, env, timeLimitMs: 400_000 });
  if (code !== 0) throw new Error(`${command.join(" ")}: ${stderr}${stdout}`);
  return stdout;
}
