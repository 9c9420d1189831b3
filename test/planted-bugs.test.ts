// Checks that each planted bug still has its place in the sources. Planting them takes minutes and is done by hand.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { bugs } from "./planted-bugs.ts";

const root = join(import.meta.dir, "..");

test.each(bugs.map((bug) => [bug.id, bug] as const))("%s can be planted", (_, { edits, file }) => {
  expect(existsSync(join(root, file))).toBe(true);
  for (const [source, from] of edits) expect(readFileSync(join(root, source), "utf8")).toContain(from);
});
