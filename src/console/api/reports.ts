// Reports and statements: operators', and everybody's of their own account.
import { type Static, Type } from "@sinclair/typebox";
import { type ReportColumn, reportColumns } from "../../core/report-columns.ts";
import { closed, count, nullable, oneOf } from "./shapes.ts";

const text = () => Type.Optional(Type.String({ maxLength: 500 }));

export type { ReportColumn };

/** As of `tollgate report`, which says what is wrong with a value. */
export const ReportQuery = Type.Object(
  {
    month: text(),
    from: text(),
    to: text(),
    /** Columns with commas between. */
    by: text(),
    time_zone: text(),
    /** For operators; everybody else gets the own one. */
    account: text(),
    tag: text(),
    cost_center: text(),
  },
  closed,
);
export type ReportQuery = Static<typeof ReportQuery>;

const name = () => Type.Optional(nullable(Type.String()));
const names = Object.fromEntries(reportColumns.map((column) => [column, name()])) as Record<
  ReportColumn,
  ReturnType<typeof name>
>;

export const ReportRow = Type.Object({
  ...names,
  requests: count(),
  input: count(),
  cached: count(),
  output: count(),
  /** In balance tokens. */
  billed: count(),
  cost_usd: Type.Number(),
});
export type ReportRow = Static<typeof ReportRow>;
export const ReportRows = Type.Array(ReportRow);

export const StatementQuery = Type.Object(
  { month: Type.String({ maxLength: 20 }), form: oneOf(["html", "csv"]), account: text(), time_zone: text() },
  closed,
);
