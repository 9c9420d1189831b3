// What was served in a time, as rows of one form from which reports and charts are summed: whole days from the sums that the
// store has by day, and the rest from the journal's lines. So a month costs as much as its days.
import { dayMs } from "../../core/units.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import type { Condition, Value } from "../questions.ts";
import { isReply } from "./usage-sum.ts";

export type ServedAsked = Readonly<{
  /** 0: all, together; null: each of them. */
  account: AccountId | null;
  from: Ms;
  until: Ms;
  /** Days before this one have their sums; 0: only lines are asked for. */
  summedTo: number;
  /** A condition that spares reading lines of other times, with its values behind those that are taken. */
  near(from: Ms, until: Ms, taken: number): Condition;
}>;

/** The SELECTs of its rows. Their values go behind those that `values` has. */
export function servedParts({ account, from, until, summedTo, near }: ServedAsked, values: Value[]): string {
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
  const ofDays = `
      SELECT day::bigint * ${dayMs} AS at, account_id, key_id, model, endpoint, end_user_id, NULL::text AS tags,
        NULL::text AS cost_center, requests, input, cached_input, output, reasoning, billed_tokens
      FROM usage_days
      WHERE day >= ${given(first)} AND day < ${given(last)} ${isOf || `AND account_id ${account === null ? ">" : "="} 0`}`;
  return [...ofLines, ofDays].join("\n      UNION ALL");
}
