// Assembles the accounting: data folder, database, journal, ledger and the deciders on top of them.
import type { Verification } from "../account/people/accounts.ts";
import { Admission } from "../account/money/admission.ts";
import type { BookKeys, Books } from "../account/money/books.ts";
import { windowMs } from "../account/money/minute-window.ts";
import { Flood } from "../account/money/flood.ts";
import { Keys } from "../account/people/keys.ts";
import { KnownSessions } from "../account/sign-in/known-sessions.ts";
import { Ledger } from "../account/money/ledger.ts";
import type { Office } from "../account/office.ts";
import { OfficeMemory } from "../account/office-memory.ts";
import { Passwords } from "../account/sign-in/passwords.ts";
import { QueuedOffice } from "../account/queued-office.ts";
import { type SearchHold, Searches } from "../account/money/searches.ts";
import type { SessionLookup } from "../account/sign-in/sessions.ts";
import type { Catalog } from "../core/catalog.ts";
import { type Clock, momentOf } from "../core/clock.ts";
import { balanceLookMs } from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import type { Soon } from "../core/soon.ts";
import type { AccountId, Ms, Plan } from "../core/types.ts";
import type { Backup } from "../store/backup/backup.ts";
import { takeDataFolder } from "../store/folder/data-folder.ts";
import { freeBytesIn, roomInWords } from "../store/folder/disk-room.ts";
import { BatchingJournal, type CommitListener } from "../store/ledger/journal.ts";
import { nextEpoch } from "../store/ledger/epoch.ts";
import { openForReading } from "../store/open.ts";
import type { allGateways } from "../store/postgres/all-gateways.ts";
import type { Lease } from "../store/postgres/jobs.ts";
import type { SharedTries } from "../store/postgres/shared-tries.ts";
import type { PostgresBooks } from "../store/postgres/books.ts";
import type { TellOnce } from "../store/postgres/told-once.ts";
import { SqliteRecords } from "../store/ledger/sqlite-records.ts";
import { LedgerWatch } from "../store/verify/verify-watch.ts";
import { WorkerStorage } from "../store/ledger/worker-storage.ts";

/** When keys were last used is written at this interval, a batch at a time: no request waits for it. */
const keysUsedIntervalMs = 5_000;
const keysUsedBatch = 200;

/** Where the books are rows of a database server, answers come later. */
type OtherTries = Readonly<{
  triesElsewhere: SharedTries["elsewhere"];
  tellTry: SharedTries["tell"];
}>;

export type Accounting = Readonly<{
  office: Office;
  /** Hashes and checks, a few at a time. */
  passwords: Passwords;
  /** Who the console's browsers are. */
  sessions: SessionLookup;
  admission: Books;
  keys: BookKeys;
  searches: Readonly<{ take(account: AccountId, now: Ms): Soon<SearchHold | null> }>;
  /** Of an account that a request was read for. */
  planOf(account: AccountId): Plan;
  reserved: Readonly<{ heldTokens: number }>;
  /** The same and open requests over all gateways, what has changed, and who tried to sign in; null: there is one. */
  everywhere: (ReturnType<typeof allGateways> & OtherTries) | null;
  /** Accounts in memory, for notices to operators; null: there are none. */
  memory: Pick<Ledger, "loaded" | "knownBalance"> | null;
  /** Of several gateways: what the batches of this one find, and whether it is the one to tell, or to do it; null: there is one. */
  finds: Readonly<{ batches: Pick<PostgresBooks, "onFall" | "onSpent">; tellOnce: TellOnce; lease: Lease }> | null;
  journal: Readonly<{ pending: number }>;
  /** Why the ledger cannot be written for now, in words; null while it can. */
  readonly unwritable: string | null;
  /** How much its disk has free, where that takes no writes; else null. */
  readonly diskFreeBytes: number | null;
  /** Recomputes the balances of all accounts from the journal and compares them with the disk, and with memory. */
  verify(): Promise<Verification>;
  /** Copies the database to a new file while it is in use. Throws BackupFailed. */
  backup(file: string, progress: (line: string) => void): Promise<Backup>;
  /** For a server: another `usageKeepDays` from here on. */
  retain(keepDays: number | null): void;
  /** Commits what is pending and lets go of the data folder. */
  close(): Promise<void>;
}>;

/** Of a data folder: its ledger is in memory, so that all is known at once. */
type InMemory = Readonly<{
  admission: Admission;
  keys: Keys;
  searches: Searches;
  ledger: Ledger;
  sessions: KnownSessions;
  journal: BatchingJournal;
  databaseFile: string;
  /** For a server: limits of a minute go on with what was charged in the last one. */
  recall(): void;
  /** For a server: what checks the ledger again and again, from its `begin` until `close`. */
  watch(log: Log): LedgerWatch;
}>;
export type FolderAccounting = Omit<Accounting, keyof InMemory> & InMemory;

export type AccountingOptions = Readonly<{
  dataFolder: string;
  catalog: Pick<Catalog, "plans"> & Partial<Pick<Catalog, "models">>;
  /** {site_url} of the spec, without a trailing slash. */
  siteUrl: string;
  clock: Clock;
  /**
   * The disk failed in a way that must not be retried, or the writer died: end the process at once. What was not
   * acknowledged by then may or may not be on disk; the next start finds out.
   */
  onFatal(error: Error): void;
  /** For a server: lines of the journal that are older than this many days are folded into sums. Absent or null: none are. */
  usageKeepDays?: number | null;
  /** Called whenever `unwritable` changes. */
  onWritable?: (unwritable: string | null) => void;
  onCommit?: CommitListener;
}>;

/**
 * Opens the accounting of a data folder, and makes it if there is none. Takes the same time however many accounts
 * there are: they are loaded when they are first used. Throws DataFolderInUse or DataFolderUnusable.
 */
export async function openAccounting(options: AccountingOptions): Promise<FolderAccounting> {
  const { dataFolder, catalog, siteUrl, clock, onFatal, onWritable, onCommit, usageKeepDays } = options;
  const { plans } = catalog;
  await using undo = new AsyncDisposableStack();
  const folder = takeDataFolder(dataFolder);
  undo.defer(() => folder.release());
  // Another version's tables: loaded there alone, with drizzle, which would take 60 ms of every start.
  const epoch =
    nextEpoch(folder.databaseFile) ?? (await import("../store/ledger/migrate.ts")).migrate(folder.databaseFile);
  const storage = await WorkerStorage.open(folder.databaseFile, epoch, onFatal, usageKeepDays);
  undo.defer(() => storage.close());
  const stalledFreeBytes = () => (storage.unwritable === null || storage.misplaced ? null : freeBytesIn(dataFolder));
  const unwritable = (): string | null => {
    const free = stalledFreeBytes();
    return free === null ? storage.unwritable : `${storage.unwritable}: ${roomInWords(free)} in ${dataFolder}`;
  };
  if (onWritable !== undefined) storage.follow(() => onWritable(unwritable()));
  const reader = openForReading(folder.databaseFile);
  undo.defer(() => reader.close());
  const records = new SqliteRecords(reader);
  const ledger = new Ledger(records, plans);
  const keys = new Keys(records, ledger);
  const journal = new BatchingJournal(storage, ledger, clock, onCommit);
  const admission = new Admission(ledger, new Flood(), journal, siteUrl);
  const searches = new Searches(ledger, records, journal);
  const sessions = new KnownSessions(records, journal, ledger);
  const memory = new OfficeMemory({ countOnDisk: () => records.count(), ledger, keys, sessions, plans });
  const office = new QueuedOffice({ records, sessions, memory, journal, catalog, clock });
  const stopLooking = lookWhileWaiting(admission, clock);
  const writes = setInterval(() => admission.keysUsed.write(keysUsedBatch), keysUsedIntervalMs);
  let watched: LedgerWatch | null = null;
  undo.move(); // from here on `close` does it, which commits what is pending first
  return {
    office,
    passwords: new Passwords(),
    sessions,
    admission,
    keys,
    searches,
    planOf: (account) => ledger.account(account).plan,
    reserved: ledger,
    everywhere: null,
    finds: null,
    ledger,
    memory: ledger,
    journal,
    databaseFile: folder.databaseFile,
    get unwritable() {
      return unwritable();
    },
    get diskFreeBytes() {
      return stalledFreeBytes();
    },
    verify: async () => (await import("../store/verify/verify.ts")).verify(reader, ledger, plans),
    async backup(file, progress) {
      const { backUp } = await import("../store/backup/backup.ts");
      return backUp(folder.databaseFile, file, progress, storage.misplaced ? reader : null);
    },
    recall: () => admission.recall(records.linesSince(clock.wall() - windowMs), momentOf(clock)),
    retain: (keepDays) => storage.retain(keepDays),
    watch(log) {
      watched = new LedgerWatch({ databaseFile: folder.databaseFile, reader, ledger, plans, clock, log });
      return watched;
    },
    async close() {
      await office.idle();
      await watched?.close();
      stopLooking();
      clearInterval(writes);
      admission.keysUsed.write(Number.POSITIVE_INFINITY);
      reader.close();
      await journal.close();
      folder.release();
    },
  };
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
