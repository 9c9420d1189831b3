// Sums up the replies of days that are over, once each: the usage page needs not read an account's lines of years. A day is
// summed when it has been over for an hour, by the server's clock; a line's time is taken under its account's lock and is on
// disk seconds later, so that none comes after that.
import { dayMs, hourMs } from "../../core/units.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { journalDisorderMs } from "../limits.ts";
import { statement } from "../questions.ts";
import { foldedSums, isReply, usageSums } from "../usage/usage-sum.ts";
import type { Statement } from "./connection.ts";
import type { Database } from "./database.ts";

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
const mark = "coalesce((SELECT value FROM counters WHERE name = 'served_day'), -1)";
/** Lines of days that are not summed yet. */
export const tailOf = `at >= (${mark} + 1) * ${dayMs}`;

export type Mark = Readonly<{ name: string; value: number }>;

/** `summed`: the last day that is; -1: none. Lines before `foldedAt` are folded. */
export function usageMarks(rows: readonly Mark[]): Readonly<{ summed: number; foldedAt: Ms }> {
  const values = new Map(rows.map(({ name, value }) => [name, value]));
  return { summed: values.get("served_day") ?? -1, foldedAt: values.get("folded_at") ?? 0 };
}

const lockMark = statement(
  "lock usage mark",
  "SELECT value::float8 AS value FROM counters WHERE name = 'served_day' FOR UPDATE",
);
const makeMark = statement(
  "make usage mark",
  "INSERT INTO counters (name, value) VALUES ('served_day', -1) ON CONFLICT DO NOTHING",
);
const setMark = statement("set usage mark", "UPDATE counters SET value = $1::text::bigint WHERE name = 'served_day'");
/** Of a day that is over for an hour, or nothing. An older program may have folded all lines of one that has no sums here. */
const nextDay = statement(
  "next day",
  `SELECT least(floor(min(at) / ${dayMs}.0)::int, (SELECT $1::text::int + 1 FROM counters
       WHERE name = 'folded_at' AND $1::text::int >= 0 AND value > ($1::text::bigint + 1) * ${dayMs})) AS day,
     floor((extract(epoch FROM clock_timestamp()) * 1000 - ${hourMs}) / ${dayMs})::int - 1 AS last
   FROM journal WHERE at >= ($1::text::bigint + 1) * ${dayMs}`,
);

const groups = "model, endpoint, key_id, end_user_id, cost_center";
const summed = usageSums.map((column) => `sum(${column})`).join(", ");
const firstOfMonth = "(date_trunc('month', date '1970-01-01' + day)::date - date '1970-01-01')";
const linesOf = (from: string, to: string, more = "", where = ""): string => `
  SELECT account_id, ${dayOfLine} AS day, model, endpoint, key_id, coalesce(end_user_id, 0) AS end_user_id,
    coalesce(cost_center, '') AS cost_center, 1 AS requests, input_fresh + input_cached AS input,
    input_cached AS cached_input, output, reasoning, billed_tokens ${more}
  FROM journal WHERE at >= ${from} * ${dayMs}::bigint AND at < (${to} + 1) * ${dayMs}::bigint AND ${isReply} ${where}`;

/**
 * What sums up the days from one to another, which have no sums yet. Of some, lines may be folded already; whether there are any
 * is known without a look.
 */
function summingUp(from: string, to: string): readonly Statement[] {
  const inDays = `day >= ${from} AND day <= ${to}`;
  const add = (into: string, of: string, account = "account_id", day = "day", tags = ""): Statement =>
    statement(
      `sum up ${into} of ${account}`,
      `INSERT INTO ${into} (account_id, day, ${groups}, ${usageSums.join(", ")}${tags})
       SELECT ${account}, ${day}, ${account === "0" ? groups.replace("end_user_id", "0") : groups}, ${summed}${tags}
       FROM ${of} GROUP BY 1, 2, 3, 4, 5, 6, 7${tags}
       ${tags === "" ? `ON CONFLICT (account_id, day, ${groups}) DO UPDATE SET ${added(into)}` : ""}`,
    );
  const folded = `SELECT * FROM (${foldedSums()}) AS folded
    WHERE ${inDays} AND coalesce((SELECT value FROM counters WHERE name = 'folded_at'), 0) + ${journalDisorderMs} > ${from} * ${dayMs}::bigint`;
  const tagged = linesOf(from, to, ", tags", "AND tags IS NOT NULL");
  return [
    add("served_days", `(${linesOf(from, to)} UNION ALL ${folded}) AS part`),
    add("served_days", `served_days WHERE account_id > 0 AND ${inDays}`, "0"),
    add("served_months", `served_days WHERE ${inDays}`, "account_id", firstOfMonth),
    add("tagged_days", `(${tagged}) AS part`, "account_id", "day", ", tags"),
  ];
}
const added = (table: string): string =>
  usageSums.map((column) => `${column} = ${table}.${column} + excluded.${column}`).join(", ");
const sumUp = summingUp("$1::text::int", "$1::text::int");

/** What follows where folded lines are there before the sums are: all days up to the last of which some are folded. */
const dayBeforeFolded = `(SELECT floor(value / ${dayMs}.0)::int - 1 FROM counters WHERE name = 'folded_at')`;
export const sumUpFolded: readonly Statement[] = [
  ...summingUp("0", dayBeforeFolded),
  statement(
    "mark folded days as summed",
    `INSERT INTO counters (name, value) SELECT 'served_day', day FROM ${dayBeforeFolded} AS mark (day) WHERE day >= 0`,
  ),
];

/** Sums up the next day that has lines and is over; says whether there may be more. */
export function sumNextDay(database: Database): Promise<boolean> {
  return database.change(async (send) => {
    await send(makeMark);
    const summed = (await send<Mark>(lockMark))[0]!.value;
    const { day, last } = (await send<Readonly<{ day: number | null; last: number }>>(nextDay, summed))[0]!;
    if (day === null || day > last) return false;
    for (const statement of sumUp) await send(statement, day);
    await send(setMark, day);
    return true;
  });
}

/** Tags are what programs wrote: none come back that are summed meanwhile, since their lines have lost them before. */
export function eraseTags(database: Database, account: AccountId): Promise<void> {
  return database.change(async (send) => {
    await send(lockMark);
    await send(removeTagged, account);
  });
}
const removeTagged = statement("erase tags", "DELETE FROM tagged_days WHERE account_id = $1::text::bigint");
