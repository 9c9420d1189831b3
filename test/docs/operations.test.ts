// The guide's chapter about operations: its commands run as they are written, beside a server, and its table of the data
// folder has each file of the program.
import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { databaseName, lockName } from "../../src/core/ledger-files.ts";
import * as dataFolder from "../../src/store/folder/data-folder.ts";
import { run, Server, temporaryFolder, tollgate } from "../commands/program.ts";
import { runToEnd } from "../fixtures/children.ts";

setDefaultTimeout(180_000); // a process for each command

const text = readFileSync(join(import.meta.dir, "../../src/docs/guide/operations.md"), "utf8");

test("its commands work in their order", async () => {
  const [before] = text.split("## Notices");
  const blocks = [...before!.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block!);
  expect(blocks.map((block) => block.split(/[ \n]/, 2).join(" "))).toEqual([
    ...["curl -s", "tollgate usage", "tollgate report", "tollgate accounts", "tollgate statement"],
    ...["tollgate backup", "tollgate restore", "tollgate accounts"],
  ]);
  using folder = temporaryFolder();
  const serve = () => Server.start(["--demo", "--port", "0", "--data", folder.path], { cwd: folder.path });
  const perform = (block: string, url: string) =>
    runToEnd(
      [
        "sh",
        "-euc",
        `tollgate() { ${tollgate.join(" ")} "$@" --data ${folder.path}; }\n${block}`.replaceAll(
          "http://127.0.0.1:8400",
          url,
        ),
      ],
      { cwd: folder.path },
    );
  let server = await serve();
  await run(["accounts", "create", "ada@example.org", "--data", folder.path]);
  for (const block of blocks) {
    const needsStopped = block.includes("tollgate restore");
    if (needsStopped) await server[Symbol.asyncDispose]();
    // this one alone has no end
    const { code, stderr } = await perform(block.replace(/^.*--follow.*\n/m, ""), needsStopped ? "" : server.url);
    expect([block, code, code === 0 ? "" : stderr]).toEqual([block, 0, ""]);
    if (needsStopped) server = await serve();
  }
  await server[Symbol.asyncDispose]();
  expect(JSON.parse(readFileSync(join(folder.path, "ada.json"), "utf8"))).toMatchObject({
    account: { email: "ada@example.org" },
  });
});

test("its table of the data folder has each file", () => {
  const [, table] = /^\| File .*\n.*\n((?:\|.*\n)*)/m.exec(text)!;
  const listed = [...table!.matchAll(/^\| `([\w.-]+)`/gm)].map(([, name]) => name!);
  const names = Object.entries(dataFolder).flatMap(([key, value]) => (key.endsWith("Name") ? [value as string] : []));
  expect(names).toContain(databaseName);
  expect(names).toContain(lockName);
  expect(listed.sort()).toEqual([...names, "search.db"].sort()); // that one is the search tool's
});
