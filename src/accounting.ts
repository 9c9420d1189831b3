// Puts the accounting together: data folder, database, journal, ledger and those who decide on them.
import { Accounts } from "./account/accounts.ts";
import { Admission } from "./account/admission.ts";
import { AuditLog } from "./account/audit.ts";
import { Flood } from "./account/flood.ts";
import type { Journal } from "./account/journal.ts";
import { Keys } from "./account/keys.ts";
import { Ledger } from "./account/ledger.ts";
import { type PurchaseRecords, Purchases } from "./account/purchases.ts";
import { Searches } from "./account/searches.ts";
import { Sessions } from "./account/sessions.ts";
import type { Catalog } from "./core/catalog.ts";
import { type Clock, momentOf } from "./core/clock.ts";
import { balanceLookMs } from "./core/limits.ts";
import type { Log } from "./core/log.ts";
import { type Backup, backUp } from "./store/backup/backup.ts";
import { ConsoleRecords } from "./store/ledger/console-records.ts";
import { takeDataFolder } from "./store/folder/data-folder.ts";
import { watchFlushTime } from "./store/folder/flush-time.ts";
import { BatchingJournal, type CommitListener } from "./store/ledger/journal.ts";
import { migrate } from "./store/ledger/migrate.ts";
import { openForReading } from "./store/open.ts";
import { SqliteRecords } from "./store/ledger/sqlite-records.ts";
import { LedgerWatch, type OpenWork } from "./store/verify/verify-watch.ts";
import { verify } from "./store/verify/verify.ts";
import { WorkerStorage } from "./store/ledger/worker-storage.ts";

export type Accounting = Readonly<{
  /** For the command line and the console. */
  accounts: Accounts;
  /** For every request. */
  admission: Admission;
  keys: Keys;
  searches: Searches;
  ledger: Ledger;
  /** For the console. */
  sessions: Sessions;
  purchases: Purchases;
  purchaseRecords: PurchaseRecords;
  auditLog: AuditLog;
  journal: Journal & { readonly pending: number };
  databaseFile: string;
  /** Why the ledger cannot be written for now, in words; null while it can. */
  readonly unwritable: string | null;
  /** Copies the database to a new file while it is in use. Throws BackupFailed. */
  backup(file: string, progress: (line: string) => void): Promise<Backup>;
  /** For a server: another `usageKeepDays` from here on. */
  retain(keepDays: number | null): void;
  /** For a server: checks the ledger again and again, and once how long the disk takes, until `close`. */
  watch(log: Log, open: () => OpenWork): LedgerWatch;
  /** Commits what is pending and lets go of the data folder. */
  close(): Promise<void>;
}>;

export type AccountingOptions = Readonly<{
  dataFolder: string;
  catalog: Pick<Catalog, "plans">;
  /** {site_url} of the spec, without a trailing slash. */
  siteUrl: string;
  clock: Clock;
  /**
   * The disk failed in a way that must not be retried, or the writer died: end the process at once. What was not
   * acknowledged by then may or may not be on disk; the next start finds out.
   */
  onFatal(error: Error): void;
  /** For a server: lines of the journal older than so many days are folded into sums. Absent or null: none are. */
  usageKeepDays?: number | null;
  /** Told whenever `unwritable` changes. Absent: nobody is. */
  onWritable?: (unwritable: string | null) => void;
  /** Absent: nobody counts commits. */
  onCommit?: CommitListener;
}>;

/**
 * Opens the accounting of a data folder, and makes it where there is none. Takes the same time however many accounts
 * there are: they are loaded when they are first used. Throws DataFolderInUse or DataFolderUnusable.
 */
export async function openAccounting(options: AccountingOptions): Promise<Accounting> {
  const { dataFolder, catalog, siteUrl, clock, onFatal, onWritable, onCommit, usageKeepDays } = options;
  const { plans } = catalog;
  const folder = takeDataFolder(dataFolder);
  try {
    const epoch = migrate(folder.databaseFile);
    const storage = await WorkerStorage.open(folder.databaseFile, epoch, onFatal, usageKeepDays);
    if (onWritable !== undefined) storage.follow(onWritable);
    const reader = openForReading(folder.databaseFile);
    const records = new SqliteRecords(reader);
    const consoleRecords = new ConsoleRecords(reader);
    const ledger = new Ledger(records, plans);
    const keys = new Keys(records, ledger);
    const journal = new BatchingJournal(storage, ledger, clock, onCommit);
    const accounts = new Accounts({
      records,
      ledger,
      keys,
      journal,
      plans,
      clock,
      verify: () => verify(reader, ledger, plans),
    });
    const admission = new Admission(ledger, new Flood(), journal, siteUrl);
    const stopLooking = lookWhileWaiting(admission, clock);
    let watched: LedgerWatch | null = null;
    return {
      accounts,
      admission,
      keys,
      searches: new Searches(ledger, records, journal),
      ledger,
      sessions: new Sessions(consoleRecords, journal, ledger),
      purchaseRecords: consoleRecords,
      purchases: new Purchases({ accounts, records: consoleRecords, journal, clock }),
      auditLog: new AuditLog(consoleRecords, journal),
      journal,
      databaseFile: folder.databaseFile,
      get unwritable() {
        return storage.unwritable;
      },
      backup: (file, progress) => backUp(folder.databaseFile, file, progress, storage.misplaced ? reader : null),
      retain: (keepDays) => storage.retain(keepDays),
      watch(log, open) {
        watchFlushTime(dataFolder, log);
        watched = new LedgerWatch({ databaseFile: folder.databaseFile, reader, ledger, plans, clock, log, open });
        return watched;
      },
      async close() {
        watched?.close();
        stopLooking();
        reader.close();
        await journal.close();
        folder.release();
      },
    };
  } catch (thrown) {
    folder.release();
    throw thrown;
  }
}

/** While requests wait for others of their account: midnight, other plans and purchases are no events of its line. */
function lookWhileWaiting({ line }: Pick<Admission, "line">, clock: Clock): () => void {
  let timer: Timer | null = null;
  const lookLater = (): void => {
    timer ??= setTimeout(() => {
      timer = null;
      if (line.look(momentOf(clock))) lookLater();
    }, balanceLookMs);
  };
  line.onWaiting = lookLater;
  return () => {
    if (timer !== null) clearTimeout(timer);
  };
}
