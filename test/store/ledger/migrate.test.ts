// Data folders of earlier versions: everything in them stays, and what the new version needs is added.
import { desksOf } from "../../account/desks.ts";
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openAccounting } from "../../../src/books/accounting.ts";
import { hashApiKey, mintApiKey } from "../../../src/account/people/keys.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { migrate } from "../../../src/store/ledger/migrate.ts";
import { ledgerTables } from "../../../src/store/ledger/schema.ts";
import { schemaVersion } from "../../../src/store/ledger/schema-version.ts";
import { cheapHasher, plans } from "../../account/office.ts";
import { releasedLedgers } from "../released-ledgers.ts";

const folder = await mkdtemp(join(tmpdir(), "tollgate-migrations-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A database as the program of that version left it, with an account, its charge and its purchase. */
async function databaseOf(version: number, dataFolder: string, key: string): Promise<string> {
  await Bun.write(join(dataFolder, "made"), "");
  const file = join(dataFolder, "tollgate.db");
  const database = new Database(file, { create: true });
  database.run("PRAGMA journal_mode = WAL");
  for (const sql of releasedLedgers.slice(0, version)) database.run(sql);
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
  expect(accounting.keys.principal(key)?.account ?? null).toBe(1);
  expect(await desksOf(accounting).accounts.signIn("a@x", "correct horse")).toMatchObject({
    id: 1,
    email: "a@x",
    plan: "plus",
    credit: 999_000,
    operator: true,
    disabledAt: null,
    createdAt: 5,
  });
  expect((await desksOf(accounting).accountKeys.list(1)).map(({ ending }) => ending)).toEqual([null]);
  expect(await desksOf(accounting).accounts.addCredit("a@x", 1_000_000, "first")).toEqual({ credited: false });
  const { token } = await desksOf(accounting).sessions.open(1, { address: "", browser: "" });
  expect(accounting.sessions.find(token, 10)).not.toBeNull();
  expect(new Database(file, { readonly: true }).query("PRAGMA user_version").get() as object).toEqual({
    user_version: schemaVersion,
  });
});

/** What the tables are, however their texts are written. */
function shapeOf(file: string) {
  const database = new Database(file, { readonly: true });
  const all = <Row>(sql: string) => database.query(sql).all() as Row[];
  const tables = all<{ name: string; sql: string }>("SELECT name, sql FROM sqlite_schema WHERE type = 'table'");
  const shape = tables.map(({ name, sql }) => ({
    name,
    options: all<{ name: string; wr: number; strict: number }>("PRAGMA table_list")
      .filter((table) => table.name === name)
      .map(({ wr, strict }) => ({ wr, strict })),
    columns: all<{ type: string; dflt_value: string | null }>(`PRAGMA table_xinfo(${name})`).map((column) => ({
      ...column,
      type: column.type.toUpperCase(),
    })),
    collations: [...sql.matchAll(/\w+(?= TEXT[^,]* COLLATE NOCASE)/gi)].map(([column]) => column),
    checks: [...sql.matchAll(/CHECK \(((?:[^()]|\([^()]*\))*)\)/g)].map(([, rule]) => rule).sort(),
    indexes: all<{ name: string; unique: number; origin: string }>(`PRAGMA index_list(${name})`)
      .map((index) => ({
        name: index.origin === "c" ? index.name : "",
        unique: index.unique,
        columns: all<{ name: string; coll: string }>(`PRAGMA index_xinfo(${index.name})`).map(
          (column) => `${column.name} ${column.coll}`,
        ),
      }))
      .sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)),
  }));
  const firstRows = [all("SELECT * FROM instance"), all("SELECT * FROM journal_folded")];
  database.close();
  return { tables: shape.sort((one, other) => (one.name < other.name ? -1 : 1)), firstRows };
}

test("sums of folded lines from before there were named keys are the first key's", async () => {
  const dataFolder = join(folder, "folds");
  const file = await databaseOf(4, dataFolder, mintApiKey());
  const database = new Database(file);
  const row = ["1, 3, 'charge', 3, 'core-3', '/v1/messages', 2, 10, -20, 1, 2, 3, 0, 30", "2, 3, 'search', 3, '', '', 1, 1, 0, 0, 0, 0, 0, 0"]; // prettier-ignore
  for (const values of row) database.run(`INSERT INTO journal_folds VALUES (${values})`);
  const before = database.query("SELECT * FROM journal_folds").values();
  migrate(file);
  expect(database.query("SELECT * FROM journal_folds").values()).toEqual(before.map((values) => [...values, 1]));
  database.close();
});

test("each version of the tables that was released has its text here", () => {
  expect(releasedLedgers).toHaveLength(schemaVersion);
});

test("a ledger of any version becomes what a new one is, and a new one is what was released", async () => {
  const fresh = join(folder, "fresh.db");
  migrate(fresh);
  const expected = shapeOf(fresh);
  expect(expected.tables.map(({ name }) => name)).toHaveLength(Object.keys(ledgerTables).length);
  expect(expected.tables.flatMap(({ checks }) => checks)).toHaveLength(21);
  for (let version = 1; version <= schemaVersion; version++) {
    const file = await databaseOf(version, join(folder, `from-${version}`), mintApiKey());
    migrate(file);
    expect([version, shapeOf(file)]).toEqual([version, expected]);
  }
});

test("requests of before stay, and one for a deletion is taken", async () => {
  const dataFolder = join(folder, "deletion");
  const file = await databaseOf(9, dataFolder, mintApiKey());
  const before = new Database(file);
  before.run("INSERT INTO purchase_requests VALUES (4, 1, 'credit', 5, NULL, 'n', 'pending', 6, NULL, '')");
  before.close();
  await using accounting = await open(dataFolder);
  const { purchases } = desksOf(accounting);
  expect(await purchases.request(4)).toMatchObject({ account: 1, kind: "credit", tokens: 5, note: "n" });
  expect(await purchases.ask(1, { kind: "deletion" }, "")).toMatchObject({ id: 5 });
  expect(await purchases.lastDeletionRequest(1)).toMatchObject({ id: 5, state: "pending" });
});

test("a table that is not ours leaves the ledger as it was", async () => {
  const file = await databaseOf(1, join(folder, "failing"), mintApiKey());
  const database = new Database(file);
  database.run("CREATE TABLE audit_log (a)"); // the last table of the second version
  database.close();
  expect(() => migrate(file)).toThrow(`cannot use the database ${file}: its table audit_log has no column id`);
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
