// The usage page and what of it the operators' pages show, from the journal in PostgreSQL: lines of an account are found by
// its times, and replies of days that are over are summed already (`usage-days.ts`). The sums also say on which days a filter
// finds anything, so that a rare model of an account with millions of replies is not looked for line by line.
import type { AccountsAsked, AccountsFound } from "../../account/accounts-page.ts";
import { foldedBetween, overTimeQuestion } from "../usage/over-time.ts";
import { cutDay, type FoundSums, reportQuestion, reportRowOf } from "../usage/report.ts";
import type { ServedAsked } from "../usage/served-parts.ts";
import {
  dayUsageOf,
  endUserOf,
  type EndUserRow,
  type FoundStep,
  isReply,
  namesIn,
  replyColumns,
  stepOf,
  sumOf,
  type SumRow,
  usageSums,
} from "../usage/usage-sum.ts";
import type {
  UsageAsked,
  UsageFilter,
  UsagePage,
  UsagePlace,
  UsageQueries,
  UsageSummary,
} from "../../account/usage-queries.ts";
import { accountsPage, type UseOf, type UseOfAll } from "../usage/accounts-page.ts";
import { everyAccount, noUsage, plus } from "../../account/usage-queries.ts";
import { type JournalReply, usageRowOf } from "../../account/usage-row.ts";
import type { ReportAsked, ReportPart } from "../../core/report.ts";
import { endUsersShownMax } from "../limits.ts";
import { dayMs } from "../../core/units.ts";
import { requestIdBeginning } from "../../core/request-log.ts";
import { type AccountId, type KeyId, type Ms } from "../../core/types.ts";
import { arrayOf, type Statement } from "./connection.ts";
import type { Database } from "./database.ts";
import { dayOfLine, eraseTags, type Mark, sumsOf, tailOf, usageMarks } from "./usage-days.ts";

type Line = JournalReply & Readonly<{ at: Ms; billingKey: string }>;
/** Conditions on lines, and their values; `$` in a condition stands for the place of its value. */
type Condition = readonly [sql: string, value: string | number];

export class PostgresUsage implements UsageQueries {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async page(account: AccountId, filter: UsageFilter, before: UsagePlace | null, limit: number): Promise<UsagePage> {
    const found = await this.#linesOf(account, filter, before, limit + 1);
    const beginning = requestIdBeginning(filter.text);
    if (beginning !== null) {
      const known = new Set(found.map(({ billingKey }) => billingKey));
      const named = await this.#named(account, filter, beginning, before, limit + 1);
      found.push(...named.filter(({ billingKey }) => !known.has(billingKey)));
      found.sort((one, other) => other.at - one.at || (one.billingKey < other.billingKey ? 1 : -1));
    }
    const shown = found.slice(0, limit);
    const last = shown.at(-1);
    return {
      rows: shown.map(usageRowOf),
      next: found.length > limit ? { at: last!.at, sequence: last!.billingKey } : null,
    };
  }

  async summary(account: AccountId, fromDay: number): Promise<UsageSummary> {
    type Row = SumRow & Readonly<{ day: number; model: string; endpoint: string; key_id: KeyId }>;
    const [rows, endUsers] = await Promise.all([
      this.#database.ask<Row>(sumsByDay(account === everyAccount), account, fromDay),
      account === everyAccount ? [] : this.#database.ask<EndUserRow>(topEndUsers, account, fromDay, endUsersShownMax),
    ]);
    return {
      days: dayUsageOf(rows.filter(({ day }) => day >= 0)),
      total: rows.map(sumOf).reduce(plus, noUsage),
      ...namesIn(rows),
      endUsers: endUsers.map(endUserOf),
    };
  }

  async overTime(asked: UsageAsked): ReturnType<UsageQueries["overTime"]> {
    const [from, until] = [asked.from, asked.until - 1].map((at) => Math.floor(at / dayMs));
    const found = this.#database.ask<FoundStep>(...overTimeQuestion(asked, await this.#served()));
    const folded = asked.stepMs < dayMs ? await this.#database.ask(foldedBetween, from!, until!) : [];
    return { steps: (await found).map(stepOf), onlyDays: folded.length > 0 };
  }

  async report(asked: ReportAsked): Promise<ReportPart> {
    const rows = await this.#database.ask<FoundSums>(...reportQuestion(asked, await this.#served()));
    const cut = cutDay(asked);
    return {
      rows: rows.map(reportRowOf),
      cutsFoldedDay: cut !== null && (await this.#database.ask(...cut)).length > 0,
    };
  }

  accounts(asked: AccountsAsked): Promise<AccountsFound> {
    return accountsPage((question, ...values) => this.#database.ask(question, ...values), asked, useOf, useOfAll);
  }

  /** As that of `usageInFile`. */
  erase(account: AccountId): Promise<void> {
    return eraseTags(this.#database, account);
  }

  async close(): Promise<void> {}

  /** There is an index by time. */
  async #served(): Promise<Pick<ServedAsked, "summedTo" | "near">> {
    const { summed } = usageMarks(await this.#database.ask<Mark>(readMarks));
    return { summedTo: summed + 1, near: () => ({ where: "", values: [] }) };
  }

  async #linesOf(account: AccountId, filter: UsageFilter, before: UsagePlace | null, limit: number): Promise<Line[]> {
    const conditions = conditionsOf(account, filter);
    const ranges = await this.#rangesOf(account, filter, conditions, before, limit);
    if (ranges.length === 0) return [];
    const lows = arrayOf(ranges.map(([low]) => low));
    const highs = arrayOf(ranges.map(([, high]) => high));
    const place = before ?? newest;
    const { where, values } = placed(conditions, 6);
    const statement: Statement = {
      name: "usage page",
      text: `SELECT l.* FROM unnest($2::text::bigint[], $3::text::bigint[]) AS ranges (low, high)
        CROSS JOIN LATERAL (
          SELECT ${lineColumns} FROM journal AS line
          WHERE account_id = $1::text::bigint AND at >= low AND at < high AND ${isBefore(4)} AND ${isReply} ${where}
          ORDER BY at DESC, billing_key DESC LIMIT $6::text::int) AS l
        ORDER BY l.at DESC, l."billingKey" DESC LIMIT $6::text::int`,
    };
    const given = [account, lows, highs, place.at, String(place.sequence), limit, ...values];
    return [...(await this.#database.ask<Line>(statement, ...given))];
  }

  /**
   * Times in which the newest lines are that fit: days that are not summed yet, and of the others as many as have them. Days
   * whose lines were folded have none.
   */
  async #rangesOf(
    account: AccountId,
    filter: UsageFilter,
    conditions: readonly Condition[],
    before: UsagePlace | null,
    limit: number,
  ): Promise<readonly (readonly [low: Ms, high: Ms])[]> {
    const [from, to] = [filter.from ?? 0, Math.min(filter.to ?? newest.at, (before ?? newest).at + 1)];
    const { summed, foldedAt } = usageMarks(await this.#database.ask<Mark>(readMarks));
    const summedTo = (summed + 1) * dayMs;
    const ranges: (readonly [Ms, Ms])[] = [[Math.max(from, summedTo), to]];
    if (from < summedTo) {
      const { where, values } = placed(conditions, 3);
      const statement: Statement = {
        name: "usage days",
        text: `SELECT day, sum(requests)::float8 AS requests FROM served_days AS line
          WHERE account_id = $1::text::bigint AND day >= $2::text::int AND day <= $3::text::int ${where}
          GROUP BY day ORDER BY day DESC`,
      };
      const [first, last] = [Math.floor(Math.max(from, foldedAt) / dayMs), Math.min(summed, Math.floor(to / dayMs))];
      type Day = Readonly<{ day: number; requests: number }>;
      const days = await this.#database.ask<Day>(statement, account, first, last, ...values);
      let requests = 0;
      for (const row of days) {
        const [low, high] = [row.day * dayMs, (row.day + 1) * dayMs];
        ranges.push([Math.max(low, from), Math.min(high, to)]);
        // A partly requested day has an unknown number of them.
        if (low >= from && high <= to) requests += row.requests;
        if (requests >= limit) break;
      }
    }
    return ranges.filter(([low, high]) => low < high);
  }

  /** Those whose request ids begin so. */
  async #named(
    account: AccountId,
    filter: UsageFilter,
    beginning: string,
    before: UsagePlace | null,
    limit: number,
  ): Promise<Line[]> {
    const place = before ?? newest;
    const { where, values } = placed(conditionsOf(account, { ...filter, text: "" }), 8);
    const statement: Statement = {
      name: "usage by request",
      text: `SELECT ${lineColumns} FROM journal AS line
        WHERE account_id = $1::text::bigint AND billing_key >= $2::text AND billing_key < $3::text
          AND ${isBefore(4)} AND at >= $6::text::bigint AND at < $7::text::bigint AND ${isReply} ${where}
        ORDER BY at DESC, billing_key DESC LIMIT $8::text::int`,
    };
    const given = [account, beginning, `${beginning}{`, place.at, String(place.sequence)] as const;
    const times = [filter.from ?? 0, filter.to ?? newest.at, limit] as const;
    return [...(await this.#database.ask<Line>(statement, ...given, ...times, ...values))];
  }
}

const newest: UsagePlace = { at: Number.MAX_SAFE_INTEGER, sequence: "" };

const readMarks: Statement = {
  name: "usage marks",
  text: "SELECT name, value::float8 AS value FROM counters WHERE name IN ('served_day', 'folded_at')",
};

/** Before the place whose time and billing key are parameters from `first` on. */
const isBefore = (first: number): string =>
  `at <= $${first}::text::bigint AND (at, billing_key) < ($${first}::text::bigint, $${first + 1}::text)`;

const lineColumns = replyColumns("line");

/** On columns that lines and the sums of days both have. */
function conditionsOf(account: AccountId, { model, endpoint, key, endUser = null, text }: UsageFilter): Condition[] {
  const conditions: Condition[] = [];
  if (model !== null) conditions.push(["model = $::text", model]);
  if (endpoint !== null) conditions.push(["endpoint = $::text", endpoint]);
  if (key !== null) conditions.push(["key_id = $::text::int", key]);
  if (endUser !== null) {
    const ids = `SELECT id FROM end_users WHERE account_id = ${account} AND name = $::text`;
    conditions.push([`end_user_id IN (${ids})`, endUser]);
  }
  // In the order of bytes, LOWER knows ASCII letters alone.
  if (text !== "") {
    const part = text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
    conditions.push(['position($::text IN lower(model COLLATE "C")) > 0', part]);
  }
  return conditions;
}

/** Their SQL, with the values as parameters behind the first `taken`. */
function placed(conditions: readonly Condition[], taken: number) {
  const where = conditions.map(([sql], index) => `AND ${sql.replace("$", () => `$${taken + index + 1}`)}`).join(" ");
  return { where, values: conditions.map(([, value]) => value) };
}

/** Of days from the second parameter on each by itself, and of those before together as day -1. */
const sumsByDay = (ofAll: boolean): Statement => ({
  name: "usage by day",
  text: `WITH parts AS (
      SELECT day, model, endpoint, key_id, ${usageSums.join(", ")} FROM served_days WHERE account_id = $1::text::bigint
      UNION ALL
      SELECT ${dayOfLine} AS day, model, endpoint, key_id, ${sumsOf("lines")} FROM journal
      WHERE ${ofAll ? "$1::text::bigint = 0" : "account_id = $1::text::bigint"} AND ${tailOf} AND ${isReply}
      GROUP BY 1, 2, 3, 4)
    SELECT CASE WHEN day >= $2::text::int THEN day ELSE -1 END AS day, model, endpoint, key_id, ${sumsOf("days")}
    FROM parts GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`,
});

const topEndUsers: Statement = {
  name: "top end users",
  text: `WITH parts AS (
      SELECT end_user_id, ${usageSums.join(", ")} FROM served_days
      WHERE account_id = $1::text::bigint AND day >= $2::text::int AND end_user_id > 0
      UNION ALL
      SELECT end_user_id, ${sumsOf("lines")} FROM journal
      WHERE account_id = $1::text::bigint AND ${tailOf} AND at >= $2::text::bigint * ${dayMs}
        AND end_user_id IS NOT NULL AND ${isReply}
      GROUP BY 1),
    sums AS (
      SELECT end_user_id, ${sumsOf("days")} FROM parts GROUP BY 1
      ORDER BY billed_tokens DESC, requests DESC, end_user_id LIMIT $3::text::int)
    SELECT sums.*, e.key_id, e.name FROM sums
    LEFT JOIN end_users AS e ON e.account_id = $1::text::bigint AND e.id = end_user_id
    ORDER BY billed_tokens DESC, requests DESC, end_user_id`,
};

/** Of days that are summed, and of the lines of the others. */
const useOf: UseOf = (sum, fromDay) =>
  `(SELECT coalesce(sum(used), 0) FROM (
    SELECT ${sum === "tokens" ? "input + output" : sum} AS used FROM served_days
    WHERE served_days.account_id = a.id AND day >= ${fromDay}::text::int
    UNION ALL SELECT ${sum === "tokens" ? "input_fresh + input_cached + output" : sum} FROM journal
    WHERE journal.account_id = a.id AND ${tailOf} AND at >= ${fromDay}::text::bigint * ${dayMs} AND ${isReply}) AS part)`;

const useOfAll: UseOfAll = (fromDay) =>
  `SELECT account_id, sum(billed_tokens) AS billed_tokens, sum(tokens) AS tokens FROM (
    SELECT account_id, billed_tokens, input + output AS tokens FROM served_days
    WHERE account_id > 0 AND day >= ${fromDay}::text::int
    UNION ALL SELECT account_id, billed_tokens, input_fresh + input_cached + output FROM journal
    WHERE ${tailOf} AND at >= ${fromDay}::text::bigint * ${dayMs} AND ${isReply}) AS part GROUP BY account_id`;
