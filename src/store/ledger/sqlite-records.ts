// Reads accounts and their journal with prepared drizzle queries (2 us; unprepared, 59 us).
import type { Database } from "bun:sqlite";
import { and, asc, desc, eq, getTableColumns, gt, gte, inArray, isNull, lt, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/bun-sqlite";
import type { Period, Quota } from "../../account/quota.ts";
import type { AccountRecord, AccountRecords, KeyRecord, PlanCount } from "../../account/records.ts";
import type { DayUse } from "../../account/spend-limit.ts";
import { type UsageRow, usageRowOf } from "../../account/usage-row.ts";
import { hasLimits } from "../../core/key-limits.ts";
import type { AccountId, KeyId, KeyLimits } from "../../core/types.ts";
import { read } from "../open.ts";
import { accounts, apiKeys, endUsers, endUserUse, journal, keyUse, quotaUse, searchCalls } from "./schema.ts";

export class SqliteRecords implements AccountRecords {
  readonly #queries: ReturnType<typeof prepare>;

  constructor(database: Database) {
    this.#queries = prepare(database);
  }

  byId(account: AccountId): AccountRecord | null {
    return recordOf(read(() => this.#queries.byId.get({ account })));
  }

  byEmail(email: string): AccountRecord | null {
    return recordOf(read(() => this.#queries.byEmail.get({ email })));
  }

  byKeyHash(keyHash: string): AccountRecord | null {
    return recordOf(read(() => this.#queries.byKeyHash.get({ keyHash: Buffer.from(keyHash, "base64") })));
  }

  keyByHash(keyHash: string): KeyRecord | null {
    const row = read(() => this.#queries.keyByHash.get({ keyHash: Buffer.from(keyHash, "base64") }));
    return row === undefined ? null : keyOf(row);
  }

  keysOf(account: AccountId): readonly KeyRecord[] {
    return read(() => this.#queries.keysOf.all({ account })).map(keyOf);
  }

  keyUse(account: AccountId, key: KeyId, from: Period, before: Period): readonly DayUse[] {
    return read(() => this.#queries.keyUse.all({ account, key, from, before }));
  }

  hasEndUser(account: AccountId, key: KeyId, name: string): boolean {
    return read(() => this.#queries.endUser.get({ account, key, name })) !== undefined;
  }

  endUsersNamed(account: AccountId, name: string): readonly Readonly<{ id: number; key: KeyId }>[] {
    return read(() => this.#queries.endUsersNamed.all({ account, name }));
  }

  endUsersSince(account: AccountId, day: Period): number {
    return read(() => this.#queries.endUsersSince.get({ account, day }))?.count ?? 0;
  }

  endUserUse(account: AccountId, key: KeyId, name: string, from: Period, before: Period): readonly DayUse[] {
    return read(() => this.#queries.endUserUse.all({ account, key, name, from, before }));
  }

  list(after: AccountId, limit: number): readonly AccountRecord[] {
    return read(() => this.#queries.list.all({ after, limit })).map(ofRow);
  }

  search(text: string, after: AccountId, limit: number): readonly AccountRecord[] {
    return read(() => this.#queries.search.all({ text: text.toLowerCase(), after, limit })).map(ofRow);
  }

  lastId(): AccountId {
    return read(() => this.#queries.lastId.get())?.id ?? 0;
  }

  count(): number {
    return read(() => this.#queries.count.get())?.count ?? 0;
  }

  byPlan(): readonly PlanCount[] {
    return read(() => this.#queries.byPlan.all());
  }

  operators(): readonly AccountId[] {
    return read(() => this.#queries.operators.all()).map(({ id }) => id);
  }

  used(account: AccountId, quota: Quota, period: Period): number {
    return read(() => this.#queries.used.get({ account, quota, period }))?.used ?? 0;
  }

  searchCalls(account: AccountId, day: Period): number {
    return read(() => this.#queries.searchCalls.get({ account, day }))?.calls ?? 0;
  }

  ownerOfEntry(billingKey: string): AccountId | null {
    return read(() => this.#queries.entry.get({ billingKey }))?.account ?? null;
  }

  usage(account: AccountId, limit: number): readonly UsageRow[] {
    return read(() => this.#queries.usage.all({ account, limit })).map(usageRowOf);
  }
}

/** As `erasedName` and `isErased` of account/accounts.ts know them: "deleted-", digits and hyphens, "@invalid". */
const isErased = sql`(${accounts.email} LIKE 'deleted-_%@invalid'
  AND substr(${accounts.email}, 9, length(${accounts.email}) - 16) NOT GLOB '*[^0-9-]*'
  AND ${accounts.disabledAt} IS NOT NULL AND ${accounts.passwordHash} IS NULL)`;

function prepare(database: Database) {
  const db = drizzle(database);
  const place = sql.placeholder;
  const isEndUser = and(
    eq(endUsers.accountId, place("account")),
    eq(endUsers.name, place("name")),
    eq(endUsers.keyId, place("key")),
  );
  const isReply = inArray(journal.kind, ["charge", "coder_usage"]);
  return {
    byId: db
      .select()
      .from(accounts)
      .where(eq(accounts.id, place("account")))
      .prepare(),
    byEmail: db
      .select()
      .from(accounts)
      .where(eq(accounts.email, place("email")))
      .prepare(),
    byKeyHash: db
      .select()
      .from(accounts)
      .where(eq(accounts.keyHash, place("keyHash")))
      .prepare(),
    keyByHash: db
      .select()
      .from(apiKeys)
      .where(eq(apiKeys.keyHash, place("keyHash")))
      .prepare(),
    keysOf: db
      .select()
      .from(apiKeys)
      .where(eq(apiKeys.accountId, place("account")))
      .orderBy(asc(apiKeys.id))
      .prepare(),
    keyUse: db
      .select({ day: keyUse.day, used: keyUse.used })
      .from(keyUse)
      .where(
        and(
          eq(keyUse.accountId, place("account")),
          eq(keyUse.keyId, place("key")),
          gte(keyUse.day, place("from")),
          lt(keyUse.day, place("before")),
        ),
      )
      .prepare(),
    endUser: db.select({ id: endUsers.id }).from(endUsers).where(isEndUser).prepare(),
    endUsersNamed: db
      .select({ id: endUsers.id, key: endUsers.keyId })
      .from(endUsers)
      .where(and(eq(endUsers.accountId, place("account")), eq(endUsers.name, place("name"))))
      .prepare(),
    endUsersSince: db
      .select({ count: sql<number>`count(*)` })
      .from(endUsers)
      .where(and(eq(endUsers.accountId, place("account")), gte(endUsers.firstDay, place("day"))))
      .prepare(),
    endUserUse: db
      .select({ day: endUserUse.day, used: endUserUse.used })
      .from(endUsers)
      .innerJoin(endUserUse, and(eq(endUserUse.accountId, endUsers.accountId), eq(endUserUse.endUserId, endUsers.id)))
      .where(and(isEndUser, gte(endUserUse.day, place("from")), lt(endUserUse.day, place("before"))))
      .prepare(),
    list: db
      .select()
      .from(accounts)
      .where(gt(accounts.id, place("after")))
      .orderBy(asc(accounts.id))
      .limit(place("limit"))
      .prepare(),
    // instr, not LIKE: every character of the text stands for itself
    search: db
      .select()
      .from(accounts)
      .where(and(gt(accounts.id, place("after")), sql`instr(lower(${accounts.email}), ${place("text")}) > 0`))
      .orderBy(asc(accounts.id))
      .limit(place("limit"))
      .prepare(),
    lastId: db.select({ id: accounts.id }).from(accounts).orderBy(desc(accounts.id)).limit(1).prepare(),
    count: db
      .select({ count: sql<number>`count(*)` })
      .from(accounts)
      .where(sql`NOT ${isErased}`)
      .prepare(),
    byPlan: db
      .select({ plan: accounts.plan, accounts: sql<number>`count(*)` })
      .from(accounts)
      .where(isNull(accounts.disabledAt))
      .groupBy(accounts.plan)
      .prepare(),
    operators: db
      .select({ id: accounts.id })
      .from(accounts)
      .where(and(eq(accounts.operator, true), isNull(accounts.disabledAt)))
      .prepare(),
    used: db
      .select({ used: quotaUse.used })
      .from(quotaUse)
      .where(
        and(
          eq(quotaUse.accountId, place("account")),
          eq(quotaUse.quota, place("quota")),
          eq(quotaUse.period, place("period")),
        ),
      )
      .prepare(),
    searchCalls: db
      .select({ calls: searchCalls.calls })
      .from(searchCalls)
      .where(and(eq(searchCalls.accountId, place("account")), eq(searchCalls.day, place("day"))))
      .prepare(),
    entry: db
      .select({ account: journal.accountId })
      .from(journal)
      .where(eq(journal.billingKey, place("billingKey")))
      .prepare(),
    usage: db
      .select({ ...getTableColumns(journal), keyName: apiKeys.name, endUserName: endUsers.name })
      .from(journal)
      .leftJoin(apiKeys, and(eq(apiKeys.accountId, journal.accountId), eq(apiKeys.id, journal.keyId)))
      .leftJoin(endUsers, and(eq(endUsers.accountId, journal.accountId), eq(endUsers.id, journal.endUserId)))
      .where(and(eq(journal.accountId, place("account")), isReply))
      .orderBy(desc(journal.sequence))
      .limit(place("limit"))
      .prepare(),
  };
}

function recordOf(row: typeof accounts.$inferSelect | undefined): AccountRecord | null {
  return row === undefined ? null : ofRow(row);
}

function ofRow({ keyHash, ...row }: typeof accounts.$inferSelect): AccountRecord {
  return { ...row, keyHash: Buffer.from(keyHash).toString("base64") };
}

function keyOf({ accountId, keyHash, models, addresses, ...row }: typeof apiKeys.$inferSelect): KeyRecord {
  const { id, name, createdAt, usedAt, revokedAt, expiresAt, tokensPerDay, tokensPerMonth } = row;
  const { forwardsUsers, endUserTokensPerDay } = row;
  const list = (text: string | null) => (text === null ? null : (JSON.parse(text) as readonly string[]));
  const limits: KeyLimits = {
    expiresAt,
    tokensPerDay,
    tokensPerMonth,
    models: list(models),
    addresses: list(addresses),
    forwardsUsers: forwardsUsers === 1,
    endUserTokensPerDay,
  };
  return {
    account: accountId,
    id,
    name,
    keyHash: keyHash === null ? null : Buffer.from(keyHash).toString("base64"),
    limits: hasLimits(limits) ? limits : null,
    createdAt,
    usedAt,
    revokedAt,
  };
}
