// The accounting on a database in memory, with a clock that tests set: everything real but the disk.
import { by } from "../fixtures/principals.ts";
import { plainModel } from "../../src/core/catalog.ts";
import type { Database } from "bun:sqlite";
import type { Verification } from "../../src/account/people/accounts.ts";
import { Admission } from "../../src/account/money/admission.ts";
import type { Asked } from "../../src/account/money/asked.ts";
import { EndUsers } from "../../src/account/money/end-users.ts";
import { Flood } from "../../src/account/money/flood.ts";
import { Keys } from "../../src/account/people/keys.ts";
import { KnownSessions } from "../../src/account/sign-in/known-sessions.ts";
import { Ledger } from "../../src/account/money/ledger.ts";
import { type Hasher, Passwords } from "../../src/account/sign-in/passwords.ts";
import { OfficeMemory } from "../../src/account/office-memory.ts";
import { QueuedOffice } from "../../src/account/queued-office.ts";
import { Searches } from "../../src/account/money/searches.ts";
import { assert } from "../../src/core/assert.ts";
import { BatchingJournal } from "../../src/store/ledger/journal.ts";
import { SqliteRecords } from "../../src/store/ledger/sqlite-records.ts";
import { verify } from "../../src/store/verify/verify.ts";
import type { Plans } from "../../src/core/plans.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import type { Hold, Model, Moment, Plan, PlanId, Price, Refusal, Usage } from "../../src/core/types.ts";
import type { Endpoint } from "../fixtures/endpoints.ts";
import { Desks } from "./desks.ts";
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
  readonly knownSessions: KnownSessions;
  readonly memory: OfficeMemory;
  /** Tests may add models. */
  readonly catalog: { plans: Plans; models?: Map<string, Model> };
  readonly units: QueuedOffice;
  readonly passwords: Passwords;
  readonly accounts: Desks["accounts"];
  readonly accountKeys: Desks["accountKeys"];
  readonly sessions: Desks["sessions"];
  readonly purchases: Desks["purchases"];
  readonly links: Desks["links"];
  readonly identities: Desks["identities"];
  readonly auditLog: Desks["auditLog"];

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
    this.knownSessions = new KnownSessions(this.records, this.journal, this.ledger);
    const { records, ledger, keys, journal, knownSessions: sessions } = this;
    this.memory = new OfficeMemory({ countOnDisk: () => records.count(), ledger, keys, sessions, plans: offered });
    const { memory } = this;
    this.catalog = { plans: offered };
    const { catalog } = this;
    this.units = new QueuedOffice({ records, sessions, memory, journal, catalog, clock });
    this.passwords = passwords;
    const desks = new Desks(this.units, passwords, sessions);
    this.accounts = desks.accounts;
    this.accountKeys = desks.accountKeys;
    this.sessions = desks.sessions;
    this.purchases = desks.purchases;
    this.links = desks.links;
    this.identities = desks.identities;
    this.auditLog = desks.auditLog;
  }

  /** What was asked is decided and on its way to disk, where it waits: `storage` is not immediate. */
  async underWay(): Promise<void> {
    while (!this.storage.waiting) await new Promise<void>((resolve) => void setImmediate(resolve));
  }

  verify(): Promise<Verification> {
    return verify(this.database, this.ledger, this.#offered);
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
    assert(!isRefusal(admitted), `admitted, not refused: ${Object(admitted).refusal}`);
    return admitted;
  }

  /** A whole request of one price's output tokens. */
  async spend(account: number, tokens: number): Promise<void> {
    using hold = this.hold(account, ask(0));
    await hold.settle(output(tokens), false, this.now);
  }
}
