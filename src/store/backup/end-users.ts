// The end users of an account's keys, for who runs the server: a list, and all that is kept of one of them. Read row by row
// on a connection of its own, like an account's export.
import type { Database } from "bun:sqlite";
import { dayName } from "../../account/money/quota.ts";
import type { AccountId } from "../../core/types.ts";
import { openForReading } from "../open.ts";

/** In the words of `tollgate end-users list --json`. */
export type EndUserView = Readonly<{
  /** Empty for requests that named no end user. */
  name: string;
  key: string;
  first_day: string;
  last_day: string;
  /** Balance tokens of the last day. */
  used_last_day: number;
}>;

type Found = Omit<EndUserView, "first_day" | "last_day"> & Readonly<{ first_day: number; last_day: number }>;

/** Those who asked last first. Throws what SQLite throws. */
export function endUsersOf(databaseFile: string, account: AccountId, limit: number): EndUserView[] {
  const database = openForReading(databaseFile);
  try {
    const query = database.query<Found, [AccountId, number]>(`
      SELECT e.name, k.name AS key, first_day, last_day, coalesce(used, 0) AS used_last_day FROM end_users AS e
      JOIN api_keys AS k ON k.account_id = e.account_id AND k.id = e.key_id
      LEFT JOIN end_user_use AS u ON u.account_id = e.account_id AND u.end_user_id = e.id AND day = last_day
      WHERE e.account_id = ?1 AND e.name IS NOT NULL ORDER BY last_day DESC, e.id DESC LIMIT ?2`);
    return query.all(account, limit).map(({ first_day, last_day, ...row }) => ({
      name: row.name,
      key: row.key,
      first_day: dayName(first_day),
      last_day: dayName(last_day),
      used_last_day: row.used_last_day,
    }));
  } finally {
    database.close();
  }
}

type Row = Readonly<Record<string, string | number | null>>;

/** The pieces of one JSON object: who it is, by which keys, and each reply. */
export function* exportEndUser(databaseFile: string, account: AccountId, name: string): Iterable<string> {
  const database = openForReading(databaseFile);
  try {
    database.run("BEGIN"); // one committed state
    const keys = rowsOf(
      database,
      `SELECT k.name AS key, first_day, last_day FROM end_users AS e
       JOIN api_keys AS k ON k.account_id = e.account_id AND k.id = e.key_id
       WHERE e.account_id = ?1 AND e.name = ?2 ORDER BY e.id`,
      [account, name],
    );
    const shown = [...keys].map((key) => ({
      ...key,
      first_day: dayName(Number(key["first_day"])),
      last_day: dayName(Number(key["last_day"])),
    }));
    yield `{"end_user":${JSON.stringify(name)},"keys":${JSON.stringify(shown)},\n"usage":[`;
    let before = "\n";
    const replies = rowsOf(
      database,
      `SELECT billing_key AS id, kind, at, used, credit_delta, endpoint, model, key_id, input_fresh + input_cached AS input,
         input_cached AS cached_input, output, reasoning, billed_tokens, estimated
       FROM journal WHERE account_id = ?1 AND end_user_id IN (SELECT id FROM end_users WHERE account_id = ?1 AND name = ?2)
       ORDER BY sequence`,
      [account, name],
    );
    for (const { at, ...row } of replies) {
      yield before + JSON.stringify({ ...row, at: new Date(Number(at)).toISOString() });
      before = ",\n";
    }
    yield "]}\n";
  } finally {
    database.close();
  }
}

const rowsOf = (database: Database, sql: string, given: [AccountId, string]): Iterable<Row> =>
  database.query<Row, [AccountId, string]>(sql).iterate(...given);
