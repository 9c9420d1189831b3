// What each change writes, for both stores. Of a change with several writes, the first is the one that a rule of its table
// may refuse.
import type { AccountChange } from "../../account/journal.ts";
import { defaultKey } from "../../core/types.ts";
import { erasureOf } from "./erasure.ts";
import { atLeast, below, insert, otherThan, remove, unlessSet, update, upsert, type Write } from "./write.ts";

type Kind = AccountChange["change"];
type OfKind<Of extends Kind> = Extract<AccountChange, Readonly<{ change: Of }>>;

export const writesOf = (change: AccountChange): readonly Write[] =>
  (byKind[change.change] as (change: AccountChange) => readonly Write[])(change);

const byKind: { readonly [Of in Kind]: (change: OfKind<Of>) => readonly Write[] } = {
  create: ({ account, email, plan, keyHash, keyEnding, passwordHash, operator, team, at }) => [
    insert("accounts", {
      id: account,
      email,
      plan,
      credit: 0,
      keyHash,
      passwordHash,
      operator,
      createdAt: at,
      keyCreatedAt: at,
      keyEnding,
      team,
    }),
  ],
  name: ({ account, name }) => [update("accounts", { email: name }, { id: account })],
  member: ({ member }) => [upsert("team_members", member)],
  remove_member: ({ account: team, member: account }) => [remove("team_members", { team, account })],
  plan: ({ account, plan }) => [update("accounts", { plan }, { id: account })],
  mail_address: ({ account, address }) => [
    update("accounts", { mailAddress: address }, { id: account }),
    removePasswordLinks(account),
  ],
  mail_kinds: ({ account, kinds }) => [update("accounts", { mailKinds: kinds }, { id: account })],
  language: ({ account, language }) => [update("accounts", { language }, { id: account })],
  purchased: ({ account, credit, at }) => [
    update("accounts", { creditAfterPurchase: credit, purchasedAt: at }, { id: account }),
  ],
  cost_center: ({ account, costCenter }) => [update("accounts", { costCenter }, { id: account })],
  key: ({ account, keyHash, keyEnding, at }) => [
    update("accounts", { keyHash, keyCreatedAt: at, keyEnding }, { id: account }),
  ],
  new_key: ({ key }) => [insert("api_keys", { ...key, ...key.limits })],
  key_name: ({ account, key, name }) => [update("api_keys", { name }, { account, id: key })],
  /**
   * Each limit by itself, so that there are as many statements as limits, and not as many as choices of them. A key that was
   * revoked keeps what it had, as its account's erasure keeps nothing.
   */
  key_limits: ({ account, key, limits }) =>
    Object.entries(limits).map(([name, limit]) =>
      update("api_keys", { [name]: limit }, { account, id: key, revokedAt: null }),
    ),
  key_token: ({ account, key, keyHash, keyEnding, refreshHash, expiresAt }) => [
    update("api_keys", { keyHash, keyEnding, refreshHash, expiresAt }, { account, id: key, revokedAt: null }),
  ],
  revoke_key: ({ account, key, at }) => [
    update(
      "api_keys",
      { revokedAt: unlessSet(at), keyHash: null, familyHash: null, refreshHash: null },
      { account, id: key },
    ),
  ],
  restore_key: ({ account, key: { id, keyHash, familyHash, refreshHash } }) => [
    update("api_keys", { revokedAt: null, keyHash, familyHash, refreshHash }, { account, id }),
  ],
  key_used: ({ account, key, at }) =>
    key === defaultKey
      ? [update("accounts", { keyUsedAt: at }, { id: account })]
      : [update("api_keys", { usedAt: at }, { account, id: key })],
  erase_end_user: ({ account, name }) => [
    update("end_users", { name: null }, { account, name }, { index: "end_users_by_name" }),
  ],
  password: ({ account, passwordHash }) => [
    update("accounts", { passwordHash }, { id: account }),
    removePasswordLinks(account),
  ],
  operator: ({ account, operator }) => [update("accounts", { operator }, { id: account })],
  disabled: ({ account, at }) => [update("accounts", { disabledAt: at }, { id: account })],
  search_calls: ({ account, day, calls }) => [upsert("search_calls", { account, day, calls })],
  erase: erasureOf,
  open_session: ({ session }) => [insert("sessions", session)],
  use_session: ({ id, at }) => [update("sessions", { usedAt: atLeast(at) }, { id })],
  end_session: ({ id }) => [remove("sessions", { id })],
  end_sessions: ({ account, except }) => [remove("sessions", { account, id: otherThan(except ?? 0) })],
  purchase_request: ({ request }) => [insert("purchase_requests", request)],
  decision: ({ id, state, at, note }) => [
    update("purchase_requests", { state, decidedAt: at, decisionNote: note }, { id, state: "pending" }),
  ],
  payment: ({ id, account, tokens, at }) => [insert("payments", { id, account, tokens, paidAt: at })],
  identity: ({ identity }) => [
    remove("identities", { account: identity.account, issuer: identity.issuer }),
    insert("identities", identity, identity.account),
  ],
  link: ({ link, forgetBefore }) => [
    ...(link.account === null ? [] : [removePasswordLinks(link.account)]),
    ...(forgetBefore === null
      ? []
      : [
          remove("access_links", { usedAt: below(forgetBefore) }),
          remove("access_links", { usedAt: null, expiresAt: below(forgetBefore) }),
        ]),
    insert("access_links", link),
  ],
  use_link: ({ id, account, at }) => [
    update("access_links", { usedAt: at, account }, { id, usedAt: null }, { needs: account }),
  ],
  withdraw_link: ({ id }) => [remove("access_links", { id, usedAt: null })],
  device_code: ({ code, now }) => [remove("device_codes", { expiresAt: below(now) }), insert("device_codes", code)],
  deny_device_code: ({ deviceHash, at }) => [update("device_codes", { deniedAt: unlessSet(at) }, { deviceHash })],
  end_device_code: ({ deviceHash }) => [remove("device_codes", { deviceHash })],
  operator_token: ({ token }) => [insert("operator_tokens", token)],
  revoke_operator_token: ({ id, at }) => [update("operator_tokens", { revokedAt: unlessSet(at) }, { id })],
  mail: ({ mail }) => [insert("mails", mail)],
  mail_state: ({ mail: { once, ...state } }) => [update("mails", state, { once })],
  forget_mail: ({ once }) => [remove("mails", { once })],
  forget_mails: ({ before }) => [remove("mails", { keptUntil: below(before) })],
  audit: ({ entry }) => [insert("audit_log", entry)],
};

/** Those by which the account's password could still be set. */
const removePasswordLinks = (account: number): Write =>
  remove("access_links", { account, kind: "password", usedAt: null });
