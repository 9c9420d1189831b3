// The ledger's tables in PostgreSQL: those that both stores have (../tables.ts) with what several gateways must know of each
// other: lanes, holds, and an account's sums of its holds; and what SQLite keeps in files of their own. `migrations.ts` makes
// and extends them by it.
//
// A new version may add tables, columns that may be null or have a default, and indexes; raise `schemaVersion` with it.
// Programs of two versions work on one database while gateways are replaced one by one, so that nothing else may change.
import { column, flag, orNull, small, type Table, tables, text, whole, withDefault } from "../tables.ts";

export type PostgresTable = Table &
  Readonly<{
    /** Room in each page for further versions of a row, which then touch no index. */
    fillFactor?: number;
    checks?: Readonly<Record<string, string>>;
    /** Which rows some of the indexes have. */
    where?: Readonly<Record<string, string>>;
  }>;

const exact = column("exact");
const bit = column("bit");
const moment = column("moment");
const sum = withDefault(whole, 0);
const count = withDefault(small, 0);
/** No period was looked at yet. */
const noPeriod = withDefault(small, -1);

/** What open requests hold together: always the sums of the rows in `holds`. */
const heldSums = {
  held: sum,
  /** Of `held`: by requests that wait for others to settle. */
  waiting_held: sum,
  /** Requests that have begun and cost something, and what they are expected to cost. */
  begun: count,
  expected: sum,
} as const;

const sumColumns = {
  account_id: whole,
  day: small,
  model: text,
  endpoint: text,
  key_id: small,
  end_user_id: small,
  cost_center: text,
  requests: whole,
  input: whole,
  cached_input: whole,
  output: whole,
  reasoning: whole,
  billed_tokens: whole,
} as const;

/**
 * Replies of days that are over; a mark in `counters` says up to which day. Account 0 is all accounts together, end user 0 none.
 * Nothing is decided by them. They took the place of `usage_days`, whose key had no cost center.
 */
const served = (index: string) => ({
  columns: sumColumns,
  key: ["account_id", "day", "model", "endpoint", "key_id", "end_user_id", "cost_center"] as const,
  indexes: { [index]: ["day"] },
});

/** One row; changing the tables takes its lock. */
export const ledgerMeta: PostgresTable = {
  columns: {
    id: small,
    schema: small,
    /** The schema version of the oldest program that may work on these tables. */
    oldest_program: small,
    sealing_key: orNull(column("bytes")),
    /** The books were moved elsewhere: nothing is written anymore. */
    closed: withDefault(flag, false),
  },
  key: ["id"],
  checks: { ledger_meta_one_row: "id = 1" },
};

export const schemaVersion = 13;
/** Programs whose schema is older than this must not write: raised only where what they would write is wrong. */
export const oldestProgram = 1;

export const postgresTables = {
  ...tables,
  accounts: {
    ...tables.accounts,
    columns: {
      ...tables.accounts.columns,
      ...heldSums,
      /** What was used of the limits of a minute; null where nothing was. See MinuteWindow. */
      minute: orNull(text),
      /** Requests in `holds`, also those that hold no tokens. */
      holds: count,
      searches_held: count,
      // What was used in the latest period that was looked at; those that were left are in quota_use.
      allowance_day: noPeriod,
      allowance_used: sum,
      coder_window: noPeriod,
      coder_used: sum,
      searches_day: noPeriod,
      searches_used: sum,
      // Windows of requests for answers, and of those to models of embeddings and reranking. `latest`: of the last request.
      flood_opens: sum,
      flood_latest: sum,
      flood_count: count,
      inputs_opens: sum,
      inputs_latest: sum,
      inputs_count: count,
    },
    fillFactor: 50,
  },
  /** Writing their sums takes the account's lock. */
  api_keys: {
    ...tables.api_keys,
    columns: { ...tables.api_keys.columns, ...heldSums, minute: orNull(text) },
    fillFactor: 50,
  },
  key_use: { ...tables.key_use, fillFactor: 50 },
  end_users: { ...tables.end_users, fillFactor: 80 },
  end_user_use: { ...tables.end_user_use, fillFactor: 50 },
  search_calls: { ...tables.search_calls, fillFactor: 50 },
  sessions: { ...tables.sessions, fillFactor: 80 },
  mails: { ...tables.mails, fillFactor: 50 },
  /** It has no sequence: the times of an account's lines never step back. */
  journal: {
    ...tables.journal,
    indexes: { journal_by_account: ["account_id", "at"], journal_by_time: ["at"] },
  },
  /** What end users used of the limits of a minute; a row goes an hour after it counts. */
  end_user_minutes: {
    columns: {
      account_id: whole,
      key_id: small,
      /** Not the name: nothing of it is left to erase. */
      name_hash: text,
      minute: text,
      latest: whole,
    },
    key: ["account_id", "key_id", "name_hash"],
    indexes: { end_user_minutes_by_time: ["latest"] },
    fillFactor: 50,
  },
  /** One life of one gateway process: its heartbeat, its fence, and how far its batches came. */
  lanes: {
    columns: {
      id: text,
      gateway: text,
      /** The number of the latest batch: it is committed if and only if this says as much or more. */
      batch: whole,
      seen_at: moment,
      /** Set by another gateway, which gave its holds back; nothing of this lane is committed from then on. */
      gone_at: orNull(moment),
      version: text,
      /** Of what all gateways should have alike: models, plans, limits, nodes. */
      config_digest: text,
    },
    key: ["id"],
    fillFactor: 50,
  },
  /** Of open requests. No foreign keys: the lane's number is the fence. */
  holds: {
    columns: {
      request_id: text,
      lane: text,
      account_id: whole,
      key_id: small,
      tokens: whole,
      /** What it is expected to cost. */
      cost: whole,
      /** It waits for others of its account to settle. */
      waits: flag,
      /** 1 of a search of the day that runs, which is no request; else 0. */
      searches: count,
      /** For whom a key asks that may say so. */
      end_user: orNull(text),
      made_at: whole,
    },
    key: ["request_id"],
    indexes: {
      holds_by_lane: ["lane"],
      holds_by_account: ["account_id"],
      holds_by_end_user: ["account_id", "key_id", "end_user"],
    },
    where: { holds_by_end_user: "end_user IS NOT NULL" },
    fillFactor: 80,
  },
  /** What each gateway has of a node's slots, and what it needs there. Changing them takes the lock of the row without a lane. */
  node_shares: {
    columns: {
      node: text,
      lane: text,
      granted: count,
      busy: count,
      waiting: count,
      accounts: count,
      /** How long its oldest has waited. */
      waited_ms: count,
    },
    key: ["node", "lane"],
    fillFactor: 50,
  },
  /** Work that a gateway did for accounts lately; a row each second, kept for ten. `work`: JSON, a list of NodeWork. */
  served_work: {
    columns: { lane: text, number: small, at: moment, work: text },
    key: ["lane", "number"],
  },
  /** Numbers of accounts, without a sequence: those lose numbers, and are no part of a commit. */
  counters: { columns: { name: text, value: whole }, key: ["name"], fillFactor: 50 },
  /** Of the last minutes, as hashes: each gateway counts with what the others saw. */
  sign_in_tries: {
    columns: {
      id: text,
      /** The life of the gateway that saw it. */
      gateway: text,
      at: whole,
      what: text,
      pair: text,
      place: text,
      neighbors: text,
      name: text,
      known: flag,
    },
    key: ["id"],
    indexes: { sign_in_tries_by_time: ["at"] },
  },
  served_days: served("served_days_by_day"),
  /** By the first day of each month. */
  served_months: { ...served("served_months_by_day"), fillFactor: 80 },
  /** Of all that have tags once more, and of no account 0. A row's tags are longer than a key may be. */
  tagged_days: {
    columns: { ...sumColumns, tags: text },
    key: [],
    indexes: { tagged_days_by_account: ["account_id", "day"], tagged_days_by_day: ["day"] },
  },
  /** What the operators' charts are made of, of all gateways together, in steps of a minute, an hour and a day. */
  activity: {
    columns: {
      step_ms: whole,
      kind: text,
      at: whole,
      name: text,
      requests: whole,
      answered: whole,
      refused: whole,
      failed: whole,
      /** Their clients left; LEFT is a word of SQL. */
      departed: whole,
      input: whole,
      cached_input: whole,
      output: whole,
      /** JSON: pairs of a bucket and how many fell into it. */
      wait: text,
      first_token: text,
    },
    key: ["step_ms", "kind", "at", "name"],
    indexes: { activity_by_age: ["step_ms", "at"] },
    fillFactor: 80,
  },
  failed_requests: {
    columns: {
      request_id: exact,
      /** From `counters`: in the order in which they were written. */
      sequence: whole,
      at: whole,
      /** 0: none. */
      account_id: whole,
      key_id: small,
      endpoint: text,
      model: text,
      asked_model: orNull(text),
      tags: orNull(text),
      priority: orNull(text),
      status: bit,
      reason: text,
      /** What its node said; for operators alone. */
      cause: orNull(text),
      node: orNull(text),
      wait_ms: orNull(small),
      sent_ms: orNull(small),
      first_token_ms: orNull(small),
      duration_ms: orNull(small),
      input: whole,
      output: whole,
      more: whole,
    },
    key: ["request_id"],
    indexes: {
      failed_requests_by_sequence: ["sequence"],
      failed_requests_by_account: ["account_id", "sequence"],
      failed_requests_by_age: ["at"],
    },
  },
  request_addresses: {
    columns: { request_id: exact, account_id: whole, key_id: small, address: text },
    key: ["request_id"],
    indexes: { addresses_by_key: ["account_id", "key_id", "request_id"] },
  },
  stored_responses: {
    columns: {
      id: exact,
      account_id: whole,
      previous_id: orNull(text),
      kept_at: whole,
      /** Of the three texts below. */
      bytes: whole,
      /** JSON: the items of the request, the items of the output, and the response object without its output. */
      input: text,
      output: text,
      settings: text,
    },
    key: ["id"],
    indexes: { stored_responses_by_account: ["account_id", "kept_at", "id"], stored_responses_by_age: ["kept_at"] },
  },
  /** Always the sum over the account's responses. */
  stored_responses_use: {
    columns: {
      account_id: whole,
      responses: whole,
      bytes: whole,
      /** 1 where the account was erased: nothing is kept for it anymore. */
      erased: withDefault(bit, 0),
    },
    key: ["account_id"],
    fillFactor: 80,
  },
  /** Files, whose contents are in a folder that all gateways share. */
  stored_files: {
    columns: {
      id: exact,
      account_id: whole,
      filename: text,
      purpose: text,
      bytes: whole,
      created_at: whole,
      /** Null: it stays. */
      expires_at: orNull(whole),
      /** 0 while a batch writes it. */
      finished: bit,
    },
    key: ["id"],
    indexes: { stored_files_by_account: ["account_id", "id"], stored_files_by_expiry: ["expires_at"] },
  },
  /** Accounts that keep conversations of the playground here, and always the sums over their records. */
  conversation_shares: {
    columns: { account_id: whole, version: whole, conversations: whole, bytes: whole },
    key: ["account_id"],
    fillFactor: 80,
  },
  conversation_records: {
    columns: { account_id: whole, conversation: exact, id: exact, bytes: whole, words: text, content: text },
    key: ["account_id", "conversation", "id"],
  },
  /** Work that one gateway does for all; who has its row does it, until then. */
  jobs: {
    columns: {
      name: text,
      /** Whose it is: a name of one life of a gateway's process. */
      holder: text,
      /** By the server's clock, ms. */
      until: whole,
    },
    key: ["name"],
    fillFactor: 50,
  },
} as const satisfies Readonly<Record<string, PostgresTable>>;

export type PostgresTableName = keyof typeof postgresTables;
