// Reads accounts and their journal with prepared statements (2 us).
import type { Database } from "bun:sqlite";
import type { MinuteLine } from "../../account/money/minute-limits.ts";
import type { Period, Quota } from "../../account/money/quota.ts";
import type { AccountRecord, AccountRecords, KeyRecord, TeamMember } from "../../account/records.ts";
import type { DayUse } from "../../account/money/spend-limit.ts";
import type { AccountId, KeyId, Ms } from "../../core/types.ts";
import { Numbers } from "./numbers.ts";
import { read } from "../open.ts";
import { SqliteQuestions } from "../questions.ts";
import { type Numbered, StoreRecords } from "../store-records.ts";

export class SqliteRecords extends StoreRecords<"now"> implements AccountRecords {
  protected readonly newestLines = "journal.sequence DESC";
  readonly #queries: ReturnType<typeof prepare>;
  readonly #database: Database;
  readonly #numbers = new Map<Numbered, Numbers>();

  constructor(database: Database) {
    const questions = new SqliteQuestions(database);
    super((question, ...values) => read(() => questions.rows(question, ...values)));
    this.#queries = prepare(database);
    this.#database = database;
  }

  nextAuditId(): number {
    return this.next("audit_log");
  }

  next(table: Numbered): number {
    let numbers = this.#numbers.get(table);
    if (numbers === undefined) {
      const last = this.#database.query<{ id: number }, []>(`SELECT id FROM ${table} ORDER BY id DESC LIMIT 1`);
      this.#numbers.set(table, (numbers = new Numbers(() => last.get())));
    }
    return numbers.next();
  }

  byEmail(email: string): AccountRecord | null {
    return this.one("accounts", { email });
  }

  byEmails(emails: readonly string[]): readonly AccountRecord[] {
    return emails.flatMap((email) => this.byEmail(email) ?? []);
  }

  byKeyHash(keyHash: string): AccountRecord | null {
    return this.one("accounts", { key_hash: keyHash });
  }

  keyByHash(keyHash: string): KeyRecord | null {
    return this.keyWith("keyHash", keyHash);
  }

  keyUse(account: AccountId, key: KeyId, from: Period, before: Period): readonly DayUse[] {
    return read(() => this.#queries.keyUse.all({ account, key, from, before }));
  }

  member(team: AccountId, account: AccountId): TeamMember | null {
    return this.one("team_members", { team_id: team, account_id: account }, { order: "team_members.team_id" });
  }

  memberUse(team: AccountId, member: AccountId, from: Period, before: Period): readonly DayUse[] {
    return read(() => this.#queries.memberUse.all({ team, member, from, before }));
  }

  hasEndUser(account: AccountId, key: KeyId, name: string): boolean {
    return read(() => this.#queries.endUser.get({ account, key, name })) !== null;
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

  count(): number {
    return read(() => this.#queries.count.get())?.count ?? 0;
  }

  used(account: AccountId, quota: Quota, period: Period): number {
    return read(() => this.#queries.used.get({ account, quota, period }))?.used ?? 0;
  }

  searchCalls(account: AccountId, day: Period): number {
    return read(() => this.#queries.searchCalls.get({ account, day }))?.calls ?? 0;
  }
}

/** As `erasedName` and `isErased` of account/people/accounts.ts know them: "deleted-", digits and hyphens, "@invalid". */
const isErased = `(email LIKE 'deleted-_%@invalid' AND substr(email, 9, length(email) - 16) NOT GLOB '*[^0-9-]*'
  AND disabled_at IS NOT NULL AND password_hash IS NULL)`;

type Values = [] | [Readonly<Record<string, number | string | Uint8Array>>];

function prepare(database: Database) {
  const query = <Row>(text: string) => database.query<Row, Values>(text);
  const ofKeyOnDays = "account_id = $account AND key_id = $key AND day >= $from AND day < $before";
  const isEndUser = "end_users.account_id = $account AND end_users.name = $name AND end_users.key_id = $key";
  return {
    keyUse: query<DayUse>(`SELECT day, used FROM key_use WHERE ${ofKeyOnDays}`),
    memberUse: query<DayUse>(
      `SELECT day, sum(used) AS used FROM api_keys AS k JOIN key_use AS u ON u.account_id = k.account_id AND u.key_id = k.id
         WHERE k.account_id = $team AND member_id = $member AND day >= $from AND day < $before GROUP BY day`,
    ),
    endUser: query<{ id: number }>(`SELECT id FROM end_users WHERE ${isEndUser}`),
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
    count: query<{ count: number }>(`SELECT count(*) AS count FROM accounts WHERE NOT ${isErased}`),
    used: query<{ used: number }>(
      "SELECT used FROM quota_use WHERE account_id = $account AND quota = $quota AND period = $period",
    ),
    searchCalls: query<{ calls: number }>("SELECT calls FROM search_calls WHERE account_id = $account AND day = $day"),
  };
}
