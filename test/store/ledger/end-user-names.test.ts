// What a charge of an end user costs does not grow with the names that its account has.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "../../../src/store/ledger/migrate.ts";
import { Writer } from "../../../src/store/ledger/writer.ts";
import { openForWriting } from "../../../src/store/open.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

test("the writer finds a name by the index of names, and looks at no others of the account", () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-names-"));
  folders.push(folder);
  const file = join(folder, "tollgate.db");
  const epoch = migrate(file);
  using database = openForWriting(file);
  const prepared: string[] = [];
  const prepare = database.prepare.bind(database);
  database.prepare = (sql: string) => {
    prepared.push(sql);
    return prepare(sql) as never;
  };
  new Writer(database, epoch).commit({ changes: [[{ change: "erase_end_user", account: 1, name: "ann" }]], rows: [] });
  const byName = prepared.filter((sql) => sql.includes("end_users") && sql.includes("name = ?"));
  expect(byName.length).toBe(2);
  for (const sql of byName) {
    const plan = prepare<{ detail: string }, null[]>(`EXPLAIN QUERY PLAN ${sql}`);
    const details = plan.all(...Array<null>(plan.paramsCount).fill(null)).map(({ detail }) => detail);
    plan.finalize();
    expect(details).toEqual([
      expect.stringMatching(/^SEARCH end_users USING INDEX end_users_by_name \(account_id=\? AND name=\?/),
    ]);
  }
});
