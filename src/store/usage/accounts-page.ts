// The operators' list of accounts, as both stores answer it: sorted and filtered by the database, a page at a time. What is
// shown of an account's use is summed for the accounts of the page alone, unless the list is sorted by it.
import type { AccountLine, AccountsAsked, AccountsFound } from "../../account/accounts-page.ts";
import type { AccountSort } from "../../core/account-columns.ts";
import { type Question, rowsIn, rowsText, statement, type Value } from "../questions.ts";

/** SQL for a sum over the replies of the account `a`, from the day that the parameter has. */
export type UseOf = (sum: "billed_tokens" | "tokens", fromDay: "$1" | "$2") => string;
/** The same of all accounts, by `account_id`, where that is faster than account by account. */
export type UseOfAll = (fromDay: "$1" | "$2") => string;

const active = `(SELECT max(at) FROM (
  SELECT a.key_used_at AS at
  UNION ALL SELECT max(used_at) FROM api_keys WHERE api_keys.account_id = a.id
  UNION ALL SELECT max(used_at) FROM sessions WHERE sessions.account_id = a.id) AS used)`;
const limit = `(coalesce((SELECT used FROM quota_use WHERE quota_use.account_id = a.id AND quota = 'allowance'
  AND period = $1::text::int), 0) * 1000 / (SELECT tokens FROM allowances WHERE allowances.plan = a.plan))`;

const sortedBy: Readonly<Record<Exclude<AccountSort, "today" | "month">, string>> = {
  email: 'lower(a.email COLLATE "C")',
  plan: 'a.plan COLLATE "C"',
  state: "(CASE WHEN a.disabled_at IS NULL THEN 0 ELSE 1 END)",
  active,
  credit: "a.credit",
  created: "a.created_at",
  cost_center: 'a.cost_center COLLATE "C"',
  limit,
};

const fits = `strpos(lower(a.email COLLATE "C"), lower($3::text COLLATE "C")) > 0
  AND ($4::text IS NULL OR a.plan = $4::text)
  AND CASE coalesce($5::text, '') WHEN 'active' THEN a.disabled_at IS NULL WHEN 'disabled' THEN a.disabled_at IS NOT NULL
    WHEN 'operator' THEN a.operator WHEN 'team' THEN a.team = 1 ELSE true END
  AND ($6::text IS NULL OR a.id IN (
    SELECT member.account_id FROM team_members AS member JOIN accounts AS team ON team.id = member.team_id
    WHERE lower(team.email COLLATE "C") = lower($6::text COLLATE "C")))`;

/** No look at each account: few have used much. */
function usedAtLeast(least: AccountsAsked["usedLeast"]): string {
  if (least === null) return "$8::text IS NULL";
  if (least === 0) return "$8::text IS NOT NULL AND a.plan IN (SELECT plan FROM allowances)";
  return `(a.id, a.plan) IN (SELECT quota_use.account_id, allowances.plan FROM quota_use JOIN allowances
    ON quota_use.used * 1000 / allowances.tokens >= $8::text::int
    WHERE quota_use.quota = 'allowance' AND quota_use.period = $1::text::int)`;
}

const fewAccounts = 5_000;

function questionOf({ sort, isDown, usedLeast }: AccountsAsked, useOf: UseOf, useOfAll: UseOfAll | null): Question {
  const fromDay = sort === "today" ? "$1" : "$2";
  const isByUse = sort === "today" || sort === "month";
  // Where nothing is billed, tokens of models are shown.
  const keys = isByUse ? [useOf("billed_tokens", fromDay), useOf("tokens", fromDay)] : [sortedBy[sort]];
  const names = keys.map((_, at) => `key${at}`);
  const where = `accounts AS a WHERE ${fits} AND ${usedAtLeast(usedLeast)}`;
  const each = keys.map((key, at) => `, ${key} AS ${names[at]}`).join("");
  // The sums of few accounts are looked up, and those of many made in one go. No join: its planner, which cannot tell how many
  // accounts fit, might look at all sums for each.
  const found =
    useOfAll !== null && isByUse
      ? `SELECT a.id AS id${each} FROM fitting AS a WHERE (SELECT count(*) <= ${fewAccounts} FROM fitting)
        UNION ALL SELECT id, sum(billed_tokens), sum(tokens) FROM (
          SELECT id, 0 AS billed_tokens, 0 AS tokens, 1 AS fits FROM fitting
          UNION ALL SELECT used.*, 0 FROM (${useOfAll(fromDay)}) AS used) AS part
        WHERE (SELECT count(*) > ${fewAccounts} FROM fitting) GROUP BY id HAVING sum(fits) = 1`
      : `SELECT a.id AS id${each} FROM ${where}`;
  const order = [...names.map((name) => `${name} ${isDown ? "DESC" : "ASC"} NULLS LAST`), "id"].join(", ");
  return statement(
    "accounts page",
    `WITH allowances(plan, tokens) AS (${rowsIn(7, "text", "bigint")}),
      fitting AS MATERIALIZED (SELECT a.id FROM ${where}),
      found AS MATERIALIZED (${found}),
      page AS (SELECT * FROM found ORDER BY ${order} LIMIT $9::text::int OFFSET $10::text::bigint)
    SELECT counted.total::int AS total, a.id::float8 AS id, a.email AS email, a.plan AS plan, a.credit::float8 AS credit,
      a.operator::int AS operator, a.team::int AS team, a.disabled_at::float8 AS disabled_at,
      a.created_at::float8 AS created_at, a.cost_center AS cost_center,
      (SELECT string_agg(team.email, ', ') FROM team_members AS member JOIN accounts AS team ON team.id = member.team_id
        WHERE member.account_id = a.id) AS teams,
      ${active}::float8 AS active_at, ${limit}::float8 AS used,
      ${useOf("billed_tokens", "$1")}::float8 AS today, ${useOf("tokens", "$1")}::float8 AS today_tokens,
      ${useOf("billed_tokens", "$2")}::float8 AS month, ${useOf("tokens", "$2")}::float8 AS month_tokens
    FROM (SELECT count(*) AS total FROM found) AS counted
      LEFT JOIN page ON true LEFT JOIN accounts AS a ON a.id = page.id
    ORDER BY ${order.replace(/id$/, "page.id")}`,
  );
}

type Row = Readonly<{
  total: number;
  /** Null: no account is on the page. */
  id: number | null;
  email: string;
  plan: string;
  credit: number;
  operator: 0 | 1;
  team: 1 | null;
  disabled_at: number | null;
  created_at: number;
  cost_center: string | null;
  teams: string | null;
  active_at: number | null;
  used: number | null;
  today: number;
  today_tokens: number;
  month: number;
  month_tokens: number;
}>;

export async function accountsPage(
  ask: (question: Question, ...values: readonly Value[]) => readonly Row[] | Promise<readonly Row[]>,
  asked: AccountsAsked,
  useOf: UseOf,
  useOfAll: UseOfAll | null = null,
): Promise<AccountsFound> {
  const { text, plan, state, team, usedLeast, allowances, today, monthStart, page, pageRows } = asked;
  const values = [today, monthStart, text, plan, state, team, rowsText(allowances), usedLeast, pageRows];
  const found = await ask(questionOf(asked, useOf, useOfAll), ...values, (page - 1) * pageRows);
  const { total } = found[0]!;
  const last = Math.max(1, Math.ceil(total / pageRows));
  if (page > last) return accountsPage(ask, { ...asked, page: last }, useOf, useOfAll);
  return { rows: total === 0 ? [] : found.map(lineOf), total, page };
}

const lineOf = (row: Row): AccountLine => ({
  id: row.id!,
  email: row.email,
  plan: row.plan,
  credit: row.credit,
  operator: row.operator === 1,
  team: row.team === 1,
  disabled: row.disabled_at !== null,
  created_at: new Date(row.created_at).toISOString(),
  costCenter: row.cost_center,
  teams: row.teams,
  activeAt: row.active_at,
  today: row.today,
  todayTokens: row.today_tokens,
  month: row.month,
  monthTokens: row.month_tokens,
  limit: row.used === null ? null : Math.floor(row.used),
});
