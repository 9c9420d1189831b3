// The tables that both stores have (../tables.ts) as drizzle knows tables: columns by their names in camel case, with keys and
// indexes. Columns of PostgreSQL's alone are made by the types below.
import { type Camel, camel } from "../../core/camel.ts";
import { type NotNull, type SQL, sql } from "drizzle-orm";
import {
  bigint,
  check,
  customType,
  type ExtraConfigColumn,
  index,
  type PgTableExtraConfigValue,
  primaryKey,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import {
  type Column,
  type ColumnKind,
  type ColumnsOf,
  columnTypes,
  type Table,
  type TableName,
  tables,
} from "../tables.ts";

export const hash = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });
/** Text that is compared byte by byte: ids are looked for by their beginnings, and their order is the same everywhere. */
export const exactText = customType<{ data: string }>({ dataType: () => exactType });
const exactType = 'text COLLATE "C"';
/** Money, times and ids: 8 bytes, numbers below 2^53. */
export const whole = (name?: string) =>
  name === undefined ? bigint({ mode: "number" }) : bigint(name, { mode: "number" });

type Custom<Data> = ReturnType<ReturnType<typeof customType<{ data: Data }>>>;
type Built<Of> =
  Of extends Column<ColumnKind, infer Data, infer MayBeNull>
    ? MayBeNull extends true
      ? Custom<Data>
      : NotNull<Custom<Data>>
    : never;
type BuiltColumns<Of> = { [Name in keyof Of as Camel<Name & string>]: Built<Of[Name]> };

/** The columns of a table that both stores have, for a table of drizzle's. */
export const columnsOf = <Name extends TableName>(name: Name): BuiltColumns<ColumnsOf<Name>> =>
  Object.fromEntries(
    Object.entries<Column>(tables[name].columns).map(([column, description]) => [
      camel(column),
      builderOf(name, column, description),
    ]),
  ) as BuiltColumns<ColumnsOf<Name>>;

function builderOf(table: TableName, name: string, { kind, mayBeNull, default: otherwise }: Column) {
  const type = kind === "exact" ? exactType : columnTypes[kind].postgres;
  // Numbers of 8 bytes come as text.
  const isNumber = columnTypes[kind].sqlite === "integer" && kind !== "flag";
  const builder = customType({ dataType: () => type, ...(isNumber ? { fromDriver: Number } : {}) })(name);
  const { key } = tables[table];
  if (key.length === 1 && key[0] === name) return builder.primaryKey();
  if (!mayBeNull) builder.notNull();
  return otherwise === undefined ? builder : builder.default(otherwise);
}

export const rulesOf =
  (name: TableName) =>
  (built: Readonly<Record<string, ExtraConfigColumn>>): PgTableExtraConfigValue[] => {
    const { columns, key, unique = {}, indexes = {} }: Table = tables[name];
    const [first, ...more] = key.map((column) => built[camel(column)]!);
    const hashes = Object.keys(columns).filter((column) => columns[column]!.kind === "hash");
    return [
      ...(more.length === 0 ? [] : [primaryKey({ columns: [first!, ...more] })]),
      ...hashes.map((column) => check(`${name}_${column}_is_sha256`, sql.raw(`length(${column}) = 32`))),
      ...Object.entries(unique).map(([of, column]) => uniqueIndex(of).on(comparedAs(column, columns[column]!))),
      ...Object.entries(indexes).map(([of, [leading, ...others]]) =>
        index(of).on(sql.raw(leading!), ...others.map((column) => sql.raw(column))),
      ),
    ];
  };

/** How values of a column are compared, independent of the database's collation. */
const comparedAs = (column: string, { kind }: Column): SQL =>
  sql.raw(kind === "caseless" ? `lower(${column} COLLATE "C")` : column);
