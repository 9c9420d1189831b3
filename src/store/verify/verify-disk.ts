// What the disk says about accounts, recomputed from the journal alone: I1 balances are the sums of the lines, I2 signs and
// bounds of quotas, I5 charges follow from their tokens and rates, I10 every line has its account. The numbers are those
// of src/README.md. (I3, one line a billing key, is a UNIQUE constraint.)
import type { Database } from "bun:sqlite";
import type { Violation } from "../../account/people/accounts.ts";
import { dayMs } from "../../core/units.ts";
import type { AccountId } from "../../core/types.ts";
import { read } from "../open.ts";
import { type ChecksOf, ledgerChecks } from "./ledger-checks.ts";
import type { BoundsSince, QuotaBounds } from "./quota-bounds.ts";

type Broken = { account: AccountId; detail: string };

export class DiskVerifier {
  readonly #statements: ReturnType<typeof prepare>;
  readonly #bounds: QuotaBounds;
  readonly #since: BoundsSince;

  constructor(database: Database, bounds: QuotaBounds, since: BoundsSince = { day: 0, window: 0 }) {
    this.#statements = prepare(database);
    this.#bounds = bounds;
    this.#since = since;
  }

  /** Ids of the next accounts in order. Throws StoreUnavailable when the disk cannot be read, as all below. */
  accountsAfter(after: AccountId, limit: number): AccountId[] {
    return read(() => this.#statements.accounts.all(after, limit)).map(({ id }) => id);
  }

  /** What is broken about accounts with after < id <= last; each statement sees one committed state. */
  violationsOf(after: AccountId, last: AccountId): Violation[] {
    const { ofAccounts, aboveBound } = this.#statements;
    const { allowance, coder_calls, searches } = this.#bounds;
    const { day, window } = this.#since;
    return read(() => [
      ...ofAccounts.flatMap(([invariant, check]) => check.all(after, last).map((broken) => ({ invariant, ...broken }))),
      ...aboveBound
        .all(after, last, allowance, coder_calls, searches, day, window)
        .map(({ invariant, account, detail }) => ({ invariant, account, detail })),
    ]);
  }

  lastSequence(): number {
    return read(() => this.#statements.lastSequence.get())?.last ?? 0;
  }

  /** The accounts of the lines with after < sequence <= last. */
  accountsOfLines(after: number, last: number): AccountId[] {
    return read(() => this.#statements.accountsOfLines.all(after, last)).map(({ account }) => account);
  }
}

function prepare(database: Database) {
  const check = (sql: string) => database.prepare<Broken, [after: AccountId, last: AccountId]>(sql);
  return {
    accounts: database.prepare<{ id: AccountId }, [after: AccountId, limit: number]>(
      "SELECT id FROM accounts WHERE id > ? ORDER BY id LIMIT ?",
    ),
    lastSequence: database.prepare<{ last: number | null }, []>("SELECT max(sequence) AS last FROM journal"),
    accountsOfLines: database.prepare<{ account: AccountId }, [after: number, last: number]>(
      "SELECT DISTINCT account_id AS account FROM journal WHERE sequence > ? AND sequence <= ?",
    ),
    aboveBound: database.prepare<
      Broken & { invariant: string },
      [AccountId, AccountId, allowance: number, calls: number, searches: number, day: number, window: number]
    >(`
      SELECT 'I2' AS invariant, account_id AS account,
        quota || ' of ' || period || ' is ' || used AS detail FROM quota_use
      WHERE account_id > ?1 AND account_id <= ?2 AND (used < 0 OR CASE quota
        WHEN 'allowance' THEN used > ?3 AND period >= ?6
        WHEN 'coder_calls' THEN used > ?4 AND period >= ?7
        ELSE used > ?5 AND period >= ?6 END)`),
    ofAccounts: ledgerChecks(ofSqlite).map(([invariant, sql]) => [invariant, check(sql)] as const),
  };
}

const ofSqlite: ChecksOf = {
  after: "?1",
  last: "?2",
  uses: "SELECT account_id, quota, period, used FROM quota_use WHERE account_id > ?1 AND account_id <= ?2",
  foldedDay: `(SELECT at / ${dayMs} FROM journal_folded)`,
};
