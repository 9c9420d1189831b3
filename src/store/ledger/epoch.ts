// Begins a ledger's next epoch, which every start does. Where its tables are this program's, nothing else is needed.
import type { Database } from "bun:sqlite";
import { DataFolderUnusable, messageOf } from "../folder/folder-faults.ts";
import { openForWriting, versionOf } from "../open.ts";
import { schemaVersion } from "./schema-version.ts";

/** The new epoch; null where the tables are of another version, which `migrate` knows. Throws DataFolderUnusable. */
export const nextEpoch = (file: string): number | null =>
  withLedger(file, (database) => (versionOf(database) === schemaVersion ? raiseEpoch(database) : null));

export const raiseEpoch = (database: Database): number =>
  (database.query("UPDATE instance SET epoch = epoch + 1 RETURNING epoch").get() as { epoch: number }).epoch;

/** Throws DataFolderUnusable for whatever goes wrong. */
export function withLedger<Result>(file: string, act: (database: Database) => Result): Result {
  const database = openForWriting(file);
  try {
    return act(database);
  } catch (thrown) {
    if (thrown instanceof DataFolderUnusable) throw thrown;
    throw new DataFolderUnusable(`cannot use the database ${file}: ${messageOf(thrown)}`, { cause: thrown });
  } finally {
    database.close();
  }
}
