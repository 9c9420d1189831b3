// The statements that write what a unit of work decided: changes first, in their order, then purchases, as a commit of SQLite
// does (../ledger/writer.ts and ../ledger/console-writer.ts). They run under the locks of the accounts that they are about.
// One that breaks a rule of its table (an e-mail or a number that another gateway gave away meanwhile) takes the whole unit
// back, which decides again.
import { type Entry } from "../../account/entry.ts";
import type { AccountChange } from "../../account/journal.ts";
import { assert } from "../../core/assert.ts";
import { type AccountId, defaultKey, type KeyId, type KeyLimits } from "../../core/types.ts";
import { rowOf } from "../ledger/batch.ts";
import { arrayOf, type Call, call, type Statement } from "./connection.ts";
import { textParameter } from "./database.ts";
import { counterOf } from "./records.ts";
import { insertLines } from "./statements.ts";

type Value = string | number | boolean | null;

/** With parameters as text; a text may hold what PostgreSQL does not take. */
function write(statement: Statement, ...values: readonly Value[]): Call {
  return call(
    statement,
    ...values.map((value) =>
      typeof value === "string" ? textParameter(value) : typeof value === "boolean" ? String(value) : value,
    ),
  );
}

const statement = (name: string, text: string): Statement => ({ name, text: text.trim() });
const sets = (name: string, table: string, set: string, where: string): Statement =>
  statement(name, `UPDATE ${table} SET ${set} WHERE ${where}`);

const ofAccount = "id = $1::text::bigint";
const ofKey = "account_id = $1::text::bigint AND id = $2::text::int";

const create = statement(
  "create",
  `INSERT INTO accounts (id, email, plan, credit, key_hash, password_hash, operator, created_at, key_created_at,
     key_ending)
   VALUES ($1::text::bigint, $2::text, $3::text, 0, decode($4::text, 'base64'), $5::text, $6::text::boolean,
     $7::text::bigint, $7::text::bigint, $8::text)`,
);
const setPlan = sets("plan", "accounts", "plan = $2::text", ofAccount);
const setKey = sets(
  "key",
  "accounts",
  "key_hash = decode($2::text, 'base64'), key_created_at = $3::text::bigint, key_ending = $4::text",
  ofAccount,
);
const setFirstKeyUsed = sets("first key used", "accounts", "key_used_at = $2::text::bigint", ofAccount);
const setPassword = sets("password", "accounts", "password_hash = $2::text", ofAccount);
const setOperator = sets("operator", "accounts", "operator = $2::text::boolean", ofAccount);
const setDisabled = sets("disabled", "accounts", "disabled_at = $2::text::bigint", ofAccount);
const addCredit = sets("credit", "accounts", "credit = credit + $2::text::bigint", ofAccount);
const erase = sets(
  "erase",
  "accounts",
  `email = $2::text, key_hash = decode($3::text, 'base64'), key_ending = NULL, password_hash = NULL, operator = false,
     disabled_at = coalesce(disabled_at, $4::text::bigint)`,
  ofAccount,
);

const addKey = statement(
  "add key",
  `INSERT INTO api_keys (account_id, id, name, key_hash, created_at, expires_at, tokens_per_day, tokens_per_month, models,
     addresses, forwards_users, end_user_tokens_per_day, key_ending)
   VALUES ($1::text::bigint, $2::text::int, $3::text, decode($4::text, 'base64'), $5::text::bigint, $6::text::bigint,
     $7::text::bigint, $8::text::bigint, $9::text, $10::text, $11::text::int, $12::text::bigint, $13::text)`,
);
const setKeyName = sets("key name", "api_keys", "name = $3::text", ofKey);
const setKeyUsed = sets("key used", "api_keys", "used_at = $3::text::bigint", ofKey);
const revokeKey = sets(
  "revoke key",
  "api_keys",
  "revoked_at = coalesce(revoked_at, $3::text::bigint), key_hash = NULL",
  ofKey,
);
/** Their names may say whose they were, and where from they were used. */
const eraseKeys = sets(
  "erase keys",
  "api_keys",
  `name = 'key ' || id, key_hash = NULL, key_ending = NULL, models = NULL, addresses = NULL,
     revoked_at = coalesce(revoked_at, $2::text::bigint)`,
  "account_id = $1::text::bigint",
);
/** One that was revoked keeps what it had, as its account's erasure keeps nothing. */
const setLimit = (column: string, type: string): Statement =>
  sets(`key's ${column}`, "api_keys", `${column} = $3::text::${type}`, `${ofKey} AND revoked_at IS NULL`);
const limitColumns = {
  expiresAt: setLimit("expires_at", "bigint"),
  tokensPerDay: setLimit("tokens_per_day", "bigint"),
  tokensPerMonth: setLimit("tokens_per_month", "bigint"),
  models: setLimit("models", "text"),
  addresses: setLimit("addresses", "text"),
  forwardsUsers: setLimit("forwards_users", "int"),
  endUserTokensPerDay: setLimit("end_user_tokens_per_day", "bigint"),
} as const satisfies Readonly<Record<keyof KeyLimits, Statement>>;
/** A key that is limited has the sums of what its open requests hold, and one that is not has none. */
const sumHolds = statement(
  "sum a key's holds",
  `UPDATE api_keys SET held = s.held, waiting_held = s.waiting_held, begun = s.begun, expected = s.expected
   FROM (SELECT coalesce(sum(tokens), 0) AS held, coalesce(sum(CASE WHEN waits THEN tokens ELSE 0 END), 0) AS waiting_held,
       coalesce(sum(CASE WHEN cost > 0 AND NOT waits THEN 1 ELSE 0 END), 0) AS begun,
       coalesce(sum(CASE WHEN waits THEN 0 ELSE cost END), 0) AS expected
     FROM holds JOIN api_keys AS k ON k.account_id = holds.account_id AND k.id = holds.key_id
     WHERE k.account_id = $1::text::bigint AND k.id = $2::text::int
       AND (k.tokens_per_day IS NOT NULL OR k.tokens_per_month IS NOT NULL)) AS s
   WHERE ${ofKey}`,
);

const eraseEndUser = sets(
  "erase end user",
  "end_users",
  "name = NULL",
  "account_id = $1::text::bigint AND name = $2::text",
);
const eraseEndUsers = sets(
  "erase end users",
  "end_users",
  "name = NULL",
  "account_id = $1::text::bigint AND name IS NOT NULL",
);
const setSearchCalls = statement(
  "search calls",
  `INSERT INTO search_calls (account_id, day, calls) VALUES ($1::text::bigint, $2::text::int, $3::text::int)
   ON CONFLICT (account_id, day) DO UPDATE SET calls = excluded.calls`,
);

const openSession = statement(
  "open session",
  `INSERT INTO sessions (id, token_hash, account_id, created_at, used_at, address, browser)
   VALUES ($1::text::bigint, decode($2::text, 'base64'), $3::text::bigint, $4::text::bigint, $5::text::bigint, $6::text,
     $7::text)`,
);
const useSession = sets("use session", "sessions", "used_at = greatest(used_at, $2::text::bigint)", ofAccount);
const endSession = statement("end session", `DELETE FROM sessions WHERE ${ofAccount}`);
const endSessions = statement(
  "end sessions",
  "DELETE FROM sessions WHERE account_id = $1::text::bigint AND id <> $2::text::bigint",
);

const askForPurchase = statement(
  "purchase request",
  `INSERT INTO purchase_requests (id, account_id, kind, tokens, plan, note, state, created_at, decision_note)
   VALUES ($1::text::bigint, $2::text::bigint, $3::text, $4::text::bigint, $5::text, $6::text, $7::text, $8::text::bigint, '')`,
);
const decide = sets(
  "decision",
  "purchase_requests",
  "state = $2::text, decided_at = $3::text::bigint, decision_note = $4::text",
  `${ofAccount} AND state = 'pending'`,
);
const notePayment = statement(
  "payment",
  `INSERT INTO payments (id, account_id, tokens, paid_at)
   VALUES ($1::text, $2::text::bigint, $3::text::bigint, $4::text::bigint)`,
);
const eraseNotes = sets(
  "erase notes",
  "purchase_requests",
  `note = '', decision_note = '',
     decided_at = CASE state WHEN 'pending' THEN $2::text::bigint ELSE decided_at END,
     state = CASE WHEN state <> 'pending' THEN state WHEN kind = 'deletion' THEN 'approved' ELSE 'withdrawn' END`,
  "account_id = $1::text::bigint",
);

const leaveIssuer = statement(
  "leave issuer",
  "DELETE FROM identities WHERE account_id = $1::text::bigint AND issuer = $2::text",
);
const addIdentity = statement(
  "identity",
  `INSERT INTO identities (issuer, subject, connected_at, account_id)
   SELECT $1::text, $2::text, $3::text::bigint, id FROM accounts WHERE id = $4::text::bigint`,
);
const eraseIdentities = statement("erase identities", "DELETE FROM identities WHERE account_id = $1::text::bigint");

const endPasswordLinks = statement(
  "end password links",
  "DELETE FROM access_links WHERE account_id = $1::text::bigint AND kind = 'password' AND used_at IS NULL",
);
const forgetLinks = statement(
  "forget links",
  "DELETE FROM access_links WHERE coalesce(used_at, expires_at) < $1::text::bigint",
);
const addLink = statement(
  "link",
  `INSERT INTO access_links (id, token_hash, kind, account_id, email, plan, credit, created_at, expires_at)
   VALUES ($1::text::bigint, decode($2::text, 'base64'), $3::text, $4::text::bigint, $5::text, $6::text, $7::text::bigint,
     $8::text::bigint, $9::text::bigint)`,
);
const useLink = sets(
  "use link",
  "access_links",
  "used_at = $2::text::bigint, account_id = $3::text::bigint",
  `${ofAccount} AND used_at IS NULL AND EXISTS (SELECT 1 FROM accounts WHERE id = $3::text::bigint)`,
);
const withdrawLink = statement("withdraw link", `DELETE FROM access_links WHERE ${ofAccount} AND used_at IS NULL`);
const eraseLinks = statement(
  "erase links",
  `DELETE FROM access_links
   WHERE account_id = $1::text::bigint OR lower(email COLLATE "C") = lower($2::text COLLATE "C")`,
);

/** Numbered by the server: who writes one need not know the number. */
const addAudit = statement(
  "audit",
  `WITH next AS (
     INSERT INTO counters (name, value) VALUES ('${counterOf.lastAuditId}', 1)
     ON CONFLICT (name) DO UPDATE SET value = counters.value + 1 RETURNING value)
   INSERT INTO audit_log (id, at, operator_id, address, action, subject_id, detail)
   SELECT value, $1::text::bigint, $2::text::bigint, $3::text, $4::text, $5::text::bigint, $6::text FROM next`,
);
const eraseAddresses = sets("erase addresses", "audit_log", "address = ''", "operator_id = $1::text::bigint");
const eraseDetails = sets("erase details", "audit_log", "detail = ''", "subject_id = $1::text::bigint");

const count = statement(
  "count",
  `INSERT INTO counters (name, value) VALUES ($1::text, $2::text::bigint)
   ON CONFLICT (name) DO UPDATE SET value = greatest(counters.value, excluded.value)`,
);

/** The statements of a unit of work. */
export function writesOf(changes: readonly AccountChange[], entries: readonly Entry[]): readonly Call[] {
  const calls = changes.flatMap(callsOf);
  if (entries.length === 0) return calls;
  for (const { kind } of entries) assert(kind === "credit", "beside the lane nothing but purchases are booked");
  const lines = entries.map(rowOf);
  calls.push(
    call(insertLines, ...lines[0]!.map((_, index) => textParameter(arrayOf(lines.map((line) => line[index]!))))),
  );
  for (const { account, creditDelta } of entries) calls.push(write(addCredit, account, creditDelta));
  return calls;
}

function callsOf(change: AccountChange): Call[] {
  switch (change.change) {
    case "create": {
      const { account, email, plan, keyHash, keyEnding, passwordHash, operator, at } = change;
      return [
        write(create, account, email, plan, keyHash, passwordHash, operator, at, keyEnding),
        write(count, counterOf.lastId, account),
      ];
    }
    case "plan":
      return [write(setPlan, change.account, change.plan)];
    case "key":
      return [write(setKey, change.account, change.keyHash, change.at, change.keyEnding)];
    case "new_key": {
      const { account, id, name, keyHash, keyEnding, createdAt, limits } = change.key;
      const { expiresAt = null, tokensPerDay = null, tokensPerMonth = null, models = null } = limits ?? {};
      const { addresses = null, forwardsUsers = false, endUserTokensPerDay = null } = limits ?? {};
      const ofLimits = [expiresAt, tokensPerDay, tokensPerMonth, listText(models), listText(addresses)] as const;
      const ofUsers = [forwardsUsers ? 1 : null, endUserTokensPerDay] as const;
      return [write(addKey, account, id, name, keyHash, createdAt, ...ofLimits, ...ofUsers, keyEnding)];
    }
    case "key_name":
      return [write(setKeyName, change.account, change.key, change.name)];
    case "key_limits":
      return limit(change.account, change.key, change.limits);
    case "revoke_key":
      return [write(revokeKey, change.account, change.key, change.at)];
    case "key_used":
      return change.key === defaultKey
        ? [write(setFirstKeyUsed, change.account, change.at)]
        : [write(setKeyUsed, change.account, change.key, change.at)];
    case "erase_end_user":
      return [write(eraseEndUser, change.account, change.name)];
    case "password":
      return [write(setPassword, change.account, change.passwordHash), write(endPasswordLinks, change.account)];
    case "operator":
      return [write(setOperator, change.account, change.operator)];
    case "disabled":
      return [write(setDisabled, change.account, change.at)];
    case "search_calls":
      return [write(setSearchCalls, change.account, change.day, change.calls)];
    case "erase": {
      const { account, email, name, keyHash, at } = change;
      const all = [eraseEndUsers, eraseIdentities, eraseAddresses, eraseDetails];
      return [
        write(erase, account, name, keyHash, at),
        write(eraseKeys, account, at),
        write(eraseLinks, account, email),
        write(endSessions, account, 0),
        write(eraseNotes, account, at),
        ...all.map((each) => write(each, account)),
      ];
    }
    case "open_session": {
      const { id, tokenHash, account, createdAt, usedAt, address, browser } = change.session;
      return [
        write(openSession, id, tokenHash, account, createdAt, usedAt, address, browser),
        write(count, counterOf.lastSessionId, id),
      ];
    }
    case "use_session":
      return [write(useSession, change.id, change.at)];
    case "end_session":
      return [write(endSession, change.id)];
    case "end_sessions":
      return [write(endSessions, change.account, change.except ?? 0)];
    case "purchase_request": {
      const { id, account, kind, tokens, plan, note, state, createdAt } = change.request;
      return [
        write(askForPurchase, id, account, kind, tokens, plan, note, state, createdAt),
        write(count, counterOf.lastRequestId, id),
      ];
    }
    case "decision":
      return [write(decide, change.id, change.state, change.at, change.note)];
    case "payment":
      return [write(notePayment, change.id, change.account, change.tokens, change.at)];
    case "identity": {
      const { issuer, subject, account, connectedAt } = change.identity;
      return [write(leaveIssuer, account, issuer), write(addIdentity, issuer, subject, connectedAt, account)];
    }
    case "link": {
      const { id, tokenHash, kind, account, email, plan, credit, createdAt, expiresAt } = change.link;
      return [
        ...(account === null ? [] : [write(endPasswordLinks, account)]),
        write(forgetLinks, change.forgetBefore),
        write(addLink, id, tokenHash, kind, account, email, plan, credit, createdAt, expiresAt),
        write(count, counterOf.lastLinkId, id),
      ];
    }
    case "use_link":
      return [write(useLink, change.id, change.at, change.account)];
    case "withdraw_link":
      return [write(withdrawLink, change.id)];
    case "audit": {
      const { at, operator, address, action, subject, detail } = change.entry;
      return [write(addAudit, at, operator, address, action, subject, detail)];
    }
    default:
      return change satisfies never;
  }
}

function limit(account: AccountId, key: KeyId, limits: Partial<KeyLimits>): Call[] {
  const calls: Call[] = [];
  for (const [name, value] of Object.entries(limits) as [keyof KeyLimits, KeyLimits[keyof KeyLimits]][]) {
    const written =
      typeof value === "boolean" ? (value ? 1 : null) : typeof value === "object" ? listText(value) : value;
    calls.push(write(limitColumns[name], account, key, written));
  }
  if (limits.tokensPerDay !== undefined || limits.tokensPerMonth !== undefined)
    calls.push(write(sumHolds, account, key));
  return calls;
}

const listText = (list: readonly string[] | null): string | null => (list === null ? null : JSON.stringify(list));
