// Which nodes are drained is read from a file that anything may have written.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NodeCare } from "../../../src/server/fleet/node-care.ts";
import { drainedName } from "../../../src/store/folder/data-folder.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const now = 1_000_000;

/** What the pool is told at the start. */
function drainedBy(file: string): ReadonlyMap<string, number> {
  const dataFolder = mkdtempSync(join(tmpdir(), "tollgate-drained-"));
  folders.push(dataFolder);
  writeFileSync(join(dataFolder, drainedName), file);
  let told: ReadonlyMap<string, number> = new Map();
  new NodeCare({
    dataFolder,
    pool: {
      drain: (nodes) => void (told = nodes),
      states: () => [],
      test: () => Promise.reject(new Error("nothing is tried here")),
    },
    catalog: { models: new Map() },
    clock: { wall: () => now, monotonic: () => 0 },
    log: () => {},
  });
  return told;
}

test("a time that no date can hold, or that is to come, leaves its node drained since now", () => {
  const since = drainedBy('{"a":1e999,"b":1e20,"c":-1e20,"d":17,"e":"17"}');
  expect(Object.fromEntries(since)).toEqual({ a: now, b: now, c: 0, d: 17 });
  for (const at of since.values()) expect(() => new Date(at).toISOString()).not.toThrow();
});

test.each([[""], ["null"], ["[["]])("%j drains none", (file) => {
  expect(drainedBy(file).size).toBe(0);
});
