// Folds old lines of the journal in PostgreSQL into sums by day, so that it does not grow forever: as `../ledger/folding.ts`
// does, but for the order of lines, which is that of their times. A slice is one statement that removes lines and adds them
// up, so that the sums are exact to the token whatever happens. Purchases stay, whose references must be known forever.
import { dayMs } from "../../core/units.ts";
import type { Ms } from "../../core/types.ts";
import { foldedBefore } from "../ledger/retention.ts";
import { type Send, statement } from "../questions.ts";
import { arrayOf } from "./connection.ts";
import type { Database } from "./database.ts";
import { dayOfLine, type Mark, usageMarks } from "./usage-days.ts";

const sums = [
  ...["lines", "used", "credit_delta", "input_fresh", "input_cached"],
  ...["output", "reasoning", "billed_tokens"],
] as const;
const costCenterSums = ["lines", "input_fresh", "input_cached", "output", "billed_tokens"] as const;

/** Folds a slice of the lines that are older than they are kept; says whether there may be more. */
export function fold(database: Database, keepDays: number, linesMax: number): Promise<boolean> {
  return database.change(async (send) => {
    await send(makeMark);
    const [clock] = await send<Readonly<{ now: Ms }>>(readClock);
    const { summed, foldedAt } = usageMarks(await send<Mark>(lockMarks));
    // What the usage page shows of a day is summed before its lines go.
    const before = Math.min(foldedBefore(clock!.now, keepDays), (summed + 1) * dayMs);
    if (before <= foldedAt) return forgetEndUsers(send, before, linesMax);
    const [folded] = await send<Readonly<{ lines: number; last: Ms | null }>>(foldLines, foldedAt, before, linesMax);
    const isAll = folded!.lines < linesMax;
    await send(setMark, isAll ? before : folded!.last!);
    return !isAll || forgetEndUsers(send, before, linesMax);
  });
}

/**
 * Sums do not say for whom, and have no tags: names go with their last lines. Their accounts are locked, as they are by work that adds a name
 * another line. An account's last number stays taken.
 */
async function forgetEndUsers(send: Send, before: Ms, namesMax: number): Promise<boolean> {
  const day = Math.floor(before / dayMs);
  await send(removeTags, day);
  const old = await send<Readonly<{ account: number }>>(oldEndUsers, day, namesMax);
  if (old.length === 0) return false;
  const accounts = arrayOf([...new Set(old.map(({ account }) => account))]);
  await send(lockAccounts, accounts);
  await send(removeEndUsers, accounts, day);
  await send(eraseEndUsers, accounts, day);
  return old.length === namesMax;
}

const makeMark = statement(
  "make folded mark",
  "INSERT INTO counters (name, value) VALUES ('folded_at', 0) ON CONFLICT DO NOTHING",
);
/** Who folds is alone: the mark says what is left. */
const lockMarks = statement(
  "lock folded mark",
  `SELECT name, value::float8 AS value FROM counters WHERE name IN ('served_day', 'folded_at')
   ORDER BY counters.name FOR UPDATE`,
);
const setMark = statement("set folded mark", "UPDATE counters SET value = $1::text::bigint WHERE name = 'folded_at'");
const readClock = statement("clock", "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now");

const foldLines = statement(
  "fold lines",
  `WITH old AS (
     SELECT billing_key FROM journal
     WHERE at >= $1::text::bigint AND at < $2::text::bigint AND kind <> 'credit' ORDER BY at LIMIT $3::text::int),
   gone AS (DELETE FROM journal WHERE billing_key IN (SELECT billing_key FROM old) RETURNING *),
   folded AS (
     INSERT INTO journal_folds (account_id, day, kind, period, model, endpoint, key_id, ${sums.join(", ")})
     SELECT account_id, ${dayOfLine}, kind, period, coalesce(model, ''), coalesce(endpoint, ''), key_id, count(*),
       sum(used), sum(credit_delta), coalesce(sum(input_fresh), 0), coalesce(sum(input_cached), 0),
       coalesce(sum(output), 0), coalesce(sum(reasoning), 0), coalesce(sum(billed_tokens), 0)
     FROM gone GROUP BY 1, 2, 3, 4, 5, 6, 7
     ON CONFLICT (account_id, day, kind, period, model, endpoint, key_id) DO UPDATE SET
       ${sums.map((column) => `${column} = journal_folds.${column} + excluded.${column}`).join(", ")}
     RETURNING 1),
   booked AS (
     INSERT INTO cost_center_folds (account_id, day, model, endpoint, key_id, cost_center, ${costCenterSums.join(", ")})
     SELECT account_id, ${dayOfLine}, model, endpoint, key_id, cost_center, count(*), sum(input_fresh),
       sum(input_cached), sum(output), sum(billed_tokens)
     FROM gone WHERE cost_center IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6
     ON CONFLICT (account_id, day, model, endpoint, key_id, cost_center) DO UPDATE SET
       ${costCenterSums.map((column) => `${column} = cost_center_folds.${column} + excluded.${column}`).join(", ")}
     RETURNING 1)
   SELECT count(*)::int AS lines, max(at)::float8 AS last FROM gone`,
);

const isOld = `last_day < $1::text::int AND (name IS NOT NULL
  OR id < (SELECT max(id) FROM end_users AS other WHERE other.account_id = end_users.account_id))`;
const oldEndUsers = statement(
  "old end users",
  `SELECT account_id::float8 AS account FROM end_users WHERE ${isOld} ORDER BY last_day LIMIT $2::text::int`,
);
const lockAccounts = statement(
  "lock accounts of end users",
  "SELECT 1 FROM accounts WHERE id = ANY($1::text::bigint[]) ORDER BY accounts.id FOR UPDATE",
);
const removeEndUsers = statement(
  "remove end users",
  `DELETE FROM end_users WHERE account_id = ANY($1::text::bigint[]) AND last_day < $2::text::int
     AND id < (SELECT max(id) FROM end_users AS other WHERE other.account_id = end_users.account_id)`,
);
const removeTags = statement("remove tags", "DELETE FROM tagged_days WHERE day < $1::text::int");
const eraseEndUsers = statement(
  "erase end users",
  `UPDATE end_users SET name = NULL
   WHERE account_id = ANY($1::text::bigint[]) AND last_day < $2::text::int AND name IS NOT NULL`,
);
