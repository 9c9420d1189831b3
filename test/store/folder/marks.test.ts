// The marks of a data folder whose books are elsewhere: damaged ones keep everybody from beginning books there, too, and say
// what to do in a sentence.
import { expect, test } from "bun:test";
import { chownSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lockDataFolder, takeDataFolder, takeFolderBeside } from "../../../src/store/folder/data-folder.ts";
import { DataFolderUnusable } from "../../../src/store/folder/folder-faults.ts";
import { movedMark, setMovedMark } from "../../../src/store/folder/moved-folder.ts";
import { servedMark, setServedMark } from "../../../src/store/folder/served-folder.ts";
import { run, temporaryFolder } from "../../commands/program.ts";

const damaged = ["", "null", "[]", '"x"', "{}", '{"books":"5d', "\0".repeat(3), '{"books":1,"from":{},"at":"x"}'];

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(DataFolderUnusable);
    return (thrown as Error).message;
  }
  throw new Error("it was not refused");
}

test.each(damaged)(
  "a folder with the damaged mark %j of a gateway that served begins no books, and serves again",
  (text) => {
    using folder = temporaryFolder();
    writeFileSync(join(folder.path, "served-from.json"), text);
    expect(refusal(() => takeDataFolder(folder.path))).toMatch(
      /^the gateway of \S+ served from a database that the damaged/,
    );
    takeFolderBeside(folder.path, "d").release();
    const mark = { books: "b", from: "the database d", at: 1 };
    expect(setServedMark(folder.path, mark)?.books).toBeNull();
    expect(servedMark(folder.path)).toEqual(mark);
  },
);

test.each([...damaged, '{"id":"i","to":"t","state":"moved","at":"x"}'])(
  "a folder with the damaged mark %j of a move is neither served nor moved again",
  (text) => {
    using folder = temporaryFolder();
    takeDataFolder(folder.path).release();
    writeFileSync(join(folder.path, "moved.json"), text);
    for (const take of [() => takeDataFolder(folder.path), () => takeFolderBeside(folder.path, "d")]) {
      expect(refusal(take)).toContain("moved.json is damaged");
      lockDataFolder(folder.path).release(); // nobody holds it
    }
    const mark = { id: "i", to: "t", state: "moved", at: 1 } as const;
    setMovedMark(folder.path, mark);
    expect(movedMark(folder.path)).toEqual(mark);
  },
);

test.each(["served-from.json", "moved.json"])("a mark %s that cannot be read is told in a sentence", (name) => {
  using folder = temporaryFolder();
  mkdirSync(join(folder.path, name));
  expect(refusal(() => takeDataFolder(folder.path))).toMatch(/^cannot read \S+json: EISDIR/);
  rmSync(join(folder.path, name), { recursive: true });
  takeDataFolder(folder.path).release();
});

test.skipIf(process.geteuid?.() !== 0)("marks that root sets can be read by whose the folder is", () => {
  using folder = temporaryFolder();
  const nobody = 65_534;
  chownSync(folder.path, nobody, nobody);
  setMovedMark(folder.path, { id: "i", to: "t", state: "moved", at: 1 });
  setServedMark(folder.path, { books: "b", from: "d", at: 1 });
  const owners = ["moved.json", "served-from.json"].map((name) => statSync(join(folder.path, name)).uid);
  expect(owners).toEqual([nobody, nobody]);
});

test("commands that read the ledger by themselves say where it is, too", async () => {
  using folder = temporaryFolder();
  setServedMark(folder.path, { books: "b", from: "the database d", at: 1 });
  const { code, stderr } = await run(["accounts", "export", "a@example.com", "--data", folder.path]);
  expect(code).toBe(1);
  expect(stderr).toContain("served from the database d, which has the accounts and keys");
});

test("nothing is restored into a folder whose books are in a database, and doctor says where they are", async () => {
  using folder = temporaryFolder();
  const own = join(folder.path, "own");
  const backup = join(folder.path, "backup.db");
  await run(["accounts", "create", "a@example.com", "--data", own]);
  await run(["backup", backup, "--data", own]);
  setMovedMark(own, { id: "i", to: "there", state: "moved", at: 1 });
  const served = join(folder.path, "served");
  mkdirSync(served);
  setServedMark(served, { books: "b", from: "the database d", at: 1 });
  for (const [data, why] of [
    [own, "were moved to there"],
    [served, "served from the database d"],
  ] as const) {
    const before = readdirSync(data).toSorted();
    const { code, stderr } = await run(["restore", backup, "--data", data]);
    expect([code, stderr]).toEqual([1, expect.stringContaining(why)]);
    expect(readdirSync(data).toSorted()).toEqual(expect.arrayContaining(before));
    expect(readdirSync(data).filter((name) => /replaced|restoring/.test(name))).toEqual([]);
  }
  const { code, stdout } = await run(["doctor", "--data", own]);
  expect([code, stdout]).toEqual([
    1,
    expect.stringMatching(/^PROBLEM +database +the books of \S+ were moved to there/m),
  ]);
});
