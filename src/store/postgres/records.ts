// What the office reads, from PostgreSQL: the same questions as of SQLite (../ledger/sqlite-records.ts and
// ../ledger/console-records.ts), answered later.
import { and, asc, desc, eq, getTableColumns, gt, gte, inArray, isNull, lt, sql } from "drizzle-orm";
import {
  coderWindowOf,
  dayOf,
  firstDayOfMonth,
  firstDayOfNextMonth,
  type Period,
  type Quota,
} from "../../account/money/quota.ts";
import type {
  AccountRecord,
  KeyRecord,
  KeyUse,
  OfficeRecords,
  PlanCount,
  Standing,
  Standings,
} from "../../account/records.ts";
import type { DayUse } from "../../account/money/spend-limit.ts";
import { type UsageRow, usageRowOf } from "../../account/usage-row.ts";
import { keyRecordOf, recordOf } from "../changes/record.ts";
import { arrayOf } from "./connection.ts";
import type { Soon } from "../../core/soon.ts";
import type { AccountId, KeyId, Ms } from "../../core/types.ts";
import { ConsoleRecords, type Numbered } from "../console-records.ts";
import { sendIn, type Session } from "./database.ts";
import { accounts, apiKeys, counters, journal, keyUse, quotaUse } from "./schema.ts";
import { endUsers } from "./schema-console.ts";

export class PostgresRecords extends ConsoleRecords<"later"> implements OfficeRecords, Standings {
  protected readonly transaction: Session;
  readonly #given = new Map<Numbered, number>();

  constructor(transaction: Session) {
    super(sendIn(transaction));
    this.transaction = transaction;
  }

  byId(account: AccountId): Promise<AccountRecord | null> {
    return this.#account(eq(accounts.id, account));
  }

  byEmail(email: string): Promise<AccountRecord | null> {
    return this.#account(sql`lower(${accounts.email} COLLATE "C") = lower(${email} COLLATE "C")`);
  }

  async byEmails(emails: readonly string[]): Promise<readonly AccountRecord[]> {
    const lowered = sql`SELECT lower(email COLLATE "C") FROM unnest(${arrayOf(emails)}::text::text[]) AS email`;
    const rows = await this.#db
      .select()
      .from(accounts)
      .where(sql`lower(${accounts.email} COLLATE "C") IN (${lowered})`);
    return rows.map(accountOf);
  }

  async keysOf(account: AccountId): Promise<readonly KeyRecord[]> {
    const rows = await this.#db.select().from(apiKeys).where(eq(apiKeys.accountId, account)).orderBy(asc(apiKeys.id));
    return rows.map(keyOf);
  }

  async keyWith(hash: "keyHash" | "familyHash", is: string): Promise<KeyRecord | null> {
    const [row] = await this.#db
      .select()
      .from(apiKeys)
      .where(eq(apiKeys[hash], Uint8Array.fromBase64(is)));
    return row === undefined ? null : keyOf(row);
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

  endUsersNamed(account: AccountId, name: string): Promise<readonly Readonly<{ id: number; key: KeyId }>[]> {
    return this.#db
      .select({ id: endUsers.id, key: endUsers.keyId })
      .from(endUsers)
      .where(and(eq(endUsers.accountId, account), eq(endUsers.name, name)))
      .orderBy(asc(endUsers.keyId));
  }

  async list(after: AccountId, limit: number): Promise<readonly AccountRecord[]> {
    const rows = await this.#db
      .select()
      .from(accounts)
      .where(gt(accounts.id, after))
      .orderBy(asc(accounts.id))
      .limit(limit);
    return rows.map(accountOf);
  }

  async search(text: string, after: AccountId, limit: number): Promise<readonly AccountRecord[]> {
    // strpos, not LIKE: every character of the text stands for itself
    const contains = sql`strpos(lower(${accounts.email} COLLATE "C"), lower(${text} COLLATE "C")) > 0`;
    const rows = await this.#db
      .select()
      .from(accounts)
      .where(and(gt(accounts.id, after), contains))
      .orderBy(asc(accounts.id))
      .limit(limit);
    return rows.map(accountOf);
  }

  nextId(): Promise<AccountId> {
    return this.next("accounts");
  }

  async count(): Promise<number> {
    const [row] = await this.#db
      .select(count)
      .from(accounts)
      .where(sql`NOT ${isErased}`);
    return row!.count;
  }

  byPlan(): Promise<readonly PlanCount[]> {
    return this.#db
      .select({ plan: accounts.plan, accounts: count.count })
      .from(accounts)
      .where(isNull(accounts.disabledAt))
      .groupBy(accounts.plan);
  }

  async operators(): Promise<readonly AccountId[]> {
    const rows = await this.#db
      .select({ id: accounts.id })
      .from(accounts)
      .where(and(eq(accounts.operator, true), isNull(accounts.disabledAt)));
    return rows.map(({ id }) => id);
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

  async ownerOfEntry(billingKey: string): Promise<AccountId | null> {
    const [row] = await this.#db
      .select({ account: journal.accountId })
      .from(journal)
      .where(eq(journal.billingKey, billingKey));
    return row?.account ?? null;
  }

  async usage(account: AccountId, limit: number): Promise<readonly UsageRow[]> {
    const rows = await this.#db
      .select({ ...getTableColumns(journal), keyName: apiKeys.name, endUserName: endUsers.name })
      .from(journal)
      .leftJoin(apiKeys, and(eq(apiKeys.accountId, journal.accountId), eq(apiKeys.id, journal.keyId)))
      .leftJoin(endUsers, and(eq(endUsers.accountId, journal.accountId), eq(endUsers.id, journal.endUserId)))
      .where(and(eq(journal.accountId, account), inArray(journal.kind, ["charge", "coder_usage"])))
      .orderBy(desc(journal.at), desc(journal.billingKey))
      .limit(limit);
    return rows.map(usageRowOf);
  }

  /** Numbers are given with the entries, so that who writes one need not ask. */
  nextAuditId(): number {
    return 0;
  }

  get #db(): Session["db"] {
    return this.transaction.db;
  }

  async #account(isWanted: ReturnType<typeof eq>): Promise<AccountRecord | null> {
    const [row] = await this.#db.select().from(accounts).where(isWanted);
    return row === undefined ? null : accountOf(row);
  }

  async #usedBefore(account: AccountId, quota: Quota, period: Period): Promise<number> {
    const [row] = await this.#db
      .select({ used: quotaUse.used })
      .from(quotaUse)
      .where(and(eq(quotaUse.accountId, account), eq(quotaUse.quota, quota), eq(quotaUse.period, period)));
    return row?.used ?? 0;
  }

  /** A unit may take several numbers before any is written, and no other unit takes one meanwhile. */
  protected async next(table: Numbered): Promise<number> {
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

const count = { count: sql<number>`count(*)`.mapWith(Number) };

/** As `erasedName` and `isErased` of account/people/accounts.ts know them. */
const isErased = sql`(lower(${accounts.email} COLLATE "C") ~ '^deleted-[0-9-]+@invalid$'
  AND ${accounts.disabledAt} IS NOT NULL AND ${accounts.passwordHash} IS NULL)`;

const base64Of = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

function accountOf(row: typeof accounts.$inferSelect): AccountRecord {
  const { id, email, plan, credit, keyHash, passwordHash, operator, createdAt } = row;
  const { keyCreatedAt, keyUsedAt, keyEnding, disabledAt } = row;
  return {
    id,
    email,
    plan,
    credit,
    keyHash: base64Of(keyHash),
    passwordHash,
    operator,
    createdAt,
    keyCreatedAt,
    keyUsedAt,
    keyEnding,
    disabledAt,
  };
}

const keyOf = (row: typeof apiKeys.$inferSelect): KeyRecord => keyRecordOf(recordOf("api_keys", row, "camel"));
