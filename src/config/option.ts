// What an option is: a row of the table of options. It is read from the file, or from a flag or variable that wins over it,
// and it says what becomes of a change while the server runs: who applies it, or that it takes a restart.
import { show } from "../core/schema-errors.ts";
import { type Environment, type Faults, FaultPlace, type ConfigReading } from "./faults.ts";
import type { NodeFlags } from "./nodes.ts";
import { type FileTable, type Keys, type Row, type TableKind } from "./rows.ts";
import type { Derived, Running } from "./running.ts";

/** Flags of the command line as they were typed; absent ones were not given. */
export type ConfigFlags = NodeFlags &
  Readonly<{ config?: string; host?: string; port?: string; threads?: string; data?: string }>;

/** The tables of a file, which fit the schema. */
export type FileTables = Readonly<Record<string, FileTable | readonly FileTable[] | undefined>>;

/** Where options are read from. */
type Sources = Readonly<{ tables: FileTables; flags: ConfigFlags; reading: ConfigReading }>;

/** An option that is applied to a running server. */
type Live<Value> = Readonly<{
  /** Puts the value in force. */
  reload(running: Running, value: Value, derived: Derived): void | Promise<void>;
  /** It throws what the operator can put right, and has changed nothing then: it goes first, and is the only one. */
  canFail?: boolean;
  /** Whether there is something to apply; absent: when the value is another one. */
  differs?(running: Running, derived: Derived): boolean;
  /** Changes that take a restart all the same, from the value of the start to the next; `what` they change, in words. */
  beyond?: Readonly<{ what: string; is(atStart: Value, next: Value): boolean }>;
}>;
/** An option that stays as it was at the start. */
export type Restart = Readonly<{ reload: null }>;
export const restart: Restart = { reload: null };

/** What a change does. The type separates the two: code that keeps values of the start gets only the fixed ones. */
export type Change<Value> = Live<Value> | Restart;

export type Option<Value, C extends Change<Value> = Change<Value>> = Readonly<{
  /** The table of the file that its keys are in; null: it is not in the file. */
  table: string | null;
  isList: boolean;
  /** The key that names a row of a list; null: rows have no names. */
  rowKey: string | null;
  keys: Keys;
  /** As reloads call it. */
  name: string;
  flag: string | null;
  variables: readonly string[];
  read(sources: Sources): Value;
  change: C;
}>;
export type AnyOption = Option<any>;

export type Given = Readonly<{
  /** A flag of `serve`, which wins over all else. */
  flag?: Exclude<keyof ConfigFlags, keyof NodeFlags | "config">;
  /** Variables that win over the file, the first one first. An empty one counts as not given. */
  variables?: readonly string[];
  /** As reloads call it, if not by its key. */
  name?: string;
}>;

/** An option that is read from one or two keys of a table. */
export function option<Value, C extends Change<Value>>(
  table: string,
  row: Row<Value>,
  change: C,
  { flag, variables = [], name }: Given = {},
): Option<Value, C> {
  const [first = ""] = Object.keys(row.keys);
  return {
    table,
    isList: false,
    rowKey: null,
    keys: row.keys,
    name: name ?? `${table}.${first}`,
    flag: flag ?? null,
    variables,
    read({ tables, flags, reading }) {
      const place = new FaultPlace(reading, [table]);
      const written = textGiven(row, first, flags, reading, { flag, variables });
      if (written !== undefined) return row.readValue!(written, place.at(first));
      if (place.hasFaultAt(row.keys)) return undefined as Value; // what was found is thrown
      return row.read((tables[table] as FileTable | undefined) ?? {}, place);
    },
    change,
  };
}

/** An option that is a whole table of the file. Where that is absent it is null, or what an empty one is. */
export function section<Value, C extends Change<Value | null>>(
  table: string,
  kind: TableKind<Value>,
  absent: "none" | "empty",
  change: C,
): Option<Value | null, C> {
  return {
    table,
    isList: false,
    rowKey: null,
    keys: kind.keys,
    name: table,
    flag: null,
    variables: [],
    read({ tables, reading }) {
      const written = (tables[table] as FileTable | undefined) ?? (absent === "empty" ? {} : undefined);
      return written === undefined ? null : kind.read(written, new FaultPlace(reading, [table]));
    },
    change,
  };
}

/** An option that is all tables of one name, each with a `name` of its own, or another key that is `unique`; null: none is. `ofFlags`: see `nodesOfFlags`. */
export function list<Item, C extends Change<readonly Item[]>>(
  table: string,
  kind: TableKind<Item>,
  change: C,
  ofFlags: (flags: ConfigFlags, faults: Faults) => readonly Item[] | null = () => null,
  unique: string | null = "name",
): Option<readonly Item[], C> {
  return {
    table,
    isList: true,
    rowKey: unique,
    keys: kind.keys,
    name: table,
    flag: null,
    variables: [],
    read({ tables, flags, reading }) {
      const given = ofFlags(flags, reading.faults);
      if (given !== null) return given;
      const written = (tables[table] as readonly FileTable[] | undefined) ?? [];
      return written.map((item, index) => {
        const place = new FaultPlace(reading, [table, index]);
        const first = unique === null ? index : written.findIndex((other) => other[unique] === item[unique]);
        if (unique !== null && first !== index)
          place.at(unique).fault(`must be unique, is also the ${unique} of ${table}[${first}]`);
        return kind.read(item, place);
      });
    },
    change,
  };
}

/** An option that the file cannot have, since it is known without one. */
export const outside = ({
  flag,
  variables,
  otherwise,
}: Readonly<{ flag: "data"; variables: readonly string[]; otherwise: () => string }>): Option<string, Restart> => ({
  table: null,
  isList: false,
  rowKey: null,
  keys: {},
  name: `--${flag}`,
  flag,
  variables,
  read: ({ flags, reading }) => flags[flag] ?? firstGiven(variables, reading.environment)?.text ?? otherwise(),
  change: restart,
});

/** What the file would have, of a flag or variable that wins over it; undefined: none was given. */
function textGiven<Value>(
  row: Row<Value>,
  key: string,
  flags: ConfigFlags,
  { faults, environment }: ConfigReading,
  { flag, variables = [] }: Given,
): unknown {
  const typed = flag === undefined ? undefined : flags[flag];
  const ofVariable = firstGiven(variables, environment);
  const source = typed === undefined ? ofVariable : { name: `--${flag}`, text: typed };
  if (source === null) return undefined;
  const value = row.ofText?.(source.text) ?? null;
  if (value !== null) return value;
  const fault = `${source.name} must be ${row.keys[key]!.schema.description}, is ${show(source.text)}`;
  if (source === ofVariable) faults.add(fault);
  else faults.addOfFlag(fault);
  return undefined;
}

function firstGiven(variables: readonly string[], environment: Environment): { name: string; text: string } | null {
  for (const name of variables) {
    const text = environment[name];
    if (text !== undefined && text !== "") return { name, text };
  }
  return null;
}
