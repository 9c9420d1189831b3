// Aligned plain text for people; programs take --json.
import { visibleLine } from "../core/visible.ts";

export type Cell = string | number | boolean | null;

/** Columns under headings; numbers stand right. */
export function formatTable(headings: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const texts = rows.map((row) => row.map(formatCell));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...texts.map((row) => row[column]!.length)),
  );
  const numeric = headings.map((_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === "number"));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (numeric[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join("  ")
      .trimEnd();
  return [headings, ...texts].map(line).join("\n");
}

export function formatPairs(pairs: readonly (readonly [string, Cell])[]): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${formatCell(value)}`).join("\n");
}

/** 1234567 as "1,234,567", whatever the machine's language. */
function formatCell(value: Cell): string {
  if (value === null) return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" ? value.toLocaleString("en-US", { maximumFractionDigits: 6 }) : visibleLine(value);
}
