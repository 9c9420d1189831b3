// Records as deciders know them, beside the rows that both stores keep. A field of a record has its column's name in camel
// case, and `account_id` is `account`.
import { type Camel, camel } from "../../core/camel.ts";
import type { KeyRecord } from "../../account/records.ts";
import { hasLimits, noLimits } from "../../core/key-limits.ts";
import type { KeyLimits } from "../../core/types.ts";
import { type Column, type ColumnKind, type ColumnsOf, type TableName, tableNames, tables } from "../tables.ts";

type Field<Name extends string> = Name extends `${infer Of}_id` ? Of : Camel<Name>;
export type FieldsOf<Name extends TableName> = {
  readonly [Of in keyof ColumnsOf<Name> as Field<Of & string>]: ColumnsOf<Name>[Of];
};

/** What a field has: a hash in base64, a list as its texts, a mark that is not set as false. */
export type ValueOf<Of> =
  Of extends Column<infer Kind, infer Data, infer MayBeNull>
    ? Kind extends "mark"
      ? boolean
      : (MayBeNull extends true ? null : never) | (Kind extends keyof Said ? Said[Kind] : Extract<Data, Value>)
    : never;
type Said = { hash: string; list: readonly string[]; flag: boolean };
export type Value = string | number | boolean | null | readonly string[];

export type RecordOf<Name extends TableName> = {
  readonly [Field in keyof FieldsOf<Name>]: ValueOf<FieldsOf<Name>[Field]>;
};

type ColumnOfField = Readonly<{ column: string; camel: string; kind: ColumnKind }>;
const columnsByField = new Map<TableName, ReadonlyMap<string, ColumnOfField>>(
  tableNames.map((table) => {
    const columns = Object.entries<Column>(tables[table].columns);
    return [
      table,
      new Map(
        columns.map(([column, { kind }]) => [
          camel(column.replace(/_id$/, "")),
          { column, camel: camel(column), kind },
        ]),
      ),
    ];
  }),
);

export const fieldsOf = (table: TableName): ReadonlyMap<string, ColumnOfField> => columnsByField.get(table)!;

/** `named`: whether a row has its columns' names as they are, or in camel case as drizzle gives them. */
export function recordOf<Name extends TableName>(
  table: Name,
  row: Readonly<Record<string, unknown>>,
  named: "column" | "camel" = "column",
): RecordOf<Name> {
  const record: Record<string, unknown> = {};
  for (const [field, of] of fieldsOf(table)) record[field] = valueIn(of.kind, row[of[named]]);
  return record as RecordOf<Name>;
}

function valueIn(kind: ColumnKind, value: unknown): unknown {
  if (kind === "flag" || kind === "mark") return value === 1 || value === true;
  if (value instanceof Uint8Array) return value.toBase64();
  return kind === "list" && typeof value === "string" ? JSON.parse(value) : value;
}

/** A key's limits are a record of their own; null where it has none. */
export function keyRecordOf(record: RecordOf<"api_keys">): KeyRecord {
  const { account, id, name, keyHash, keyEnding, createdAt, usedAt, revokedAt, familyHash, refreshHash } = record;
  const limits = limitsIn((limit) => record[limit]);
  return { account, id, name, keyHash, keyEnding, createdAt, usedAt, revokedAt, familyHash, refreshHash, limits };
}

/** The same of a row. */
export function keyLimitsOf(row: Readonly<Record<string, unknown>>): KeyLimits | null {
  const fields = fieldsOf("api_keys");
  return limitsIn((limit) => {
    const { kind, column } = fields.get(limit)!;
    return valueIn(kind, row[column]);
  });
}

function limitsIn(valueOf: (limit: keyof KeyLimits) => unknown): KeyLimits | null {
  const limits: Record<string, unknown> = {};
  for (const limit in noLimits) limits[limit] = valueOf(limit as keyof KeyLimits);
  return hasLimits(limits as KeyLimits) ? (limits as KeyLimits) : null;
}
