// Makes writes into the SQL of one database: one statement for each shape of a write, which is kept, and its parameters.
import { assert } from "../../core/assert.ts";
import { type ColumnKind, type TableName, tables } from "../tables.ts";
import { fieldsOf, type Value } from "./record.ts";
import { Term, type Values, type Write } from "./write.ts";

/** What the databases do not have alike. */
export type Engine<Statement, Parameter> = Readonly<{
  statement: (shape: string, text: string) => Statement;
  /** The text of a parameter of a column of that kind, by its place from 1. */
  parameter: (kind: ColumnKind, place: number) => string;
  valueOf: (kind: ColumnKind, value: Value) => Parameter;
  isCaseless: (column: string, parameter: string) => string;
  greatest: string;
  onConflict: (key: string) => string;
  usingIndex: (index: string) => string;
}>;

/**
 * What a write is made of, part by part: writes of one shape come to one statement. Following parts is three times as fast as
 * joining them to a text that has to be hashed.
 */
class Shape<Statement> {
  readonly name: string;
  readonly #next = new Map<string, Shape<Statement>>();
  statement: Statement | null = null;

  constructor(name: string) {
    this.name = name;
  }

  with(part: string): Shape<Statement> {
    let next = this.#next.get(part);
    if (next === undefined) this.#next.set(part, (next = new Shape(`${this.name} ${part}`)));
    return next;
  }
}

export class Renderer<Statement, Parameter> {
  readonly #engine: Engine<Statement, Parameter>;
  readonly #shape = new Shape<Statement>("write");

  constructor(engine: Engine<Statement, Parameter>) {
    this.#engine = engine;
  }

  render(write: Write): Readonly<{ statement: Statement; parameters: Parameter[] }> {
    const { verb, table, set, where, needs } = write;
    const parameters: Parameter[] = [];
    const begun = this.#take(this.#shape.with(verb).with(table), table, set, parameters);
    let shape = this.#take(begun.with("where"), table, where, parameters, true);
    if (needs !== undefined) {
      shape = shape.with("needs");
      parameters.push(this.#engine.valueOf("whole", needs));
    }
    shape.statement ??= this.#engine.statement(shape.name, this.#textOf(write));
    return { statement: shape.statement, parameters };
  }

  /** Takes the parameters of some fields; returns the shape with them. */
  #take(
    begun: Shape<Statement>,
    table: TableName,
    values: Values,
    parameters: Parameter[],
    isCondition = false,
  ): Shape<Statement> {
    const fields = fieldsOf(table);
    let shape = begun;
    for (const field in values) {
      const value = values[field];
      if (value === undefined) throw new TypeError(`${table}.${field} has no value`);
      shape = shape.with(field);
      if (value instanceof Term) {
        shape = shape.with(value.form);
        if (value.form === "sql") shape = shape.with(String(value.value));
        else if (value.form !== "is set") parameters.push(this.#engine.valueOf(fields.get(field)!.kind, value.value));
      } else if (isCondition && value === null) shape = shape.with("null");
      else parameters.push(this.#engine.valueOf(fields.get(field)!.kind, value));
    }
    return shape;
  }

  #textOf({ verb, table, set, where, needs, index }: Write): string {
    const { parameter, isCaseless, greatest, onConflict, usingIndex } = this.#engine;
    const fields = fieldsOf(table);
    let place = 0;
    const next = (kind: ColumnKind): string => parameter(kind, (place += 1));
    const assigned = Object.entries(set).map(([field, value]) => {
      const { column, kind } = fields.get(field)!;
      if (!(value instanceof Term)) return [column, next(kind)] as const;
      if (value.form === "sql") return [column, String(value.value)] as const;
      return [column, `${value.form === "at least" ? greatest : "coalesce"}(${column}, ${next(kind)})`] as const;
    });
    const conditions = Object.entries(where).map(([field, value]) => {
      const { column, kind } = fields.get(field)!;
      if (value === null) return `${column} IS NULL`;
      if (!(value instanceof Term))
        return kind === "caseless" ? isCaseless(column, next(kind)) : `${column} = ${next(kind)}`;
      if (value.form === "is set") return `${column} IS NOT NULL`;
      return `${column} ${value.form === "below" ? "<" : "<>"} ${next(kind)}`;
    });
    if (needs !== undefined) conditions.push(`EXISTS (SELECT 1 FROM accounts WHERE id = ${next("whole")})`);
    const rows = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`;
    assert(verb === "insert" || verb === "upsert" || rows !== "", "not all rows of a table are written");
    if (verb === "delete") return `DELETE FROM ${table}${rows}`;
    if (verb === "update") {
      const found = index === undefined ? "" : usingIndex(index);
      return `UPDATE ${table}${found} SET ${assigned.map((each) => each.join(" = ")).join(", ")}${rows}`;
    }
    const expressions = assigned.map(([, expression]) => expression).join(", ");
    const values = rows === "" ? `VALUES (${expressions})` : `SELECT ${expressions}${rows}`;
    const columns = assigned.map(([column]) => column);
    const key: readonly string[] = tables[table].key;
    const others = columns.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
    const otherwise =
      verb === "insert"
        ? onConflict(key.join(", "))
        : ` ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${others.join(", ")}`;
    return `INSERT INTO ${table} (${columns.join(", ")}) ${values}${otherwise}`;
  }
}
