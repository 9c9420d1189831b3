// What the books must keep, recomputed from the journal's lines and folded sums, as SQL that SQLite and PostgreSQL both read:
// I1 balances are the sums of the lines, I2 signs, I5 charges follow from their tokens and rates, I10 every line has its
// account. The numbers are those of src/README.md.
import { endUserUseKeepDays } from "../limits.ts";

/** In the words of one of the two. */
export type ChecksOf = Readonly<{
  /** Accounts with after < id <= last. */
  after: string;
  last: string;
  /** What was used of quotas: account_id, quota, period, used. */
  uses: string;
  /** Lines of days up to this one may be folded. */
  foldedDay: string;
}>;

/** Parts of cents of a line; see billedTokens of account/money/price.ts. */
const fine =
  "(input_fresh * coalesce(input_parts, 0) + input_cached * coalesce(cached_input_parts, 0)" +
  " + output * coalesce(output_parts, 0))";

/** Each gives account and detail of what is broken. */
export const ledgerChecks = ({
  after,
  last,
  uses,
  foldedDay,
}: ChecksOf): readonly (readonly [invariant: string, sql: string])[] => [
  [
    "I1",
    `
          SELECT id AS account, 'credit is ' || credit || ', the journal says ' || sum AS detail FROM (
            SELECT id, credit, (SELECT coalesce(sum(credit_delta), 0) FROM journal WHERE account_id = accounts.id)
              + (SELECT coalesce(sum(credit_delta), 0) FROM journal_folds WHERE account_id = accounts.id) AS sum
            FROM accounts WHERE id > ${after} AND id <= ${last}
          ) AS books WHERE credit <> sum`,
  ],
  [
    "I1",
    `
          WITH lines AS (
            SELECT account_id, kind, period, used FROM journal WHERE account_id > ${after} AND account_id <= ${last}
            UNION ALL
            SELECT account_id, kind, period, used FROM journal_folds WHERE account_id > ${after} AND account_id <= ${last}
          ), sums AS (
            SELECT account_id, period, sum(used) AS used, CASE kind
              WHEN 'charge' THEN 'allowance' WHEN 'coder_call' THEN 'coder_calls' ELSE 'searches' END AS quota
            FROM lines WHERE kind IN ('charge', 'coder_call', 'search')
            GROUP BY account_id, quota, period
          ), uses AS (
            ${uses}
          )
          SELECT coalesce(sums.account_id, uses.account_id) AS account,
            coalesce(sums.quota, uses.quota) || ' of ' || coalesce(sums.period, uses.period) || ' is '
              || coalesce(uses.used, 0) || ', the journal says ' || coalesce(sums.used, 0) AS detail
          FROM sums FULL JOIN uses USING (account_id, quota, period)
          WHERE coalesce(sums.used, 0) <> coalesce(uses.used, 0)`,
  ],
  [
    "I1",
    `
          WITH lines AS (
            SELECT account_id, key_id, period AS day, billed_tokens FROM journal
            WHERE account_id > ${after} AND account_id <= ${last} AND kind = 'charge' AND key_id > 1
            UNION ALL
            SELECT account_id, key_id, period, billed_tokens FROM journal_folds
            WHERE account_id > ${after} AND account_id <= ${last} AND kind = 'charge' AND key_id > 1
          ), sums AS (
            SELECT account_id, key_id, day, sum(billed_tokens) AS used FROM lines GROUP BY account_id, key_id, day
          ), uses AS (
            SELECT * FROM key_use WHERE account_id > ${after} AND account_id <= ${last}
          )
          SELECT coalesce(sums.account_id, uses.account_id) AS account,
            'key ' || coalesce(sums.key_id, uses.key_id) || ' used ' || coalesce(uses.used, 0) || ' on day '
              || coalesce(sums.day, uses.day) || ', the journal says ' || coalesce(sums.used, 0) AS detail
          FROM sums FULL JOIN uses USING (account_id, key_id, day)
          WHERE coalesce(sums.used, 0) <> coalesce(uses.used, 0)`,
  ],
  [
    "I1",
    `
          WITH sums AS (
            SELECT account_id, end_user_id, period AS day, sum(billed_tokens) AS used FROM journal
            WHERE account_id > ${after} AND account_id <= ${last} AND kind = 'charge' AND end_user_id IS NOT NULL
            GROUP BY account_id, end_user_id, period
          ), uses AS (
            SELECT * FROM end_user_use WHERE account_id > ${after} AND account_id <= ${last}
          )
          SELECT coalesce(sums.account_id, uses.account_id) AS account,
            'end user ' || coalesce(sums.end_user_id, uses.end_user_id) || ' used ' || coalesce(uses.used, 0)
              || ' on day ' || coalesce(sums.day, uses.day) || ', the journal says ' || coalesce(sums.used, 0) AS detail
          FROM sums FULL JOIN uses USING (account_id, end_user_id, day)
          WHERE coalesce(sums.used, 0) <> coalesce(uses.used, 0)
            AND day > ${foldedDay}
            AND day >= (SELECT max(day) FROM end_user_use) - ${endUserUseKeepDays}`,
  ],
  [
    "I10",
    `
          SELECT account_id AS account, billing_key || ' is for an end user of another key, or none' AS detail FROM journal
          WHERE account_id > ${after} AND account_id <= ${last} AND end_user_id IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM end_users AS e
            WHERE e.account_id = journal.account_id AND e.id = end_user_id AND e.key_id = journal.key_id)`,
  ],
  [
    "I2",
    `
          SELECT account_id AS account, billing_key || ' has the wrong sign' AS detail FROM journal
          WHERE account_id > ${after} AND account_id <= ${last} AND CASE kind
            WHEN 'charge' THEN used < 0 OR credit_delta > 0
            WHEN 'credit' THEN used <> 0 OR credit_delta <= 0
            WHEN 'search' THEN used <> 1 OR credit_delta <> 0
            WHEN 'coder_call' THEN used <> 1 OR credit_delta <> 0
            ELSE used <> 0 OR credit_delta <> 0 END`,
  ],
  [
    "I5",
    `
          SELECT account_id AS account, billing_key || ' is billed ' || billed_tokens AS detail FROM journal
          WHERE account_id > ${after} AND account_id <= ${last} AND kind IN ('charge', 'coder_usage') AND (
            billed_tokens <> used - credit_delta OR billed_tokens <> (500 + 2 * (input_fresh * input_cents
              + input_cached * cached_input_cents + output * output_cents + ${fine} / 10000)
              + CASE WHEN ${fine} % 10000 >= 5000 THEN 1 ELSE 0 END) / 1000)`,
  ],
  [
    "I2",
    `
          SELECT account_id AS account, 'the sums of ' || kind || ' on day ' || day || ' have a wrong sign' AS detail
          FROM journal_folds WHERE account_id > ${after} AND account_id <= ${last} AND (lines < 1 OR CASE kind
            WHEN 'charge' THEN used < 0 OR credit_delta > 0
            WHEN 'coder_usage' THEN used <> 0 OR credit_delta <> 0
            ELSE used <> lines OR credit_delta <> 0 END)`,
  ],
  [
    "I5",
    `
          SELECT account_id AS account, 'the charges of day ' || day || ' are billed ' || billed_tokens AS detail
          FROM journal_folds WHERE account_id > ${after} AND account_id <= ${last} AND kind IN ('charge', 'coder_usage')
            AND billed_tokens <> used - credit_delta`,
  ],
  [
    "I10",
    `
          SELECT account_id AS account, 'the sums of day ' || day || ' belong to no account' AS detail FROM journal_folds
          WHERE account_id > ${after} AND account_id <= ${last} AND account_id NOT IN (SELECT id FROM accounts)`,
  ],
  [
    "I10",
    `
          SELECT account_id AS account, billing_key || ' belongs to no account' AS detail FROM journal
          WHERE account_id > ${after} AND account_id <= ${last} AND account_id NOT IN (SELECT id FROM accounts)`,
  ],
];
