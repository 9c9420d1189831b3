// The report's question, as both stores ask it.
import { keyNameOf } from "../../account/people/key-names.ts";
import { everyAccount } from "../../account/usage-queries.ts";
import type { ReportAsked, ReportRow } from "../../core/report.ts";
import type { ReportGroup } from "../../core/report-columns.ts";
import type { AccountId, KeyId } from "../../core/types.ts";
import { dayMs } from "../../core/units.ts";
import { type Question, rowsIn, statement, type Value } from "../questions.ts";
import { type ServedAsked, servedParts } from "./served-parts.ts";
import { isReply, keyNameIn } from "./usage-sum.ts";

const columnsOf: Readonly<Record<ReportGroup, string>> = {
  account: "account_id",
  team: "team_id",
  member: "member_id",
  model: "model",
  endpoint: "endpoint",
  key: "key_id",
  end_user: "end_user_id",
  cost_center: "cost_center",
  tag: "tags",
};
/** Those that lines do not have themselves. */
const looked: Readonly<Partial<Record<ReportGroup, string>>> = {
  team: "(SELECT id FROM accounts AS t WHERE t.id = part.account_id AND t.team = 1) AS team_id",
  member:
    "(SELECT member_id FROM api_keys AS k WHERE k.account_id = part.account_id AND k.id = part.key_id) AS member_id",
};
const sums = ["requests", "input", "cached", "output", "billed"];
const columnOfSum: Readonly<Record<string, string>> = { cached: "cached_input", billed: "billed_tokens" };
/** What sums by day do not say, or no longer when their lines are folded. */
const ofLines: readonly ReportGroup[] = ["end_user", "cost_center", "tag"];
/** Sums of all accounts together do not say whose they are. */
const ofEach: readonly ReportGroup[] = ["account", "team", "member", "key"];

export function reportQuestion(
  asked: ReportAsked,
  served: Pick<ServedAsked, "summedTo" | "near">,
): readonly [Question, ...Value[]] {
  const { from, until, by, account, tag, costCenter, rowsMax } = asked;
  const groups = by.map((group) => columnsOf[group]);
  const needsLines = tag !== null || costCenter !== null || by.some((group) => ofLines.includes(group));
  const values: Value[] = [rowsMax, tag, costCenter];
  const parts = servedParts(
    {
      ...served,
      from,
      until,
      account: account ?? (by.some((group) => ofEach.includes(group)) ? null : everyAccount),
      summedTo: needsLines ? 0 : served.summedTo,
    },
    values,
  );
  const listed = "',' || tags || ','";
  const name = (group: ReportGroup, table: string): string =>
    by.includes(group)
      ? `(SELECT ${table === "api_keys" ? keyNameIn("named") : "name"} FROM ${table} AS named WHERE named.account_id = found.account_id AND named.id = found.${columnsOf[group]})`
      : "NULL";
  const text = `
    SELECT found.*, ${name("key", "api_keys")} AS key_name, ${name("end_user", "end_users")} AS end_user_name
    FROM (
      SELECT ${[...by.map((group) => looked[group] ?? columnsOf[group]), ...sums.map((sum) => `sum(${columnOfSum[sum] ?? sum})::float8 AS ${sum}`)].join(", ")}
      FROM (${parts}${needsLines ? folded(asked, values) : ""}
      ) AS part
      WHERE ($2::text IS NULL OR replace(${listed}, ',' || $2::text || ',', '') <> ${listed})
        AND ($3::text IS NULL OR cost_center = $3::text)
      ${groups.length === 0 ? "" : `GROUP BY ${groups.join(", ")}`} HAVING sum(requests) > 0
    ) AS found
    ORDER BY ${["billed DESC", "requests DESC", ...groups].join(", ")} LIMIT $1::text::int`;
  return [statement("report", text), ...values];
}

/** Days whose lines were folded. What was booked to a cost center is taken from what is booked to none. */
function folded({ from, until, by, account, costCenter }: ReportAsked, values: Value[]): string {
  const place = values.push(Math.ceil(from / dayMs), Math.floor(until / dayMs), account);
  const isOf = account === null ? `$${place}::text IS NULL` : `account_id = $${place}::text::bigint`;
  const inDays = `day >= $${place - 2}::text::int AND day < $${place - 1}::text::int AND ${isOf}`;
  const rows = (table: string, costCenter: string, sign = "", reasoning = "reasoning") => `
      UNION ALL
      SELECT day::bigint * ${dayMs}, account_id, key_id, model, endpoint, 0, NULL, ${costCenter}, ${sign}lines,
        ${sign}(input_fresh + input_cached), ${sign}input_cached, ${sign}output, ${reasoning}, ${sign}billed_tokens
      FROM ${table} WHERE ${inDays}`;
  const isBooked = by.includes("cost_center") || costCenter !== null;
  const booked = ["cost_center", "NULL"].map((of) => rows("cost_center_folds", of, of === "NULL" ? "-" : "", "0"));
  return `${rows("journal_folds", "NULL")} AND ${isReply}${isBooked ? booked.join("") : ""}`;
}

export type FoundSums = Readonly<
  Record<"requests" | "input" | "cached" | "output" | "billed", number> & {
    account_id?: AccountId;
    team_id?: AccountId | null;
    member_id?: AccountId | null;
    key_id?: KeyId;
    model?: string;
    endpoint?: string;
    cost_center?: string | null;
    tags?: string | null;
    key_name: string | null;
    end_user_name: string | null;
  }
>;

export const reportRowOf = ({
  account_id,
  team_id,
  member_id,
  key_id,
  model,
  endpoint,
  key_name,
  end_user_name,
  cost_center,
  tags,
  ...sums
}: FoundSums): ReportRow => ({
  // texts from PostgreSQL
  account: account_id === undefined ? null : Number(account_id),
  team: team_id == null ? null : Number(team_id),
  member: member_id == null ? null : Number(member_id),
  key: key_id === undefined ? null : keyNameOf(key_id, key_name),
  model: model ?? null,
  endpoint: endpoint ?? null,
  end_user: end_user_name || null,
  cost_center: cost_center ?? null,
  tag: tags ?? null,
  requests: sums.requests,
  input: sums.input,
  cached: sums.cached,
  output: sums.output,
  billed: sums.billed,
});

/** They are never folded. */
export const credits = statement(
  "credits",
  `SELECT at::float8 AS at, credit_delta::float8 AS tokens FROM journal
   WHERE kind = 'credit' AND account_id = $1::text::bigint AND at >= $2::text::bigint AND at < $3::text::bigint
   ORDER BY at, billing_key LIMIT $4::text::int`,
);

export const nearLimit = statement(
  "accounts near their limit",
  `WITH limits(plan, least) AS (${rowsIn(2, "text", "bigint")})
   SELECT quota_use.account_id::float8 AS account, accounts.plan AS plan, quota_use.used::float8 AS used
   FROM quota_use JOIN accounts ON accounts.id = quota_use.account_id JOIN limits ON limits.plan = accounts.plan
   WHERE quota_use.quota = 'allowance' AND quota_use.period = $1::text::int AND quota_use.used >= limits.least
     AND accounts.credit <= 0 AND accounts.disabled_at IS NULL
   ORDER BY quota_use.used DESC, quota_use.account_id LIMIT $3::text::int`,
);

/** Finds a folded day that the time has only a part of; null where it begins and ends with UTC days. */
export function cutDay({ from, until }: ReportAsked): readonly [Question, ...Value[]] | null {
  const days = [from, until].map((at) => (at % dayMs === 0 ? null : Math.floor(at / dayMs)));
  const text = `SELECT 1 AS found FROM journal_folds WHERE day IN ($1::text::int, $2::text::int) AND ${isReply} LIMIT 1`;
  return days.every((day) => day === null) ? null : [statement("cut day", text), ...days];
}
