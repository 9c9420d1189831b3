// The ledger's tables in SQLite: those that both stores have (../tables.ts), and what is SQLite's alone. `migrate.ts` makes and
// extends them by it. A table whose key or allowed values are others is made anew; anything else that changes needs a step of
// its own there. Raise `schemaVersion` (`schema-version.ts`) with each change.
import { type RowOf as RowIn, type Table, tables, text, whole } from "../tables.ts";

export type SqliteTable = Table & Readonly<{ check?: string; firstRow?: Readonly<Record<string, number | string>> }>;

export const ledgerTables = {
  ...tables,
  /** In the order in which its lines were written. */
  journal: {
    columns: { sequence: whole, ...tables.journal.columns },
    key: ["sequence"],
    unique: { journal_by_billing_key: "billing_key" },
    indexes: { journal_by_account: ["account_id", "sequence"] },
  },
  /**
   * One row. Raised at every start; the writer looks at it in every transaction, so that a second instance which got past
   * the lock (a deleted lock file, a network file system) stops the first one instead of mixing two ledgers.
   */
  instance: {
    columns: { id: whole, epoch: whole },
    key: ["id"],
    check: "id = 1",
    firstRow: { id: 1, epoch: 0 },
  },
  /** One row: all lines up to this one are folded, except purchases. At 0, nothing is folded. */
  journal_folded: {
    columns: { id: whole, sequence: whole, billing_key: text, at: whole },
    key: ["id"],
    check: "id = 1",
    firstRow: { id: 1, sequence: 0, billing_key: "", at: 0 },
  },
} as const satisfies Readonly<Record<string, SqliteTable>>;

export type RowOf<Name extends keyof typeof ledgerTables> = RowIn<(typeof ledgerTables)[Name]["columns"]>;
