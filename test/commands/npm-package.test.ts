// The npm package: packed from these sources and installed in a folder of somebody else's, where its packages lie beside
// it, `npx tollgate` serves, streams, shows the console and does every command. It needs npm's registry.
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runToEnd } from "../fixtures/children.ts";
import { longForm, missing } from "../fixtures/optional.ts";
import { tryEveryCommand } from "../ops/every-command.ts";
import { Server, temporaryFolder } from "./program.ts";

setDefaultTimeout(600_000); // packages are fetched

const root = join(import.meta.dir, "../..");
const skipped = missing("npm's registry", longForm && Bun.which("npm") !== null, "TOLLGATE_TESTS=all asks for it");

test.skipIf(skipped)("the package works where it is installed, with all that it needs and nothing else", async () => {
  using folder = temporaryFolder();
  const npm = async (cwd: string, ...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runToEnd(["npm", ...words], { cwd, timeLimitMs: 400_000 });
    if (code !== 0) throw new Error(`npm ${words.join(" ")}: ${stderr}${stdout}`);
    return stdout;
  };
  await npm(root, "pack", "--pack-destination", folder.path);
  const packed = readdirSync(folder.path).filter((name) => name.endsWith(".tgz"));
  expect(packed).toHaveLength(1);
  const foreign = join(folder.path, "foreign");
  mkdirSync(foreign);
  writeFileSync(join(foreign, "package.json"), "{}");
  await npm(foreign, "install", "--no-audit", "--no-fund", join(folder.path, packed[0]!));

  const installed = join(foreign, "node_modules/tollgate");
  const topLevel = readdirSync(installed).sort();
  expect(topLevel).toEqual(["LICENSE", "README.md", "data", "package.json", "src"]);
  const program = [Bun.which("node")!, join(foreign, "node_modules/.bin/tollgate")];
  {
    await using server = await Server.start(["--demo", "--port", "0", "--data", "other"], { program, cwd: foreign });
    const page = await (await fetch(server.url)).text();
    const script = /src="(\/assets\/main-[^"]+\.js)"/.exec(page)?.[1];
    expect((await fetch(server.url + script)).headers.get("content-type")).toStartWith("text/javascript");
  }
  await tryEveryCommand(program, foreign);
});
