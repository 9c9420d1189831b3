// What was served in a month or other days, summed up for people who account for it.
import { type Static, type TObject, Type } from "@sinclair/typebox";
import type { Unit } from "../../account/office.ts";
import type { AccountRecord } from "../../account/records.ts";
import { costUsd } from "../../account/money/price.ts";
import { namesOf } from "../../account/people/account-names.ts";
import { csvLine } from "../../core/csv.ts";
import { CommandError } from "../../core/expected-error.ts";
import type { ReportRow } from "../../core/report.ts";
import { type ReportColumn as Column, reportColumns, reportGroups } from "../../core/report-columns.ts";
import type { SchemaError } from "../../core/schema-errors.ts";
import type { AccountId, Ms } from "../../core/types.ts";
import { list, text } from "../fields.ts";
import { type Cell, formatTable } from "../table.ts";
import { verb } from "../verb.ts";
import type { Work } from "../work.ts";

/** Each day or month is asked for by itself. */
const periodsMax = 1_000;
const rowsMax = 200_000;

const columnOf = (word: string): Column | undefined =>
  reportColumns.find((column) => column === word.replaceAll("-", "_"));
const words = "month, day, account, team, member, model, endpoint, key, end-user, cost-center and tag";

const given = (description: string, placeholder: string) => Type.Optional(text(description, placeholder));

const fields = {
  month: given("A month such as 2026-10; this month unless you say otherwise.", "MONTH"),
  from: given("The first day instead, such as 2026-10-01.", "DAY"),
  to: given("The last day; today unless you say otherwise.", "DAY"),
  by: Type.Optional(list("COLUMNS", `What to sum by, with commas between: ${words}. Usually account.`)),
  time_zone: given("Whose days and months, such as Europe/Berlin; usually UTC.", "ZONE"),
  account: given("Of one account.", "EMAIL"),
  tag: given("Of requests with this tag.", "TAG"),
  cost_center: given("Of what is booked to one cost center.", "NAME"),
  csv: Type.Optional(Type.Boolean({ description: "Print CSV." })),
};

export type ReportInput = Readonly<Static<TObject<typeof fields>>>;

const sums = ["requests", "input", "cached", "output", "billed", "cost_usd"] as const;
export type Sums = Readonly<Record<(typeof sums)[number], number>>;
export type Row = Readonly<Partial<Record<Column, string | null>>> & Sums;

export const report = verb({
  name: "report",
  summary: "Sum up what was served in a month or other days",
  details:
    "Its sums are those of the journal, to the token. All tags of a request are one value. Lines that were folded have no tags and may have no end users, and their days are days of UTC.",
  fields,
  scope: "read",
  owner: true,
  problem,
  async run(work, { actor, input, progress }) {
    const who = actor.kind === "account" ? actor.account : null;
    const of = await work.office.read((unit) => reportSubject(unit, who, input.account));
    return reported(work, input, of?.id ?? null, rowsMax, progress);
  },
  print(rows: readonly Row[], input) {
    const by = columnsAsked(input);
    const cellsOf = cellsBy(by);
    if (input.csv) return reportCsv(rows, input).replaceAll("\r", "").trimEnd();
    return formatTable(
      [
        ...by.map((column) => column.replaceAll("_", " ")),
        "requests",
        "input",
        "cached",
        "output",
        "billed",
        "cost USD",
      ],
      [...rows.map(cellsOf), [...by.map((_, place) => (place === 0 ? "total" : "")), ...Object.values(summedUp(rows))]],
    );
  },
});

export default [report];

/**
 * Whose sums these are; null: of all accounts. `who`: somebody who is told of the own account, and of teams whose admin that one
 * is; null: who may ask for all. Throws CommandError for others.
 */
export async function reportSubject(
  { accounts }: Unit,
  who: AccountRecord | null,
  name = "",
): Promise<AccountRecord | null> {
  if (who === null) return name === "" ? null : accounts.ofEmail(name);
  const account = name === "" ? who : await accounts.recordOf(name);
  if (account?.id === who.id) return who;
  const role = account?.team === true ? (await accounts.member(account.id, who.id))?.role : null;
  if (role !== "admin") throw new CommandError("this is neither your account nor a team whose admin you are");
  return account;
}

/** `account` null: of all. Throws CommandError where the rows are too many, or folded days would be cut. */
export async function reported(
  { office, usage }: Pick<Work, "office" | "usage">,
  input: ReportInput,
  account: AccountId | null,
  rowsMax: number,
  progress: (day: string) => void = () => {},
): Promise<readonly Row[]> {
  const by = columnsAsked(input);
  const groups = reportGroups.filter((group) => by.includes(group));
  const { tag = null, cost_center: costCenter = null } = input;
  const found: (readonly [period: Period, row: ReportRow])[] = [];
  const periods = periodsOf(input, by);
  for (const { from, until, day, month } of periods) {
    const asked = { from, until, account, by: groups, tag, costCenter, rowsMax: rowsMax + 1 - found.length };
    const { rows, cutsFoldedDay } = await usage.report(asked);
    if (cutsFoldedDay)
      throw new CommandError(`of the days around ${day} only sums by UTC day are left; ask without a time zone`);
    for (const row of rows) found.push([{ from, until, day, month }, row]);
    if (found.length > rowsMax)
      throw new CommandError(`these are more than ${rowsMax} rows; ask for less time or fewer columns`);
    if (periods.length > 31) progress(day);
  }
  const nameOf = await namesOf(
    office,
    found.flatMap(([, { account, team, member }]) => [account, team, member].filter((id) => id !== null)),
  );
  return found.map(([{ month, day }, row]) => {
    const named = (id: AccountId | null): string | null => (id === null ? null : nameOf(id));
    const who = { account: named(row.account), team: named(row.team), member: named(row.member) };
    const names = { ...row, month, day, ...who };
    const { requests, input: read, cached, output, billed } = row;
    const sums = { requests, input: read, cached, output, billed, cost_usd: costUsd(billed) };
    return { ...(Object.fromEntries(by.map((column) => [column, names[column]])) as Partial<Row>), ...sums };
  });
}

export function summedUp(rows: readonly Row[]): Sums {
  const total = Object.fromEntries(sums.map((sum) => [sum, rows.reduce((all, row) => all + row[sum], 0)])) as Record<
    keyof Sums,
    number
  >;
  // Sums of dollars would not be what their balance tokens cost.
  return { ...total, cost_usd: costUsd(total.billed) };
}

const cellsBy =
  (by: readonly Column[]) =>
  (row: Row): Cell[] => [...by.map((column) => row[column] ?? null), ...sums.map((sum) => row[sum])];

export function reportCsv(rows: readonly Row[], input: ReportInput): string {
  const by = columnsAsked(input);
  return [[...by, ...sums], ...rows.map(cellsBy(by))].map(csvLine).join("");
}

/** In the order in which they were asked for. A key and an end user are an account's, whose name comes before theirs. */
export function columnsAsked({ by = ["account"] }: Pick<ReportInput, "by">): readonly Column[] {
  const asked = by.map((word) => columnOf(word)!);
  const owned = asked.findIndex((column) => column === "key" || column === "end_user");
  return [...new Set(owned < 0 || asked.includes("account") ? asked : asked.toSpliced(owned, 0, "account"))];
}

// ---------------------------------------------------------------- days and months

export type Period = Readonly<{ from: Ms; until: Ms; day: string; month: string }>;
type Days = Readonly<{ first: Temporal.PlainDate; last: Temporal.PlainDate; zone: string }>;

function problem(input: ReportInput): SchemaError | null {
  const wrong = (field: keyof ReportInput, problem: string): SchemaError => ({ path: [field], problem });
  const { by = [], month, from, to, time_zone: zone = "UTC" } = input;
  const unknown = by.find((word) => columnOf(word) === undefined);
  if (unknown !== undefined) return wrong("by", `must name ${words}, not ${JSON.stringify(unknown)}`);
  if (!isZone(zone)) return wrong("time_zone", `must be a time zone such as Europe/Berlin, is ${JSON.stringify(zone)}`);
  if (month !== undefined && !isMonth(month))
    return wrong("month", `must be a month such as 2026-10, is ${JSON.stringify(month)}`);
  for (const field of ["from", "to"] as const) {
    const day = input[field];
    if (day !== undefined && !isDay(day))
      return wrong(field, `must be a day such as 2026-10-01, is ${JSON.stringify(day)}`);
  }
  if (month !== undefined && (from ?? to) !== undefined) return wrong("month", "does not go with from and to");
  if (to !== undefined && from === undefined) return wrong("to", "needs from");
  const { first, last } = daysOf(input);
  if (Temporal.PlainDate.compare(first, last) > 0) return wrong("from", "must not be after to, or to come");
  const periods = { day: first.until(last).days, month: first.until(last, { largestUnit: "months" }).months };
  const unit = (["day", "month"] as const).find((unit) => by.includes(unit) && periods[unit] >= periodsMax);
  return unit === undefined ? null : wrong("from", `may be at most ${periodsMax} ${unit}s before to`);
}

const isDay = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text) && isRead(() => Temporal.PlainDate.from(text));
const isMonth = (text: string): boolean =>
  /^\d{4}-\d\d$/.test(text) && isRead(() => Temporal.PlainYearMonth.from(text));
/** Temporal takes the zone of a whole time, too, which dates in words do not. */
const isZone = (text: string): boolean => isRead(() => new Intl.DateTimeFormat("en", { timeZone: text }));

function isRead(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

function daysOf({ month, from, to, time_zone: zone = "UTC" }: ReportInput): Days {
  const today = Temporal.Now.plainDateISO(zone);
  if (from !== undefined) {
    return { first: Temporal.PlainDate.from(from), last: to === undefined ? today : Temporal.PlainDate.from(to), zone };
  }
  const asked = month === undefined ? today.toPlainYearMonth() : Temporal.PlainYearMonth.from(month);
  return { first: asked.toPlainDate({ day: 1 }), last: asked.toPlainDate({ day: asked.daysInMonth }), zone };
}

/** One period, or each day or month of it. */
export function periodsOf(input: ReportInput, by: readonly Column[]): readonly Period[] {
  const { first, last, zone } = daysOf(input);
  const periods: Period[] = [];
  for (let begin = first; Temporal.PlainDate.compare(begin, last) <= 0;) {
    const end = by.includes("day") ? begin : by.includes("month") ? begin.with({ day: begin.daysInMonth }) : last;
    const next = (Temporal.PlainDate.compare(end, last) < 0 ? end : last).add({ days: 1 });
    const [from, until] = [begin, next].map((day) => day.toZonedDateTime(zone).epochMilliseconds);
    periods.push({ from: from!, until: until!, day: begin.toString(), month: begin.toPlainYearMonth().toString() });
    begin = next;
  }
  return periods;
}
