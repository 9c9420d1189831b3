// Every earlier version of the database, with data in all of its tables, opened by the real program: everything is
// there afterwards, the ledger keeps its invariants, and balances can be spent.
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { hashApiKey, mintApiKey } from "../../src/account/people/keys.ts";
import { releasedLedgers } from "./released-ledgers.ts";
import { chat, run, Server, temporaryFolder } from "../commands/program.ts";
import { longForm } from "../fixtures/optional.ts";
import { eventually } from "../fixtures/eventually.ts";

setDefaultTimeout(120_000);

const day = Math.floor(Date.now() / 86_400_000);
const at = day * 86_400_000;

/** The rows of each table as a program of its first version wrote them; later versions had them too. */
const rows: Readonly<Record<string, (key: string) => readonly (readonly unknown[])[]>> = {
  accounts: (key) => [
    [1, "ada@x", "plus", 999_000, Uint8Array.fromBase64(hashApiKey(key)), null, 1, at, at],
    [2, "bob@x", "free", 0, Uint8Array.fromBase64(hashApiKey(mintApiKey())), null, 0, at, at],
  ],
  quota_use: () => [
    [1, "allowance", day, 80_000],
    [1, "searches", day, 1],
  ],
  // core-3 costs 335 cents a million: 120,895 tokens are 81,000 of balance, 80,000 from today's allowance.
  journal: () => [
    [
      1,
      "credit:first",
      "credit",
      1,
      at,
      0,
      0,
      1_000_000,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
    ],
    [
      2,
      "req_1",
      "charge",
      1,
      at,
      day,
      80_000,
      -1_000,
      "/v1/messages",
      "core-3",
      120_895,
      0,
      0,
      0,
      335,
      335,
      335,
      81_000,
      0,
    ],
    [3, "search:1", "search", 1, at, day, 1, 0, null, null, null, null, null, null, null, null, null, null, null],
  ],
  api_keys: () => [
    [1, 2, "bot", Uint8Array.fromBase64(hashApiKey(mintApiKey())), at, null, null, null, 5_000, null, null, null],
  ],
  key_use: () => [],
  end_users: () => [[2, 1, 1, "carol", day, day]],
  end_user_use: () => [],
  sessions: () => [[1, new Uint8Array(32).fill(7), 1, at, at, "127.0.0.1", "a browser"]],
  purchase_requests: () => [[1, 2, "credit", 1_000_000, null, "please", "pending", at, null, ""]],
  payments: () => [["pay_1", 1, 1_000_000, at]],
  audit_log: () => [[1, at, 1, "127.0.0.1", "grant credit", 2, "{}"]],
  journal_folds: () => [],
  cost_center_folds: () => [],
  search_calls: () => [[1, day, 4]],
  access_links: () => [
    [1, new Uint8Array(32).fill(8), "invitation", null, "eve@x", "plus", 500, at, at + 86_400_000, null],
  ],
  operator_tokens: () => [[1, "ci", new Uint8Array(32).fill(9), "people", at, null, null]],
  device_codes: () => [
    [new Uint8Array(32).fill(10), new Uint8Array(32).fill(11), "Claude Code", "laptop", "127.0.0.1", at, null],
  ],
  team_members: () => [[2, 1, "admin", 5_000, null, at]],
  mails: () => [["limit 1", "limits", 1, null, "{}", at, at + 9, 1, null, "451 not now", at + 99]],
  identities: () => [["https://login.example.com", "ada-1", 1, at]],
};
/** Tables that have their row from the start. */
const made: ReadonlySet<string> = new Set(["instance", "journal_folded"]);

const tablesOf = (database: Database): string[] =>
  (database.query("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as { name: string }[]).map(
    ({ name }) => name,
  );

function makeOld(version: number, dataFolder: string, key: string): Readonly<Record<string, unknown[]>> {
  mkdirSync(dataFolder, { recursive: true });
  const database = new Database(join(dataFolder, "tollgate.db"), { create: true });
  database.run("PRAGMA journal_mode = WAL");
  for (const sql of releasedLedgers.slice(0, version)) database.run(sql);
  database.run(`PRAGMA user_version = ${version}`);
  const content: Record<string, unknown[]> = {};
  for (const table of tablesOf(database)) {
    if (made.has(table)) continue;
    for (const row of rows[table]!(key)) {
      // Columns that a later version added come last, with their defaults.
      const columns = database.query(`PRAGMA table_info(${table})`).all().slice(0, row.length) as { name: string }[];
      const names = columns.map(({ name }) => name).join(", ");
      database.run(`INSERT INTO ${table} (${names}) VALUES (${row.map(() => "?").join(", ")})`, row as never[]);
    }
    content[table] = database.query(`SELECT * FROM ${table} ORDER BY 1, 2, 3`).all();
  }
  database.close();
  return content;
}

test("every table of the newest version has its rows here", () => {
  const database = new Database(":memory:");
  for (const sql of releasedLedgers) database.run(sql);
  expect(tablesOf(database).filter((table) => !(table in rows) && !made.has(table))).toEqual([]);
});

/** The first goes through all steps; each is served in the longer form. */
const versions = releasedLedgers
  .map((_, index) => index + 1)
  .filter((version) => longForm || version === 1 || version === releasedLedgers.length);

describe.each(versions)("a database of version %i", (version) => {
  test("is served by this program with all that it holds", async () => {
    using folder = temporaryFolder();
    const data = join(folder.path, "data");
    const key = mintApiKey();
    const before = makeOld(version, data, key);
    const server = await Server.start(["--port", "0", "--data", data]);
    await using _ = server;
    expect(server.stdout).not.toContain("A first account was made");

    const database = new Database(join(data, "tollgate.db"), { readonly: true });
    for (const [table, old] of Object.entries(before)) {
      const now = database.query(`SELECT * FROM ${table} ORDER BY 1, 2, 3`).all() as Record<string, unknown>[];
      expect([table, now]).toEqual([
        table,
        (old as Record<string, unknown>[]).map((row) => expect.objectContaining(row)),
      ]);
    }
    const show = async () => JSON.parse((await run(["accounts", "show", "ada@x", "--data", data, "--json"])).stdout);
    expect(await show()).toMatchObject({ plan: "plus", credit: 999_000, allowance: { left: 0 } });
    // The ledger is checked two seconds after the start.
    await eventually(
      "the ledger was checked",
      async () => {
        const text = await (await fetch(`${server.url}/metrics`)).text();
        return /^tollgate_ledger_check_timestamp_seconds /m.test(text) && text;
      },
      30_000,
    ).then((text) => expect(text).toMatch(/^tollgate_ledger_violations 0$/m));
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);

    expect((await chat(server.url, key, { max_tokens: 5 })).status).toBe(200);
    expect((await show()).credit).toBeLessThan(999_000);
    database.close();
  });
});

test("a database of a later version is left as it is, and the refusal says what to do", async () => {
  using folder = temporaryFolder();
  const data = join(folder.path, "data");
  makeOld(releasedLedgers.length, data, mintApiKey());
  const database = new Database(join(data, "tollgate.db"));
  database.run(`PRAGMA user_version = ${releasedLedgers.length + 1}`);
  database.close();
  const { code, stderr } = await run(["serve", "--port", "0", "--data", data]);
  expect(code).toBe(1);
  expect(stderr).toBe(
    `tollgate: ${join(data, "tollgate.db")} has version ${releasedLedgers.length + 1}, but this tollgate knows versions up to ` +
      `${releasedLedgers.length}: use a newer tollgate, or put a backup that was made before the upgrade in its place`,
  );
});
