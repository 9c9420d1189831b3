// Recomputes what the disk says from the journal alone, and compares: I1 balances are the sums of the lines, I2 signs
// and bounds, I3 every line has its account, I5 charges follow from their tokens and rates, I7 the ledger in memory
// equals the disk. (I6, one line a billing key, is a UNIQUE constraint.)
import type { Database } from "bun:sqlite";
import type { Verification, Violation } from "../account/accounts.ts";
import type { Ledger } from "../account/ledger.ts";
import type { Catalog } from "../catalog.ts";
import { StoreUnavailable, type AccountId } from "../types.ts";
import { messageOf } from "./data-folder.ts";

/** Accounts looked at in one turn of the event loop. With 10 lines each and a cold cache, 500 took 90 ms. */
const accountsPerTurn = 25;

type Broken = { account: AccountId; detail: string };
type AccountRow = { id: AccountId; credit: number };

/**
 * Checks all accounts, a few at a time so that requests are served in between: an account is compared in one
 * moment, and its memory only while no line of it is on its way. Throws StoreUnavailable when the disk cannot be read.
 */
export async function verify(database: Database, ledger: Ledger, plans: Catalog["plans"]): Promise<Verification> {
  const statements = prepare(database);
  const allowanceMax = Math.max(...Object.values(plans).map((plan) => plan.tokensPerDay));
  const violations: Violation[] = [];
  let accounts = 0;
  for (let after = 0; ;) {
    const chunk = read(() => statements.accounts.all(after, accountsPerTurn));
    const last = chunk.at(-1);
    if (last === undefined) return { accounts, violations };
    const range = [after, last.id] as const;
    read(() => {
      for (const [invariant, statement] of statements.onDisk) {
        for (const broken of statement.all(...range)) violations.push({ invariant, ...broken });
      }
      for (const broken of statements.aboveAllowance.all(...range, allowanceMax)) {
        violations.push({ invariant: "I2", ...broken });
      }
      for (const row of chunk) violations.push(...inMemory(row, ledger, statements.used));
    });
    accounts += chunk.length;
    after = last.id;
    await Bun.sleep(0);
  }
}

/** I7 */
function inMemory(row: AccountRow, ledger: Ledger, used: ReturnType<typeof prepare>["used"]): Violation[] {
  const account = ledger.ifLoaded(row.id);
  if (account === null || account.uncommitted > 0) return [];
  const violations: Violation[] = [];
  const compare = (what: string, memory: number, disk: number) => {
    if (memory === disk) return;
    violations.push({ invariant: "I7", account: row.id, detail: `${what} is ${memory} in memory, ${disk} on disk` });
  };
  compare("credit", account.credit, row.credit);
  for (const use of [account.allowance, account.coder_calls, account.searches]) {
    if (use.period < 0) continue;
    compare(`${use.quota} of ${use.period}`, use.used, used.get(row.id, use.quota, use.period)?.used ?? 0);
  }
  return violations;
}

function prepare(database: Database) {
  const check = (sql: string) => database.prepare<Broken, [after: number, last: number]>(sql);
  return {
    accounts: database.prepare<AccountRow, [after: number, limit: number]>(
      "SELECT id, credit FROM accounts WHERE id > ? ORDER BY id LIMIT ?",
    ),
    used: database.prepare<{ used: number }, [number, string, number]>(
      "SELECT used FROM quota_use WHERE account_id = ? AND quota = ? AND period = ?",
    ),
    aboveAllowance: database.prepare<Broken, [after: number, last: number, max: number]>(`
      SELECT account_id AS account, quota || ' of ' || period || ' is ' || used AS detail FROM quota_use
      WHERE account_id > ?1 AND account_id <= ?2 AND (used < 0 OR (quota = 'allowance' AND used > ?3))`),
    onDisk: [
      [
        "I1",
        check(`
          SELECT id AS account, 'credit is ' || credit || ', the journal says ' || sum AS detail FROM (
            SELECT id, credit, (SELECT coalesce(sum(credit_delta), 0) FROM journal WHERE account_id = accounts.id) AS sum
            FROM accounts WHERE id > ?1 AND id <= ?2
          ) WHERE credit <> sum`),
      ],
      [
        "I1",
        check(`
          WITH sums AS (
            SELECT account_id, period, sum(used) AS used, CASE kind
              WHEN 'charge' THEN 'allowance' WHEN 'coder_call' THEN 'coder_calls' ELSE 'searches' END AS quota
            FROM journal WHERE account_id > ?1 AND account_id <= ?2 AND kind IN ('charge', 'coder_call', 'search')
            GROUP BY account_id, quota, period
          ), uses AS (
            SELECT * FROM quota_use WHERE account_id > ?1 AND account_id <= ?2
          )
          SELECT coalesce(sums.account_id, uses.account_id) AS account,
            coalesce(sums.quota, uses.quota) || ' of ' || coalesce(sums.period, uses.period) || ' is '
              || coalesce(uses.used, 0) || ', the journal says ' || coalesce(sums.used, 0) AS detail
          FROM sums FULL JOIN uses USING (account_id, quota, period)
          WHERE coalesce(sums.used, 0) <> coalesce(uses.used, 0)`),
      ],
      [
        "I2",
        check(`
          SELECT account_id AS account, billing_key || ' has the wrong sign' AS detail FROM journal
          WHERE account_id > ?1 AND account_id <= ?2 AND CASE kind
            WHEN 'charge' THEN used < 0 OR credit_delta > 0
            WHEN 'credit' THEN used <> 0 OR credit_delta <= 0
            WHEN 'search' THEN used <> 1 OR credit_delta <> 0
            WHEN 'coder_call' THEN used <> 1 OR credit_delta <> 0
            ELSE used <> 0 OR credit_delta <> 0 END`),
      ],
      [
        "I5",
        check(`
          SELECT account_id AS account, billing_key || ' is billed ' || billed_tokens AS detail FROM journal
          WHERE account_id > ?1 AND account_id <= ?2 AND kind IN ('charge', 'coder_usage') AND (
            billed_tokens <> used - credit_delta OR billed_tokens <> (500 + 2 * (input_fresh * input_cents
              + input_cached * cached_input_cents + output * output_cents)) / 1000)`),
      ],
      [
        "I3",
        check(`
          SELECT account_id AS account, billing_key || ' belongs to no account' AS detail FROM journal
          WHERE account_id > ?1 AND account_id <= ?2 AND account_id NOT IN (SELECT id FROM accounts)`),
      ],
    ] as const,
  };
}

function read<Result>(query: () => Result): Result {
  try {
    return query();
  } catch (thrown) {
    throw new StoreUnavailable(`the database cannot be read: ${messageOf(thrown)}`, { cause: thrown });
  }
}
