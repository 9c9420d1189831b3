// Sums of what was served by steps of time, as both stores ask for them: those with the most each by its name, and the rest of
// them as one.
import { everyAccount, type UsageAsked } from "../../account/usage-queries.ts";
import type { UsageSplit } from "../../core/over-time.ts";
import { dayMs } from "../../core/units.ts";
import { type Question, statement, type Value } from "../questions.ts";
import { type ServedAsked, servedParts } from "./served-parts.ts";
import { isReply, usageSums } from "./usage-sum.ts";

const usageNamesMax = 50;

const nameOf: Readonly<Record<UsageSplit, string>> = {
  model: "model",
  key: "key_id",
  endpoint: "endpoint",
  end_user: "end_user_id",
  account: "account_id",
};

export function overTimeQuestion(
  asked: UsageAsked,
  served: Pick<ServedAsked, "summedTo" | "near">,
): readonly [Question, ...Value[]] {
  const { account, from, stepMs, by, filter } = asked;
  const values: Value[] = [from, stepMs, usageNamesMax];
  const { model, endpoint, key, endUser = null } = filter;
  // Sums of all accounts together say no more of a key than its number, and nothing of end users.
  const needsEach = by === "account" || by === "key" || by === "end_user" || key !== null || endUser !== null;
  const isOfEach = account === everyAccount && needsEach;
  const summedTo = stepMs < dayMs ? 0 : served.summedTo;
  const parts = servedParts(
    { ...asked, ...served, account: isOfEach ? null : account, summedTo, eachDay: true },
    values,
  );
  const given = (value: Value, type: "text" | "bigint"): string =>
    `$${values.push(value)}::text${type === "text" ? "" : `::${type}`}`;
  const where = [
    model === null ? "" : `AND model = ${given(model, "text")}`,
    endpoint === null ? "" : `AND endpoint = ${given(endpoint, "text")}`,
    key === null ? "" : `AND key_id = ${given(key, "bigint")}`,
    endUser === null
      ? ""
      : `AND end_user_id IN (SELECT id FROM end_users AS named WHERE named.account_id = served.account_id AND named.name = ${given(endUser, "text")})`,
  ].join(" ");
  const name = by === "key" && account === everyAccount ? "account_id::text || ' ' || key_id::text" : nameOf[by];
  const added = usageSums.map((sum) => `sum(${sum})::float8 AS ${sum}`).join(", ");
  const label = `(SELECT name FROM end_users AS named WHERE named.account_id = ${account} AND named.id = found.name)`;
  const text = `
    WITH part AS (
      SELECT at - (at - $1::text::bigint) % $2::text::bigint AS step, ${name} AS name, ${added}
      FROM (${parts}) AS served WHERE true ${where} GROUP BY 1, 2),
    places AS (
      SELECT name, row_number() OVER (
        ORDER BY sum(billed_tokens) DESC, sum(input + output) DESC, sum(requests) DESC, name) AS place
      FROM part GROUP BY name)
    SELECT found.*${by === "end_user" ? `, ${label} AS label` : ""} FROM (
      SELECT step::float8 AS at, CASE WHEN place <= $3::text::int THEN part.name END AS name, ${added}
      FROM part JOIN places ON places.name = part.name GROUP BY 1, 2) AS found`;
  return [statement("usage over time", text), ...values];
}

/** Whether lines of a time are folded. */
export const foldedBetween = statement(
  "folded between",
  `SELECT 1 AS found FROM journal_folds WHERE day >= $1::text::int AND day <= $2::text::int AND ${isReply} LIMIT 1`,
);
