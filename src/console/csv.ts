// Usage as CSV (RFC 4180), with the field names of `tollgate usage --json`.
import type { UsageRow } from "../account/usage-row.ts";

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

export const csvHead = `${columns.join(",")}\r\n`;

export const csvLine = (row: UsageRow): string => `${columns.map((column) => cell(row[column])).join(",")}\r\n`;

/** A spreadsheet would run a text that begins like a formula, so it is told by a quote that it is a text. */
function cell(value: string | number | boolean | null): string {
  if (value === null) return "";
  if (typeof value !== "string") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
