// What each change writes, for both stores. Of a change with several writes, the first is the one that a rule of its table
// may refuse.
import type { AccountChange } from "../../account/journal.ts";
import { defaultKey, type KeyLimits } from "../../core/types.ts";
import { erasureOf } from "./erasure.ts";
import {
  atLeast,
  below,
  type ColumnsOf,
  insert,
  type Inserted,
  otherThan,
  remove,
  unlessSet,
  update,
  upsert,
  type Write,
} from "./write.ts";

export function writesOf(change: AccountChange): readonly Write[] {
  switch (change.change) {
    case "create": {
      const { account, email, plan, keyHash, keyEnding, passwordHash, operator, at } = change;
      return [
        insert("accounts", {
          id: account,
          email,
          plan,
          credit: 0,
          key_hash: keyHash,
          password_hash: passwordHash,
          operator,
          created_at: at,
          key_created_at: at,
          key_ending: keyEnding,
        }),
      ];
    }
    case "plan":
      return [update("accounts", { plan: change.plan }, { id: change.account })];
    case "key": {
      const { account, keyHash, keyEnding, at } = change;
      return [update("accounts", { key_hash: keyHash, key_created_at: at, key_ending: keyEnding }, { id: account })];
    }
    case "new_key": {
      const { account, id, name, keyHash, keyEnding, createdAt, limits } = change.key;
      const row = { account_id: account, id, name, key_hash: keyHash, created_at: createdAt, key_ending: keyEnding };
      return [insert("api_keys", { ...row, ...limitColumns(limits ?? {}) })];
    }
    case "key_name":
      return [update("api_keys", { name: change.name }, { account_id: change.account, id: change.key })];
    case "key_limits": {
      // Each by itself, so that there are as many statements as limits, and not as many as choices of them. A key that was
      // revoked keeps what it had, as its account's erasure keeps nothing.
      const key = { account_id: change.account, id: change.key, revoked_at: null };
      return Object.entries(limitColumns(change.limits)).map(([column, limit]) =>
        update("api_keys", { [column]: limit }, key),
      );
    }
    case "revoke_key":
      return [
        update(
          "api_keys",
          { revoked_at: unlessSet(change.at), key_hash: null },
          { account_id: change.account, id: change.key },
        ),
      ];
    case "key_used":
      return change.key === defaultKey
        ? [update("accounts", { key_used_at: change.at }, { id: change.account })]
        : [update("api_keys", { used_at: change.at }, { account_id: change.account, id: change.key })];
    case "erase_end_user":
      return [
        update(
          "end_users",
          { name: null },
          { account_id: change.account, name: change.name },
          { index: "end_users_by_name" },
        ),
      ];
    case "password":
      return [
        update("accounts", { password_hash: change.passwordHash }, { id: change.account }),
        withoutPasswordLinks(change.account),
      ];
    case "operator":
      return [update("accounts", { operator: change.operator }, { id: change.account })];
    case "disabled":
      return [update("accounts", { disabled_at: change.at }, { id: change.account })];
    case "search_calls":
      return [upsert("search_calls", { account_id: change.account, day: change.day, calls: change.calls })];
    case "erase":
      return erasureOf(change);
    case "open_session": {
      const { id, tokenHash, account, createdAt, usedAt, address, browser } = change.session;
      const from = { address, browser };
      return [
        insert("sessions", {
          id,
          token_hash: tokenHash,
          account_id: account,
          created_at: createdAt,
          used_at: usedAt,
          ...from,
        }),
      ];
    }
    case "use_session":
      return [update("sessions", { used_at: atLeast(change.at) }, { id: change.id })];
    case "end_session":
      return [remove("sessions", { id: change.id })];
    case "end_sessions":
      return [remove("sessions", { account_id: change.account, id: otherThan(change.except ?? 0) })];
    case "purchase_request": {
      const { account, createdAt, id, kind, tokens, plan, note, state } = change.request;
      const row = { id, account_id: account, kind, tokens, plan, note, state, created_at: createdAt };
      return [insert("purchase_requests", row)];
    }
    case "decision": {
      const { id, state, at, note } = change;
      return [update("purchase_requests", { state, decided_at: at, decision_note: note }, { id, state: "pending" })];
    }
    case "payment": {
      const { id, account, tokens, at } = change;
      return [insert("payments", { id, account_id: account, tokens, paid_at: at })];
    }
    case "identity": {
      const { issuer, subject, account, connectedAt } = change.identity;
      return [
        remove("identities", { account_id: account, issuer }),
        insert("identities", { issuer, subject, account_id: account, connected_at: connectedAt }, account),
      ];
    }
    case "link": {
      const { id, tokenHash, kind, account, email, plan, credit, createdAt, expiresAt } = change.link;
      return [
        ...(account === null ? [] : [withoutPasswordLinks(account)]),
        remove("access_links", { used_at: below(change.forgetBefore) }),
        remove("access_links", { used_at: null, expires_at: below(change.forgetBefore) }),
        insert("access_links", {
          id,
          token_hash: tokenHash,
          kind,
          account_id: account,
          email,
          plan,
          credit,
          created_at: createdAt,
          expires_at: expiresAt,
        }),
      ];
    }
    case "use_link": {
      const { id, account, at } = change;
      return [update("access_links", { used_at: at, account_id: account }, { id, used_at: null }, { needs: account })];
    }
    case "withdraw_link":
      return [remove("access_links", { id: change.id, used_at: null })];
    case "audit": {
      const { id, at, operator, address, action, subject, detail } = change.entry;
      return [insert("audit_log", { id, at, operator_id: operator, address, action, subject_id: subject, detail })];
    }
    default:
      return change satisfies never;
  }
}

/** Those by which the account's password could still be set. */
const withoutPasswordLinks = (account: number): Write =>
  remove("access_links", { account_id: account, kind: "password", used_at: null });

type Snake<Name extends string> = Name extends `${infer First}${infer More}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${Snake<More>}`
  : Name;
/** Does not compile where a limit has no column of its name. */
type LimitColumns = Pick<Inserted<ColumnsOf<"api_keys">>, Snake<keyof KeyLimits>>;

/** Each limit has a column of its name. */
const limitColumns = (limits: Partial<KeyLimits>): LimitColumns =>
  Object.fromEntries(
    Object.entries(limits).map(([name, limit]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      limit,
    ]),
  );
