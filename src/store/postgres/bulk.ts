// Statements that write many rows at once, as data: each column travels as one array in text. The statements are made from
// it, and so is what the tests' simulated database does with them.
import { type Column, columnTypes, type ColumnsOf, type TableName, tables } from "../tables.ts";
import { arrayOf, type Call, type Statement } from "./connection.ts";

type Cell = string | number | boolean | null;

export type Bulk<Name extends string = string> = Readonly<{
  /** `set` and `add` insert rows, or set columns of those that are there, or add to them. */
  verb: "insert" | "update" | "set" | "add" | "delete";
  table: string;
  key: readonly NoInfer<Name>[];
  /** Types by the names of columns, in the order of parameters. */
  columns: Readonly<Record<Name, string>>;
  /** The first parameters: columns that are the same in all rows. */
  shared?: Readonly<Record<string, string>>;
  /** Of rows that are there. */
  changed?: readonly NoInfer<Name>[];
}>;

export type BulkStatement<Name extends string = string> = Statement & Readonly<{ bulk: Bulk<Name> }>;

/** `unnest` of arrays that travel as text, from parameter `first` on. */
export const unnest = (types: readonly string[], first = 1): string =>
  `unnest(${types.map((type, index) => `$${index + first}::text::${type}[]`).join(", ")})`;

export function bulk<Name extends string>(name: string, of: Bulk<Name>): BulkStatement<Name> {
  return { name, text: textOf(of), isPrepared: true, bulk: of };
}

function textOf({ verb, table, key, columns, shared = {}, changed = [] }: Bulk): string {
  const [names, types] = [Object.keys(columns), Object.values(columns)];
  const same = Object.entries(shared);
  const rows = unnest(types, same.length + 1);
  const isSame = key.map((column) => `${table}.${column} = u.${column}`).join(" AND ");
  if (verb === "delete") return `DELETE FROM ${table} WHERE ${key[0]} = ANY($1::text::${types[0]}[])`;
  if (verb === "update") {
    const others = names.filter((column) => !key.includes(column));
    const set = others.map((column) => `${column} = u.${column}`).join(", ");
    return `UPDATE ${table} SET ${set} FROM ${rows} AS u (${names.join(", ")}) WHERE ${isSame}`;
  }
  const first = same.map(([, type], index) => `$${index + 1}::text::${type}, `).join("");
  const all = [...same.map(([column]) => column), ...names].join(", ");
  const inserted = `INSERT INTO ${table} (${all}) SELECT ${first}* FROM ${rows}`;
  if (verb === "insert") return inserted;
  const before = (column: string): string => (verb === "add" ? `${table}.${column} + ` : "");
  const set = changed.map((column) => `${column} = ${before(column)}excluded.${column}`).join(", ");
  return `${inserted} ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${set}`;
}

/** Writes rows of a table that both stores have. */
export function bulkOf<Of extends TableName>(
  name: string,
  verb: Bulk["verb"],
  table: Of,
  changed: readonly (keyof ColumnsOf<Of> & string)[] = [],
): BulkStatement<keyof ColumnsOf<Of> & string> {
  type Name = keyof ColumnsOf<Of> & string;
  const { columns, key } = tables[table];
  const types = Object.entries<Column>(columns).map(([column, { kind }]) => [column, columnTypes[kind].postgres]);
  const of = { columns: Object.fromEntries(types) as Record<Name, string>, key: key as readonly string[] as Name[] };
  return bulk(name, { verb, table, ...of, changed });
}

export function callOf<Name extends string>(
  statement: BulkStatement<Name>,
  rows: readonly Readonly<Record<Name, Cell>>[],
  ...shared: readonly (string | number)[]
): Call {
  const names = Object.keys(statement.bulk.columns) as Name[];
  const columns = names.map((column) => arrayOf(rows.map((row) => row[column])));
  return { statement, parameters: [...shared.map(String), ...columns] };
}
