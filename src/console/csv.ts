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

function cell(value: string | number | boolean | null): string {
  if (value === null) return "";
  if (typeof value !== "string") return String(value);
  const text = asText(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Spreadsheets run a text that begins like a formula, so a quote marks it as text. In many countries Excel splits at
 * semicolons, and some programs guess the separator, so a formula may begin behind any separator.
 */
function asText(value: string): string {
  let text = "";
  let begins = true;
  for (const character of value) {
    if (begins && formulaStarts.includes(character)) text += "'";
    text += character;
    if (separators.includes(character)) begins = true;
    else if (!/[\s"]/.test(character)) begins = false;
  }
  return /^[\t\r\n]/.test(text) ? `'${text}` : text;
}

/** Full-width forms count in East Asia. */
const formulaStarts = "=+-@＝＋－＠";
const separators = ",;|\t\r\n";
