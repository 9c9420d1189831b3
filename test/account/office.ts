// The accounting on a database in memory, with a clock that tests set: everything real but the disk.
import { by } from "../fixtures/principals.ts";
import { plainModel } from "../../src/core/catalog.ts";
import type { Database } from "bun:sqlite";
import { AccessLinks } from "../../src/account/access-links.ts";
import { AccountKeys } from "../../src/account/account-keys.ts";
import { Accounts } from "../../src/account/accounts.ts";
import { AuditLog } from "../../src/account/audit.ts";
import { Admission } from "../../src/account/admission.ts";
import type { Asked } from "../../src/account/asked.ts";
import { EndUsers } from "../../src/account/end-users.ts";
import { Flood } from "../../src/account/flood.ts";
import { Identities } from "../../src/account/identities.ts";
import { Keys } from "../../src/account/keys.ts";
import { Ledger } from "../../src/account/ledger.ts";
import { type Hasher, Passwords } from "../../src/account/passwords.ts";
import { Purchases } from "../../src/account/purchases.ts";
import { Searches } from "../../src/account/searches.ts";
import { Sessions } from "../../src/account/sessions.ts";
import { assert } from "../../src/core/assert.ts";
import { ConsoleRecords } from "../../src/store/ledger/console-records.ts";
import { BatchingJournal } from "../../src/store/ledger/journal.ts";
import { SqliteRecords } from "../../src/store/ledger/sqlite-records.ts";
import { verify } from "../../src/store/verify/verify.ts";
import type { Plans } from "../../src/core/plans.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import type { Hold, Model, Moment, Plan, PlanId, Price, Refusal, Usage } from "../../src/core/types.ts";
import type { Endpoint } from "../fixtures/endpoints.ts";
import { MemoryStorage, memoryDatabase } from "../store/memory-storage.ts";

const plan = (id: PlanId, tokensPerDay: number, coderCallsPerWindow: number, searchesPerDay: number): Plan => ({
  id,
  as: id,
  name: id,
  tokensPerDay,
  coderCallsPerWindow,
  searchesPerDay,
  requestsPerMinute: 120,
  models: null,
  unlimited: false,
});

/** Spec: "Balance", "Coder call allowance", "Web searches per day". */
export type SpecPlan = "free" | "plus" | "standard" | "pro";
export const plans: Readonly<Record<SpecPlan, Plan>> = {
  free: plan("free", 30_000, 3, 3),
  plus: plan("plus", 80_000, 20, 30),
  standard: plan("standard", 265_000, 40, 50),
  pro: plan("pro", 665_000, 60, 60),
};

/** 500 cents per 1,000,000: one model token costs one balance token. */
const parPrice: Price = { kind: "flat", cents: 500 };

export function model(id: string, price: Price = parPrice): Model {
  return {
    id,
    ...plainModel,
    tier: price.kind === "flat" ? "first-party" : "hosted",
    readsDepth: price.kind === "split",
    contextTokens: 196_608,
    readsImages: false,
    structuredOutput: "json_schema",
    price,
    budgetLimitsAnswer: true,
    outputTokensDefault: { calls: 4_096, tokens: 4_096 },
    encoding: "o200k_base",
    coder: id === "core-coder-1",
  };
}

export const ask = (outputTokensMax = 4_096, more: Partial<Asked> = {}): Asked => ({
  endpoint: "/v1/chat/completions",
  coderBilling: "calls",
  model: model("core-3"),
  outputTokensMax,
  ...more,
});

export const coderAsk = (endpoint: Endpoint = "/v1/chat/completions"): Asked =>
  ask(65_536, {
    endpoint,
    coderBilling: endpoint === "/v1/responses" ? "tokens" : "calls",
    model: model("core-coder-1", { kind: "flat", cents: 800 }),
  });

export const output = (tokens: number): Usage => ({ inputFresh: 0, inputCached: 0, output: tokens, reasoning: 0 });

export const noon = Date.UTC(2026, 2, 28, 12);

/** argon2id at its cheapest: what it costs in earnest is no matter of these tests. */
export const cheapHasher: Hasher = {
  hash: (password) => Bun.password.hash(password, { algorithm: "argon2id", memoryCost: 8, timeCost: 1 }),
  verify: (password, hash) => Bun.password.verify(password, hash),
};

export class Office {
  now = noon;
  #latest = noon;
  #elapsed = 0;
  readonly #offered: Plans;
  readonly #endUserBounds: readonly [loadedMax?: number, newPerDayMax?: number];
  readonly database: Database;
  readonly storage: MemoryStorage;
  readonly records: SqliteRecords;
  readonly ledger: Ledger;
  readonly keys: Keys;
  readonly journal: BatchingJournal;
  readonly searches: Searches;
  readonly admission: Admission;
  readonly accounts: Accounts;
  readonly accountKeys: AccountKeys;
  readonly consoleRecords: ConsoleRecords;
  readonly sessions: Sessions;
  readonly purchases: Purchases;
  readonly auditLog: AuditLog;
  readonly links: AccessLinks;
  readonly identities: Identities;

  /** Opens on what an earlier office left, as a restart does. */
  constructor(
    database = memoryDatabase(),
    passwords: Passwords = new Passwords(cheapHasher),
    offered: Plans = plans,
    endUserBounds: readonly [loadedMax?: number, newPerDayMax?: number] = [],
  ) {
    this.#offered = offered;
    this.#endUserBounds = endUserBounds;
    const clock = { wall: () => this.now, monotonic: () => 0 };
    this.database = database;
    this.storage = new MemoryStorage(database);
    this.records = new SqliteRecords(database);
    this.ledger = new Ledger(this.records, offered, new EndUsers(this.records, ...endUserBounds));
    this.keys = new Keys(this.records, this.ledger);
    this.journal = new BatchingJournal(this.storage, this.ledger, clock);
    this.searches = new Searches(this.ledger, this.records, this.journal);
    this.admission = new Admission(this.ledger, new Flood(), this.journal, "http://site");
    this.accounts = new Accounts({
      records: this.records,
      ledger: this.ledger,
      keys: this.keys,
      journal: this.journal,
      plans: offered,
      clock,
      verify: () => verify(database, this.ledger, offered),
      passwords,
    });
    const { records, ledger, keys, journal, accounts } = this;
    this.accountKeys = new AccountKeys({ records, ledger, keys, journal, accounts, clock });
    this.consoleRecords = new ConsoleRecords(database);
    this.sessions = new Sessions(this.consoleRecords, this.journal, this.ledger);
    this.purchases = new Purchases({
      accounts: this.accounts,
      records: this.consoleRecords,
      journal: this.journal,
      clock,
    });
    this.auditLog = new AuditLog(this.consoleRecords, this.journal);
    this.links = new AccessLinks(this.consoleRecords, this.journal, clock);
    this.identities = new Identities(this.consoleRecords, this.journal);
  }

  /** Kills the process and starts it again on the same disk. */
  restart(): Office {
    this.storage.die();
    const next = new Office(this.database, undefined, this.#offered, this.#endUserBounds);
    next.now = this.now;
    return next;
  }

  /** Goes on as `now` does, and stands still where that steps back. */
  get monotonic(): number {
    this.#elapsed += Math.max(0, this.now - this.#latest);
    this.#latest = this.now;
    return this.#elapsed;
  }

  get moment(): Moment {
    return { wall: this.now, monotonic: this.monotonic };
  }

  admit(account: number, asked: Asked = ask(), inputTokens = 0, key?: number): Hold | Refusal {
    return this.admission.admit(
      { ...by(account, key), ask: asked, inputTokens, requestId: `req-${crypto.randomUUID()}` },
      this.moment,
    );
  }

  /** Admits a request that must be admitted. */
  hold(account: number, asked: Asked = ask(), inputTokens = 0, key?: number): Hold {
    const admitted = this.admit(account, asked, inputTokens, key);
    assert(!isRefusal(admitted), `admitted, not ${JSON.stringify(admitted)}`);
    return admitted;
  }

  /** A whole request of one price's output tokens. */
  async spend(account: number, tokens: number): Promise<void> {
    using hold = this.hold(account, ask(0));
    await hold.settle(output(tokens), false, this.now);
  }
}
