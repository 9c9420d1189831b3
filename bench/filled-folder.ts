// Data folders with many accounts and usage rows, made by SQLite alone: through the accounting, which waits for the
// disk, a million accounts would take minutes.
import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { dayMs } from "../src/core/units.ts";
import { migrate } from "../src/store/ledger/migrate.ts";

export type Filling = Readonly<{ accounts: number; rows: number }>;

const days = 30;

/** Fills a new data folder. The books add up: every row is a charge to its account's allowance of one day. */
export function fillDataFolder(folder: string, { accounts, rows }: Filling): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = databaseFile(folder);
  migrate(file);
  const database = new Database(file);
  database.run("PRAGMA synchronous = OFF");
  database.run("PRAGMA cache_size = -400000"); // KiB: random keys are inserted into indexes
  const today = Math.floor(Date.now() / dayMs);
  // 900 input and 100 output tokens for 390 cents a million: (500 + 2 * 1,000 * 390) / 1,000 balance tokens, cut off.
  const billedTokens = 780;
  database.transaction(() => {
    database.run(`
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${accounts})
      INSERT INTO accounts (email, plan, credit, key_hash, operator, created_at, key_created_at)
      SELECT 'filled-' || n || '@example.com', 'pro', 0, randomblob(32), 0, 0, 0 FROM numbers WHERE n <= ${accounts}`);
    database.run(`
      WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${rows - 1})
      INSERT INTO journal (billing_key, kind, account_id, at, period, used, credit_delta, endpoint, model, input_fresh,
        input_cached, output, reasoning, input_cents, cached_input_cents, output_cents, billed_tokens, estimated)
      SELECT printf('filled-%017d', n), 'charge', 1 + n % ${accounts}, (day * ${dayMs}) + n % ${dayMs}, day,
        ${billedTokens}, 0, '/v1/chat/completions', 'core-1.6-lite', 900, 0, 100, 0, 390, 390, 390, ${billedTokens}, 0
      FROM (SELECT n, ${today - days} + (n % ${accounts}) % ${days} AS day FROM numbers WHERE n < ${rows})`);
    database.run(`
      INSERT INTO quota_use (account_id, quota, period, used)
      SELECT account_id, 'allowance', period, sum(used) FROM journal GROUP BY account_id, period`);
  })();
  database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
}

/** A folder of this filling in the user's cache, made by the first run and kept: 10,000,000 rows take minutes. */
export function cachedDataFolder(filling: Filling): string {
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const folder = join(cache, "tollgate-bench", `${filling.accounts}-accounts-${filling.rows}-rows`);
  if (existsSync(folder)) return folder;
  console.log(
    `  filling ${folder} with ${filling.accounts} accounts and ${filling.rows} rows; delete it when you like`,
  );
  const unfinished = `${folder}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(dirname(folder), { recursive: true });
  fillDataFolder(unfinished, filling);
  renameSync(unfinished, folder);
  return folder;
}

export function databaseMebibytes(folder: string): number {
  return statSync(databaseFile(folder)).size / 2 ** 20;
}

function databaseFile(folder: string): string {
  return join(folder, "tollgate.db");
}
