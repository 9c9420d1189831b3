// Writes the changes of a batch to SQLite. Each is made once, however often the batch is tried.
import type { Database, Statement } from "bun:sqlite";
import type { AccountChange } from "../../account/journal.ts";
import { writesOf } from "../changes/change-writes.ts";
import { Renderer } from "../changes/renderer.ts";
import type { Value } from "../changes/record.ts";
import type { ColumnKind } from "../tables.ts";

type Parameter = string | number | null | Uint8Array;

export class ChangeWriter {
  readonly #renderer: Renderer<Statement<unknown, Parameter[]>, Parameter>;

  constructor(database: Database) {
    this.#renderer = new Renderer({
      statement: (_shape, text) => database.prepare<unknown, Parameter[]>(text),
      parameter: () => "?",
      valueOf,
      isCaseless: (column, parameter) => `${column} = ${parameter}`,
      greatest: "max",
      onConflict: (key) => ` ON CONFLICT (${key}) DO NOTHING`,
      usingIndex: (index) => ` INDEXED BY ${index}`,
    });
  }

  write(change: AccountChange): void {
    for (const write of writesOf(change)) {
      const { statement, parameters } = this.#renderer.render(write);
      statement.run(...parameters);
    }
  }
}

function valueOf(kind: ColumnKind, value: Value): Parameter {
  if (typeof value === "boolean") return value ? 1 : kind === "mark" ? null : 0;
  if (typeof value === "object") return value === null ? null : JSON.stringify(value);
  return kind === "hash" ? Uint8Array.fromBase64(String(value)) : value;
}
