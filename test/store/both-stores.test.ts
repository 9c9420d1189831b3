// What changes write is stated once (src/store/changes/): here both stores write it, and have the same rows afterwards.
import type { AccessLink, PurchaseRequest } from "../../src/account/records.ts";
import type { Database as Sqlite } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { AccountChange } from "../../src/account/journal.ts";
import { theServer } from "../../src/account/audit.ts";
import { defaultKey, type KeyLimits } from "../../src/core/types.ts";
import { erasure } from "../../src/store/changes/erasure.ts";
import { Writer } from "../../src/store/ledger/writer.ts";
import { writesOf } from "../../src/store/postgres/changes.ts";
import { PostgresServer } from "../../src/store/postgres/connection.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { migrate } from "../../src/store/postgres/migrations.ts";
import { type Column, type TableName, tableNames, tables } from "../../src/store/tables.ts";
import { type Databases, startDatabases } from "../fixtures/postgres.ts";
import { memoryDatabase } from "./memory-storage.ts";

type Cell = string | number | null;
type Row = Readonly<Record<string, Cell>>;
type Books = Readonly<Record<TableName, readonly Row[]>>;

/** A store as far as changes are concerned. */
type Store = Readonly<{
  name: string;
  open(): Promise<void>;
  close(): Promise<void>;
  apply(change: AccountChange): Promise<void>;
  /** Runs SQL that both read. */
  run(text: string): Promise<void>;
  /** Runs a query whose rows have texts and numbers alone. */
  rows(text: string): Promise<readonly Row[]>;
  /** As a query gives it as text or number. */
  read(name: string, column: Column): string;
  bytes(hex: string): string;
}>;

function sqlite(): Store {
  let database: Sqlite;
  let writer: Writer;
  return {
    name: "SQLite",
    async open() {
      database = memoryDatabase();
      writer = new Writer(database, 0);
    },
    close: async () => {},
    async apply(change) {
      expect(writer.commit({ changes: [[change]], rows: [] })).toEqual([]);
    },
    run: async (text) => void database.run(text),
    rows: async (text) => database.query(text).all() as Row[],
    read: (name, { kind }) => (kind === "hash" ? `iif(${name} IS NULL, NULL, lower(hex(${name}))) AS ${name}` : name),
    bytes: (hex) => `x'${hex}'`,
  };
}

function postgres(): Store {
  let server: Databases;
  let database: Database;
  let client: Bun.SQL;
  return {
    name: "PostgreSQL",
    async open() {
      server = await startDatabases();
      const connection = await new PostgresServer(server.url()).connect();
      await migrate(connection);
      connection.close();
      database = new Database(new PostgresServer(server.url()));
      client = new Bun.SQL({ url: server.url(), max: 1 });
    },
    async close() {
      await database.close();
      await client.close({ timeout: 0 });
      await server[Symbol.asyncDispose]();
    },
    async apply(change) {
      await database.transaction(async (session) => session.atEnd(writesOf([change], [])));
    },
    run: async (text) => void (await client.unsafe(text)),
    rows: (text) => client.unsafe(text),
    read(name, { kind }) {
      if (kind === "hash") return `encode(${name}, 'hex') AS ${name}`;
      return kind === "flag" ? `${name}::int AS ${name}` : kind === "whole" ? `${name}::float8 AS ${name}` : name;
    },
    bytes: (hex) => `'\\x${hex}'`,
  };
}

async function booksOf(store: Store): Promise<Books> {
  const books: Partial<Record<TableName, readonly Row[]>> = {};
  for (const table of tableNames) {
    const columns = Object.entries<Column>(tables[table].columns).map(([name, column]) => store.read(name, column));
    const rows = await store.rows(
      `SELECT ${columns.join(", ")} FROM ${table} ORDER BY ${tables[table].key.join(", ")}`,
    );
    books[table] = rows.map((row) => ({ ...row }));
  }
  return books as Books;
}

const hash = (of: number): string => new Uint8Array(32).fill(of).toBase64();
const at = 1_774_699_200_000;
const ann = { account: 1, email: "ann@x", plan: "free", keyHash: hash(1), keyEnding: "aaaa", at } as const;
const bob = { account: 2, email: "bob@x", plan: "pro", keyHash: hash(2), keyEnding: "bbbb", at } as const;
const team = { account: 3, email: "research", plan: "pro", keyHash: hash(37), keyEnding: "ffff", at } as const;
const member = { team: 3, account: 1, role: "member", tokensPerDay: 5, tokensPerMonth: 6, joinedAt: at } as const;
const key = { account: 1, id: 2, name: "robot", keyHash: hash(3), keyEnding: "cccc", createdAt: at } as const;
const limits: KeyLimits = {
  expiresAt: at + 9,
  tokensPerDay: 10,
  tokensPerMonth: 20,
  models: ["core-3", 'a "b"'],
  addresses: ["10.0.0.0/8"],
  forwardsUsers: true,
  costCenter: "R&D",
  endUserTokensPerDay: 30,
  weight: 2,
  priority: "bulk",
  priorityMax: "interactive",
  member: 2,
  parallel: 3,
  requestsPerMinute: 40,
  tokensPerMinute: 5_000,
  endUserParallel: 4,
  endUserRequestsPerMinute: 50,
  endUserTokensPerMinute: 6_000,
};
const session = {
  id: 1,
  tokenHash: hash(4),
  account: 1,
  createdAt: at,
  usedAt: at,
  address: "::1",
  browser: "Firefox",
};
const request: PurchaseRequest = {
  id: 1,
  account: 1,
  kind: "credit",
  tokens: 5,
  plan: null,
  note: "n\u00fc",
  state: "pending",
  createdAt: at,
  decidedAt: null,
  decisionNote: "",
};
const link: AccessLink = {
  id: 1,
  tokenHash: hash(5),
  kind: "invitation",
  account: null,
  email: "C@x",
  plan: "free",
  credit: 7,
  createdAt: at,
  expiresAt: at + 100,
  usedAt: null,
  team: 3,
  tokensPerDay: 8,
  tokensPerMonth: 9,
};
const deviceCode = {
  deviceHash: hash(33),
  userCodeHash: hash(34),
  program: "Claude Code",
  machine: "laptop",
  address: "::1",
  expiresAt: at + 100,
  deniedAt: null,
};
const token = {
  id: 3,
  name: "ci",
  tokenHash: hash(20),
  scope: "people",
  createdAt: at,
  expiresAt: null,
  revokedAt: null,
} as const;
const mail = {
  once: "limit 1",
  kind: "limits",
  account: 1,
  address: null,
  details: "{}",
  createdAt: at,
  dueAt: at,
  tries: 0,
  sentAt: null,
  problem: null,
  keptUntil: at + 50,
} as const;
const entry = { id: 1, at, operator: theServer, address: "", action: "account.plan", subject: 1, detail: "d" } as const;

/** At least one of each kind; each changes something where those before it were made. */
const changes: { readonly [Kind in AccountChange["change"]]: readonly Extract<AccountChange, { change: Kind }>[] } = {
  create: [
    { change: "create", ...ann, passwordHash: null, operator: false },
    { change: "create", ...bob, passwordHash: "argon", operator: true },
    { change: "create", ...team, passwordHash: null, operator: false, team: true },
  ],
  name: [{ change: "name", account: 3, name: "Research" }],
  member: [
    { change: "member", account: 3, member },
    { change: "member", account: 3, member: { ...member, role: "admin", tokensPerDay: null } },
    { change: "member", account: 3, member: { ...member, account: 2 } },
  ],
  remove_member: [{ change: "remove_member", account: 3, member: 2 }],
  plan: [{ change: "plan", account: 1, plan: "plus" }],
  key: [{ change: "key", account: 1, keyHash: hash(6), keyEnding: "dddd", at: at + 1 }],
  new_key: [
    {
      change: "new_key",
      account: 1,
      key: { ...key, limits: null, usedAt: null, revokedAt: null, familyHash: hash(30), refreshHash: null },
    },
    {
      change: "new_key",
      account: 1,
      key: {
        ...key,
        id: 3,
        keyHash: hash(7),
        limits: { ...limits, forwardsUsers: false },
        usedAt: null,
        revokedAt: null,
        familyHash: null,
        refreshHash: null,
      },
    },
  ],
  key_token: [
    {
      change: "key_token",
      account: 1,
      key: 2,
      keyHash: hash(31),
      keyEnding: "eeee",
      refreshHash: hash(32),
      expiresAt: at + 77,
    },
  ],
  cost_center: [
    { change: "cost_center", account: 1, costCenter: "R&D" },
    { change: "cost_center", account: 2, costCenter: "Sales" },
    { change: "cost_center", account: 2, costCenter: null },
  ],
  key_name: [{ change: "key_name", account: 1, key: 2, name: "Robot" }],
  key_limits: [
    { change: "key_limits", account: 1, key: 2, limits },
    { change: "key_limits", account: 1, key: 2, limits: { models: null, forwardsUsers: false } },
    { change: "key_limits", account: 1, key: 2, limits: { tokensPerDay: null, forwardsUsers: true } },
  ],
  key_used: [
    { change: "key_used", account: 1, key: defaultKey, at: at + 2 },
    { change: "key_used", account: 1, key: 2, at: at + 3 },
  ],
  revoke_key: [{ change: "revoke_key", account: 1, key: 2, at: at + 4 }],
  restore_key: [
    {
      change: "restore_key",
      account: 1,
      key: { ...key, limits: null, usedAt: null, revokedAt: null, familyHash: hash(30), refreshHash: null },
    },
  ],
  erase_end_user: [{ change: "erase_end_user", account: 1, name: "eve" }],
  password: [{ change: "password", account: 1, passwordHash: "argon 2" }],
  operator: [{ change: "operator", account: 1, operator: true }],
  disabled: [
    { change: "disabled", account: 1, at: at + 5 },
    { change: "disabled", account: 1, at: null },
  ],
  search_calls: [
    { change: "search_calls", account: 1, day: 20_540, calls: 1 },
    { change: "search_calls", account: 1, day: 20_540, calls: 3 },
  ],
  open_session: [1, 2, 3].map((id) => ({
    change: "open_session",
    session: { ...session, id, tokenHash: hash(20 + id) },
  })),
  use_session: [{ change: "use_session", id: 1, at: at + 6 }],
  end_session: [{ change: "end_session", id: 2 }],
  end_sessions: [
    { change: "end_sessions", account: 1, except: 1 },
    { change: "end_sessions", account: 1, except: null },
  ],
  purchase_request: [
    { change: "purchase_request", request },
    { change: "purchase_request", request: { ...request, id: 2, kind: "plan", tokens: null, plan: "pro" } },
  ],
  decision: [{ change: "decision", id: 1, state: "approved", at: at + 7, note: "in cash" }],
  payment: [{ change: "payment", id: "stripe:1", account: 1, tokens: 5, at: at + 8 }],
  identity: [
    { change: "identity", identity: { issuer: "i", subject: "ann", account: 1, connectedAt: at } },
    { change: "identity", identity: { issuer: "i", subject: "anna", account: 1, connectedAt: at } },
  ],
  link: [
    { change: "link", link, forgetBefore: 0 },
    // Takes the place of nothing, and then of itself; what is over goes.
    { change: "link", link: { ...link, id: 2, tokenHash: hash(8), kind: "password", account: 1 }, forgetBefore: 0 },
    { change: "link", link: { ...link, id: 3, tokenHash: hash(9), kind: "password", account: 1 }, forgetBefore: 0 },
    { change: "link", link: { ...link, id: 4, tokenHash: hash(10), expiresAt: at + 999 }, forgetBefore: at + 101 },
    { change: "link", link: { ...link, id: 5, tokenHash: hash(11), expiresAt: at + 999 }, forgetBefore: at + 101 },
  ],
  use_link: [{ change: "use_link", id: 4, account: 2, at: at + 9 }],
  withdraw_link: [{ change: "withdraw_link", id: 5 }],
  device_code: [
    { change: "device_code", code: deviceCode, now: at },
    { change: "device_code", code: { ...deviceCode, deviceHash: hash(35), userCodeHash: hash(36) }, now: at + 101 },
  ],
  deny_device_code: [{ change: "deny_device_code", deviceHash: hash(35), at: at + 9 }],
  end_device_code: [{ change: "end_device_code", deviceHash: hash(35) }],
  operator_token: [{ change: "operator_token", token }],
  revoke_operator_token: [{ change: "revoke_operator_token", id: token.id, at: at + 9 }],
  mail_address: [{ change: "mail_address", account: 1, address: "ann@x.example" }],
  mail_kinds: [{ change: "mail_kinds", account: 1, kinds: ["limits"] }],
  language: [{ change: "language", account: 1, language: "de" }],
  purchased: [{ change: "purchased", account: 1, credit: 12, at: at + 9 }],
  mail: ["limit 1", "limit 2", "limit 3"].map((once, n) => ({
    change: "mail",
    mail: { ...mail, once, keptUntil: at + 50 + n },
  })),
  mail_state: [
    { change: "mail_state", mail: { ...mail, details: "", dueAt: at + 9, tries: 1, problem: "451 not now" } },
    { change: "mail_state", mail: { ...mail, details: "", dueAt: null, tries: 2, sentAt: at + 10, problem: null } },
  ],
  forget_mail: [{ change: "forget_mail", once: "limit 2" }],
  forget_mails: [{ change: "forget_mails", before: at + 52 }],
  audit: [
    { change: "audit", entry },
    { change: "audit", entry: { ...entry, id: 2, operator: 1, address: "::1", subject: theServer } },
  ],
  erase: [{ change: "erase", account: 1, email: "ann@x", name: "deleted-1@invalid", keyHash: hash(12), at: at + 10 }],
};

/** After those above, these find nothing to do. */
const withoutEffect: readonly AccountChange[] = [
  { change: "key_limits", account: 1, key: 2, limits: { tokensPerDay: 99 } }, // it is revoked
  { change: "use_session", id: 9, at },
  { change: "decision", id: 1, state: "declined", at: at + 99, note: "decided already" },
  { change: "identity", identity: { issuer: "i", subject: "nobody", account: 99, connectedAt: at } },
  { change: "use_link", id: 4, account: 1, at: at + 99 }, // it was used
  { change: "withdraw_link", id: 4 },
];

describe("each kind of change", () => {
  const stores = [sqlite(), postgres()];
  beforeAll(async () => {
    for (const store of stores) {
      await store.open();
      await store.run("INSERT INTO end_users (account_id, id, key_id, name, first_day, last_day) VALUES (1, 1, 2, 'eve', 1, 1), (1, 2, 2, 'uma', 1, 1)"); // prettier-ignore
    }
  }, 60_000);
  afterAll(async () => {
    for (const store of stores) await store.close();
  });

  test("writes the same rows in both stores, and no others", async () => {
    const [one, ...others] = stores;
    let before = await booksOf(one!);
    const applied = async (change: AccountChange): Promise<Books> => {
      for (const store of stores) await store.apply(change);
      const books = await booksOf(one!);
      for (const other of others) expect([change, await booksOf(other)]).toEqual([change, books]);
      return books;
    };
    for (const change of Object.values<readonly AccountChange[]>(changes).flat()) {
      const books = await applied(change);
      expect([change, books]).not.toEqual([change, before]);
      before = books;
    }
    for (const change of withoutEffect) expect([change, await applied(change)]).toEqual([change, before]);
    expect(before).toMatchSnapshot();
  }, 60_000);
});

for (const store of [sqlite(), postgres()]) {
  describe(`an erasure on ${store.name}`, () => {
    beforeAll(() => store.open(), 60_000);
    afterAll(() => store.close());

    test("leaves no text that tells who it was, in any table", async () => {
      let unique = 0;
      const valueOf = (name: string, { kind, allowed }: Column): string => {
        unique += 1;
        if (/^(account|operator|subject)_id$/.test(name)) return "1";
        if (allowed !== undefined) return `'${allowed[0]}'`;
        if (kind === "hash") return store.bytes(unique.toString(16).padStart(64, "0"));
        if (kind === "list") return `'["marker"]'`;
        if (kind === "flag") return "'1'";
        return kind === "whole" || kind === "small" || kind === "bit" || kind === "mark" ? "1" : `'marker ${name}'`;
      };
      const plant = async (table: TableName, own: Readonly<Record<string, string>> = {}): Promise<void> => {
        const columns = Object.entries<Column>(tables[table].columns);
        const values = columns.map(([name, column]) => own[name] ?? valueOf(name, column));
        const names = columns.map(([name]) => name);
        await store.run(`INSERT INTO ${table} (${names.join(", ")}) VALUES (${values.join(", ")})`);
      };
      // Tokens of the operators' API, and sign-ins that nobody approved, belong to no account.
      const ofNobody: readonly TableName[] = ["operator_tokens", "device_codes"];
      for (const table of tableNames) if (!ofNobody.includes(table)) await plant(table);
      await plant("access_links", { id: "2", account_id: "NULL", email: "'MARKER EMAIL'" });
      await store.apply({
        change: "erase",
        account: 1,
        email: "marker email",
        name: "deleted-1@invalid",
        keyHash: hash(9),
        at,
      });
      const left = new Set<string>();
      for (const [table, rows] of Object.entries(await booksOf(store))) {
        for (const row of rows) {
          for (const [name, cell] of Object.entries(row)) {
            if (String(cell).toLowerCase().includes("marker")) left.add(`${table}.${name}`);
          }
        }
      }
      // Names of the shop's, and references by which a payment is known forever.
      const kept = {
        accounts: ["plan"],
        api_keys: ["priority", "priority_max"],
        journal: ["billing_key", "endpoint", "model", "node", "priority", "asked_model", "cost_center"],
        purchase_requests: ["plan"],
        payments: ["id"],
        audit_log: ["action"],
        journal_folds: ["model", "endpoint"],
        cost_center_folds: ["model", "endpoint", "cost_center"],
      };
      expect([...left]).toEqual(
        Object.entries(kept).flatMap(([table, names]) => names.map((name) => `${table}.${name}`)),
      );
    }, 60_000);
  });
}

test("what an erasure removes is said in words", () => {
  const said = Object.values(erasure).flatMap((rule) => (rule === null ? [] : [rule.what]));
  expect(said.join(", ")).toBe(
    "e-mail and mail address, key, password, names of keys, teams, end users, links, identities, sessions, notes, addresses, mails, tags of requests",
  );
});
