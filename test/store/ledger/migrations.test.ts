// A data folder of an earlier version: everything in it stays, and what the new version needs is there.
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openAccounting } from "../../../src/accounting.ts";
import { hashApiKey, mintApiKey } from "../../../src/account/keys.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { migrations } from "../../../src/store/ledger/migrations.ts";
import { migrate } from "../../../src/store/open.ts";
import { cheapHasher, plans } from "../../account/office.ts";

const folder = await mkdtemp(join(tmpdir(), "tollgate-migrations-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A database as the program of that version left it, with an account, its charge and its purchase. */
async function databaseOf(version: number, dataFolder: string, key: string): Promise<string> {
  await Bun.write(join(dataFolder, "made"), "");
  const file = join(dataFolder, "tollgate.db");
  const database = new Database(file, { create: true });
  database.run("PRAGMA journal_mode = WAL");
  for (const sql of migrations.slice(0, version)) database.run(sql);
  database.run(`PRAGMA user_version = ${version}`);
  const password = await cheapHasher.hash("correct horse");
  database.run(
    `INSERT INTO accounts (id, email, plan, credit, key_hash, password_hash, operator, created_at, key_created_at)
     VALUES (1, 'a@x', 'plus', 999000, ?, ?, 1, 5, 6)`,
    [Uint8Array.fromBase64(hashApiKey(key)), password],
  );
  database.run(`
    INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta)
    VALUES ('credit:first', 'credit', 1, 7, 0, 0, 1000000), ('req_1', 'charge', 1, 8, 0, 80000, -1000)`);
  database.run("INSERT INTO quota_use (account_id, quota, period, used) VALUES (1, 'allowance', 0, 80000)");
  database.close();
  return file;
}

test("the first version's accounts, keys, passwords and balances are as they were", async () => {
  const dataFolder = join(folder, "first");
  const key = mintApiKey();
  const file = await databaseOf(1, dataFolder, key);
  await using accounting = await open(dataFolder);
  expect(accounting.keys.account(key)).toBe(1);
  expect(await accounting.accounts.signIn("a@x", "correct horse")).toMatchObject({
    id: 1,
    email: "a@x",
    plan: "plus",
    credit: 999_000,
    operator: true,
    disabledAt: null,
    createdAt: 5,
  });
  expect(await accounting.accounts.addCredit("a@x", 1_000_000, "first")).toEqual({ credited: false });
  const { token } = await accounting.sessions.open(1, { address: "", browser: "" }, 10);
  expect(accounting.sessions.find(token, 10)).not.toBeNull();
  expect(new Database(file, { readonly: true }).query("PRAGMA user_version").get() as object).toEqual({
    user_version: migrations.length,
  });
});

test("every version has the same tables, wherever it began", async () => {
  const tables = async (version: number) => {
    const dataFolder = join(folder, `from-${version}`);
    const file = await databaseOf(version, dataFolder, mintApiKey());
    migrate(file);
    const database = new Database(file, { readonly: true });
    const rows = database.query("SELECT name, sql FROM sqlite_schema ORDER BY name").all();
    database.close();
    return rows;
  };
  const newest = await tables(migrations.length);
  for (let version = 1; version < migrations.length; version++) expect(await tables(version)).toEqual(newest);
});

test("a migration that fails in its middle leaves the version before it", async () => {
  const file = await databaseOf(1, join(folder, "failing"), mintApiKey());
  const database = new Database(file);
  database.run("CREATE TABLE audit_log (a)"); // the last table of the second version
  database.close();
  expect(() => migrate(file)).toThrow("audit_log");
  const left = new Database(file, { readonly: true });
  expect(left.query("PRAGMA user_version").get() as object).toEqual({ user_version: 1 });
  expect(left.query("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'sessions'").get() as object).toEqual({
    n: 0,
  });
  left.close();
});

async function open(dataFolder: string) {
  const accounting = await openAccounting({
    dataFolder,
    catalog: { plans },
    siteUrl: "http://site",
    clock: systemClock,
    onFatal: (error) => {
      throw error;
    },
  });
  return { ...accounting, [Symbol.asyncDispose]: () => accounting.close() };
}
