// What the office reads, from PostgreSQL: the same questions as of SQLite (../ledger/sqlite-records.ts and
// ../ledger/console-records.ts), answered later.
import { and, eq, gte, lt, sql } from "drizzle-orm";
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
import { accounts, counters, keyUse, quotaUse } from "./schema.ts";
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
    const rows = await this.#db
      .select({ key: keyUse.keyId, day: keyUse.day, used: keyUse.used })
      .from(keyUse)
      .where(
        and(
          eq(keyUse.accountId, account),
          gte(keyUse.day, firstDayOfMonth(now)),
          lt(keyUse.day, firstDayOfNextMonth(now)),
        ),
      );
    const sum = (uses: readonly DayUse[]) => uses.reduce((total, { used }) => total + used, 0);
    const useOf = (uses: readonly DayUse[]): KeyUse => ({
      usedAt: null, // the key's record says it
      day: sum(uses.filter(({ day }) => day === dayOf(now))),
      month: sum(uses),
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
    const sum = (uses: readonly DayUse[]) => uses.reduce((total, { used }) => total + used, 0);
    return members.map((id) => {
      const uses = rows.filter(({ member, day }) => member === id && day < firstDayOfNextMonth(now));
      return { day: sum(uses.filter(({ day }) => day === dayOf(now))), month: sum(uses) };
    });
  }

  async count(): Promise<number> {
    const [row] = await this.#db
      .select(count)
      .from(accounts)
      .where(sql`NOT ${isErased}`);
    return row!.count;
  }

  async of({ id, keyUsedAt }: AccountRecord, now: Ms): Promise<Standing> {
    const [row] = await this.#db
      .select({
        credit: accounts.credit,
        held: accounts.held,
        holds: accounts.holds,
        allowance: { period: accounts.allowanceDay, used: accounts.allowanceUsed },
        coder_calls: { period: accounts.coderWindow, used: accounts.coderUsed },
        searches: { period: accounts.searchesDay, used: accounts.searchesUsed },
      })
      .from(accounts)
      .where(eq(accounts.id, id));
    const { credit, held, holds, ...latest } = row!;
    const used = (quota: Quota, period: Period): Soon<number> => {
      if (latest[quota].period === period) return latest[quota].used;
      return latest[quota].period < period ? 0 : this.#usedBefore(id, quota, period); // a clock was set back
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

  get #db(): Session["db"] {
    return this.transaction.db;
  }

  async #usedBefore(account: AccountId, quota: Quota, period: Period): Promise<number> {
    const [row] = await this.#db
      .select({ used: quotaUse.used })
      .from(quotaUse)
      .where(and(eq(quotaUse.accountId, account), eq(quotaUse.quota, quota), eq(quotaUse.period, period)));
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
    const highest = sql<number>`greatest((SELECT value FROM ${counters} WHERE name = ${table}),
      (SELECT max(id) FROM ${sql.identifier(table)}), 0)`.mapWith(Number);
    const [row] = await this.#db.select({ highest }).from(sql`(SELECT 1) AS one`);
    return row!.highest;
  }
}

const memberUse = statement(readMemberUse.name, readMemberUse.text);
const count = { count: sql<number>`count(*)`.mapWith(Number) };

/** As `erasedName` and `isErased` of account/people/accounts.ts know them. */
const isErased = sql`(lower(${accounts.email} COLLATE "C") ~ '^deleted-[0-9-]+@invalid$'
  AND ${accounts.disabledAt} IS NOT NULL AND ${accounts.passwordHash} IS NULL)`;
