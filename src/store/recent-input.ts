// How much of its input each model had in prefix caches of late, as engines reported it in the journal of either store.

/** In tokens; `accounts`: those that asked it. */
export type RecentInput = Readonly<{ model: string; accounts: number; input: number; cached: number }>;

const linesMax = 100_000;

/** `order`: the column by which the newest lines are found. */
export const recentInputSql = (order: "sequence" | "at"): string =>
  `SELECT model, CAST(count(DISTINCT account_id) AS double precision) AS accounts,
     CAST(sum(input_fresh + input_cached) AS double precision) AS input, CAST(sum(input_cached) AS double precision) AS cached
   FROM (SELECT model, account_id, input_fresh, input_cached FROM journal
     WHERE input_fresh > 0 ORDER BY ${order} DESC LIMIT ${linesMax}) AS recent
   GROUP BY model ORDER BY input DESC`;
