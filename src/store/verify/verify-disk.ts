// What the disk says about accounts, recomputed from the journal alone: I1 balances are the sums of the lines, I2 signs and
// bounds of quotas, I5 charges follow from their tokens and rates, I10 every line has its account. The numbers are those
// of src/README.md. (I3, one line a billing key, is a UNIQUE constraint.)
import type { Database } from "bun:sqlite";
import type { Violation } from "../../account/accounts.ts";
import type { Quota } from "../../account/quota.ts";
import type { Catalog } from "../../core/catalog.ts";
import { dayMs, endUserUseKeepDays } from "../../core/limits.ts";
import type { AccountId } from "../../core/types.ts";
import { read } from "../open.ts";

/** Most that any plan grants of each quota in a period. */
export type QuotaBounds = Readonly<Record<Quota, number>>;

export function boundsOf(plans: Catalog["plans"]): QuotaBounds {
  const all = Object.values(plans);
  return {
    allowance: Math.max(...all.map((plan) => plan.tokensPerDay)),
    coder_calls: Math.max(...all.map((plan) => plan.coderCallsPerWindow)),
    searches: Math.max(...all.map((plan) => plan.searchesPerDay)),
  };
}

/** Bounds hold for periods from here on: an older one may have been used under a catalog with larger plans. */
export type BoundsSince = Readonly<{ day: number; window: number }>;

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

/** Parts of cents of a line; see billedTokens of account/price.ts. */
const fine =
  "(input_fresh * coalesce(input_parts, 0) + input_cached * coalesce(cached_input_parts, 0)" +
  " + output * coalesce(output_parts, 0))";

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
    ofAccounts: [
      [
        "I1",
        check(`
          SELECT id AS account, 'credit is ' || credit || ', the journal says ' || sum AS detail FROM (
            SELECT id, credit, (SELECT coalesce(sum(credit_delta), 0) FROM journal WHERE account_id = accounts.id)
              + (SELECT coalesce(sum(credit_delta), 0) FROM journal_folds WHERE account_id = accounts.id) AS sum
            FROM accounts WHERE id > ?1 AND id <= ?2
          ) WHERE credit <> sum`),
      ],
      [
        "I1",
        check(`
          WITH lines AS (
            SELECT account_id, kind, period, used FROM journal WHERE account_id > ?1 AND account_id <= ?2
            UNION ALL
            SELECT account_id, kind, period, used FROM journal_folds WHERE account_id > ?1 AND account_id <= ?2
          ), sums AS (
            SELECT account_id, period, sum(used) AS used, CASE kind
              WHEN 'charge' THEN 'allowance' WHEN 'coder_call' THEN 'coder_calls' ELSE 'searches' END AS quota
            FROM lines WHERE kind IN ('charge', 'coder_call', 'search')
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
        "I1",
        check(`
          WITH lines AS (
            SELECT account_id, key_id, period AS day, billed_tokens FROM journal
            WHERE account_id > ?1 AND account_id <= ?2 AND kind = 'charge' AND key_id > 1
            UNION ALL
            SELECT account_id, key_id, period, billed_tokens FROM journal_folds
            WHERE account_id > ?1 AND account_id <= ?2 AND kind = 'charge' AND key_id > 1
          ), sums AS (
            SELECT account_id, key_id, day, sum(billed_tokens) AS used FROM lines GROUP BY account_id, key_id, day
          ), uses AS (
            SELECT * FROM key_use WHERE account_id > ?1 AND account_id <= ?2
          )
          SELECT coalesce(sums.account_id, uses.account_id) AS account,
            'key ' || coalesce(sums.key_id, uses.key_id) || ' used ' || coalesce(uses.used, 0) || ' on day '
              || coalesce(sums.day, uses.day) || ', the journal says ' || coalesce(sums.used, 0) AS detail
          FROM sums FULL JOIN uses USING (account_id, key_id, day)
          WHERE coalesce(sums.used, 0) <> coalesce(uses.used, 0)`),
      ],
      [
        "I1",
        check(`
          WITH sums AS (
            SELECT account_id, end_user_id, period AS day, sum(billed_tokens) AS used FROM journal
            WHERE account_id > ?1 AND account_id <= ?2 AND kind = 'charge' AND end_user_id IS NOT NULL
            GROUP BY account_id, end_user_id, period
          ), uses AS (
            SELECT * FROM end_user_use WHERE account_id > ?1 AND account_id <= ?2
          )
          SELECT coalesce(sums.account_id, uses.account_id) AS account,
            'end user ' || coalesce(sums.end_user_id, uses.end_user_id) || ' used ' || coalesce(uses.used, 0)
              || ' on day ' || coalesce(sums.day, uses.day) || ', the journal says ' || coalesce(sums.used, 0) AS detail
          FROM sums FULL JOIN uses USING (account_id, end_user_id, day)
          WHERE coalesce(sums.used, 0) <> coalesce(uses.used, 0)
            AND day > (SELECT at / ${dayMs} FROM journal_folded)
            AND day >= (SELECT max(day) FROM end_user_use) - ${endUserUseKeepDays}`),
      ],
      [
        "I10",
        check(`
          SELECT account_id AS account, billing_key || ' is for an end user of another key, or none' AS detail FROM journal
          WHERE account_id > ?1 AND account_id <= ?2 AND end_user_id IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM end_users AS e
            WHERE e.account_id = journal.account_id AND e.id = end_user_id AND e.key_id = journal.key_id)`),
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
              + input_cached * cached_input_cents + output * output_cents + ${fine} / 10000)
              + (${fine} % 10000 >= 5000)) / 1000)`),
      ],
      [
        "I2",
        check(`
          SELECT account_id AS account, 'the sums of ' || kind || ' on day ' || day || ' have a wrong sign' AS detail
          FROM journal_folds WHERE account_id > ?1 AND account_id <= ?2 AND (lines < 1 OR CASE kind
            WHEN 'charge' THEN used < 0 OR credit_delta > 0
            WHEN 'coder_usage' THEN used <> 0 OR credit_delta <> 0
            ELSE used <> lines OR credit_delta <> 0 END)`),
      ],
      [
        "I5",
        check(`
          SELECT account_id AS account, 'the charges of day ' || day || ' are billed ' || billed_tokens AS detail
          FROM journal_folds WHERE account_id > ?1 AND account_id <= ?2 AND kind IN ('charge', 'coder_usage')
            AND billed_tokens <> used - credit_delta`),
      ],
      [
        "I10",
        check(`
          SELECT account_id AS account, 'the sums of day ' || day || ' belong to no account' AS detail FROM journal_folds
          WHERE account_id > ?1 AND account_id <= ?2 AND account_id NOT IN (SELECT id FROM accounts)`),
      ],
      [
        "I10",
        check(`
          SELECT account_id AS account, billing_key || ' belongs to no account' AS detail FROM journal
          WHERE account_id > ?1 AND account_id <= ?2 AND account_id NOT IN (SELECT id FROM accounts)`),
      ],
    ] as const,
  };
}
