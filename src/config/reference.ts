// Every key of the configuration file in Markdown, as the table of options has it: `tollgate help config`, and the chapter
// of the guide.
import { fileTables, type FileTableOfKeys, optionEntries } from "./config.ts";
import type { AnyOption } from "./option.ts";
import type { Key } from "./rows.ts";

/** One table of Markdown for each table of the file, and what a reload does not apply. */
export function configReference(): string {
  const all = optionEntries.map(([, option]) => option);
  const fixed = all.flatMap(({ table, name, change }) => (change.reload === null && table !== null ? name : []));
  const beyond = all.flatMap(({ change }) => (change.reload === null ? [] : (change.beyond?.what ?? [])));
  const waits = `A change of ${codes(fixed)}, and of ${beyond.join(" or ")}, needs a restart; \`tollgate reload\` applies every other.`;
  return [...fileTables.map(markdownOf), waits].join("\n\n");
}

const codes = (words: readonly string[]): string => words.map((word) => `\`${word}\``).join(", ");

function markdownOf({ name, isList, keys, options }: FileTableOfKeys): string {
  const rows = Object.entries(keys).map(([key, what]) => {
    const option = options.find((each) => key in each.keys);
    return rowOf(key, what, option === undefined ? [] : sourcesOf(option));
  });
  return markdownTable(`\`${isList ? `[[${name}]]` : `[${name}]`}\``, rows);
}

type Cells = readonly [key: string, value: string, otherwise: string, about: string];

const rowOf = (key: string, { schema, otherwise, about }: Key, sources: readonly string[]): Cells => [
  `\`${key}\``,
  String(schema.description),
  otherwise,
  sources.length === 0 ? about : `${about} ${codes(sources)} ${sources.length === 1 ? "wins" : "win"} over it.`,
];

/** What wins over the file, the first one first. */
const sourcesOf = ({ flag, variables }: AnyOption): readonly string[] => [
  ...(flag === null ? [] : [`--${flag}`]),
  ...variables,
];

/** Columns as wide as their widest cell, as the formatter writes them. */
function markdownTable(title: string, rows: readonly Cells[]): string {
  const all: readonly (readonly string[])[] = [[title, "Value", "Without it", ""], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(3, ...all.map((row) => row[column]!.length)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(" | ")} |`;
  return [line(all[0]!), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
