// Creates a ledger's tables as `schema.ts` describes them, and adds what an older ledger lacks: tables, columns and
// indexes. All of it and the new version are one transaction, so a crash leaves either the old ledger or the new one.
import type { Database } from "bun:sqlite";
import { type Column, columnTypes } from "../tables.ts";
import { tooNew, versionOf } from "../open.ts";
import { raiseEpoch, withLedger } from "./epoch.ts";
import { ledgerTables, type SqliteTable } from "./schema.ts";
import { schemaVersion } from "./schema-version.ts";

/** Brings the ledger to the program's version and begins a new epoch, which is returned. Throws DataFolderUnusable. */
export const migrate = (file: string): number =>
  withLedger(file, (database) => {
    const version = versionOf(database);
    if (version > schemaVersion) throw tooNew(file, version, schemaVersion);
    if (version < schemaVersion) addWhatLacks(database);
    return raiseEpoch(database);
  });

export function addWhatLacks(database: Database): void {
  database.transaction(() => {
    for (const [name, table] of Object.entries<SqliteTable>(ledgerTables)) {
      const known = namesIn(database, "SELECT name FROM pragma_table_info(?)", name);
      if (known.length === 0) {
        database.run(creationOf(name, table));
        const first = Object.entries(table.firstRow ?? {});
        if (first.length > 0) insertInto(database, name, first);
      } else {
        let isRebuilt = false;
        for (const [column, description] of Object.entries(table.columns)) {
          if (known.includes(column)) continue;
          const { mayBeNull, default: otherwise } = description;
          if (isOnlyKey(table, column) || (!mayBeNull && otherwise === undefined))
            throw new Error(`its table ${name} has no column ${column}`);
          const definition = definitionOf(table, column, description);
          database.run(`ALTER TABLE ${name} ADD COLUMN ${definition.replace(" UNIQUE", "")}`);
          isRebuilt ||= definition.includes(" UNIQUE");
        }
        const key = namesIn(database, "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", name);
        if (isRebuilt || key.join() !== table.key.join() || !allowsAll(database, name, table))
          rebuild(database, name, table);
      }
      for (const [index, columns] of Object.entries(table.indexes ?? {}))
        database.run(`CREATE INDEX IF NOT EXISTS ${index} ON ${name} (${columns.join(", ")})`);
    }
    database.run(`PRAGMA user_version = ${schemaVersion}`);
  })();
}

const namesIn = (database: Database, query: string, table: string): readonly string[] =>
  (database.query(query).all(table) as { name: string }[]).map(({ name }) => name);

function insertInto(database: Database, table: string, values: readonly (readonly [string, number | string])[]): void {
  const columns = values.map(([column]) => column).join(", ");
  database.run(
    `INSERT INTO ${table} (${columns}) VALUES (${values.map(() => "?").join(", ")})`,
    values.map(([, value]) => value),
  );
}

/** Whether its rules know all values that it may have now. */
function allowsAll(database: Database, name: string, { columns }: SqliteTable): boolean {
  const { sql } = database.query("SELECT sql FROM sqlite_schema WHERE name = ?").get(name) as { sql: string };
  return Object.values(columns).every(({ allowed = [] }) => allowed.every((value) => sql.includes(literalOf(value))));
}

/** SQLite cannot add a unique column, a column to the key of a table, or a value to a rule: its rows go into a new one. */
function rebuild(database: Database, name: string, table: SqliteTable): void {
  const all = Object.keys(table.columns).join(", ");
  database.run(`ALTER TABLE ${name} RENAME TO ${name}_before`);
  database.run(creationOf(name, table));
  database.run(`INSERT INTO ${name} (${all}) SELECT ${all} FROM ${name}_before`);
  database.run(`DROP TABLE ${name}_before`);
}

function creationOf(name: string, table: SqliteTable): string {
  const columns = Object.entries(table.columns);
  const parts = columns.map(([column, description]) => definitionOf(table, column, description));
  if (table.key.length > 1) parts.push(`PRIMARY KEY (${table.key.join(", ")})`);
  for (const [column, { kind }] of columns) if (kind === "hash") parts.push(`CHECK (length(${column}) = 32)`);
  if (table.check !== undefined) parts.push(`CHECK (${table.check})`);
  // Found by one number, a row has that number; by anything else, the table itself is the index of its key.
  const options = columns.some(([column, { kind }]) => isRowNumber(table, column, kind))
    ? "STRICT"
    : "STRICT, WITHOUT ROWID";
  return `CREATE TABLE ${name} (${parts.join(", ")}) ${options}`;
}

const isOnlyKey = ({ key }: SqliteTable, column: string): boolean => key.length === 1 && key[0] === column;
const isRowNumber = (table: SqliteTable, column: string, kind: Column["kind"]): boolean =>
  isOnlyKey(table, column) && columnTypes[kind].sqlite === "integer";

/** Values that a column's type allows are checked by the database, too. */
function definitionOf(table: SqliteTable, name: string, column: Column): string {
  const { kind, mayBeNull, default: otherwise, allowed } = column;
  const parts: string[] = [name, columnTypes[kind].sqlite];
  if (kind === "caseless") parts.push("COLLATE NOCASE");
  if (isOnlyKey(table, name)) parts.push("PRIMARY KEY");
  // A row's number is never null.
  if (!mayBeNull && !isRowNumber(table, name, kind)) parts.push("NOT NULL");
  if (Object.values(table.unique ?? {}).includes(name)) parts.push("UNIQUE");
  if (otherwise !== undefined) parts.push(`DEFAULT ${literalOf(otherwise)}`);
  if (allowed !== undefined) parts.push(`CHECK (${name} IN (${allowed.map(literalOf).join(", ")}))`);
  if (kind === "flag" || kind === "bit") parts.push(`CHECK (${name} IN (0, 1))`);
  return parts.join(" ");
}

const literalOf = (value: number | string): string =>
  typeof value === "number" ? String(value) : `'${value.replaceAll("'", "''")}'`;
