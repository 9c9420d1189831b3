// What the console keeps, as a data folder has it.
import type { Database } from "bun:sqlite";
import { ConsoleRecords, type Numbered } from "../console-records.ts";
import { read } from "../open.ts";
import { SqliteQuestions } from "../questions.ts";
import { Numbers } from "./numbers.ts";

export class SqliteConsoleRecords extends ConsoleRecords<"now"> {
  readonly #database: Database;
  readonly #numbers = new Map<Numbered, Numbers>();

  constructor(database: Database) {
    const questions = new SqliteQuestions(database);
    super((question, ...values) => read(() => questions.rows(question, ...values)));
    this.#database = database;
  }

  nextAuditId(): number {
    return this.next("audit_log");
  }

  protected next(table: Numbered): number {
    let numbers = this.#numbers.get(table);
    if (numbers === undefined) {
      const last = this.#database.query<{ id: number }, []>(`SELECT id FROM ${table} ORDER BY id DESC LIMIT 1`);
      this.#numbers.set(table, (numbers = new Numbers(() => last.get())));
    }
    return numbers.next();
  }
}
