// Writes batches to the database: one batch is one transaction, on disk when `commit` returns. Retrying a batch does
// nothing twice: a journal line whose billing key exists moves no balance again.
import type { Database } from "bun:sqlite";
import { assert } from "../../core/assert.ts";
import {
  accountsNotMade,
  AccountSum,
  atPlace,
  type Batch,
  endUserPlace,
  journalColumns,
  type JournalRow,
  keyPlace,
  type RefusedChange,
} from "./batch.ts";
import { ChangeWriter } from "./change-writer.ts";
import { codeOf, messageOf } from "../folder/folder-faults.ts";
import { Folding } from "./folding.ts";
import { LedgerMisplaced, type LedgerPlace } from "./ledger-place.ts";
import { endUserUseKeepDays } from "../limits.ts";
import { dayMs } from "../../core/units.ts";
import type { AccountId, KeyId, Ms } from "../../core/types.ts";

/** Old days of end users' use removed with each commit that has charges of end users. */
const endUserUsePruned = 64;

/** Lines that one statement inserts where there are as many: 2 to 5 us less for each of them. */
const linesAtOnce = 8;

// OR FAIL: by default SQLite first copies each page that an INSERT of several lines changes, a sixth of its time, to take
// back that statement alone. Here a line that breaks a rule takes back the whole transaction.
const insertLines = (lines: number): string => `
  INSERT OR FAIL INTO journal (${journalColumns.join(", ")})
  VALUES ${Array<string>(lines)
    .fill(`(${journalColumns.map(() => "?").join(", ")})`)
    .join(", ")}
  ON CONFLICT (billing_key) DO NOTHING`;

/** Of lines that were inserted together, some are there already; one by one tells which. */
class KnownLines extends Error {
  override readonly name = "KnownLines";
}

/** The write failed for now and left nothing behind; the same batch may be tried again. */
export function mayRetry(thrown: unknown): boolean {
  if (thrown instanceof LedgerMisplaced) return true;
  const code = codeOf(thrown);
  return code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED") || code === "SQLITE_FULL";
}

export class Writer {
  readonly #database: Database;
  readonly #epoch: number;
  readonly #place: LedgerPlace | null;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #changes: ChangeWriter;
  readonly #folding: Folding;

  /** `epoch` is what `migrate` returned for this instance. `place` is asked before and after each commit. */
  constructor(database: Database, epoch: number, place: LedgerPlace | null = null) {
    this.#database = database;
    this.#epoch = epoch;
    this.#place = place;
    this.#statements = prepare(database);
    this.#changes = new ChangeWriter(database);
    this.#folding = new Folding(database);
  }

  /**
   * Gives the changes that were refused; all else of the batch is on disk. Throws what SQLite threw, after taking the
   * transaction back.
   */
  commit(batch: Batch): readonly RefusedChange[] {
    try {
      return this.#commit(batch, linesAtOnce);
    } catch (thrown) {
      if (!(thrown instanceof KnownLines)) throw thrown;
      return this.#commit(batch, 1);
    }
  }

  #commit({ changes, rows, endUsers }: Batch, atOnce: number): readonly RefusedChange[] {
    let refused: readonly RefusedChange[] = [];
    this.#transaction(() => {
      refused = this.#changeAll(changes);
      const notMade = accountsNotMade(changes, refused);
      const known = endUsers === undefined ? rows : this.#withEndUsers(rows, endUsers);
      this.#write(notMade.size === 0 ? known : known.filter(([, , account]) => !notMade.has(account)), atOnce);
    });
    return refused;
  }

  /**
   * Folds the oldest lines into sums, those from before `before` and at most `linesMax` of them, in a commit of their
   * own; says whether there may be more. Throws as `commit`.
   */
  fold(before: Ms, linesMax: number): boolean {
    if (!this.#folding.hasWork(before)) return false;
    let more = false;
    this.#transaction(() => {
      more = this.#folding.fold(before, linesMax);
    });
    return more;
  }

  /** A commit that changes nothing but must reach the disk: tells whether the disk takes writes again. */
  probe(): void {
    this.#transaction(() => this.#database.run("UPDATE instance SET epoch = epoch"));
  }

  checkPlace(): void {
    this.#place?.check();
  }

  /** Moves the log's pages into the database as far as no reader needs them, without waiting for anyone. */
  checkpoint(mode: "PASSIVE" | "TRUNCATE" = "PASSIVE"): void {
    try {
      this.#database.run(`PRAGMA wal_checkpoint(${mode})`);
    } catch (thrown) {
      // Without room for it the log keeps everything, until a later checkpoint or the next start.
      if (!mayRetry(thrown)) throw thrown;
    }
  }

  close(): void {
    this.#database.run("PRAGMA busy_timeout = 0"); // what another program still reads stays in the log
    this.checkpoint("TRUNCATE");
    this.#database.close();
  }

  #transaction(work: () => void): void {
    const { begin, commit, rollback, epoch } = this.#statements;
    this.#place?.check();
    begin.run();
    try {
      assert(epoch.get()?.epoch === this.#epoch, "no other instance has opened this database");
      work();
      commit.run();
    } catch (thrown) {
      // After a full disk SQLite may have rolled back by itself.
      if (this.#database.inTransaction) rollback.run();
      throw thrown;
    }
    this.#place?.check(true);
  }

  /** The lines with the numbers of those for whom they are. What is known of old days is let go of on the way. */
  #withEndUsers(rows: readonly JournalRow[], names: Readonly<Record<number, string>>): JournalRow[] {
    const numbered = [...rows];
    let latest = 0;
    for (const [place, name] of Object.entries(names)) {
      const row = rows[Number(place)]!;
      const day = Math.floor(row[atPlace] / dayMs);
      latest = Math.max(latest, day);
      const endUser = this.#endUser(row[2], row[keyPlace], name, day);
      numbered[Number(place)] = row.with(endUserPlace, endUser) as unknown as JournalRow;
    }
    this.#statements.pruneEndUserUse.run(latest - endUserUseKeepDays, endUserUsePruned);
    return numbered;
  }

  /** Its number, the next one if it is new. */
  #endUser(account: AccountId, key: KeyId, name: string, day: number): number {
    const { findEndUser, setLastDay, lastEndUser, addEndUser } = this.#statements;
    const found = findEndUser.get(account, name, key);
    if (found !== null) {
      if (found.last_day < day) setLastDay.run(day, account, found.id);
      return found.id;
    }
    const id = (lastEndUser.get(account)?.id ?? 0) + 1;
    addEndUser.run(account, id, key, name, day, day);
    return id;
  }

  #write(rows: readonly JournalRow[], atOnce: number): void {
    const { insertLine, insertLines, addToUse, addUse, addToKeyUse, addKeyUse, addEndUserUse, addCredit } =
      this.#statements;
    const sums = new Map<number, AccountSum>();
    const together = atOnce === 1 ? 0 : rows.length - (rows.length % atOnce);
    for (let from = 0; from < together; from += atOnce) {
      if (insertLines.run(...rows.slice(from, from + atOnce).flat()).changes !== atOnce) throw new KnownLines();
    }
    for (let place = 0; place < rows.length; place += 1) {
      const row = rows[place]!;
      if (place >= together && insertLine.run(...row).changes === 0) continue;
      const account = row[2];
      let sum = sums.get(account);
      if (sum === undefined) sums.set(account, (sum = new AccountSum()));
      sum.add(row);
    }
    for (const [account, sum] of sums) {
      for (const { quota, period, used } of sum.uses) {
        if (addToUse.run(used, account, quota, period).changes === 0) addUse.run(account, quota, period, used);
      }
      for (const { key, day, used } of sum.keyUses) {
        if (addToKeyUse.run(used, account, key, day).changes === 0) addKeyUse.run(account, key, day, used);
      }
      for (const { endUser, day, used } of sum.endUserUses ?? []) addEndUserUse.run(account, endUser, day, used);
      if (sum.creditDelta === 0) continue;
      assert(addCredit.run(sum.creditDelta, account).changes === 1, `account ${account} of the journal exists`);
    }
  }

  /**
   * A unit that breaks a rule of a table says nothing about the disk, and must neither end the process nor keep charges
   * from it. It is left out as a whole.
   */
  #changeAll(units: Batch["changes"]): RefusedChange[] {
    const refused: RefusedChange[] = [];
    const { beginUnit, endUnit, takeBackUnit } = this.#statements;
    for (const [index, unit] of units.entries()) {
      beginUnit.run();
      try {
        for (const change of unit) this.#changes.write(change);
      } catch (thrown) {
        if (!codeOf(thrown).startsWith("SQLITE_CONSTRAINT")) throw thrown;
        takeBackUnit.run();
        refused.push({ index, reason: messageOf(thrown) });
      }
      endUnit.run();
    }
    return refused;
  }
}

function prepare(database: Database) {
  return {
    begin: database.prepare("BEGIN IMMEDIATE"),
    commit: database.prepare("COMMIT"),
    rollback: database.prepare("ROLLBACK"),
    beginUnit: database.prepare("SAVEPOINT unit"),
    endUnit: database.prepare("RELEASE unit"),
    takeBackUnit: database.prepare("ROLLBACK TO unit"),
    epoch: database.prepare<{ epoch: number }, []>("SELECT epoch FROM instance"),
    insertLine: database.prepare<unknown, [...JournalRow]>(insertLines(1)),
    insertLines: database.prepare<unknown, JournalRow[number][]>(insertLines(linesAtOnce)),
    // Nearly always there is a row, and an upsert takes twice as long as an update.
    addToUse: database.prepare<unknown, [number, number, string, number]>(
      "UPDATE quota_use SET used = used + ? WHERE account_id = ? AND quota = ? AND period = ?",
    ),
    addUse: database.prepare<unknown, [number, string, number, number]>(
      "INSERT INTO quota_use (account_id, quota, period, used) VALUES (?, ?, ?, ?)",
    ),
    addToKeyUse: database.prepare<unknown, [number, number, number, number]>(
      "UPDATE key_use SET used = used + ? WHERE account_id = ? AND key_id = ? AND day = ?",
    ),
    addKeyUse: database.prepare<unknown, [number, number, number, number]>(
      "INSERT INTO key_use (account_id, key_id, day, used) VALUES (?, ?, ?, ?)",
    ),
    // Named, the index is used: SQLite would look at all names of the account instead, with each charge.
    findEndUser: database.prepare<{ id: number; last_day: number }, [number, string, number]>(
      "SELECT id, last_day FROM end_users INDEXED BY end_users_by_name WHERE account_id = ? AND name = ? AND key_id = ?",
    ),
    lastEndUser: database.prepare<{ id: number }, [number]>(
      "SELECT id FROM end_users WHERE account_id = ? ORDER BY id DESC LIMIT 1",
    ),
    addEndUser: database.prepare<unknown, [number, number, number, string, number, number]>(
      "INSERT INTO end_users (account_id, id, key_id, name, first_day, last_day) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    setLastDay: database.prepare<unknown, [number, number, number]>(
      "UPDATE end_users SET last_day = ? WHERE account_id = ? AND id = ?",
    ),
    addEndUserUse: database.prepare<unknown, [number, number, number, number]>(`
      INSERT INTO end_user_use (account_id, end_user_id, day, used) VALUES (?, ?, ?, ?)
      ON CONFLICT (account_id, end_user_id, day) DO UPDATE SET used = used + excluded.used`),
    pruneEndUserUse: database.prepare<unknown, [day: number, limit: number]>(`
      DELETE FROM end_user_use WHERE (account_id, end_user_id, day) IN (
        SELECT account_id, end_user_id, day FROM end_user_use WHERE day < ? ORDER BY day LIMIT ?)`),
    addCredit: database.prepare<unknown, [number, number]>("UPDATE accounts SET credit = credit + ? WHERE id = ?"),
  };
}
