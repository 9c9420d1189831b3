// I11: the ledger in memory equals the ledger on disk.
import { endUserUseKeepDays } from "../limits.ts";
import type { Database } from "bun:sqlite";
import type { Violation } from "../../account/people/accounts.ts";
import type { EndUser } from "../../account/money/end-users.ts";
import type { LoadedAccount } from "../../account/money/loaded-account.ts";
import type { Period } from "../../account/money/quota.ts";
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
      for (const { id, spendLimit } of account.keys?.values() ?? []) {
        for (const { day, used } of spendLimit?.days() ?? []) {
          compare(`key ${id} of ${day}`, used, this.#statements.keyUsed.get(account.id, id, day)?.used ?? 0);
        }
      }
      for (const [id, limit] of account.members ?? []) {
        for (const { day, used } of limit.days()) {
          compare(`member ${id} of ${day}`, used, this.#statements.memberUsed.get(account.id, id, day)!.used);
        }
      }
      return violations;
    });
  }

  /** The first day whose end-user usage is surely complete on disk. */
  endUserDaysSince(): Period {
    return read(() => this.#statements.lastEndUserDay.get()!.day - endUserUseKeepDays);
  }

  /** The same of an end user: of one without open requests and with all its lines on disk. */
  violationsOfEndUser({ account, key, name, limit, uses, isErased }: EndUser, since: Period): Violation[] {
    if (uses > 0 || isErased) return [];
    return read(() => {
      const violations: Violation[] = [];
      for (const { day, used } of limit.days()) {
        if (day < since) continue; // what is over, the disk forgets
        const disk = this.#statements.endUserUsed.get(account, name, key, day)?.used ?? 0;
        if (disk === used) continue;
        // Without the name, which the log would keep.
        const detail = `an end user of key ${key} used ${used} on day ${day} in memory, ${disk} on disk`;
        violations.push({ invariant: "I11", account, detail });
      }
      return violations;
    });
  }
}

function prepare(database: Database) {
  return {
    lastEndUserDay: database.prepare<{ day: number }, []>("SELECT coalesce(max(day), 0) AS day FROM end_user_use"),
    endUserUsed: database.prepare<{ used: number }, [number, string, number, number]>(`
      SELECT used FROM end_users AS e JOIN end_user_use AS u ON u.account_id = e.account_id AND u.end_user_id = e.id
      WHERE e.account_id = ? AND e.name = ? AND e.key_id = ? AND u.day = ?`),
    credit: database.prepare<{ credit: number }, [number]>("SELECT credit FROM accounts WHERE id = ?"),
    keyUsed: database.prepare<{ used: number }, [number, number, number]>(
      "SELECT used FROM key_use WHERE account_id = ? AND key_id = ? AND day = ?",
    ),
    memberUsed: database.prepare<{ used: number }, [number, number, number]>(
      `SELECT coalesce(sum(used), 0) AS used FROM api_keys AS k
       JOIN key_use AS u ON u.account_id = k.account_id AND u.key_id = k.id
       WHERE k.account_id = ? AND member_id = ? AND day = ?`,
    ),
    used: database.prepare<{ used: number }, [number, string, number]>(
      "SELECT used FROM quota_use WHERE account_id = ? AND quota = ? AND period = ?",
    ),
  };
}
