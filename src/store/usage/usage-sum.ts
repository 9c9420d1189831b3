// Sums of usage, as both stores read them from their rows.
import { type DayUsage, plus, type UsageStep, type UsageSum, type UsageSummary } from "../../account/usage-queries.ts";
import { type KeyId, noKey } from "../../core/types.ts";

/** Of a line of the journal. */
export const isReply = "kind IN ('charge', 'coder_usage')";

export const usageSums = ["requests", "input", "cached_input", "output", "reasoning", "billed_tokens"] as const;

/** Folded replies by day, in the columns of sums; what was booked to a cost center is taken from what is booked to none. */
export const foldedSums = (schema = ""): string => {
  const rows = (table: string, costCenter: string, sign = "", reasoning = "0") => `
    SELECT account_id, day, model, endpoint, key_id, 0 AS end_user_id, ${costCenter} AS cost_center,
      ${sign}lines AS requests, ${sign}(input_fresh + input_cached) AS input, ${sign}input_cached AS cached_input,
      ${sign}output AS output, ${reasoning} AS reasoning, ${sign}billed_tokens AS billed_tokens
    FROM ${schema}${table}`;
  const booked = [rows("cost_center_folds", "cost_center"), rows("cost_center_folds", "''", "-")];
  return [`${rows("journal_folds", "''", "", "reasoning")} WHERE ${isReply}`, ...booked].join(" UNION ALL ");
};

export type SumRow = Readonly<Record<(typeof usageSums)[number], number>>;

export const sumOf = ({ requests, input, cached_input, output, reasoning, billed_tokens }: SumRow): UsageSum => ({
  requests,
  input,
  cachedInput: cached_input,
  output,
  reasoning,
  billedTokens: billed_tokens,
});

export type FoundStep = SumRow & Readonly<{ at: number; name: string | number | null; label?: string | null }>;

export type EndUserRow = SumRow & Readonly<{ key_id: KeyId | null; name: string | null }>;

export const endUserOf = (row: EndUserRow): UsageSummary["endUsers"][number] => ({
  key: row.key_id ?? noKey,
  name: row.name,
  ...sumOf(row),
});

export const stepOf = ({ at, name, label, ...sums }: FoundStep): UsageStep => ({
  at,
  name: name === null ? null : String(name),
  ...(label === undefined ? {} : { label }),
  ...sumOf(sums),
});

/** What filters may name. */
export const namesIn = (
  rows: readonly Readonly<{ model: string; endpoint: string; key_id: KeyId }>[],
): Pick<UsageSummary, "models" | "endpoints" | "keys"> => ({
  models: [...new Set(rows.map(({ model }) => model))].sort(),
  endpoints: [...new Set(rows.map(({ endpoint }) => endpoint))].sort(),
  keys: [...new Set(rows.map(({ key_id }) => key_id))].sort((one, other) => one - other),
});

/** The name of a row of api_keys; in a team, behind whose it is. */
export const keyNameIn = (key: string, schema = ""): string =>
  `coalesce((SELECT email || ': ' FROM ${schema}accounts AS person WHERE person.id = ${key}.member_id), '') || ${key}.name`;

/** What a JournalReply has, of a line that goes by that name. */
export const replyColumns = (line: string): string =>
  `at::float8 AS at, billing_key AS "billingKey", endpoint, model, input_fresh::float8 AS "inputFresh",
  input_cached::float8 AS "inputCached", output::float8 AS output, reasoning::float8 AS reasoning,
  billed_tokens::float8 AS "billedTokens", estimated::int AS estimated, key_id AS "keyId",
  (SELECT ${keyNameIn("k")} FROM api_keys AS k WHERE k.account_id = ${line}.account_id AND k.id = ${line}.key_id) AS "keyName",
  (SELECT name FROM end_users AS e WHERE e.account_id = ${line}.account_id AND e.id = ${line}.end_user_id) AS "endUserName"`;

/** One for each day and model. */
export function dayUsageOf(rows: Iterable<SumRow & Readonly<{ day: number; model: string }>>): DayUsage[] {
  const days = new Map<string, DayUsage>();
  for (const { day, model, ...row } of rows) {
    const sum = sumOf(row);
    const other = days.get(`${day} ${model}`);
    days.set(`${day} ${model}`, { day, model, ...(other === undefined ? sum : plus(other, sum)) });
  }
  return [...days.values()];
}
