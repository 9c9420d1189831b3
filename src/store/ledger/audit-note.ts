// Writes an audit entry into a ledger on which no server and no journal is open: before it is put in place, or when it
// is copied as it is. The rest of the ledger, of whichever version, stays as it was.
import type { AuditEntry } from "../../account/records.ts";
import { openForWriting } from "../open.ts";

/** Says whether it was written: the first versions had no audit log. On disk when this returns. */
export function noteInLedger(databaseFile: string, entry: Omit<AuditEntry, "id">): boolean {
  const database = openForWriting(databaseFile);
  try {
    const hasLog = database.query("SELECT 1 FROM sqlite_schema WHERE name = 'audit_log'").get() !== null;
    if (hasLog) {
      const { at, operator, address, action, subject, detail } = entry;
      database.run(
        `INSERT INTO audit_log (id, at, operator_id, address, action, subject_id, detail)
         SELECT coalesce(max(id), 0) + 1, ?, ?, ?, ?, ?, ? FROM audit_log`,
        [at, operator, address, action, subject, detail],
      );
    }
    return hasLog;
  } finally {
    database.close();
  }
}
