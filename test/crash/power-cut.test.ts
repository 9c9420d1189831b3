// A power cut: everything that was not flushed is gone. What a client saw to its end must be there all the same, and a
// server that commits without flushing must be caught losing something, or this test would show nothing.
import { afterEach, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bodyOf, endpoints, viewOf } from "../fixtures/client-view.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { missing } from "../fixtures/optional.ts";
import { nodeTable } from "../fixtures/stack.ts";
import { canTrace, traced } from "../fixtures/strace.ts";
import { afterPowerCut, recordTo } from "./synced-files.ts";

const root = join(import.meta.dir, "../..");
const names = ["tollgate.db", "tollgate.db-wal"];
const skipped = missing("strace", canTrace(), "apt-get install strace, and permission to trace", false);

const folders: string[] = [];
const folderOf = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-power-"));
  folders.push(folder);
  return folder;
};
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Charges that clients saw, and those of them that were gone after the power came back. */
async function cutPower(
  program: readonly string[],
  requests: number,
): Promise<{ seen: number; lost: number; dropped: number }> {
  await using node = await ScriptedNode.start();
  await using gateway = await GatewayProcess.start({ config: nodeTable(node, 100), program });
  const { email, api_key } = await gateway.account();
  await gateway.kill("SIGTERM"); // an orderly stop leaves everything flushed
  const before = folderOf();
  cpSync(gateway.dataFolder, before, { recursive: true });
  const record = join(folderOf(), "calls");
  await gateway.restart(traced(...recordTo(record)));
  const seen: string[] = [];
  for (let number = 0; number < requests; number += 4) {
    const batch = [0, 1, 2, 3].map(async (each) => {
      const endpoint = endpoints[(number + each) % endpoints.length]!;
      const stream = each % 2 === 0;
      const reply = await fetch(gateway.url + endpoint, {
        method: "POST",
        headers: { "x-api-key": api_key },
        body: JSON.stringify(bodyOf(endpoint, "core-3", "[[text]]", { stream })),
      });
      if (viewOf(endpoint, stream, await reply.text()).complete) seen.push(reply.headers.get("x-request-id")!);
    });
    await Promise.all(batch);
  }
  await gateway.kill("SIGKILL");
  let size = -1;
  await eventually("strace has written all that it saw", async () => {
    const before = size;
    await Bun.sleep(400);
    size = statSync(record).size;
    return size === before;
  });
  const after = folderOf();
  const { droppedChanges: dropped } = afterPowerCut(record, gateway.dataFolder, names, before, after);
  await using again = await GatewayProcess.start({ config: nodeTable(node, 100), dataFolder: after });
  const rows = new Set((await again.usage(email)).map(({ request_id }) => request_id));
  const { reserved } = await again.show(email);
  expect(reserved).toBe(0);
  return { seen: seen.length, lost: seen.filter((id) => !rows.has(id)).length, dropped };
}

/** This tree's program with another line in it. */
function variant(file: string, change: (source: string) => string): readonly string[] {
  const folder = folderOf();
  for (const name of ["src", "data/catalog.json", "package.json"]) {
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const path = join(folder, file);
  const source = readFileSync(path, "utf8");
  const changed = change(source);
  expect(changed).not.toBe(source);
  writeFileSync(path, changed);
  return [process.execPath, join(folder, "src/main.ts")];
}

describe.skipIf(skipped)("after a power cut", () => {
  test("every charge of a reply that a client saw to its end is there", async () => {
    const { seen, lost } = await cutPower([process.execPath, join(root, "src/main.ts")], 60);
    expect([seen, lost]).toEqual([60, 0]);
  }, 120_000);

  test("control: commits without a flush (synchronous=NORMAL) are lost", async () => {
    const program = variant("src/store/open.ts", (source) =>
      source
        .replace('database.run("PRAGMA synchronous = FULL")', 'database.run("PRAGMA synchronous = NORMAL")')
        .replace('pragma(database, "synchronous") === 2', 'pragma(database, "synchronous") === 1'),
    );
    const { lost, dropped } = await cutPower(program, 60);
    expect(dropped).toBeGreaterThan(0);
    expect(lost).toBeGreaterThan(0);
  }, 120_000);
});
