// Files that stand beside the ledger's, each with a Worker of its own: a file may be made anew at any time, and the ledger is
// read in some, as `ledger`.
import { constants, Database } from "bun:sqlite";
import { rmSync } from "node:fs";

/**
 * What its file is made of. `pragmas` say, among others, how much of it a power cut may take; `upgrades`: the SQL that takes
 * a file of that version one further.
 */
export type Beside = Readonly<{
  name: string;
  version: number;
  tables: string;
  pragmas: readonly string[];
  upgrades?: Readonly<Record<number, string>>;
}>;

/** A disk that is full, or a file that somebody holds, says nothing of what the file has. */
const isOfDisk = /^SQLITE_(?:FULL|IOERR|CANTOPEN|READONLY|PERM|BUSY|LOCKED|NOMEM)/;

/**
 * What `make` makes of it. A file that does not fit is deleted and made anew: one that is damaged, of another version, or that
 * `make` throws for. Throws what SQLite throws, as where the ledger cannot be read.
 */
export function openBeside<Made>(
  file: string,
  ledgerFile: string | null,
  form: Beside,
  make: (database: Database) => Made,
): Made {
  try {
    return openFitting(file, ledgerFile, form, make);
  } catch (thrown) {
    if (isOfDisk.test(String((thrown as { code?: unknown }).code))) throw thrown;
    for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
    return openFitting(file, ledgerFile, form, make);
  }
}

function openFitting<Made>(
  file: string,
  ledgerFile: string | null,
  { name, version, tables, pragmas, upgrades = {} }: Beside,
  make: (database: Database) => Made,
): Made {
  const { SQLITE_OPEN_CREATE, SQLITE_OPEN_READWRITE, SQLITE_OPEN_URI } = constants;
  const database = new Database(file, SQLITE_OPEN_CREATE | SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI);
  try {
    database.run("PRAGMA journal_mode = WAL");
    for (const pragma of pragmas) database.run(`PRAGMA ${pragma}`);
    if (ledgerFile !== null) {
      const attach = database.prepare("ATTACH ? AS ledger");
      attach.run(`file:${encodeURI(ledgerFile).replaceAll("?", "%3f").replaceAll("#", "%23")}?mode=ro`);
      attach.finalize();
    }
    const { user_version: found } = database.query("PRAGMA user_version").get() as { user_version: number };
    const sql = found === 0 ? tables : upgrades[found];
    if (found !== version && sql === undefined) throw new Error(`the ${name} has version ${found}`);
    if (found !== version) {
      database.transaction(() => {
        database.run(sql!);
        database.run(`PRAGMA user_version = ${version}`);
      })();
    }
    return make(database);
  } catch (thrown) {
    database.close();
    throw thrown;
  }
}
