// What was served in a time, as rows of one form from which reports and charts are summed: whole months and days from the sums
// that the store has of them, and the rest from the journal's lines. So a month costs as much as what differs in it.
import { dayMs } from "../../core/units.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import type { Condition, Value } from "../questions.ts";
import { isReply, usageSums } from "./usage-sum.ts";

export type ServedAsked = Readonly<{
  /** 0: all, together; null: each of them. */
  account: AccountId | null;
  from: Ms;
  until: Ms;
  /**
   * Whether tags are told apart. There are as many sums by tags as programs like, so that other questions read none: what has
   * tags is taken from what has any. `only`: nothing else is asked for.
   */
  tags?: "none" | "all" | "only";
  /** Whether days are told apart. */
  eachDay: boolean;
  /** Days before this one have their sums; 0: only lines are asked for. */
  summedTo: number;
  /** A condition that spares reading lines of other times, with its values behind those that are taken. */
  near(from: Ms, until: Ms, taken: number): Condition;
}>;

/** The SELECTs of its rows. Their values go behind those that `values` has. */
export function servedParts(asked: ServedAsked, values: Value[]): string {
  const { account, from, until, tags = "none", eachDay, summedTo, near } = asked;
  const given = (value: Value): string => `$${values.push(value)}::text::bigint`;
  const first = Math.ceil(from / dayMs);
  const last = Math.max(first, Math.min(Math.floor(until / dayMs), summedTo));
  const edges = [[from, first * dayMs] as const, [last * dayMs, until] as const];
  const times = first === last ? [[from, until] as const] : edges.filter(([begin, end]) => begin < end);
  const isOf = account ? `AND account_id = ${given(account)}` : "";
  const ofLines = times.map(([begin, end]) => {
    const inTime = `at >= ${given(begin)} AND at < ${given(end)}`;
    const { where, values: places } = near(begin, end, values.length);
    values.push(...places);
    return `
      SELECT at, account_id, key_id, model, endpoint, coalesce(end_user_id, 0) AS end_user_id, tags, cost_center, 1 AS requests,
        input_fresh + input_cached AS input, input_cached AS cached_input, output, reasoning, billed_tokens
      FROM journal WHERE ${inTime} AND ${isReply} ${isOf} ${where}`;
  });
  if (first === last) return ofLines.join();
  const sumsIn = (table: string, tags: string, sign: string, where: string): string => `
      SELECT day::bigint * ${dayMs} AS at, account_id, key_id, model, endpoint, end_user_id, ${tags} AS tags,
        nullif(cost_center, '') AS cost_center, ${usageSums.map((sum) => `${sign}${sum} AS ${sum}`).join(", ")}
      FROM ${table} WHERE ${where} ${isOf || `AND account_id ${account !== null && table !== "tagged_days" ? "=" : ">"} 0`}`;
  const inDays = (begin: number, end: number): string => `day >= ${given(begin)} AND day < ${given(end)}`;
  const tagged = (...signs: readonly string[]): string[] => {
    const where = inDays(first, last);
    return signs.map((sign) => sumsIn("tagged_days", sign === "" ? "tags" : "NULL::text", sign, where));
  };
  if (tags === "only") return [...ofLines, ...tagged("")].join(union);
  const months = eachDay ? null : wholeMonths(first, last);
  const [monthsFrom, monthsTo] = [months?.[0] ?? last, months?.[1] ?? last];
  const ofDays = [[first, monthsFrom] as const, [monthsTo, last] as const]
    .filter(([begin, end]) => begin < end)
    .map(([begin, end]) => sumsIn("served_days", "NULL::text", "", inDays(begin, end)));
  const ofMonths = months === null ? [] : [sumsIn("served_months", "NULL::text", "", inDays(...months))];
  return [...ofLines, ...ofMonths, ...ofDays, ...(tags === "all" ? tagged("", "-") : [])].join(union);
}

const union = "\n      UNION ALL";

/** The calendar's, of UTC, that lie between two days. */
function wholeMonths(first: number, last: number): readonly [first: number, last: number] | null {
  const monthAt = (day: number, next: number): number => {
    const at = new Date(day * dayMs);
    return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + next, 1) / dayMs;
  };
  const begin = monthAt(first - 1, 1);
  const end = monthAt(last, 0);
  return begin < end ? [begin, end] : null;
}
