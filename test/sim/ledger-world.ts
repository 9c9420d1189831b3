// The accounting beside its model, with a disk that does what the simulation says: what every simulation here shares.
import { expect } from "bun:test";
import type { NewKey, NewLimits } from "../../src/account/people/account-keys.ts";
import { amountMax } from "../../src/core/limits.ts";
import { plansById, replacePlans } from "../../src/core/plans.ts";
import type { Plan } from "../../src/core/types.ts";
import { Office, plans as specPlans } from "../account/office.ts";
import { randomOf } from "../fixtures/random.ts";
import { LedgerModel, type ModelKey, type ModelPlans } from "./ledger-model.ts";

const dayMs = 86_400_000;
export const simulatedModels = ["core-3", "core-2", "own-1"] as const;

/** Whom programs name. */
export const userNames = ["", "ada", "bob", "=cmd|' /C calc'!A0"];

/** `key`: null where the process died before it told. */
export type SimulatedKey = Readonly<{ id: number; key: string | null }>;
export type SimulatedAccount = {
  name: string;
  id: number;
  /** The last first key that was told. */
  key: string;
  /** All of them that were told, by their versions in the model. */
  firstKeys: Map<number, string>;
  /** Named ones, some of which are void. */
  keys: SimulatedKey[];
};

export const modelPlans = (plans: Iterable<Plan>): ModelPlans =>
  new Map(
    [...plans].map((plan) => [
      plan.id,
      {
        tokens: BigInt(plan.tokensPerDay),
        calls: BigInt(plan.coderCallsPerWindow),
        searches: BigInt(plan.searchesPerDay),
        perMinute: plan.requestsPerMinute,
        models: plan.models,
        unlimited: plan.unlimited,
      },
    ]),
  );

const bigOrNull = (value: number | null | undefined): bigint | null => (value == null ? null : BigInt(value));
const timeOrNull = (value: string | null | undefined): number | null => (value == null ? null : Date.parse(value));

export abstract class LedgerWorld {
  /** What is configured, in the object that the accounts in memory hold. */
  readonly plans: Record<string, Plan> = structuredClone(specPlans);
  office = new Office(undefined, undefined, this.plans);
  readonly model = new LedgerModel(modelPlans(Object.values(specPlans)));
  readonly random: () => number;
  readonly accounts: SimulatedAccount[] = [];
  /** Movements in the batch that the storage has. */
  underWay = 0;
  /** A batch was given up since all accounts were compared: what it moved is given back, to each its own. */
  hasLost = false;
  /** How often each operation was done. */
  readonly done = new Map<string, number>();

  constructor(readonly seed: number) {
    this.random = randomOf(seed);
  }

  /** Reservations and searches that must be held now. */
  abstract expectedHolds(): Readonly<{ holds: number; searches: number }>;
  /** The process is gone, and with it whatever the simulation had open in it. */
  abstract forgetOpen(): void;

  below(limit: number): number {
    return Math.floor(this.random() * limit);
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!;
  }

  count(operation: string): void {
    this.done.set(operation, (this.done.get(operation) ?? 0) + 1);
  }

  /** Few accounts have most of the requests. */
  pickAccount(): SimulatedAccount {
    return this.accounts[Math.floor(this.random() ** 2 * this.accounts.length)]!;
  }

  async start(accounts: number): Promise<void> {
    for (let i = 0; i < accounts; i += 1) {
      const email = `a${i}@x`;
      const plan = this.pick(Object.keys(this.plans));
      const { id, api_key } = await this.office.accounts.create({ email, plan });
      this.accounts.push({ name: email, id, key: api_key, firstKeys: new Map([[0, api_key]]), keys: [] });
      this.model.create(email, plan);
    }
    this.office.storage.immediate = false;
  }

  /** A change on its way to disk: a fault may keep it from there. */
  change(change: Promise<unknown>): void {
    change.catch((thrown: Error) => {
      // One that was revoked meanwhile has no limits.
      if (!["StoreUnavailable", "AccountError"].includes(thrown.name)) throw thrown;
    });
  }

  changePlan({ name }: SimulatedAccount): void {
    const plan = this.pick(Object.keys(this.plans));
    this.change(this.office.accounts.changePlan(name, plan, () => this.model.changePlan(name, plan)));
  }

  /** The configuration is read again: some plans are others, some are gone, some are new. */
  reloadPlans(): void {
    const rows = Object.values(specPlans).filter(() => this.random() < 0.8);
    const next = rows.map((row): Plan => {
      if (this.random() < 0.5) return row;
      const unlimited = this.random() < 0.1;
      return {
        ...row,
        unlimited,
        tokensPerDay: unlimited ? amountMax : Math.floor(row.tokensPerDay * this.pick([0, 0.1, 1, 3])),
        coderCallsPerWindow: this.below(30),
        searchesPerDay: this.below(30),
        requestsPerMinute: this.pick([5, 120, 120, 600]),
        models: this.random() < 0.3 ? [...simulatedModels].slice(this.below(3)) : null,
      };
    });
    if (next.length === 0) return;
    replacePlans(this.plans, plansById(next));
    this.model.offer(modelPlans(next));
  }

  async rotate(account: SimulatedAccount): Promise<void> {
    const { office } = this;
    const before = account.firstKeys.get(this.model.versionOf(account.name));
    let version = 0;
    const rotated = office.accounts.rotateKey(account.name, () => (version = this.model.rotate(account.name)));
    const told = ({ api_key }: { api_key: string }): void => {
      account.firstKeys.set(version, (account.key = api_key));
      for (const old of account.firstKeys.keys()) if (old < version - 5) account.firstKeys.delete(old);
    };
    this.change(rotated.then(told));
    await this.continuations();
    // Unless it waits for another change.
    if (before !== undefined && version > 0) expect(office.keys.principal(before)).toBeNull();
  }

  /** Another named key, one less, or one with other limits or another name. */
  async changeKeys(account: SimulatedAccount): Promise<void> {
    const { office, model } = this;
    const live = model.keysOf(account.name);
    const key = live.length === 0 ? null : this.pick(live);
    const roll = this.random();
    if (key === null || (roll < 0.3 && live.length < 4)) return this.#makeKey(account);
    if (roll < 0.45) {
      this.count("key revoked");
      const known = account.keys.find(({ id }) => id === key)?.key ?? null;
      let isDecided = false;
      const decided = (): void => {
        isDecided = true;
        model.revokeKey(account.name, key);
      };
      this.change(office.accountKeys.revoke(account.id, key, decided));
      await this.continuations();
      if (known !== null && isDecided) expect(office.keys.principal(known)).toBeNull();
      return;
    }
    if (roll < 0.55) return this.change(office.accountKeys.rename(account.id, key, `k${this.below(1e9)}`));
    this.count("key limited anew");
    const wanted = this.#limits();
    const kept = Object.fromEntries(Object.entries(wanted).filter(() => this.random() < 0.6));
    const limits = { ...kept } as NewLimits;
    this.change(
      office.accountKeys.limit(account.id, key, limits, () => model.limitKey(account.name, key, modelLimits(limits))),
    );
  }

  #makeKey(account: SimulatedAccount): void {
    const { office, model } = this;
    const given = Object.entries(this.#limits()).filter(([, limit]) => limit !== null);
    const wanted = { name: `k${this.below(1e9)}`, ...Object.fromEntries(given) } as NewKey;
    const made = office.accountKeys.create(account.id, wanted, (_, id) =>
      model.addKey(account.name, id, { ...noLimits, ...modelLimits(wanted) }),
    );
    this.change(
      made.then(({ id, api_key: key }) => {
        account.keys = [...account.keys.slice(-7), { id, key }];
      }),
    );
  }

  #limits(): NewLimits {
    const namesUsers = this.random() < 0.6;
    return {
      forwards_users: namesUsers,
      limit_end_user_day: namesUsers ? this.pick([null, 500, 5_000, 50_000]) : null,
      limit_day: this.pick([null, 1_000, 5_000, 20_000, 100_000]),
      limit_month: this.pick([null, null, 30_000, 300_000]),
      expires_at:
        this.random() < 0.2 ? new Date(this.office.now + this.pick([30_000, dayMs, 9 * dayMs])).toISOString() : null,
      models: this.random() < 0.2 ? simulatedModels.slice(this.below(3)) : null,
      addresses: null,
    };
  }

  /** Seconds, minutes, windows and days pass; the wall clock also steps back. */
  time(): void {
    const toMidnight = dayMs - (this.office.now % dayMs);
    this.office.now += this.pick([
      this.below(1_000),
      this.below(20_000),
      this.below(20_000),
      60_000,
      4 * 3_600_000,
      toMidnight - 1,
      toMidnight,
      -1_000,
      -dayMs,
      this.below(10) === 0 ? 40 * dayMs : 1,
    ]);
    this.look();
  }

  /** What a timer does again and again. */
  look(): void {
    this.office.admission.line.look(this.office.moment);
    this.model.look(this.office.now);
  }

  /** Sends the next batch, or ends the one under way. */
  async commit(): Promise<void> {
    if (!this.office.storage.waiting) {
      this.underWay = this.model.pending;
      this.office.journal.flush();
      return;
    }
    this.office.storage.succeed();
    this.model.committed(this.underWay);
    // The journal sends what was gathered at once.
    this.underWay = this.model.pending;
    await this.continuations();
  }

  /** One fault of the disk, or the end of the process. */
  async fault(): Promise<void> {
    const { storage } = this.office;
    const kind = this.pick(["lost", "written, not acknowledged", "written twice", "torn", "busy", "crash"]);
    this.count(`fault: ${kind}`);
    if (!storage.waiting && kind !== "crash" && kind !== "busy") return;
    switch (kind) {
      case "lost": {
        const lost = this.underWay;
        // What follows in the journal is sent at once and stays under way.
        storage.giveUp();
        this.model.lost(lost);
        this.underWay = this.model.pending;
        this.hasLost = true;
        return this.continuations();
      }
      case "written, not acknowledged":
        storage.write();
        return this.crash(this.underWay);
      case "written twice":
        storage.write();
        storage.write();
        return this.commit();
      case "torn":
        storage.tear();
        return this.random() < 0.5 ? this.crash(0) : this.commit();
      case "busy":
        return this.busy();
      case "crash":
        return this.crash(0);
    }
  }

  /** What must be refused while the disk takes no writes. */
  abstract busy(): void | Promise<void>;

  /** The process dies, having written the first `written` movements that are pending, and starts again. */
  async crash(written: number): Promise<void> {
    this.model.crash(written);
    this.office = this.office.restart();
    this.office.storage.immediate = false;
    this.underWay = 0;
    this.forgetOpen();
    for (const account of this.accounts) {
      const told = new Map(account.keys.map((key) => [key.id, key]));
      account.keys = this.model.keysOf(account.name).map((id) => told.get(id) ?? { id, key: null });
    }
    await this.compareAll();
    // A first key that nobody was told is of no use to anybody.
    for (const account of this.accounts) {
      const known = account.firstKeys.get(this.model.versionOf(account.name));
      if (known === undefined) await this.rotate(account);
      else account.key = known;
    }
    await this.drain();
  }

  /** Brings everything that is pending to disk. */
  async drain(): Promise<void> {
    while (this.office.storage.waiting || this.model.pending > 0) await this.commit();
  }

  compare(account: SimulatedAccount): void {
    const { ledger, now } = this.office;
    const loaded = ledger.account(account.id);
    const expected = this.model.expected(account.name, now);
    const left = ledger.allowanceLeft(loaded, now);
    const calls = ledger.use(loaded, "coder_calls", Math.floor(now / (4 * 3_600_000))).used;
    const searches = ledger.use(loaded, "searches", Math.floor(now / dayMs)).used;
    if (
      loaded.plan.id !== expected.plan ||
      left !== expected.left ||
      loaded.credit !== expected.credit ||
      loaded.held !== expected.reserved ||
      calls !== expected.calls ||
      searches !== expected.searches ||
      loaded.expected !== expected.expected ||
      (loaded.waiting?.length ?? 0) !== expected.waiting ||
      loaded.begun > loaded.holds ||
      left < 0 ||
      left > loaded.plan.tokensPerDay
    ) {
      const found = {
        left,
        credit: loaded.credit,
        reserved: loaded.held,
        calls,
        searches,
        expected: loaded.expected,
        waiting: loaded.waiting?.length,
        plan: loaded.plan.id,
      };
      throw new Error(`${account.name} has ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
    }
    for (const key of account.keys) {
      this.compareKey(account, key);
      this.compareUsers(account, key);
    }
  }

  compareKey(account: SimulatedAccount, { id }: SimulatedKey): void {
    const { ledger, now } = this.office;
    const key = ledger.key(ledger.account(account.id), id);
    const expected = this.model.expectedOfKey(account.name, id, now);
    if (key === null && expected.isVoid) return;
    const [limit] = key!.spendLimits;
    const { day, month } = limit!.used(now);
    const { perDay, perMonth, expiresAt, models } = expected.limits;
    const isSame =
      key!.isVoidAt(now) === expected.isVoid &&
      day === expected.day &&
      month === expected.month &&
      limit!.held === expected.held &&
      limit!.expected === expected.expected &&
      bigOrNull(limit!.perDay) === perDay &&
      bigOrNull(limit!.perMonth) === perMonth &&
      (key!.limits?.expiresAt ?? null) === expiresAt &&
      String(key!.limits?.models ?? null) === String(models);
    if (isSame) return;
    const { held, expected: expects } = limit!;
    const found = { day, month, held, expects, isVoid: key!.isVoidAt(now), ...key!.limits };
    const text = (value: unknown) => JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `${each}` : each));
    throw new Error(`key ${id} of ${account.name} has ${text(found)}, expected ${text(expected)}`);
  }

  compareUsers({ id: account, name: of }: SimulatedAccount, { id }: SimulatedKey): void {
    const { ledger, now } = this.office;
    for (const name of userNames) {
      const limit = ledger.endUsers.find(account, id, name)?.limit ?? null;
      if (limit === null) continue;
      const wanted = JSON.stringify(this.model.expectedOfUser(of, id, name, now));
      const { held, expected, perDay } = limit;
      const found = JSON.stringify({ day: limit.used(now).day, held, expected, perDay });
      if (found !== wanted) throw new Error(`${name} of key ${id} of ${of} has ${found}, expected ${wanted}`);
    }
  }

  /** Every account in memory and on disk. */
  async compareAll(): Promise<void> {
    for (const account of this.accounts) {
      this.compare(account);
      const { keys, now } = this.office;
      for (const [version, key] of account.firstKeys) {
        const isIt = version === this.model.versionOf(account.name);
        expect(keys.principal(key)?.account ?? null).toBe(isIt ? account.id : null);
      }
      const live = this.model.keysOf(account.name);
      for (const { id, key } of account.keys) {
        if (key === null) continue;
        const principal = keys.principal(key);
        if (!live.includes(id)) expect(principal).toBeNull();
        else {
          expect(principal).toMatchObject({ account: account.id, key: id });
          const { expiresAt } = this.model.expectedOfKey(account.name, id, now).limits;
          expect(principal?.limits?.expiresAt ?? null).toBe(expiresAt);
        }
      }
      await this.compareList(account);
      expect(this.onDisk(account)).toEqual(this.model.onDisk(account.name));
    }
    const { holds, heldTokens, expectedTokens, waiting, searchesHeld, uncommitted } = this.office.ledger.totals();
    const expected = this.expectedHolds();
    expect(holds).toBe(expected.holds);
    if (holds === 0) expect([heldTokens, expectedTokens, waiting]).toEqual([0, 0, 0]);
    expect(searchesHeld).toBe(expected.searches);
    expect(uncommitted).toBe(this.model.pendingLines);
  }

  /** What the console shows; one whose revocation is on its way is on disk still. */
  async compareList({ id, name }: SimulatedAccount): Promise<void> {
    const { accountKeys, now } = this.office;
    const listed = new Map((await accountKeys.list(id)).map((key) => [key.id, key]));
    for (const key of this.model.keysOf(name)) {
      const { limits, day, month } = this.model.expectedOfKey(name, key, now);
      const view = listed.get(key)!;
      expect([view.used_day, view.used_month]).toEqual([day, month]);
      if (this.model.pending > 0) continue;
      expect([bigOrNull(view.limit_day), bigOrNull(view.limit_month)]).toEqual([limits.perDay, limits.perMonth]);
      expect(timeOrNull(view.expires_at)).toBe(limits.expiresAt);
    }
  }

  /** Nothing is open anymore: the invariants, recomputed from the journal, hold, and nothing is held. */
  async expectQuiet(): Promise<void> {
    await this.drain();
    await this.compareAll();
    // Days were used under other plans, which bound what may be used now: none does more than these.
    const { free, pro } = specPlans;
    replacePlans(this.plans, plansById([{ ...free, unlimited: true, tokensPerDay: amountMax }, pro]));
    expect(await this.office.verify()).toEqual({ accounts: this.accounts.length, violations: [] });
    expect(this.office.ledger.totals()).toMatchObject({
      holds: 0,
      heldTokens: 0,
      expectedTokens: 0,
      waiting: 0,
      searchesHeld: 0,
      uncommitted: 0,
    });
  }

  onDisk({ id }: SimulatedAccount) {
    const { database } = this.office;
    const { credit } = database.query("SELECT credit FROM accounts WHERE id = ?").get(id) as { credit: number };
    const sum = (quota: string) =>
      (database.query("SELECT coalesce(sum(used), 0) AS sum FROM quota_use WHERE account_id = ? AND quota = ?").get(id, quota) as { sum: number }) // prettier-ignore
      .sum;
    const { keys } = database
      .query("SELECT coalesce(sum(used), 0) AS keys FROM key_use WHERE account_id = ?")
      .get(id) as {
      keys: number;
    };
    // What is used on old days is let go of; the journal keeps it.
    const { users } = database
      .query(
        "SELECT coalesce(sum(billed_tokens), 0) AS users FROM journal WHERE account_id = ? AND kind = 'charge' AND end_user_id > 0",
      )
      .get(id) as { users: number };
    return { credit, tokens: sum("allowance"), calls: sum("coder_calls"), searches: sum("searches"), keys, users };
  }

  /** Lets what awaited something go on, without a turn of the event loop, in which the journal would send by itself. */
  async continuations(turns = 60): Promise<void> {
    for (let turn = 0; turn < turns; turn += 1) await null;
  }
}

export const noLimits: ModelKey = {
  perDay: null,
  perMonth: null,
  expiresAt: null,
  models: null,
  namesUsers: false,
  perUser: null,
};

const modelLimits = ({ limit_day, limit_month, expires_at, models, ...limits }: NewLimits): Partial<ModelKey> => ({
  ...(limit_day === undefined ? {} : { perDay: bigOrNull(limit_day) }),
  ...(limit_month === undefined ? {} : { perMonth: bigOrNull(limit_month) }),
  ...(expires_at === undefined ? {} : { expiresAt: timeOrNull(expires_at) }),
  ...(models === undefined ? {} : { models }),
  ...(limits.limit_end_user_day === undefined ? {} : { perUser: bigOrNull(limits.limit_end_user_day) }),
  ...(limits.forwards_users === undefined ? {} : { namesUsers: limits.forwards_users === true }),
  ...(limits.forwards_users === false ? { perUser: null } : {}),
});

/** Runs worlds of a bounded length, since the days that a world has seen make its crashes dearer. */
export async function runWorlds<World extends LedgerWorld>(
  { operations, operationsPerWorld, seed }: Readonly<{ operations: number; operationsPerWorld: number; seed: number }>,
  worldOf: (seed: number) => World,
  run: (world: World, operations: number) => Promise<void>,
): Promise<Record<string, number>> {
  const done = new Map<string, number>();
  for (let number = 0; number * operationsPerWorld < operations; number += 1) {
    const world = worldOf(seed + number);
    await run(world, Math.min(operationsPerWorld, operations - number * operationsPerWorld));
    for (const [name, count] of world.done) done.set(name, (done.get(name) ?? 0) + count);
  }
  return Object.fromEntries(done);
}
