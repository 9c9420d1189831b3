// Changes of a configuration file in words, as commands and the console ask for them: "nodes.gpu-1.slots=8" gives a key of a
// row, or of a table, another value, and "nodes.gpu-1.slots=" takes it out. A name with an = or quotes stands in quotes.
import { CommandError } from "../core/expected-error.ts";
import { isRecord } from "../core/is-record.ts";
import { nearest } from "../core/nearest.ts";
import type { SchemaError } from "../core/schema-errors.ts";
import type { TSchema } from "@sinclair/typebox";
import { ConfigError, fileTables, type FileTableOfKeys } from "./config.ts";
import { TomlFile, tomlLiteral, type TomlPath, type TomlValues, valueAt } from "./toml-edit.ts";

export type FileChanges = Readonly<{ set?: readonly string[]; add?: readonly string[]; remove?: readonly string[] }>;

/** What operators change in the console or by a token: how requests are served, and nothing else of the machine. */
export const remoteTables: ReadonlySet<string> = new Set([
  ...["nodes", "models", "plans", "queue", "limits", "responses", "files", "retention"],
  ...["notices", "usage", "backups", "catalog", "log"],
]);

export function isSecret(schema: TSchema): boolean {
  const inside: readonly TSchema[] = Object.values(schema["patternProperties"] ?? {});
  return schema["writeOnly"] === true || inside.some(isSecret);
}

/** A comment may lack its table's name; a table or row may be one value of the file. */
function isHidden(path: TomlPath): boolean {
  const [name, key] = path.filter((step) => typeof step === "string");
  const table = fileTables.find((each) => each.name === name);
  const schemas = (table === undefined ? fileTables : [table]).flatMap(({ keys }) => Object.entries(keys));
  return schemas.some(
    ([each, { schema }]) => each === (table === undefined ? name : (key ?? each)) && isSecret(schema),
  );
}

export const withoutSecrets = (text: string): string => new TomlFile(text).hiding(isHidden);

export const rowsOf = (values: TomlValues, { name, isList }: FileTableOfKeys): readonly TomlValues[] => {
  const written = values[name];
  if (isList) return Array.isArray(written) ? (written as TomlValues[]) : [];
  return [isRecord(written) ? written : {}];
};

/** As changes name it: rows without a name by their number. */
export const rowName = ({ rowKey }: FileTableOfKeys, row: TomlValues, at: number): string =>
  rowKey === null ? String(at + 1) : String(row[rowKey]);

type Place = Readonly<{ table: FileTableOfKeys; row: string | null; key: string | null; value: string | null }>;

const hint = (typed: string, known: readonly string[]): string => {
  const meant = nearest(typed, known);
  return meant === null ? "" : `; did you mean ${meant}?`;
};

/** With its quotes; null: none begins there, or it does not end. A regular expression tries each shorter one, too. */
function quotedAt(text: string, start: number): string | null {
  if (text[start] !== '"') return null;
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at < text.length ? text.slice(start, at + 1) : null;
}

/** `isRow`: it names a row alone. Throws CommandError. */
export function placeOf(text: string, isRow: boolean): Place {
  const [head, name = ""] = /^(\w*)\.?/.exec(text)!;
  const quoted = quotedAt(text, head.length);
  const rest = text.slice(head.length + (quoted?.length ?? 0));
  const table = fileTables.find((each) => each.name === name);
  if (table === undefined) {
    const known = fileTables.map((each) => each.name);
    throw new CommandError(`there is no table ${JSON.stringify(name)}${hint(name, known)}`);
  }
  const { isList } = table;
  const own = quoted === null ? null : String(valueOf(quoted));
  if (isRow) return { table, row: isList ? (own ?? rest) : null, key: null, value: null };
  const end = rest.indexOf("=");
  const dot = own === null ? rest.lastIndexOf(".", end) : 0;
  if (end < 0 || (isList && dot < 0)) {
    throw new CommandError(`a change must be such as ${name}.${isList ? "NAME." : ""}KEY=VALUE`);
  }
  const row = isList ? (own ?? rest.slice(0, dot)) : null;
  const key = rest.slice(isList ? dot + 1 : 0, end).trim();
  return { table, row, key, value: rest.slice(end + 1).trim() };
}

/** As in the file; what is none of its values is a text without quotes. Undefined: none. */
export function valueOf(text: string): unknown {
  if (text === "") return undefined;
  try {
    return (Bun.TOML.parse(`value = ${text}`) as TomlValues)["value"];
  } catch {
    return text;
  }
}

/** The text with all changes, each of them in words without secrets, and what may not be. Throws CommandError, ConfigError. */
export function changedFile(toml: string, { add = [], set = [], remove = [] }: FileChanges, isRemote: boolean) {
  const file = new TomlFile(toml);
  const what: string[] = [];
  const namesIn = (table: FileTableOfKeys): readonly string[] =>
    rowsOf(file.values, table).map((row, at) => rowName(table, row, at));
  const placed = (text: string, isRow: boolean): Place => {
    const place = placeOf(text, isRow);
    const { name, isList } = place.table;
    if (isRemote && !remoteTables.has(name)) {
      throw new CommandError(`${name} is changed on the server's machine alone`);
    }
    if (isRow && !isList) throw new CommandError(`[${name}] has no rows`);
    if (isRow && !place.row) throw new CommandError(`a row of ${name} needs a name: ${name}.NAME`);
    return place;
  };
  const pathOf = ({ table, row }: Place): TomlPath => {
    if (!table.isList) return [table.name];
    const names = namesIn(table);
    if (names.includes(row!)) return [table.name, names.indexOf(row!)];
    const named = `${table.rowKey ?? "number"} ${JSON.stringify(row)}`;
    throw new CommandError(`no [[${table.name}]] has the ${named}${hint(row!, names)}`);
  };
  for (const text of add) {
    const { table, row } = placed(text, true);
    const names = namesIn(table);
    if (names.includes(row!)) {
      const problem = "is the name of another row";
      throw new ConfigError(`${text} is there already`, false, [
        { path: [table.name, names.length, table.rowKey!], problem },
      ]);
    }
    file.set([table.name, names.length], table.rowKey === null ? {} : { [table.rowKey]: row });
    what.push(`+ ${text}`);
  }
  const sets = set.map((text) => {
    const place = placed(text, false);
    return { ...place, path: pathOf(place) };
  });
  for (const each of sets) what.push(...setTo(file, each, sets, isRemote));
  const faults = isRemote ? sets.flatMap((each) => (each.key === "url" ? keysLeft(toml, each, sets) : [])) : [];
  const removed = remove.map((text) => ({ text, path: pathOf(placed(text, true)) }));
  for (const { text, path } of removed.toSorted((one, other) => Number(other.path[1]) - Number(one.path[1]))) {
    file.set(path, undefined);
    what.push(`- ${text}`);
  }
  return { text: file.text, what, faults };
}

type Set = Place & Readonly<{ path: TomlPath }>;

/** What was changed, in words. */
function setTo(file: TomlFile, set: Set, all: readonly Set[], isRemote: boolean): readonly string[] {
  const { table, row, path } = set;
  const key = set.key!;
  const known = Object.hasOwn(table.keys, key) ? table.keys[key] : undefined;
  if (known === undefined) {
    throw new CommandError(`${table.name} has no key ${JSON.stringify(key)}${hint(key, Object.keys(table.keys))}`);
  }
  const [before, value] = [valueAt(file.values, [...path, key]), valueOf(set.value!)];
  if (Bun.deepEquals(before, value)) return [];
  if (isRemote && value !== undefined && known.schema["ofMachine"] === true) {
    throw new CommandError(`${table.name}: ${key} is set on the server's machine alone`);
  }
  file.set([...path, key], value);
  const name = [table.name, ...(row === null ? [] : [row]), key].join(".");
  const words = (each: unknown): string => (each === undefined ? "nothing" : tomlLiteral(each));
  return [isSecret(known.schema) ? `${name} changed` : `${name} from ${words(before)} to ${words(value)}`];
}

/** A key must not go to another address unseen: whoever cannot read it gives it again. */
function keysLeft(toml: string, { path, table, value }: Set, all: readonly Set[]): readonly SchemaError[] {
  const row = valueAt(Bun.TOML.parse(toml), path) as TomlValues | undefined;
  if (row === undefined || Bun.deepEquals(row["url"], valueOf(value!))) return [];
  const given = new Set(all.filter((each) => Bun.deepEquals(each.path, path)).map(({ key }) => key));
  const secrets = Object.keys(table.keys).filter((key) => isSecret(table.keys[key]!.schema));
  const left = secrets.flatMap((key) => [key, `${key}_env`]).filter((key) => row[key] !== undefined && !given.has(key));
  const problem = "must be given again where the url changes, since it would go there";
  return left.map((key) => ({ path: [...path, key], problem }));
}
