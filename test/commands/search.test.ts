// `tollgate search` as an operator uses it: a real folder, a real PDF, and a data folder that a server has open.
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pdf } from "../fixtures/pdf.ts";
import { run, Server, temporaryFolder } from "./program.ts";

setDefaultTimeout(120_000);

test("shows what a model would be given, also of a PDF and beside a running server", async () => {
  using folder = temporaryFolder();
  const options = { cwd: folder.path };
  mkdirSync(join(folder.path, "docs"));
  writeFileSync(join(folder.path, "docs/tower.md"), "# Tokyo Tower\n\nIt is 333 metres high.");
  writeFileSync(join(folder.path, "docs/paper.pdf"), pdf("Zeppelins were 245 metres long."));
  writeFileSync(join(folder.path, "docs/broken.pdf"), "no pdf");
  writeFileSync(
    join(folder.path, "gate.toml"),
    '[search]\nprovider = "local"\nfolder = "docs"\nbase_url = "https://docs.example"\n',
  );
  const here = ["--config", "gate.toml", "--data", "data"];
  await using server = await Server.start([...here, "--port", "0"], options);
  await server.says(/the search index was brought up to date/);

  const index = await run(["search", "index", ...here, "--json"], options);
  expect([index.code, JSON.parse(index.stdout)]).toMatchObject([
    0,
    { files: 3, removed: 0, skipped: 1, skippedFiles: [{ path: "broken.pdf", reason: "no text can be read from it" }] },
  ]);
  const zeppelin = await run(["search", "How long were zeppelins?", ...here, "--json", "--results", "1"], options);
  expect(JSON.parse(zeppelin.stdout)).toEqual([
    { title: "paper", url: "https://docs.example/paper.pdf", text: "Zeppelins were 245 metres long." },
  ]);
  const tower = await run(["search", "tower", ...here], options);
  expect(tower.stdout).toBe(
    "Tokyo Tower\nhttps://docs.example/tower.md\n    # Tokyo Tower\n    \n    It is 333 metres high.",
  );
  expect((await run(["search", "nobody wrote this: xyzzy", ...here], options)).stdout).not.toContain("docs.example");
});

test.each([
  [["search"], 2, "search: QUERY is missing"],
  [["search", "x", "--results", "0"], 2, "--results must be a whole number"],
  [["search", "x"], 1, "no configuration is named"],
  [["search", "index", "--config", "web.toml"], 1, 'only provider "local" has an index'],
  [["search", "x", "--config", "web.toml", "--data", "."], 1, "searxng: it cannot be reached"],
  [["search", "x", "--config", "none.toml"], 1, "there is no [search] with a provider"],
  [["search", "x", "--config", "local.toml", "--data", "."], 1, "the search folder cannot be read"],
])("says in a line what is wrong: %j", async (words, code, message) => {
  using folder = temporaryFolder();
  writeFileSync(join(folder.path, "web.toml"), '[search]\nprovider = "searxng"\nurl = "http://127.0.0.1:9"\n');
  writeFileSync(join(folder.path, "local.toml"), '[search]\nprovider = "local"\nfolder = "nowhere"\n');
  writeFileSync(join(folder.path, "none.toml"), "");
  const done = await run(words, { cwd: folder.path });
  expect([done.code, done.stdout]).toEqual([code, ""]);
  expect(done.stderr).toContain(message);
});
