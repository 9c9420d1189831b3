// Reads accounts and their journal with prepared statements (2 us).
import type { Database } from "bun:sqlite";
import type { MinuteLine } from "../../account/money/minute-limits.ts";
import type { Period, Quota } from "../../account/money/quota.ts";
import type { AccountRecord, AccountRecords, KeyRecord, OfficeRecords, PlanCount } from "../../account/records.ts";
import type { DayUse } from "../../account/money/spend-limit.ts";
import { type JournalReply, type UsageRow, usageRowOf } from "../../account/usage-row.ts";
import type { AccountId, KeyId, Ms } from "../../core/types.ts";
import { keyRecordOf, recordOf } from "../changes/record.ts";
import { Numbers } from "./numbers.ts";
import { read } from "../open.ts";
import type { RowOf } from "./schema.ts";

export class SqliteRecords implements AccountRecords, OfficeRecords {
  readonly #queries: ReturnType<typeof prepare>;
  readonly #numbers = new Numbers(() => this.#queries.lastId.get());

  constructor(database: Database) {
    this.#queries = prepare(database);
  }

  byId(account: AccountId): AccountRecord | null {
    return accountOf(read(() => this.#queries.byId.get({ account })));
  }

  byEmail(email: string): AccountRecord | null {
    return accountOf(read(() => this.#queries.byEmail.get({ email })));
  }

  byEmails(emails: readonly string[]): readonly AccountRecord[] {
    return emails.flatMap((email) => this.byEmail(email) ?? []);
  }

  byKeyHash(keyHash: string): AccountRecord | null {
    return accountOf(read(() => this.#queries.byKeyHash.get({ keyHash: Buffer.from(keyHash, "base64") })));
  }

  keyByHash(keyHash: string): KeyRecord | null {
    return this.keyWith("keyHash", keyHash);
  }

  keyWith(hash: "keyHash" | "familyHash", is: string): KeyRecord | null {
    const query = this.#queries[hash === "keyHash" ? "keyByHash" : "keyByFamily"];
    const row = read(() => query.get({ hash: Buffer.from(is, "base64") }));
    return row === null ? null : keyOf(row);
  }

  keysOf(account: AccountId): readonly KeyRecord[] {
    return read(() => this.#queries.keysOf.all({ account })).map(keyOf);
  }

  keyUse(account: AccountId, key: KeyId, from: Period, before: Period): readonly DayUse[] {
    return read(() => this.#queries.keyUse.all({ account, key, from, before }));
  }

  hasEndUser(account: AccountId, key: KeyId, name: string): boolean {
    return read(() => this.#queries.endUser.get({ account, key, name })) !== null;
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

  /** Requests that were charged since then, the latest first. */
  *linesSince(since: Ms): Iterable<MinuteLine> {
    for (const line of this.#queries.latestLines.iterate()) {
      if (line.at <= since) return;
      yield line;
    }
  }

  list(after: AccountId, limit: number): readonly AccountRecord[] {
    return read(() => this.#queries.list.all({ after, limit })).map((row) => recordOf("accounts", row));
  }

  search(text: string, after: AccountId, limit: number): readonly AccountRecord[] {
    return read(() => this.#queries.search.all({ text: text.toLowerCase(), after, limit })).map((row) =>
      recordOf("accounts", row),
    );
  }

  nextId(): AccountId {
    return this.#numbers.next();
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

/** As `erasedName` and `isErased` of account/people/accounts.ts know them: "deleted-", digits and hyphens, "@invalid". */
const isErased = `(email LIKE 'deleted-_%@invalid' AND substr(email, 9, length(email) - 16) NOT GLOB '*[^0-9-]*'
  AND disabled_at IS NOT NULL AND password_hash IS NULL)`;

type AccountRow = RowOf<"accounts">;
type KeyRow = RowOf<"api_keys">;
type Values = [] | [Readonly<Record<string, number | string | Uint8Array>>];

function prepare(database: Database) {
  const query = <Row>(text: string) => database.query<Row, Values>(text);
  const ofKeyOnDays = "account_id = $account AND key_id = $key AND day >= $from AND day < $before";
  const isEndUser = "end_users.account_id = $account AND end_users.name = $name AND end_users.key_id = $key";
  return {
    byId: query<AccountRow>("SELECT * FROM accounts WHERE id = $account"),
    byEmail: query<AccountRow>("SELECT * FROM accounts WHERE email = $email"),
    byKeyHash: query<AccountRow>("SELECT * FROM accounts WHERE key_hash = $keyHash"),
    keyByHash: query<KeyRow>("SELECT * FROM api_keys WHERE key_hash = $hash"),
    keyByFamily: query<KeyRow>("SELECT * FROM api_keys WHERE family_hash = $hash"),
    keysOf: query<KeyRow>("SELECT * FROM api_keys WHERE account_id = $account ORDER BY id"),
    keyUse: query<DayUse>(`SELECT day, used FROM key_use WHERE ${ofKeyOnDays}`),
    endUser: query<{ id: number }>(`SELECT id FROM end_users WHERE ${isEndUser}`),
    endUsersNamed: query<{ id: number; key: KeyId }>(
      "SELECT id, key_id AS key FROM end_users WHERE account_id = $account AND name = $name",
    ),
    endUsersSince: query<{ count: number }>(
      "SELECT count(*) AS count FROM end_users WHERE account_id = $account AND first_day >= $day",
    ),
    endUserUse: query<DayUse>(
      `SELECT day, used FROM end_users
         JOIN end_user_use ON end_user_use.account_id = end_users.account_id AND end_user_use.end_user_id = end_users.id
         WHERE ${isEndUser} AND day >= $from AND day < $before`,
    ),
    latestLines: query<MinuteLine>(
      `SELECT journal.account_id AS account, journal.key_id AS key, name AS endUser, at,
           coalesce(input_fresh + input_cached + output, 0) AS tokens
         FROM journal
         LEFT JOIN end_users ON end_users.account_id = journal.account_id AND end_users.id = journal.end_user_id
         WHERE kind IN ('charge', 'coder_usage') ORDER BY sequence DESC`,
    ),
    list: query<AccountRow>("SELECT * FROM accounts WHERE id > $after ORDER BY id LIMIT $limit"),
    // instr, not LIKE: every character of the text stands for itself
    search: query<AccountRow>(
      "SELECT * FROM accounts WHERE id > $after AND instr(lower(email), $text) > 0 ORDER BY id LIMIT $limit",
    ),
    lastId: query<{ id: AccountId }>("SELECT id FROM accounts ORDER BY id DESC LIMIT 1"),
    count: query<{ count: number }>(`SELECT count(*) AS count FROM accounts WHERE NOT ${isErased}`),
    byPlan: query<PlanCount>("SELECT plan, count(*) AS accounts FROM accounts WHERE disabled_at IS NULL GROUP BY plan"),
    operators: query<{ id: AccountId }>("SELECT id FROM accounts WHERE operator = 1 AND disabled_at IS NULL"),
    used: query<{ used: number }>(
      "SELECT used FROM quota_use WHERE account_id = $account AND quota = $quota AND period = $period",
    ),
    searchCalls: query<{ calls: number }>("SELECT calls FROM search_calls WHERE account_id = $account AND day = $day"),
    entry: query<{ account: AccountId }>("SELECT account_id AS account FROM journal WHERE billing_key = $billingKey"),
    usage: query<JournalReply>(
      `SELECT at, billing_key AS billingKey, endpoint, model, input_fresh AS inputFresh, input_cached AS inputCached,
           output, reasoning, billed_tokens AS billedTokens, estimated, journal.key_id AS keyId,
           api_keys.name AS keyName, end_users.name AS endUserName
         FROM journal
         LEFT JOIN api_keys ON api_keys.account_id = journal.account_id AND api_keys.id = journal.key_id
         LEFT JOIN end_users ON end_users.account_id = journal.account_id AND end_users.id = journal.end_user_id
         WHERE journal.account_id = $account AND journal.kind IN ('charge', 'coder_usage')
         ORDER BY journal.sequence DESC LIMIT $limit`,
    ),
  };
}

const accountOf = (row: AccountRow | null): AccountRecord | null => (row === null ? null : recordOf("accounts", row));

const keyOf = (row: KeyRow): KeyRecord => keyRecordOf(recordOf("api_keys", row));
