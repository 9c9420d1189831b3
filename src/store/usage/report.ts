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
/** Sums of all accounts together do not say whose they are. */
const ofEach: readonly ReportGroup[] = ["account", "team", "member", "key", "end_user"];

export function reportQuestion(
  asked: ReportAsked,
  served: Pick<ServedAsked, "summedTo" | "near">,
): readonly [Question, ...Value[]] {
  const { from, until, by, account, tag, costCenter, rowsMax } = asked;
  const groups = by.map((group) => columnsOf[group]);
  const values: Value[] = [rowsMax, tag, costCenter];
  const parts = servedParts(
    {
      ...served,
      from,
      until,
      account: account ?? (by.some((group) => ofEach.includes(group)) ? null : everyAccount),
      tags: tag !== null ? "only" : by.includes("tag") ? "all" : "none",
      eachDay: false,
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
      FROM (${parts}
      ) AS part
      WHERE ($2::text IS NULL OR replace(${listed}, ',' || $2::text || ',', '') <> ${listed})
        AND ($3::text IS NULL OR cost_center = $3::text)
      ${groups.length === 0 ? "" : `GROUP BY ${groups.join(", ")}`} HAVING sum(requests) > 0
    ) AS found
    ORDER BY ${["billed DESC", "requests DESC", ...groups].join(", ")} LIMIT $1::text::int`;
  return [statement("report", text), ...values];
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

/** `allowances`: what gives `account_id` and `used` of the day that is `$1`. */
export const nearLimit = (allowances: string): Question =>
  statement(
    "accounts near their limit",
    `WITH limits(plan, least) AS (${rowsIn(2, "text", "bigint")})
     SELECT today.account_id::float8 AS account, accounts.plan AS plan, today.used::float8 AS used
     FROM (${allowances}) AS today JOIN accounts ON accounts.id = today.account_id
       JOIN limits ON limits.plan = accounts.plan
     WHERE today.used >= limits.least AND accounts.credit <= 0 AND accounts.disabled_at IS NULL
     ORDER BY today.used DESC, today.account_id LIMIT $3::text::int`,
  );

const toldAtOnce = 500;

/** A limit of keys, their members or their end users, by the columns that the sums of their use are grouped by. */
const usedOf = (
  what: string,
  period: string,
  of: string,
  since: string,
  columns: string,
  limit: string,
  from: string,
) =>
  `SELECT '${what}', '${period}', ${columns}, sum(u.used)::bigint, ${limit}, ${since}
   FROM ${from} JOIN receivers AS a ON a.id = ${of} WHERE ${limit} > 0 AND u.day >= ${since} AND u.day <= $1::text::int`;

const itsUse = "JOIN key_use AS u ON u.account_id = k.account_id AND u.key_id = k.id";
const ofKeys = `api_keys AS k ${itsUse}`;
const ofMembers = `team_members AS t JOIN api_keys AS k ON k.account_id = t.team_id AND k.member_id = t.account_id ${itsUse}`;
const ofEndUsers = `end_user_use AS u JOIN end_users AS e ON e.account_id = u.account_id AND e.id = u.end_user_id
   JOIN api_keys AS k ON k.account_id = e.account_id AND k.id = e.key_id`;
const day = "$1::text::int";
const month = "$2::text::int";

const limitsOfKeys = (["day", "month"] as const).flatMap((period) => {
  const since = period === "day" ? day : month;
  const key = `k.account_id, k.id, k.member_id, k.name`;
  const member = `t.team_id, t.account_id, t.account_id, ''`;
  const [ofKey, ofMember] = ["k", "t"].map((of) => `${of}.tokens_per_${period}`);
  return [
    `${usedOf("key", period, "k.account_id", since, key, ofKey!, ofKeys)} AND k.revoked_at IS NULL
     GROUP BY k.account_id, k.id, k.member_id, k.name, ${ofKey}`,
    `${usedOf("member", period, "t.team_id", since, member, ofMember!, ofMembers)}
     GROUP BY t.team_id, t.account_id, ${ofMember}`,
  ];
});
const ofEndUser = "k.account_id, e.id, k.member_id, e.name";
const limitsOfEndUsers = `${usedOf("end_user", "day", "k.account_id", day, ofEndUser, "k.end_user_tokens_per_day", ofEndUsers)}
   AND e.name <> '' AND u.day = ${day} GROUP BY k.account_id, e.id, k.member_id, e.name, k.end_user_tokens_per_day`;

/** As `toTell` of MailQueries. */
export const toTell = (allowances: string): Question =>
  statement(
    "limits to tell of",
    `WITH limits(plan, most) AS (${rowsIn(3, "text", "bigint")}),
     receivers AS (SELECT * FROM accounts WHERE disabled_at IS NULL AND (mail_address IS NOT NULL OR team IS NOT NULL)),
     found(what, period, account, part, member, name, used, most, since) AS (
       SELECT 'allowance', 'day', a.id, 0, NULL::bigint, '', today.used, limits.most, ${day}::bigint
       FROM (${allowances}) AS today JOIN receivers AS a ON a.id = today.account_id JOIN limits ON limits.plan = a.plan
       UNION ALL
       SELECT 'credit', 'purchase', a.id, 0, NULL::bigint, '', a.credit_after_purchase - a.credit,
         a.credit_after_purchase, a.purchased_at FROM receivers AS a WHERE a.credit_after_purchase > 0
       UNION ALL ${[...limitsOfKeys, limitsOfEndUsers].join(" UNION ALL ")}),
     parts AS (SELECT *, CASE WHEN used * 100 >= most * 95 THEN 95 ELSE 80 END AS percent FROM found
       WHERE used * 100 >= most * 80),
     named AS (SELECT *, what || ' ' || period || ' ' || account || ' ' || part || ' ' || percent || ' ' || since AS once
       FROM parts)
     SELECT once, what, period, account::float8 AS account, member::float8 AS member, name, percent::int AS percent,
       used::float8 AS used, most::float8 AS most
     FROM named WHERE NOT EXISTS (SELECT 1 FROM mails WHERE mails.once = named.once)
     ORDER BY once LIMIT ${toldAtOnce}`,
  );

/** As `untold` of MailQueries. */
export const untold = statement(
  "accounts to tell",
  `SELECT id::float8 AS id FROM accounts
   WHERE disabled_at IS NULL AND (mail_address IS NOT NULL OR team IS NOT NULL) AND created_at < $3::text::bigint
     AND NOT EXISTS (SELECT 1 FROM mails WHERE mails.once = $1::text || accounts.id || $2::text)
   ORDER BY id LIMIT ${toldAtOnce}`,
);

/** Finds a folded day that the time has only a part of; null where it begins and ends with UTC days. */
export function cutDay({ from, until }: ReportAsked): readonly [Question, ...Value[]] | null {
  const days = [from, until].map((at) => (at % dayMs === 0 ? null : Math.floor(at / dayMs)));
  const text = `SELECT 1 AS found FROM journal_folds WHERE day IN ($1::text::int, $2::text::int) AND ${isReply} LIMIT 1`;
  return days.every((day) => day === null) ? null : [statement("cut day", text), ...days];
}
