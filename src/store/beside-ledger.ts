// Opens a database that stands beside the ledger's and reads it too, as `ledger`: one that may be made anew at any time.
import { constants, Database } from "bun:sqlite";
import { rmSync } from "node:fs";

/** What its file is made of. `pragmas` say, among others, how much of it a power cut may take. */
export type BesideLedger = Readonly<{ name: string; version: number; tables: string; pragmas: readonly string[] }>;

/**
 * What `make` makes of it. A file that does not fit is deleted and made anew: one that is damaged, of another version, or that
 * `make` throws for. Throws what SQLite throws, as where the ledger cannot be read.
 */
export function openBesideLedger<Made>(
  file: string,
  ledgerFile: string,
  form: BesideLedger,
  make: (database: Database) => Made,
): Made {
  try {
    return openFitting(file, ledgerFile, form, make);
  } catch {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
    return openFitting(file, ledgerFile, form, make);
  }
}

function openFitting<Made>(
  file: string,
  ledgerFile: string,
  { name, version, tables, pragmas }: BesideLedger,
  make: (database: Database) => Made,
): Made {
  const { SQLITE_OPEN_CREATE, SQLITE_OPEN_READWRITE, SQLITE_OPEN_URI } = constants;
  const database = new Database(file, SQLITE_OPEN_CREATE | SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI);
  try {
    database.run("PRAGMA journal_mode = WAL");
    for (const pragma of pragmas) database.run(`PRAGMA ${pragma}`);
    const attach = database.prepare("ATTACH ? AS ledger");
    attach.run(`file:${encodeURI(ledgerFile).replaceAll("?", "%3f").replaceAll("#", "%23")}?mode=ro`);
    attach.finalize();
    const { user_version } = database.query("PRAGMA user_version").get() as { user_version: number };
    if (user_version === 0) {
      database.transaction(() => {
        database.run(tables);
        database.run(`PRAGMA user_version = ${version}`);
      })();
    } else if (user_version !== version) throw new Error(`the ${name} has version ${user_version}`);
    return make(database);
  } catch (thrown) {
    database.close();
    throw thrown;
  }
}
