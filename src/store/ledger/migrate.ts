// Creates a ledger's tables as `schema.ts` describes them, and adds what an older ledger lacks: tables, columns and
// indexes. All of it and the new version are one transaction, so a crash leaves either the old ledger or the new one.
import type { Database } from "bun:sqlite";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { getTableConfig, SQLiteColumn, SQLiteSyncDialect, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { assert } from "../../core/assert.ts";
import { tooNew, versionOf } from "../open.ts";
import { raiseEpoch, withLedger } from "./epoch.ts";
import { ledgerTables } from "./schema.ts";
import { schemaVersion } from "./schema-version.ts";

/** Brings the ledger to the program's version and begins a new epoch, which is returned. Throws DataFolderUnusable. */
export const migrate = (file: string): number =>
  withLedger(file, (database) => {
    const version = versionOf(database);
    if (version > schemaVersion) throw tooNew(file, version, schemaVersion);
    if (version < schemaVersion) addWhatLacks(database);
    return raiseEpoch(database);
  });

/** Of a ledger of any earlier version, or an empty one. */
export function addWhatLacks(database: Database): void {
  database.transaction(() => {
    for (const { table, firstRow } of ledgerTables) {
      const { name, columns, indexes } = getTableConfig(table);
      const known = new Set(
        (database.query("SELECT name FROM pragma_table_info(?)").all(name) as { name: string }[]).map(
          (row) => row.name,
        ),
      );
      if (known.size === 0) {
        database.run(creationOf(table));
        if (firstRow !== undefined) drizzle(database).insert(table).values(firstRow).run();
      } else {
        for (const column of columns) {
          if (known.has(column.name)) continue;
          if (column.primary || (column.notNull && column.default === undefined))
            throw new Error(`its table ${name} has no column ${column.name}`);
          database.run(`ALTER TABLE ${name} ADD COLUMN ${definitionOf(column)}`);
        }
        if (keyOf(database, name) !== primaryKeyOf(table) || !allowsAll(database, table)) rebuild(database, table);
      }
      for (const { config } of indexes) {
        const of = config.columns.map((column) => (column as SQLiteColumn).name).join(", ");
        database.run(`CREATE INDEX IF NOT EXISTS ${config.name} ON ${name} (${of})`);
      }
    }
    database.run(`PRAGMA user_version = ${schemaVersion}`);
  })();
}

/** The columns that tell the rows of a table apart. */
const keyOf = (database: Database, table: string): string =>
  (database.query("SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk").all(table) as { name: string }[])
    .map(({ name }) => name)
    .join(", ");

function primaryKeyOf(table: SQLiteTable): string {
  const { columns, primaryKeys } = getTableConfig(table);
  const names = primaryKeys.flatMap((key) => key.columns.map((column) => column.name));
  return (names.length > 0 ? names : columns.filter(({ primary }) => primary).map(({ name }) => name)).join(", ");
}

/** Whether its rules know all values that it may have now. */
function allowsAll(database: Database, table: SQLiteTable): boolean {
  const { name, columns } = getTableConfig(table);
  const { sql } = database.query("SELECT sql FROM sqlite_schema WHERE name = ?").get(name) as { sql: string };
  return columns.every(({ enumValues }) => (enumValues ?? []).every((value: string) => sql.includes(literalOf(value))));
}

/** SQLite cannot add a column to the key of a table, or a value to a rule: its rows go into a new one. */
function rebuild(database: Database, table: SQLiteTable): void {
  const { name, columns } = getTableConfig(table);
  const all = columns.map((column) => column.name).join(", ");
  database.run(`ALTER TABLE ${name} RENAME TO ${name}_before`);
  database.run(creationOf(table));
  database.run(`INSERT INTO ${name} (${all}) SELECT ${all} FROM ${name}_before`);
  database.run(`DROP TABLE ${name}_before`);
}

function creationOf(table: SQLiteTable): string {
  const { name, columns, checks, primaryKeys } = getTableConfig(table);
  const dialect = new SQLiteSyncDialect();
  const keys = primaryKeys.map((key) => `PRIMARY KEY (${key.columns.map((column) => column.name).join(", ")})`);
  const rules = checks.map(({ value }) => `CHECK (${dialect.sqlToQuery(value).sql})`);
  // Found by one number, a row has that number; by anything else, the table itself is the index of its key.
  const byNumber = columns.some((column) => column.primary && column.getSQLType() === "integer");
  const options = byNumber ? "STRICT" : "STRICT, WITHOUT ROWID";
  return `CREATE TABLE ${name} (${[...columns.map(definitionOf), ...keys, ...rules].join(", ")}) ${options}`;
}

/** Values that a column's type allows are checked by the database, too. */
function definitionOf(column: SQLiteColumn): string {
  const { name, enumValues } = column;
  const parts = [name, column.getSQLType()];
  if (column.primary) parts.push("PRIMARY KEY");
  // An integer key is the row's number, which is never null.
  if (column.notNull && !(column.primary && column.getSQLType() === "integer")) parts.push("NOT NULL");
  if (column.isUnique) parts.push("UNIQUE");
  if (column.default !== undefined) parts.push(`DEFAULT ${literalOf(column.default)}`);
  if (enumValues !== undefined && enumValues.length > 0)
    parts.push(`CHECK (${name} IN (${enumValues.map(literalOf).join(", ")}))`);
  if (column.dataType === "boolean") parts.push(`CHECK (${name} IN (0, 1))`);
  return parts.join(" ");
}

function literalOf(value: unknown): string {
  if (typeof value === "number") return String(value);
  assert(typeof value === "string", "defaults and allowed values are numbers and texts");
  return `'${value.replaceAll("'", "''")}'`;
}
