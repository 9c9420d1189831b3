// What the office reads, from PostgreSQL: the same questions as of SQLite (../ledger/sqlite-records.ts and
// ../ledger/console-records.ts), answered later.
import {
  coderWindowOf,
  dayOf,
  firstDayOfMonth,
  firstDayOfNextMonth,
  type Period,
  type Quota,
} from "../../account/money/quota.ts";
import type { AccountRecord, KeyUse, Standing, Standings } from "../../account/records.ts";
import type { DayUse } from "../../account/money/spend-limit.ts";
import { arrayOf } from "./connection.ts";
import type { Soon } from "../../core/soon.ts";
import type { AccountId, KeyId, Ms } from "../../core/types.ts";
import { type Numbered, StoreRecords } from "../store-records.ts";
import { sendIn, type Session } from "./database.ts";
import { statement } from "../questions.ts";
import { readMemberUse } from "./statements.ts";

export class PostgresRecords extends StoreRecords<"later"> implements Standings {
  protected readonly transaction: Session;
  protected readonly newestLines = "journal.at DESC, journal.billing_key DESC";
  readonly #given = new Map<Numbered, number>();

  constructor(transaction: Session) {
    super(sendIn(transaction));
    this.transaction = transaction;
  }

  byEmail(email: string): Promise<AccountRecord | null> {
    return this.one("accounts", {}, { and: [`lower(email COLLATE "C") = lower(?::text COLLATE "C")`, email] });
  }

  byEmails(emails: readonly string[]): Promise<readonly AccountRecord[]> {
    const isOne = `lower(email COLLATE "C") IN (SELECT lower(one COLLATE "C") FROM unnest(?::text::text[]) AS one)`;
    return this.all("accounts", {}, { and: [isOne, arrayOf(emails)] });
  }

  async ofKeys(account: AccountId, now: Ms): Promise<ReadonlyMap<KeyId, KeyUse>> {
    const rows = await this.ask<DayUse & { key: KeyId }>(
      keyUse,
      account,
      firstDayOfMonth(now),
      firstDayOfNextMonth(now),
    );
    const useOf = (uses: readonly DayUse[]): KeyUse => ({
      usedAt: null, // the key's record says it
      ...usedAmong(uses, now),
    });
    return new Map([...Map.groupBy(rows, ({ key }) => key)].map(([key, uses]) => [key, useOf(uses)]));
  }

  async ofMembers(team: AccountId, members: readonly AccountId[], now: Ms): Promise<readonly Omit<KeyUse, "usedAt">[]> {
    if (members.length === 0) return [];
    const rows = await this.ask<DayUse & { member: AccountId }>(
      memberUse,
      arrayOf(members.map(() => team)),
      arrayOf(members),
      firstDayOfMonth(now),
    );
    return members.map((id) =>
      usedAmong(
        rows.filter(({ member, day }) => member === id && day < firstDayOfNextMonth(now)),
        now,
      ),
    );
  }

  async count(): Promise<number> {
    return (await this.ask<{ count: number }>(count))[0]!.count;
  }

  async of({ id, keyUsedAt }: AccountRecord, now: Ms): Promise<Standing> {
    const [row] = await this.ask<Latest & Pick<Standing, "credit" | "held" | "holds">>(standing, id);
    const { credit, held, holds, ...latest } = row!;
    const used = (quota: Quota, period: Period): Soon<number> => {
      const at = latest[`${quota}_at`];
      if (at === period) return latest[quota];
      return at < period ? 0 : this.#usedBefore(id, quota, period); // a clock was set back
    };
    return {
      credit,
      held,
      holds,
      keyUsedAt,
      used: {
        allowance: await used("allowance", dayOf(now)),
        coder_calls: await used("coder_calls", coderWindowOf(now)),
        searches: await used("searches", dayOf(now)),
      },
    };
  }

  /** Numbers are given with the entries, so that who writes one need not ask. */
  nextAuditId(): number {
    return 0;
  }

  async #usedBefore(account: AccountId, quota: Quota, period: Period): Promise<number> {
    const [row] = await this.ask<{ used: number }>(usedBefore, account, quota, period);
    return row?.used ?? 0;
  }

  /** A unit may take several numbers before any is written, and no other unit takes one meanwhile. */
  async next(table: Numbered): Promise<number> {
    const next = (this.#given.get(table) ?? (await this.lastOf(table))) + 1;
    this.#given.set(table, next);
    return next;
  }

  /** The highest number that was ever given, also where what had it is gone, or came with a move. */
  protected async lastOf(table: Numbered): Promise<number> {
    const text = `SELECT greatest((SELECT value FROM counters WHERE name = $1::text), (SELECT max(id) FROM ${table}), 0)::float8 AS highest`;
    return (await this.ask<{ highest: number }>(statement("last number", text), table))[0]!.highest;
  }
}

/** Of a month's days. */
const usedAmong = (uses: readonly DayUse[], now: Ms): Omit<KeyUse, "usedAt"> => ({
  day: uses.reduce((sum, { day, used }) => (day === dayOf(now) ? sum + used : sum), 0),
  month: uses.reduce((sum, { used }) => sum + used, 0),
});

const memberUse = statement(readMemberUse.name, readMemberUse.text);
const keyUse = statement(
  "key use of days",
  `SELECT key_id AS key, day, used::float8 AS used FROM key_use
   WHERE account_id = $1::text::bigint AND day >= $2::text::int AND day < $3::text::int`,
);
/** What was used of each quota, in the period that the account was in last. */
type Latest = Readonly<Record<Quota | `${Quota}_at`, number>>;
const standing = statement(
  "standing",
  `SELECT credit::float8 AS credit, held::float8 AS held, holds, allowance_day AS allowance_at,
     allowance_used::float8 AS allowance, coder_window AS coder_calls_at, coder_used::float8 AS coder_calls,
     searches_day AS searches_at, searches_used::float8 AS searches
   FROM accounts WHERE id = $1::text::bigint`,
);
const usedBefore = statement(
  "used before",
  `SELECT used::float8 AS used FROM quota_use
   WHERE account_id = $1::text::bigint AND quota = $2::text AND period = $3::text::int`,
);
/** As `erasedName` and `isErased` of account/people/accounts.ts know them. */
const count = statement(
  "count accounts",
  `SELECT count(*)::float8 AS count FROM accounts WHERE NOT (lower(email COLLATE "C") ~ '^deleted-[0-9-]+@invalid$'
     AND disabled_at IS NOT NULL AND password_hash IS NULL)`,
);
