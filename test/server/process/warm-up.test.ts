// Warming up after a start: it goes through the real code, gives way to real requests, and leaves nothing behind.
import { expect, setDefaultTimeout, test } from "bun:test";
import { Database } from "bun:sqlite";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dropStartLeftovers } from "../../../src/server/process/start-leftovers.ts";
import { warmUp, warmUpRounds } from "../../../src/server/process/warm-up.ts";
import { Server, temporaryFolder } from "../../commands/program.ts";

setDefaultTimeout(120_000); // processes are started, and the machine may be busy

const never = new AbortController().signal;

test("streams of every dialect are answered to their ends while the gateway is idle", async () => {
  // 3 dialects, 1 to 8 at once
  expect(await warmUp({ isIdle: () => true, signal: never })).toBe(3 * (36 + 8 * (warmUpRounds - 8)));
});

test("no stream begins while a real request is open; they go on when there is none", async () => {
  let looks = 0;
  const isIdle = (): boolean => ++looks > 20;
  expect(await warmUp({ isIdle, signal: never })).toBeGreaterThan(0);
  looks = 0;
  const isBusySoon = (): boolean => ++looks <= 4; // 1 of each dialect, then 2
  expect(await warmUp({ isIdle: isBusySoon, signal: never, patienceMs: 20 })).toBe(5);
});

test("a gateway that is told to stop begins no more of them", async () => {
  const stopping = new AbortController();
  let looks = 0;
  const isIdle = (): boolean => {
    if (++looks === 4) stopping.abort();
    return true;
  };
  expect(await warmUp({ isIdle, signal: stopping.signal })).toBe(3);
});

test("a gateway that is busy from its start on keeps the code that it has compiled, and one that gets idle does not", async () => {
  let looks = 0;
  const isBusy = (): boolean => (looks++, false);
  expect(await dropStartLeftovers(isBusy, 2)).toBe(false);
  expect(looks).toBe(2);
  const isIdleSoon = (): boolean => ++looks === 4;
  expect(await dropStartLeftovers(isIdleSoon, 3)).toBe(true);
});

test("nothing of it is in the metrics, the log, the books or the data folder", async () => {
  using folder = temporaryFolder();
  const data = join(folder.path, "data");
  const config = join(folder.path, "tollgate.toml");
  writeFileSync(config, '[log]\nlevel = "debug"\n');
  await using server = await Server.start([
    "--config",
    config,
    "--data",
    data,
    "--port",
    "0",
    "--demo",
    "--threads",
    "1",
  ]);
  // The disk's flushes are measured beside it.
  const files = () =>
    readdirSync(data)
      .filter((name) => !name.includes("flush-test"))
      .toSorted();
  const before = { files: files(), metrics: await countsOf(server.url) };
  await server.says(/"warmed up","streams":\d{3}/);
  expect({ files: files(), metrics: await countsOf(server.url) }).toEqual(before);
  expect(server.stdout + server.stderr).not.toContain('"event":"request"');
  using database = new Database(join(data, "tollgate.db"), { readonly: true });
  expect(database.query("SELECT kind FROM journal").all()).toEqual([]);
  expect(database.query("SELECT email FROM accounts").all()).toEqual([{ email: "operator@localhost" }]);
});

/** What the metrics say of requests, tokens, nodes and accounts; not of time and memory. */
async function countsOf(url: string): Promise<string[]> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const said = text
    .split("\n")
    .filter((line) => /^tollgate_.*(request|token|stream|node|account|hold|journal|commit)/.test(line));
  expect(said.length).toBeGreaterThan(5);
  return said;
}
