// Usage as CSV (RFC 4180), with the field names of `tollgate usage --json`.
import type { UsageRow } from "../account/usage-row.ts";
import { csvLine } from "../core/csv.ts";

const columns = [
  "time",
  "request_id",
  "endpoint",
  "model",
  "input",
  "cached_input",
  "output",
  "reasoning",
  "billed_tokens",
  "cost_usd",
  "estimated",
  "key",
  "end_user",
] as const satisfies readonly (keyof UsageRow)[];

export const csvHead = csvLine(columns);

export const csvLineOf = (row: UsageRow): string => csvLine(columns.map((column) => row[column]));
