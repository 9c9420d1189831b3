// Checks whether a file is a complete ledger that this program can use: SQLite's own check of the file, then the
// ledger's.
import type { Database } from "bun:sqlite";
import type { Ms } from "../../core/types.ts";
import { schemaVersion } from "../ledger/schema-version.ts";

/** The file is no ledger, is damaged or is too new; the message goes on after the file's name. */
export class DatabaseUnfit extends Error {
  override readonly name = "DatabaseUnfit";
}

/** The version of its tables. Throws DatabaseUnfit where this program cannot use them, and what SQLite throws. */
export function versionOf(database: Database): number {
  const { user_version: version } = database.query("PRAGMA user_version").get() as { user_version: number };
  const { tables } = database
    .query(
      "SELECT count(*) AS tables FROM sqlite_schema WHERE name IN ('accounts', 'journal', 'quota_use', 'instance')",
    )
    .get() as { tables: number };
  if (version === 0 || tables < 4) throw new DatabaseUnfit("is no ledger of tollgate");
  if (version > schemaVersion) {
    throw new DatabaseUnfit(
      `has version ${version}, but this tollgate knows versions up to ${schemaVersion}: use a newer tollgate`,
    );
  }
  return version;
}

/** Reads every page. Throws DatabaseUnfit where one is damaged or missing. */
export function checkPages(database: Database): void {
  const [first] = database.query("PRAGMA integrity_check(1)").all() as { integrity_check: string }[];
  if (first?.integrity_check !== "ok") {
    throw new DatabaseUnfit(`is damaged: ${(first?.integrity_check ?? "no answer").replaceAll("\n", " ")}`);
  }
}

export type LedgerContents = Readonly<{
  accounts: number;
  /** Wall-clock time of the newest charge; null if there is none. */
  lastChargeAt: Ms | null;
}>;

/** Of a database of this program's version. */
export function contentsOf(database: Database): LedgerContents {
  return database
    .query(
      `SELECT (SELECT count(*) FROM accounts) AS accounts,
         (SELECT at FROM journal WHERE kind IN ('charge', 'coder_usage') ORDER BY sequence DESC LIMIT 1) AS lastChargeAt`,
    )
    .get() as LedgerContents;
}
