// The tables that both stores have, described once and as data. SQLite's schema (`ledger/schema.ts`), PostgreSQL's
// (`postgres/schema.ts`), what a move carries and what each change writes (`changes/`) are made from this. Only what one
// store has alone is described there.
//
// A new version may add tables, columns that may be null or have a default (last in their table) and indexes; raise the
// schema version of both stores with it. src/README.md lists the steps.
import type { AuditAction } from "../core/audit-actions.ts";
import type { AccessLink, PurchaseRequest, TeamMember, TokenScope } from "../account/records.ts";
import type { EntryKind } from "../account/money/entry.ts";
import type { Quota } from "../account/money/quota.ts";
import { eachCount } from "../core/count-limits.ts";
import type { Priority } from "../core/priority.ts";
import type { PlanId } from "../core/types.ts";

export const columnTypes = {
  /** Money, milliseconds and ids: whole numbers below 2^53. */
  whole: { sqlite: "integer", postgres: "bigint" },
  /** Days, counts and ids within an account. */
  small: { sqlite: "integer", postgres: "integer" },
  flag: { sqlite: "integer", postgres: "boolean" },
  /** 0 or 1. */
  bit: { sqlite: "integer", postgres: "smallint" },
  /** 1 for yes, null for no. */
  mark: { sqlite: "integer", postgres: "integer" },
  text: { sqlite: "text", postgres: "text" },
  /** Compared byte by byte, whatever the database's own order of letters is. */
  exact: { sqlite: "text", postgres: "text" },
  /** The same in upper and lower case of ASCII letters. */
  caseless: { sqlite: "text", postgres: "text" },
  /** SHA-256. */
  hash: { sqlite: "blob", postgres: "bytea" },
  /** JSON: an array of texts. */
  list: { sqlite: "text", postgres: "text" },
} as const;
export type ColumnKind = keyof typeof columnTypes;

/** What a row has in a column of that kind; SQLite gives a flag as 0 or 1. */
type DataOf = {
  whole: number;
  small: number;
  flag: boolean;
  bit: 0 | 1;
  mark: number;
  text: string;
  exact: string;
  caseless: string;
  hash: Uint8Array;
  list: string;
};

export type Column<
  Kind extends ColumnKind = ColumnKind,
  Data = unknown,
  MayBeNull extends boolean = boolean,
> = Readonly<{
  kind: Kind;
  mayBeNull: MayBeNull;
  default?: number | string;
  /** The only texts that it may have. */
  allowed?: readonly string[];
  /** For types alone. */
  data?: Data;
}>;

export type Table = Readonly<{
  columns: Readonly<Record<string, Column>>;
  key: readonly string[];
  /** Columns whose values differ, by the names of their indexes. */
  unique?: Readonly<Record<string, string>>;
  indexes?: Readonly<Record<string, readonly string[]>>;
}>;

const column = <Kind extends ColumnKind>(kind: Kind): Column<Kind, DataOf[Kind], false> => ({ kind, mayBeNull: false });
const orNull = <Kind extends ColumnKind, Data>(of: Column<Kind, Data>): Column<Kind, Data, true> => ({
  ...of,
  mayBeNull: true,
});
const oneOf = <Text extends string>(...allowed: readonly Text[]): Column<"text", Text, false> => ({
  kind: "text",
  mayBeNull: false,
  allowed,
});
/** A default is also what rows from before the column have. */
const withDefault = <Of extends Column, Value extends number | string>(of: Of, value: Value) => ({
  ...of,
  default: value,
});

export const whole = column("whole");
const small = column("small");
export const text = column("text");
const flag = column("flag");
const hash = column("hash");
const plan: Column<"text", PlanId, false> = text;
const priority: Column<"text", Priority, false> = { kind: "text", mayBeNull: false };
const auditAction: Column<"text", AuditAction, false> = { kind: "text", mayBeNull: false };

/** In the order in which versions added them. */
const { weight, ...counts } = eachCount(({ most }) =>
  orNull<"whole" | "small", number>(most > 2 ** 31 ? whole : small),
);

export const tables = {
  accounts: {
    columns: {
      id: whole,
      email: column("caseless"),
      plan,
      /** Balance tokens; always the sum of the account's journal lines. */
      credit: whole,
      key_hash: hash,
      password_hash: orNull(text),
      operator: flag,
      created_at: whole,
      key_created_at: whole,
      /** Null where the account may be used. */
      disabled_at: orNull(whole),
      /** Of its first key; written now and then. */
      key_used_at: orNull(whole),
      /** The first key's last four characters; null where they were not kept yet. */
      key_ending: orNull(text),
      /** Whom its use is booked to from now on. */
      cost_center: orNull(text),
      /** A team's, whose name is in the place of an e-mail address. */
      team: orNull(column("mark")),
      /** Where its mail goes: confirmed, or an operator's word; null: nowhere. */
      mail_address: orNull(text),
      /** Its person's, as BCP 47 has it. */
      language: orNull(text),
      /** What mail it wants of that which is not essential; null: the usual. */
      mail_kinds: orNull(column("list")),
      /** Its credit after it was last bought or given; null: that was before this was kept. */
      credit_after_purchase: orNull(whole),
      purchased_at: orNull(whole),
    },
    key: ["id"],
    unique: { accounts_by_key: "key_hash", accounts_by_email: "email" },
  },
  /** Keys beside the one that every account has. Those that were revoked stay, for the names of the lines that they made. */
  api_keys: {
    columns: {
      account_id: whole,
      /** Counted from 2 within the account. */
      id: small,
      name: text,
      /** Null where it was revoked. */
      key_hash: orNull(hash),
      created_at: whole,
      used_at: orNull(whole),
      revoked_at: orNull(whole),
      expires_at: orNull(whole),
      tokens_per_day: orNull(whole),
      tokens_per_month: orNull(whole),
      models: orNull(column("list")),
      addresses: orNull(column("list")),
      /** Whether it may say for whom it asks. */
      forwards_users: orNull(column("mark")),
      end_user_tokens_per_day: orNull(whole),
      key_ending: orNull(text),
      weight,
      priority: orNull(priority),
      priority_max: orNull(priority),
      ...counts,
      /** Of a machine's key: the hash of what all its refresh tokens begin with, and of the one that works. */
      family_hash: orNull(hash),
      refresh_hash: orNull(hash),
      /** In the place of its account's. */
      cost_center: orNull(text),
      /** Of a team's key: the person whose it is; null: nobody's. */
      member_id: orNull(whole),
    },
    key: ["account_id", "id"],
    unique: { api_keys_by_key: "key_hash", api_keys_by_family: "family_hash" },
    indexes: { api_keys_by_member: ["member_id", "account_id"] },
  },
  team_members: {
    columns: {
      team_id: whole,
      account_id: whole,
      role: oneOf<TeamMember["role"]>("admin", "member"),
      tokens_per_day: orNull(whole),
      tokens_per_month: orNull(whole),
      joined_at: whole,
    },
    key: ["team_id", "account_id"],
    indexes: { team_members_by_account: ["account_id"] },
  },
  /** Sign-ins of machines that nobody approved yet. */
  device_codes: {
    columns: {
      device_hash: hash,
      user_code_hash: hash,
      program: text,
      machine: text,
      address: text,
      expires_at: whole,
      /** Null where nobody said no. */
      denied_at: orNull(whole),
    },
    key: ["device_hash"],
    unique: { device_codes_by_user_code: "user_code_hash" },
  },
  /** What named keys were charged for by UTC day; always the sums of the journal lines. */
  key_use: {
    columns: { account_id: whole, key_id: small, day: small, used: whole },
    key: ["account_id", "key_id", "day"],
  },
  /** For whom keys asked that may say so, by the names that their programs gave. */
  end_users: {
    columns: {
      account_id: whole,
      /** Counted from 1 within the account. */
      id: small,
      key_id: small,
      /** Null where it was erased; empty for requests that named no end user. */
      name: orNull(text),
      /** UTC days of its first and its last line. */
      first_day: small,
      last_day: small,
    },
    key: ["account_id", "id"],
    indexes: {
      end_users_by_name: ["account_id", "name", "key_id"],
      end_users_by_first_day: ["account_id", "first_day"],
      end_users_by_last_day: ["last_day"],
    },
  },
  /** What they were charged for by UTC day; the sums of the journal lines of the last days. */
  end_user_use: {
    columns: { account_id: whole, end_user_id: small, day: small, used: whole },
    key: ["account_id", "end_user_id", "day"],
    indexes: { end_user_use_by_day: ["day"] },
  },
  quota_use: {
    columns: {
      account_id: whole,
      quota: oneOf<Quota>("allowance", "coder_calls", "searches"),
      /** UTC day or 4-hour window since 1970. */
      period: small,
      /** Tokens, searches or calls; always the sum of the journal lines of that period. */
      used: whole,
    },
    key: ["account_id", "quota", "period"],
  },
  /** A row for each charge, purchase and counted call; SQLite numbers them. */
  journal: {
    columns: {
      billing_key: column("exact"),
      kind: oneOf<EntryKind>("charge", "coder_call", "coder_usage", "search", "credit"),
      account_id: whole,
      at: whole,
      period: small,
      used: whole,
      credit_delta: whole,
      endpoint: orNull(text),
      model: orNull(text),
      input_fresh: orNull(whole),
      input_cached: orNull(whole),
      output: orNull(whole),
      reasoning: orNull(whole),
      input_cents: orNull(whole),
      cached_input_cents: orNull(whole),
      output_cents: orNull(whole),
      billed_tokens: orNull(whole),
      /** 1 where the node gave no usable usage. */
      estimated: orNull(column("bit")),
      /** Ten-thousandths of a cent beside the whole cents; null where there are none. */
      input_parts: orNull(small),
      cached_input_parts: orNull(small),
      output_parts: orNull(small),
      /** By which it was asked for: 1 is the first key, 0 a signed-in browser. */
      key_id: withDefault(small, 1),
      /** For whom; null where the key may not say so. */
      end_user_id: orNull(small),
      /** How the request went, for the request log; null in lines from before, as the next. */
      node: orNull(text),
      wait_ms: orNull(small),
      sent_ms: orNull(small),
      first_token_ms: orNull(small),
      duration_ms: orNull(small),
      /** How urgent it was in line; null: standard. */
      priority: orNull(text),
      /** Which model was asked for, where another one stood in for it. */
      asked_model: orNull(text),
      /** What the client called the request, sorted, with commas between. */
      tags: orNull(text),
      /** Its key's or its account's at that time. */
      cost_center: orNull(text),
    },
    key: ["billing_key"],
  },
  sessions: {
    columns: {
      id: whole,
      token_hash: hash,
      account_id: whole,
      created_at: whole,
      used_at: whole,
      address: text,
      browser: text,
    },
    key: ["id"],
    unique: { sessions_by_token: "token_hash" },
    indexes: { sessions_by_account: ["account_id"] },
  },
  purchase_requests: {
    columns: {
      id: whole,
      account_id: whole,
      kind: oneOf<PurchaseRequest["kind"]>("credit", "plan", "deletion"),
      /** Balance tokens of kind credit. */
      tokens: orNull(whole),
      plan: orNull(plan),
      note: text,
      state: oneOf<PurchaseRequest["state"]>("pending", "approved", "declined", "withdrawn"),
      created_at: whole,
      decided_at: orNull(whole),
      decision_note: withDefault(text, ""),
    },
    key: ["id"],
    indexes: {
      purchase_requests_by_account: ["account_id", "id"],
      purchase_requests_by_state: ["state", "id"],
    },
  },
  /** What a payment provider was paid; the credit itself is a line of the journal, in the same commit. */
  payments: {
    columns: {
      /** The provider's name and its id of the payment. */
      id: text,
      account_id: whole,
      tokens: whole,
      paid_at: whole,
    },
    key: ["id"],
    indexes: { payments_by_account: ["account_id", "paid_at"] },
  },
  audit_log: {
    columns: {
      id: whole,
      at: whole,
      operator_id: whole,
      address: text,
      action: auditAction,
      subject_id: whole,
      detail: text,
    },
    key: ["id"],
  },
  /** Lines that are older than they are kept, summed up by day; balances are the sums of lines and of these. */
  journal_folds: {
    columns: {
      account_id: whole,
      day: small,
      /** Purchases are never folded: their references must be known forever. */
      kind: oneOf<Exclude<EntryKind, "credit">>("charge", "coder_call", "coder_usage", "search"),
      period: small,
      /** Empty where the lines are about no reply, as is `endpoint`. */
      model: text,
      endpoint: text,
      lines: whole,
      used: whole,
      credit_delta: whole,
      input_fresh: whole,
      input_cached: whole,
      output: whole,
      reasoning: whole,
      billed_tokens: whole,
      key_id: withDefault(small, 1),
    },
    key: ["account_id", "day", "kind", "period", "model", "endpoint", "key_id"],
  },
  /** What of the folded replies was booked to cost centers: so much of `journal_folds`, whose key cannot change. */
  cost_center_folds: {
    columns: {
      account_id: whole,
      day: small,
      model: text,
      endpoint: text,
      key_id: small,
      cost_center: text,
      lines: whole,
      input_fresh: whole,
      input_cached: whole,
      output: whole,
      billed_tokens: whole,
    },
    key: ["account_id", "day", "model", "endpoint", "key_id", "cost_center"],
  },
  /** Calls of the search service by day: not part of the ledger, but the operator's own bound. */
  search_calls: {
    columns: { account_id: whole, day: small, calls: small },
    key: ["account_id", "day"],
  },
  /** Links that let somebody in once: invitations, and those by which a password is set. */
  access_links: {
    columns: {
      id: whole,
      token_hash: hash,
      kind: oneOf<AccessLink["kind"]>("invitation", "password"),
      /** Whose password; of an invitation, who used it. */
      account_id: orNull(whole),
      /** The address that an invitation is for. */
      email: orNull(column("caseless")),
      plan,
      credit: whole,
      created_at: whole,
      expires_at: whole,
      used_at: orNull(whole),
      /** Of an invitation into a team, with what the new member may use. */
      team_id: orNull(whole),
      tokens_per_day: orNull(whole),
      tokens_per_month: orNull(whole),
    },
    key: ["id"],
    unique: { access_links_by_token: "token_hash" },
    indexes: { access_links_by_account: ["account_id"] },
  },
  operator_tokens: {
    columns: {
      id: whole,
      name: text,
      token_hash: hash,
      scope: oneOf<TokenScope>("read", "people", "all"),
      created_at: whole,
      expires_at: orNull(whole),
      revoked_at: orNull(whole),
    },
    key: ["id"],
    unique: { operator_tokens_by_token: "token_hash" },
  },
  /** Mails that are to be sent, and those that were: as long as the same must not be sent again. */
  mails: {
    columns: {
      /** What it tells of, and of whom: there is no second one. */
      once: column("exact"),
      kind: text,
      /** Whose mail address it goes to; null: to `address`. */
      account_id: orNull(whole),
      address: orNull(text),
      /** JSON: what its template says. Empty once it was sent. */
      details: text,
      created_at: whole,
      /** When it is tried next: who sends it puts this off meanwhile. Null: it was sent, or given up. */
      due_at: orNull(whole),
      tries: small,
      /** Or given up. */
      sent_at: orNull(whole),
      /** Why the last try failed. */
      problem: orNull(text),
      kept_until: whole,
    },
    key: ["once"],
    indexes: {
      mails_by_due: ["due_at", "problem"],
      mails_by_account: ["account_id"],
      mails_by_end: ["kept_until"],
    },
  },
  /** Whom an identity provider calls so. */
  identities: {
    columns: { issuer: text, subject: text, account_id: whole, connected_at: whole },
    key: ["issuer", "subject"],
    indexes: { identities_by_account: ["account_id"] },
  },
} as const satisfies Readonly<Record<string, Table>>;

export type TableName = keyof typeof tables;
export type ColumnsOf<Name extends TableName> = (typeof tables)[Name]["columns"];
export const tableNames = Object.keys(tables) as readonly TableName[];

/** A row as SQLite gives it. */
export type RowOf<Of extends Readonly<Record<string, Column>>> = {
  readonly [Name in keyof Of]: Of[Name] extends Column<ColumnKind, infer Data, infer MayBeNull>
    ? (Data extends boolean ? 0 | 1 : Data) | (MayBeNull extends true ? null : never)
    : never;
};
