// Questions that both stores answer are written once, in the words of PostgreSQL: `$1::text::bigint` is a parameter. SQLite
// reads the same without the casts.
//
// Rows travel as one parameter: `rowsIn(1, "text", "bigint")` stands for the rows that `rowsText` made.
import type { Database, Statement as Prepared } from "bun:sqlite";
import type { Ms } from "../core/types.ts";

export type Value = string | number | null;
/** `name`: for messages and tests. `text`: the same each time, so that it is prepared once. */
export type Question = Readonly<{ name: string; text: string }>;
export type Send = <Row>(question: Question, ...values: readonly Value[]) => Promise<readonly Row[]>;

export interface Questions {
  /** The rows of one that reads. */
  readonly ask: Send;
  /**
   * What writes, in one transaction; it may run again from its start. `alone`: nobody else does what has this name
   * meanwhile.
   */
  change<Result>(
    work: (send: Send) => Promise<Result>,
    options?: Readonly<{ limitMs?: Ms; alone?: string }>,
  ): Promise<Result>;
}

/** More that rows must meet, beginning with AND, and its values. */
export type Condition = Readonly<{ where: string; values: readonly Value[] }>;

export const statement = (name: string, text: string): Question => ({ name, text: text.trim() });

export const rowsIn = (parameter: number, ...types: readonly ("text" | "bigint")[]): string =>
  `SELECT ${types.map((type, index) => `(value ->> ${index})::${type}`).join(", ")}
   FROM jsonb_array_elements($${parameter}::text::jsonb) AS given`;

/** PostgreSQL's texts hold neither NUL nor half a character. */
export const rowsText = (rows: readonly (readonly Value[])[]): string =>
  JSON.stringify(rows, (_, value: unknown) =>
    typeof value === "string" ? value.toWellFormed().replaceAll("\0", "\ufffd") : value,
  );

const inSqlite = (text: string): string =>
  text
    .replaceAll(/::(?:text|bigint|integer|int|float8|jsonb)\b/g, "")
    .replaceAll(' COLLATE "C"', "")
    .replaceAll("strpos(", "instr(")
    .replaceAll("jsonb_array_elements", "json_each")
    .replaceAll(/decode\((.*?), 'hex'\)/g, "unhex($1)")
    .replaceAll("$", "?");

/** A connection that nobody else writes on. */
export class SqliteQuestions implements Questions {
  readonly #database: Database;
  readonly #prepared = new Map<string, Prepared<unknown, Value[]>>();
  #changed: Promise<unknown> = Promise.resolve();

  constructor(database: Database) {
    this.#database = database;
  }

  readonly ask = async <Row>(question: Question, ...values: readonly Value[]): Promise<readonly Row[]> =>
    this.rows<Row>(question, ...values);

  /** At once. */
  rows<Row>({ text }: Question, ...values: readonly Value[]): readonly Row[] {
    let prepared = this.#prepared.get(text);
    if (prepared === undefined) {
      prepared = this.#database.prepare<unknown, Value[]>(inSqlite(text));
      this.#prepared.set(text, prepared);
    }
    return prepared.all(...values) as Row[];
  }

  /** One after the other. */
  change<Result>(work: (send: Send) => Promise<Result>): Promise<Result> {
    const done = this.#changed.then(async () => {
      this.#database.run("BEGIN IMMEDIATE");
      try {
        const result = await work(this.ask);
        this.#database.run("COMMIT");
        return result;
      } catch (thrown) {
        if (this.#database.inTransaction) this.#database.run("ROLLBACK");
        throw thrown;
      }
    });
    this.#changed = done.catch(() => {});
    return done;
  }
}
