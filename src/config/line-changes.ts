// Changes of a configuration that a simulation tries: "plans.pro.weight=3" is the key `weight` of the row of [[plans]] with
// the id "pro". The configuration's own reading says what is wrong with a value.
import { CommandError } from "../core/expected-error.ts";
import { nearest } from "../core/nearest.ts";
import { placeOf, valueOf } from "./file-changes.ts";
import type { FileTables } from "./option.ts";
import type { FileTable } from "./rows.ts";

/** What matters for the line, and by what its rows are known. */
const lists = {
  plans: { name: "id", keys: ["weight", "priority", "priority_max", "parallel"] },
  nodes: { name: "name", keys: ["slots", "share_prefix_cache"] },
} as const;
type List = keyof typeof lists;

export type LineChange = Readonly<{ text: string; list: List; row: string; key: string; value: unknown }>;

/** Throws CommandError. */
export function lineChangeOf(text: string): LineChange {
  const { table, row, key, value } = placeOf(text, false);
  const path = text.slice(0, text.indexOf("="));
  const known = lists[table.name as List]?.keys;
  if (known === undefined) {
    throw new CommandError(`--set ${path}: what can be changed are ${Object.keys(lists).join(", ")}`);
  }
  if (!(known as readonly string[]).includes(key!)) {
    const hint = nearest(key!, known);
    const meant = hint === null ? "" : `; did you mean ${hint}?`;
    throw new CommandError(`--set ${path}: of ${table.name}, only ${known.join(", ")} matter for the line${meant}`);
  }
  return { text, list: table.name as List, row: row!, key: key!, value: valueOf(value!) };
}

/**
 * Edits the tables of a file. Plans of the catalog, which stand in no file, get rows with their ids alone: `plans`. Throws
 * CommandError for a row that is not there.
 */
export const lineEdit =
  (changes: readonly LineChange[], plans: readonly string[]) =>
  (tables: FileTables): FileTables => {
    const edited: Record<string, FileTables[string]> = { ...tables };
    for (const { text, list, row, key, value } of changes) {
      const { name } = lists[list];
      const written = edited[list] ?? (list === "plans" ? plans.map((id) => ({ id })) : []);
      const rows: readonly FileTable[] = Array.isArray(written) ? written : [];
      if (!rows.some((each) => each[name] === row)) {
        const meant = nearest(
          row,
          rows.map((each) => String(each[name])),
        );
        const hint = meant === null ? "" : `; did you mean ${JSON.stringify(meant)}?`;
        throw new CommandError(`--set ${text}: no [[${list}]] has the ${name} ${JSON.stringify(row)}${hint}`);
      }
      edited[list] = rows.map((each) => (each[name] === row ? { ...each, [key]: value } : each));
    }
    return edited;
  };
