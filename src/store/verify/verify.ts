// One complete check of the ledger, on disk and in memory, for tests and small databases. A running server checks in
// slices (verify-watch.ts).
import type { Database } from "bun:sqlite";
import type { Verification, Violation } from "../../account/people/accounts.ts";
import { systemClock } from "../../core/clock.ts";
import type { Ledger } from "../../account/money/ledger.ts";
import type { Catalog } from "../../core/catalog.ts";
import { boundsOf } from "./quota-bounds.ts";
import { DiskVerifier } from "./verify-disk.ts";
import { MemoryVerifier } from "./verify-memory.ts";

/** Accounts looked at in one turn of the event loop. With 10 lines each and a cold cache, 500 took 90 ms. */
const accountsPerTurn = 25;

/** Checks all accounts, a few at a time. Throws StoreUnavailable when the disk cannot be read. */
export async function verify(database: Database, ledger: Ledger, plans: Catalog["plans"]): Promise<Verification> {
  const disk = new DiskVerifier(database, boundsOf(plans));
  const memory = new MemoryVerifier(database);
  const violations: Violation[] = [];
  let accounts = 0;
  for (let after = 0; ;) {
    const ids = disk.accountsAfter(after, accountsPerTurn);
    // After the last account there may still be lines of accounts that do not exist.
    const last = ids.at(-1) ?? Number.MAX_SAFE_INTEGER;
    violations.push(...disk.violationsOf(after, last));
    for (const id of ids) {
      const loaded = ledger.ifLoaded(id);
      if (loaded !== null) violations.push(...memory.violationsOf(loaded));
    }
    accounts += ids.length;
    if (ids.length === 0) {
      const since = memory.endUserDaysSince();
      for (const endUser of ledger.endUsers.loaded()) violations.push(...memory.violationsOfEndUser(endUser, since));
      return { accounts, violations };
    }
    after = last;
    await Bun.sleep(0);
  }
}

/** Plans may have been larger when a quota was used, and the backup is not to blame for that. */
const anyPlan = { allowance: Infinity, coder_calls: Infinity, searches: Infinity };
const accountsPerSlice = 100;
const progressIntervalMs = 1_000;

/** Everything that contradicts itself, of a database of this program's version. Throws StoreUnavailable. */
export function ledgerViolations(database: Database, progress: (line: string) => void): Violation[] {
  const disk = new DiskVerifier(database, anyPlan);
  const violations: Violation[] = [];
  let toldAt = systemClock.monotonic();
  let accounts = 0;
  for (let after = 0; ;) {
    const ids = disk.accountsAfter(after, accountsPerSlice);
    // After the last account there may still be lines of accounts that do not exist.
    const last = ids.at(-1) ?? Number.MAX_SAFE_INTEGER;
    violations.push(...disk.violationsOf(after, last));
    if (ids.length === 0) return violations;
    accounts += ids.length;
    after = last;
    if (systemClock.monotonic() - toldAt < progressIntervalMs) continue;
    progress(`the books of ${accounts} accounts checked`);
    toldAt = systemClock.monotonic();
  }
}
