// What a move carries between a data folder and a database: the tables that both have, column by column, and sums by which the
// two are compared.
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import { type Column, columnTypes, tableNames, tables } from "../tables.ts";

export type MovedTable = Readonly<{
  name: string;
  /** Columns that both have, with the type that the database gives them. */
  columns: readonly Readonly<{ name: string; type: string }>[];
}>;

export const movedTables: readonly MovedTable[] = tableNames.map((name) => ({
  name,
  columns: Object.entries<Column>(tables[name].columns).map(([column, { kind }]) => ({
    name: column,
    type: columnTypes[kind].postgres,
  })),
}));

/** Columns of a table of the database alone. */
export const columnsOf = (table: PgTable): MovedTable["columns"] =>
  getTableConfig(table).columns.map((column) => ({ name: column.name, type: column.getSQLType().split(" ")[0]! }));

/** Sums that are the same in both, as SQL that both read; `quotas`: where what was used of quotas is. */
export const movedSums = (quotas: string): readonly (readonly [what: string, sql: string])[] => {
  const sums: Readonly<Record<string, readonly string[]>> = {
    accounts: ["credit", "id"],
    key_use: ["used"],
    end_user_use: ["used"],
    journal: ["used", "credit_delta", "billed_tokens", "input_fresh", "output"],
    journal_folds: ["lines", "used", "credit_delta", "billed_tokens"],
    cost_center_folds: ["lines", "billed_tokens"],
    payments: ["tokens"],
    search_calls: ["calls"],
  };
  return [
    ...movedTables
      .filter(({ name }) => name !== "quota_use")
      .map(({ name }) => {
        const columns = (sums[name] ?? []).map((column) => `coalesce(sum(${column}), 0)`);
        return [
          name,
          ["count(*)", ...columns].map((sum) => `CAST(${sum} AS text)`).join(" || ' ' || ") + ` AS sums FROM ${name}`,
        ] as const;
      })
      .map(([name, rest]) => [name, `SELECT ${rest}`] as const),
    ["quota_use", `SELECT CAST(coalesce(sum(used), 0) AS text) AS sums FROM (${quotas}) AS uses`],
  ];
};

export const quotasInFolder = "SELECT used FROM quota_use";
/** In the database the period that an account is in is in its row. */
export const periodColumns = [
  ["allowance", "allowance_day", "allowance_used"],
  ["coder_calls", "coder_window", "coder_used"],
  ["searches", "searches_day", "searches_used"],
] as const;
const kept = `SELECT account_id, quota, period, used FROM quota_use AS kept WHERE NOT EXISTS (
  SELECT 1 FROM accounts WHERE id = kept.account_id AND kept.period = CASE kept.quota
    WHEN 'allowance' THEN allowance_day WHEN 'coder_calls' THEN coder_window ELSE searches_day END)`;
export const quotasInDatabase = [
  kept,
  ...periodColumns.map(
    ([quota, period, used]) =>
      `SELECT id AS account_id, '${quota}' AS quota, ${period} AS period, ${used} AS used FROM accounts WHERE ${period} >= 0 AND ${used} > 0`,
  ),
].join(" UNION ALL ");

/** An address of a database as it may be shown. */
export function placeOf(url: string): string {
  const { hostname, port, pathname } = new URL(url);
  return `${hostname}${port === "" ? "" : `:${port}`}${pathname}`;
}
