// What the erasure of an account takes away from each table: one list, which both stores write and whose words the audit log
// repeats. A new table must have its row here. What is kept beside the ledger (stored responses, the request log) has an
// erasure of its own.
import type { AccountChange } from "../../account/journal.ts";
import type { TableName } from "../tables.ts";
import { isSet, remove, sql, unlessSet, update, type Write } from "./write.ts";

export type Erase = Extract<AccountChange, Readonly<{ change: "erase" }>>;

/** `what`: in words for people. Null: the table has numbers alone, or names that the books need. */
type Rule = Readonly<{ what: string; writes: (erase: Erase) => readonly Write[] }> | null;

export const erasure: Readonly<Record<TableName, Rule>> = {
  // The first, since an e-mail that is taken refuses the erasure.
  accounts: {
    what: "e-mail and mail address, key, password",
    writes: ({ account, name, keyHash, at }) => [
      update(
        "accounts",
        {
          email: name,
          keyHash,
          keyEnding: null,
          passwordHash: null,
          operator: false,
          costCenter: null,
          mailAddress: null,
          language: null,
          mailKinds: null,
          disabledAt: unlessSet(at),
        },
        { id: account },
      ),
    ],
  },
  /** Names may say whose they were, and addresses where from they were used. */
  api_keys: {
    what: "names of keys",
    writes: ({ account, at }) => [
      update(
        "api_keys",
        {
          name: sql("'key ' || id"),
          keyHash: null,
          keyEnding: null,
          familyHash: null,
          refreshHash: null,
          models: null,
          addresses: null,
          costCenter: null,
          revokedAt: unlessSet(at),
        },
        { account },
      ),
      // Those in teams were revoked before.
      update("api_keys", { name: sql("'key ' || id"), keyEnding: null, addresses: null }, { member: account }),
    ],
  },
  team_members: {
    what: "teams",
    writes: ({ account }) => [remove("team_members", { account }), remove("team_members", { team: account })],
  },
  end_users: {
    what: "end users",
    writes: ({ account }) => [update("end_users", { name: null }, { account, name: isSet })],
  },
  access_links: {
    what: "links",
    writes: ({ account, email }) => [
      remove("access_links", { account }),
      remove("access_links", { email }), // unused invitations
      remove("access_links", { team: account, usedAt: null }),
    ],
  },
  identities: {
    what: "identities",
    writes: ({ account }) => [remove("identities", { account })],
  },
  sessions: {
    what: "sessions",
    writes: ({ account }) => [remove("sessions", { account })],
  },
  /** Requests stay without what people wrote; those that are pending end, and one for the deletion is granted. */
  purchase_requests: {
    what: "notes",
    writes: ({ account, at }) => {
      const pending = { account, state: "pending" } as const;
      return [
        update("purchase_requests", { note: "", decisionNote: "" }, { account }),
        update("purchase_requests", { state: "approved", decidedAt: at }, { ...pending, kind: "deletion" }),
        update("purchase_requests", { state: "withdrawn", decidedAt: at }, pending),
      ];
    },
  },
  audit_log: {
    what: "addresses",
    writes: ({ account }) => [
      update("audit_log", { address: "" }, { operator: account }),
      update("audit_log", { detail: "" }, { subject: account }),
    ],
  },
  mails: {
    what: "mails",
    writes: ({ account, email }) => [remove("mails", { account }), remove("mails", { address: email })],
  },
  device_codes: null,
  operator_tokens: null,
  key_use: null,
  end_user_use: null,
  quota_use: null,
  /** Programs wrote them. Cost centers are the shop's, and stay in the books. */
  journal: {
    what: "tags of requests",
    writes: ({ account }) => [update("journal", { tags: null }, { account, tags: isSet })],
  },
  journal_folds: null,
  cost_center_folds: null,
  payments: null,
  search_calls: null,
};

export const erasureOf = (erase: Erase): readonly Write[] =>
  Object.values(erasure).flatMap((rule) => rule?.writes(erase) ?? []);

export const erasedInWords = Object.values(erasure)
  .flatMap((rule) => rule?.what ?? [])
  .join(", ");
