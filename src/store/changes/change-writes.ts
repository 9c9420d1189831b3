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

type Kind = AccountChange["change"];
type OfKind<Of extends Kind> = Extract<AccountChange, Readonly<{ change: Of }>>;

export const writesOf = (change: AccountChange): readonly Write[] =>
  (byKind[change.change] as (change: AccountChange) => readonly Write[])(change);

const byKind: { readonly [Of in Kind]: (change: OfKind<Of>) => readonly Write[] } = {
  create: ({ account, email, plan, keyHash, keyEnding, passwordHash, operator, at }) => [
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
  ],
  plan: ({ account, plan }) => [update("accounts", { plan }, { id: account })],
  key: ({ account, keyHash, keyEnding, at }) => [
    update("accounts", { key_hash: keyHash, key_created_at: at, key_ending: keyEnding }, { id: account }),
  ],
  new_key: ({ account, key: { id, name, keyHash, keyEnding, createdAt, limits } }) => [
    insert("api_keys", {
      account_id: account,
      id,
      name,
      key_hash: keyHash,
      created_at: createdAt,
      key_ending: keyEnding,
      ...limitColumns(limits ?? {}),
    }),
  ],
  key_name: ({ account, key, name }) => [update("api_keys", { name }, { account_id: account, id: key })],
  /**
   * Each limit by itself, so that there are as many statements as limits, and not as many as choices of them. A key that was
   * revoked keeps what it had, as its account's erasure keeps nothing.
   */
  key_limits: ({ account, key, limits }) =>
    Object.entries(limitColumns(limits)).map(([column, limit]) =>
      update("api_keys", { [column]: limit }, { account_id: account, id: key, revoked_at: null }),
    ),
  revoke_key: ({ account, key, at }) => [
    update("api_keys", { revoked_at: unlessSet(at), key_hash: null }, { account_id: account, id: key }),
  ],
  key_used: ({ account, key, at }) =>
    key === defaultKey
      ? [update("accounts", { key_used_at: at }, { id: account })]
      : [update("api_keys", { used_at: at }, { account_id: account, id: key })],
  erase_end_user: ({ account, name }) => [
    update("end_users", { name: null }, { account_id: account, name }, { index: "end_users_by_name" }),
  ],
  password: ({ account, passwordHash }) => [
    update("accounts", { password_hash: passwordHash }, { id: account }),
    removePasswordLinks(account),
  ],
  operator: ({ account, operator }) => [update("accounts", { operator }, { id: account })],
  disabled: ({ account, at }) => [update("accounts", { disabled_at: at }, { id: account })],
  search_calls: ({ account, day, calls }) => [upsert("search_calls", { account_id: account, day, calls })],
  erase: erasureOf,
  open_session: ({ session: { id, tokenHash, account, createdAt, usedAt, address, browser } }) => [
    insert("sessions", {
      id,
      token_hash: tokenHash,
      account_id: account,
      created_at: createdAt,
      used_at: usedAt,
      address,
      browser,
    }),
  ],
  use_session: ({ id, at }) => [update("sessions", { used_at: atLeast(at) }, { id })],
  end_session: ({ id }) => [remove("sessions", { id })],
  end_sessions: ({ account, except }) => [remove("sessions", { account_id: account, id: otherThan(except ?? 0) })],
  purchase_request: ({ request: { id, account, kind, tokens, plan, note, state, createdAt } }) => [
    insert("purchase_requests", { id, account_id: account, kind, tokens, plan, note, state, created_at: createdAt }),
  ],
  decision: ({ id, state, at, note }) => [
    update("purchase_requests", { state, decided_at: at, decision_note: note }, { id, state: "pending" }),
  ],
  payment: ({ id, account, tokens, at }) => [insert("payments", { id, account_id: account, tokens, paid_at: at })],
  identity: ({ identity: { issuer, subject, account, connectedAt } }) => [
    remove("identities", { account_id: account, issuer }),
    insert("identities", { issuer, subject, account_id: account, connected_at: connectedAt }, account),
  ],
  link: ({ link: { id, tokenHash, kind, account, email, plan, credit, createdAt, expiresAt }, forgetBefore }) => [
    ...(account === null ? [] : [removePasswordLinks(account)]),
    remove("access_links", { used_at: below(forgetBefore) }),
    remove("access_links", { used_at: null, expires_at: below(forgetBefore) }),
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
  ],
  use_link: ({ id, account, at }) => [
    update("access_links", { used_at: at, account_id: account }, { id, used_at: null }, { needs: account }),
  ],
  withdraw_link: ({ id }) => [remove("access_links", { id, used_at: null })],
  audit: ({ entry: { id, at, operator, address, action, subject, detail } }) => [
    insert("audit_log", { id, at, operator_id: operator, address, action, subject_id: subject, detail }),
  ],
};

/** Those by which the account's password could still be set. */
const removePasswordLinks = (account: number): Write =>
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
