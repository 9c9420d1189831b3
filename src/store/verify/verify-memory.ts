// I11: the ledger in memory equals the ledger on disk.
import type { Database } from "bun:sqlite";
import type { Violation } from "../../account/accounts.ts";
import type { LoadedAccount } from "../../account/loaded-account.ts";
import { read } from "../open.ts";

export class MemoryVerifier {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Database) {
    this.#statements = prepare(database);
  }

  /**
   * Compares in one moment, four look-ups by key. While a line of the account is on its way, the disk is behind and
   * nothing is said. Throws StoreUnavailable when the disk cannot be read.
   */
  violationsOf(account: LoadedAccount): Violation[] {
    if (account.uncommitted > 0) return [];
    return read(() => {
      const row = this.#statements.credit.get(account.id);
      if (row === null) return []; // its creation is on its way to disk
      const violations: Violation[] = [];
      const compare = (what: string, memory: number, disk: number) => {
        if (memory === disk) return;
        const detail = `${what} is ${memory} in memory, ${disk} on disk`;
        violations.push({ invariant: "I11", account: account.id, detail });
      };
      compare("credit", account.credit, row.credit);
      for (const use of [account.allowance, account.coder_calls, account.searches]) {
        if (use.period < 0) continue;
        const disk = this.#statements.used.get(account.id, use.quota, use.period)?.used ?? 0;
        compare(`${use.quota} of ${use.period}`, use.used, disk);
      }
      for (const { id, spendLimits } of account.keys?.values() ?? []) {
        for (const limit of spendLimits) {
          for (const { day, used } of limit.days()) {
            compare(`key ${id} of ${day}`, used, this.#statements.keyUsed.get(account.id, id, day)?.used ?? 0);
          }
        }
      }
      return violations;
    });
  }
}

function prepare(database: Database) {
  return {
    credit: database.prepare<{ credit: number }, [number]>("SELECT credit FROM accounts WHERE id = ?"),
    keyUsed: database.prepare<{ used: number }, [number, number, number]>(
      "SELECT used FROM key_use WHERE account_id = ? AND key_id = ? AND day = ?",
    ),
    used: database.prepare<{ used: number }, [number, string, number]>(
      "SELECT used FROM quota_use WHERE account_id = ? AND quota = ? AND period = ?",
    ),
  };
}
