// Sums up the replies of days that are over, once each: the usage page needs not read an account's lines of years. A day is
// summed when it has been over for an hour, by the server's clock; a line's time is taken under its account's lock and is on
// disk seconds later, so that none comes after that.
import { dayMs, hourMs } from "../../core/units.ts";
import type { Ms } from "../../core/types.ts";
import { statement } from "../questions.ts";
import { isReply } from "../usage/usage-sum.ts";
import type { Statement } from "./connection.ts";
import type { Database } from "./database.ts";

export const usageSums = ["requests", "input", "cached_input", "output", "reasoning", "billed_tokens"] as const;

const ofLines: Readonly<Record<(typeof usageSums)[number], string>> = {
  requests: "count(*)",
  input: "sum(input_fresh + input_cached)",
  cached_input: "sum(input_cached)",
  output: "sum(output)",
  reasoning: "sum(reasoning)",
  billed_tokens: "sum(billed_tokens)",
};

/** Of lines, or of what is summed already. As floats: they are below 2^53. */
export const sumsOf = (what: "lines" | "days"): string =>
  usageSums.map((column) => `${what === "lines" ? ofLines[column] : `sum(${column})`}::float8 AS ${column}`).join(", ");

/** The UTC day of a line. The remainder is taken off first: what `/` does with it, servers do not agree on. */
export const dayOfLine = `((at - at % ${dayMs}) / ${dayMs})::int`;
const mark = "coalesce((SELECT value FROM counters WHERE name = 'usage_day'), -1)";
/** Lines of days that are not summed yet. */
export const tailOf = `at >= (${mark} + 1) * ${dayMs}`;

export type Mark = Readonly<{ name: string; value: number }>;

/** `summed`: the last day that is; -1: none. Lines before `foldedAt` are folded. */
export function usageMarks(rows: readonly Mark[]): Readonly<{ summed: number; foldedAt: Ms }> {
  const values = new Map(rows.map(({ name, value }) => [name, value]));
  return { summed: values.get("usage_day") ?? -1, foldedAt: values.get("folded_at") ?? 0 };
}

const lockMark = statement(
  "lock usage mark",
  "SELECT value::float8 AS value FROM counters WHERE name = 'usage_day' FOR UPDATE",
);
const makeMark = statement(
  "make usage mark",
  "INSERT INTO counters (name, value) VALUES ('usage_day', -1) ON CONFLICT DO NOTHING",
);
const setMark = statement("set usage mark", "UPDATE counters SET value = $1::text::bigint WHERE name = 'usage_day'");
/** Of a day that is over for an hour, or nothing. */
const nextDay = statement(
  "next day",
  `SELECT floor(min(at) / ${dayMs}.0)::int AS day,
     floor((extract(epoch FROM clock_timestamp()) * 1000 - ${hourMs}) / ${dayMs})::int - 1 AS last
   FROM journal WHERE at >= ($1::text::bigint + 1) * ${dayMs}`,
);

const groups = "day, model, endpoint, key_id, end_user_id";
const addDay = (account: "account_id" | "0"): Statement =>
  statement(
    "add day",
    `INSERT INTO usage_days (account_id, ${groups}, ${usageSums.join(", ")})
     SELECT ${account}, $1::text::int, model, endpoint, key_id, ${account === "0" ? "0" : "coalesce(end_user_id, 0)"},
       ${usageSums.map((column) => ofLines[column]).join(", ")}
     FROM journal WHERE at >= $1::text::bigint * ${dayMs} AND at < ($1::text::bigint + 1) * ${dayMs} AND ${isReply}
     GROUP BY 1, 3, 4, 5, 6
     ON CONFLICT (account_id, ${groups}) DO UPDATE SET
       ${usageSums.map((column) => `${column} = usage_days.${column} + excluded.${column}`).join(", ")}`,
  );
const [ofAccounts, ofAll] = [addDay("account_id"), addDay("0")];

/** Sums up the next day that has lines and is over; says whether there may be more. */
export function sumNextDay(database: Database): Promise<boolean> {
  return database.change(async (send) => {
    await send(makeMark);
    const summed = (await send<Mark>(lockMark))[0]!.value;
    const { day, last } = (await send<Readonly<{ day: number | null; last: number }>>(nextDay, summed))[0]!;
    if (day === null || day > last) return false;
    await send(ofAccounts, day);
    await send(ofAll, day);
    await send(setMark, day);
    return true;
  });
}
