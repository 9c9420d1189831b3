// Writes to the rows of one table, as data. A change of an account is a list of them (`change-writes.ts`), which each store
// makes into its own SQL (`renderer.ts`).
import type { AccountId } from "../../core/types.ts";
import type { Column, TableName, tables } from "../tables.ts";

/** What changes say: a hash in base64, a list as its texts, a flag or mark as a boolean. */
export type Value = string | number | boolean | null | readonly string[];
/** By the names of columns, in the order of their parameters. */
export type Values = Readonly<Record<string, Value | Term | undefined>>;

export type Write = Readonly<{
  /** An upsert replaces the row with the same key. */
  verb: "insert" | "upsert" | "update" | "delete";
  table: TableName;
  set: Values;
  /** All must hold; null: the column is null. */
  where: Values;
  /** Nothing is written unless this account exists. */
  needs?: AccountId | undefined;
  /** The index by which SQLite must find the rows, where it would look at more of them by itself. */
  index?: string | undefined;
}>;

/** More than a value: how a column's new value, or a condition on it, is formed. */
export class Term {
  constructor(
    readonly form: "unless set" | "at least" | "sql" | "other than" | "below" | "is set",
    readonly value: Value,
  ) {}
}
/** What the column has stays; null becomes the value. */
export const unlessSet = (value: Value): Term => new Term("unless set", value);
export const atLeast = (value: number): Term => new Term("at least", value);
/** An expression that both databases read. */
export const sql = (text: string): Term => new Term("sql", text);
export const otherThan = (value: Value): Term => new Term("other than", value);
export const below = (value: number): Term => new Term("below", value);
export const isSet = new Term("is set", null);

export type ColumnsOf<Name extends TableName> = (typeof tables)[Name]["columns"];
type ValueIn<Of> =
  Of extends Column<infer Kind, infer Data, infer MayBeNull>
    ? (MayBeNull extends true ? null : never) | (Kind extends keyof Said ? Said[Kind] : Extract<Data, Value>)
    : never;
type Said = { hash: string; list: readonly string[]; flag: boolean; mark: boolean };
type Omittable = Readonly<{ mayBeNull: true }> | Readonly<{ default: number | string }>;
/** A column that may not be null and has no default must be named. */
export type Inserted<Of> = {
  readonly [Name in keyof Of as Of[Name] extends Omittable ? never : Name]: ValueIn<Of[Name]>;
} & { readonly [Name in keyof Of as Of[Name] extends Omittable ? Name : never]?: ValueIn<Of[Name]> };
type Some<Of> = { readonly [Name in keyof Of]?: ValueIn<Of[Name]> | Term };

export const insert = <Name extends TableName>(
  table: Name,
  set: Inserted<ColumnsOf<Name>>,
  needs?: AccountId,
): Write => ({ verb: "insert", table, set, where: {}, needs });

export const upsert = <Name extends TableName>(table: Name, set: Inserted<ColumnsOf<Name>>): Write => {
  return { verb: "upsert", table, set, where: {} };
};

export const update = <Name extends TableName>(
  table: Name,
  set: Some<ColumnsOf<Name>>,
  where: Some<ColumnsOf<Name>>,
  more: Pick<Write, "needs" | "index"> = {},
): Write => ({ verb: "update", table, set, where, ...more });

export const remove = <Name extends TableName>(table: Name, where: Some<ColumnsOf<Name>>): Write => {
  return { verb: "delete", table, set: {}, where };
};
