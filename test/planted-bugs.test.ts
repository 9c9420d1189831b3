// Checks that each planted bug still has its place in the sources. Planting them takes minutes and is done by hand.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { bugs, rowOf } from "./planted-bugs.ts";

const root = join(import.meta.dir, "..");

test.each(bugs.map((bug) => [bug.id, bug] as const))("%s can be planted", (_, { edits, file }) => {
  expect(existsSync(join(root, file))).toBe(true);
  for (const [source, from] of edits) expect(readFileSync(join(root, source), "utf8")).toContain(from);
});

test("test/README.md counts them and has a row for each", () => {
  const readme = readFileSync(join(root, "test/README.md"), "utf8");
  expect(readme).toContain(`whether ${bugs.length} bugs, planted one at a time, are caught`);
  const [, table] = /^\| Planted bug +\| Result [^\n]*\n[^\n]*\n((?:\|.*\n)*)/m.exec(readme)!;
  const rows = table!.trim().split("\n");
  expect(rows.map((row) => row.replaceAll(/ +\|/g, " |"))).toEqual(bugs.map((bug) => rowOf(bug, "caught")));
});
