// The report's question, as both stores ask it: of the journal's lines, and of the days whose lines were folded.
import { keyNameOf } from "../../account/people/key-names.ts";
import type { ReportAsked, ReportGroup, ReportRow } from "../../core/report.ts";
import type { AccountId, KeyId } from "../../core/types.ts";
import { dayMs } from "../../core/units.ts";

/** How a store writes what the two of them write differently. */
export type ReportForm = Readonly<{
  parameter(place: number): string;
  /** A sum, as a number of JavaScript. */
  number(sum: string): string;
  /** More that lines must meet, in SQL: it spares reading the others. */
  lines: string;
}>;

const columnsOf: Readonly<Record<ReportGroup, string>> = {
  account: "account_id",
  model: "model",
  endpoint: "endpoint",
  key: "key_id",
  end_user: "end_user_id",
};
const sums = ["requests", "input", "cached", "output", "billed"];
const isReply = "kind IN ('charge', 'coder_usage')";

/** Takes the times from and until, the first folded day and the one after the last, how many rows, and the account if one is asked for. */
export function reportText({ by, account }: ReportAsked, { parameter, number, lines }: ReportForm): string {
  const groups = by.map((group) => columnsOf[group]);
  const isAsked = account === null ? isReply : `account_id = ${parameter(6)} AND ${isReply}`;
  const name = (group: ReportGroup, table: string): string =>
    by.includes(group)
      ? `(SELECT name FROM ${table} AS named WHERE named.account_id = found.account_id AND named.id = found.${columnsOf[group]})`
      : "NULL";
  return `
    SELECT found.*, ${name("key", "api_keys")} AS key_name, ${name("end_user", "end_users")} AS end_user_name
    FROM (
      SELECT ${[...groups, ...sums.map((sum) => `${number(`sum(${sum})`)} AS ${sum}`)].join(", ")}
      FROM (
        SELECT account_id, key_id, model, endpoint, end_user_id, 1 AS requests, input_fresh + input_cached AS input,
          input_cached AS cached, output, billed_tokens AS billed
        FROM journal WHERE at >= ${parameter(1)} AND at < ${parameter(2)} AND ${isAsked} ${lines}
        UNION ALL
        SELECT account_id, key_id, model, endpoint, NULL, lines, input_fresh + input_cached, input_cached, output, billed_tokens
        FROM journal_folds WHERE day >= ${parameter(3)} AND day < ${parameter(4)} AND ${isAsked}
      ) AS part
      ${groups.length === 0 ? "HAVING count(*) > 0" : `GROUP BY ${groups.join(", ")}`}
    ) AS found
    ORDER BY ${["billed DESC", "requests DESC", ...groups].join(", ")} LIMIT ${parameter(5)}`;
}

export const reportValues = ({ from, until, rowsMax, account }: ReportAsked): number[] => [
  ...[from, until, Math.ceil(from / dayMs), Math.floor(until / dayMs), rowsMax],
  ...(account === null ? [] : [account]),
];

export type FoundSums = Readonly<
  Record<"requests" | "input" | "cached" | "output" | "billed", number> & {
    account_id?: AccountId;
    key_id?: KeyId;
    model?: string;
    endpoint?: string;
    key_name: string | null;
    end_user_name: string | null;
  }
>;

export const reportRowOf = ({
  account_id,
  key_id,
  model,
  endpoint,
  key_name,
  end_user_name,
  ...sums
}: FoundSums): ReportRow => ({
  account: account_id === undefined ? null : Number(account_id), // a text from PostgreSQL
  key: key_id === undefined ? null : keyNameOf(key_id, key_name),
  model: model ?? null,
  endpoint: endpoint ?? null,
  end_user: end_user_name || null,
  requests: sums.requests,
  input: sums.input,
  cached: sums.cached,
  output: sums.output,
  billed: sums.billed,
});

/** Finds a folded day that the time has only a part of; null where it begins and ends with UTC days. */
export function cutDayText({ from, until }: ReportAsked): string | null {
  const days = [from, until].filter((at) => at % dayMs !== 0).map((at) => Math.floor(at / dayMs));
  return days.length === 0
    ? null
    : `SELECT 1 FROM journal_folds WHERE day IN (${days.join(", ")}) AND ${isReply} LIMIT 1`;
}
