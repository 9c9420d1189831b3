// A line of CSV (RFC 4180).

type Cell = string | number | boolean | null;

export const csvLine = (cells: readonly Cell[]): string => `${cells.map(textOf).join(",")}\r\n`;

function textOf(value: Cell): string {
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
