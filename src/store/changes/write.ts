// Writes to the rows of one table, as data. A change of an account is a list of them (`change-writes.ts`), which each store
// makes into its own SQL (`renderer.ts`).
import type { AccountId } from "../../core/types.ts";
import type { TableName } from "../tables.ts";
import { fieldsOf, type FieldsOf, type Value, type ValueOf } from "./record.ts";

/** By the fields of records, in the order of their parameters. */
export type Values = Readonly<Record<string, Value | Term | undefined>>;

export type Write = Readonly<{
  /** An upsert replaces the row with the same key. */
  verb: "insert" | "upsert" | "update" | "delete";
  table: TableName;
  set: Values;
  /** All must hold; null: the field is null. */
  where: Values;
  /** Nothing is written unless this account exists. */
  needs?: AccountId | undefined;
  /** The index by which SQLite must find the rows, where it would look at more of them by itself. */
  index?: string | undefined;
}>;

/** More than a value: how a field's new value, or a condition on it, is formed. */
export class Term {
  constructor(
    readonly form: "unless set" | "at least" | "sql" | "other than" | "below" | "is set",
    readonly value: Value,
  ) {}
}
/** What the field has stays; null becomes the value. */
export const unlessSet = (value: Value): Term => new Term("unless set", value);
export const atLeast = (value: number): Term => new Term("at least", value);
export const sql = (text: string): Term => new Term("sql", text);
export const otherThan = (value: Value): Term => new Term("other than", value);
export const below = (value: number): Term => new Term("below", value);
export const isSet = new Term("is set", null);

type Omittable = Readonly<{ mayBeNull: true }> | Readonly<{ default: number | string }>;
/** A field that may not be null and has no default must be there. */
type Inserted<Of> = {
  readonly [Name in keyof Of as Of[Name] extends Omittable ? never : Name]: ValueOf<Of[Name]>;
} & { readonly [Name in keyof Of as Of[Name] extends Omittable ? Name : never]?: ValueOf<Of[Name]> };
type Some<Of> = { readonly [Name in keyof Of]?: ValueOf<Of[Name]> | Term };

/** A record may have more fields than the table: they are left out. */
export const insert = <Name extends TableName>(
  table: Name,
  record: Inserted<FieldsOf<Name>>,
  needs?: AccountId,
): Write => ({ verb: "insert", table, set: valuesIn(table, record), where: {}, needs });

export const upsert = <Name extends TableName>(table: Name, record: Inserted<FieldsOf<Name>>): Write => {
  return { verb: "upsert", table, set: valuesIn(table, record), where: {} };
};

function valuesIn(table: TableName, record: Values): Values {
  const values: Record<string, Values[string]> = {};
  for (const field of fieldsOf(table).keys()) if (record[field] !== undefined) values[field] = record[field];
  return values;
}

export const update = <Name extends TableName>(
  table: Name,
  set: Some<FieldsOf<Name>>,
  where: Some<FieldsOf<Name>>,
  { needs, index }: Pick<Write, "needs" | "index"> = {},
): Write => ({ verb: "update", table, set, where, needs, index });

export const remove = <Name extends TableName>(table: Name, where: Some<FieldsOf<Name>>): Write => {
  return { verb: "delete", table, set: {}, where };
};
