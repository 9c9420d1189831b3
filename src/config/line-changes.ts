// Changes of a configuration that a simulation tries: "plans.pro.weight=3" is the key `weight` of the row of [[plans]] with
// the id "pro". The configuration's own reading says what is wrong with a value.
import { CommandError } from "../core/expected-error.ts";
import { nearest } from "../core/nearest.ts";
import type { FileTables } from "./option.ts";
import type { FileTable } from "./rows.ts";

/** What matters for the line, and by what its rows are known. */
const lists = {
  plans: { name: "id", keys: ["weight", "priority", "priority_max", "parallel"] },
  nodes: { name: "name", keys: ["slots", "share_prefix_cache"] },
} as const;
type List = keyof typeof lists;

export type LineChange = Readonly<{ text: string; list: List; row: string; key: string; value: unknown }>;

/** Names of nodes may have dots. Throws CommandError. */
export function lineChangeOf(text: string): LineChange {
  const equals = text.indexOf("=");
  const path = text.slice(0, Math.max(0, equals)).trim();
  const [first, last] = [path.indexOf("."), path.lastIndexOf(".")];
  const list = path.slice(0, Math.max(0, first));
  const shape = 'must be such as "plans.pro.weight=3"';
  if (equals < 0 || first < 0 || last === first) throw new CommandError(`--set ${shape}, is ${JSON.stringify(text)}`);
  if (!Object.hasOwn(lists, list)) {
    const known = Object.keys(lists).join(", ");
    throw new CommandError(`--set ${path}: ${shape}: what can be changed are ${known}`);
  }
  const { keys } = lists[list as List];
  const key = path.slice(last + 1);
  if (!(keys as readonly string[]).includes(key)) {
    const hint = nearest(key, keys);
    const meant = hint === null ? "" : `; did you mean ${hint}?`;
    throw new CommandError(`--set ${path}: of ${list}, only ${keys.join(", ")} matter for the line${meant}`);
  }
  const row = path.slice(first + 1, last);
  return { text, list: list as List, row, key, value: valueOf(text.slice(equals + 1).trim()) };
}

/** As in the file; what is none of its values is a text without quotes. */
function valueOf(text: string): unknown {
  try {
    return (Bun.TOML.parse(`value = ${text}`) as { value: unknown }).value;
  } catch {
    return text;
  }
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
