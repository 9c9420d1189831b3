// The accounting beside its model, with a disk that does what the simulation says: what every simulation here shares.
import { expect } from "bun:test";
import { Office, type SpecPlan } from "../account/office.ts";
import { randomOf } from "../fixtures/random.ts";
import { LedgerModel } from "./ledger-model.ts";

export const planIds: readonly SpecPlan[] = ["free", "plus", "standard", "pro"];
export const dayMs = 86_400_000;

export type SimulatedKey = Readonly<{ id: number; key: string; expiresAt: number | null; namesUsers: boolean }>;
/** Whom programs name. */
export const userNames = ["", "ada", "bob", "=cmd|' /C calc'!A0"];
export type SimulatedAccount = {
  name: string;
  id: number;
  key: string;
  oldKeys: string[];
  /** Named ones that were not revoked. */
  keys: SimulatedKey[];
};

export abstract class LedgerWorld {
  office = new Office();
  readonly model = new LedgerModel();
  readonly random: () => number;
  readonly accounts: SimulatedAccount[] = [];
  /** Movements in the batch that the storage has. */
  underWay = 0;
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
      const plan = this.pick(planIds);
      const { id, api_key } = await this.office.accounts.create({ email, plan });
      this.accounts.push({ name: email, id, key: api_key, oldKeys: [], keys: [] });
      this.model.create(email, plan);
    }
    this.office.storage.immediate = false;
  }

  async changePlan(account: SimulatedAccount): Promise<void> {
    await this.drain();
    const plan = this.pick(planIds);
    const changed = this.office.accounts.changePlan(account.name, plan);
    this.office.journal.flush();
    this.office.storage.succeed();
    await changed;
    this.model.changePlan(account.name, plan);
  }

  async rotate(account: SimulatedAccount): Promise<void> {
    await this.drain();
    const rotated = this.office.accounts.rotateKey(account.name);
    expect(this.office.keys.principal(account.key)?.account ?? null).toBeNull();
    this.office.journal.flush();
    this.office.storage.succeed();
    account.oldKeys = [account.key, ...account.oldKeys].slice(0, 3);
    account.key = (await rotated).api_key;
  }

  /** Another named key, or one less. */
  async changeKeys(account: SimulatedAccount): Promise<void> {
    await this.drain();
    const { office } = this;
    const [oldest] = account.keys;
    if (oldest !== undefined && (account.keys.length >= 3 || this.random() < 0.3)) {
      const revoked = office.accountKeys.revoke(account.id, oldest.id);
      expect(office.keys.principal(oldest.key)).toBeNull();
      await this.written(revoked);
      account.keys.shift();
      account.oldKeys = [oldest.key, ...account.oldKeys].slice(0, 3);
      return;
    }
    const perDay = this.pick([null, 1_000, 5_000, 20_000, 100_000]);
    const perMonth = this.pick([null, 30_000, 300_000]);
    const namesUsers = this.random() < 0.5;
    const perUser = namesUsers ? this.pick([null, 500, 5_000, 50_000]) : null;
    const expiresAt = this.random() < 0.2 ? office.now + 2 * dayMs : null;
    const wanted = {
      name: `k${this.below(1e9)}`,
      ...(perDay === null ? {} : { limit_day: perDay }),
      ...(perMonth === null ? {} : { limit_month: perMonth }),
      ...(expiresAt === null ? {} : { expires_at: new Date(expiresAt).toISOString() }),
      ...(namesUsers ? { forwards_users: true } : {}),
      ...(perUser === null ? {} : { limit_end_user_day: perUser }),
    };
    const { id, api_key: key } = await this.written(office.accountKeys.create(account.id, wanted));
    account.keys.push({ id, key, expiresAt, namesUsers });
    const big = (limit: number | null) => (limit === null ? null : BigInt(limit));
    this.model.addKey(account.name, id, { perDay: big(perDay), perMonth: big(perMonth), perUser: big(perUser) });
  }

  async written<Value>(change: Promise<Value>): Promise<Value> {
    this.office.journal.flush();
    this.office.storage.succeed();
    return change;
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
    await this.compareAll();
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
    const limit = ledger.key(ledger.account(account.id), id)?.spendLimits[0];
    if (limit === undefined) return; // of one without limits, the disk alone knows what it used
    const expected = this.model.expectedOfKey(account.name, id, now);
    const found = { ...limit.used(now), held: limit.held, expected: limit.expected };
    expect([account.name, id, found]).toEqual([account.name, id, expected]);
  }

  compareUsers(account: SimulatedAccount, { id }: SimulatedKey): void {
    const { ledger, now } = this.office;
    for (const name of userNames) {
      const limit = ledger.endUsers.find(account.id, id, name)?.limit ?? null;
      if (limit === null) continue;
      const expected = this.model.expectedOfUser(account.name, id, name, now);
      const found = { day: limit.used(now).day, held: limit.held, expected: limit.expected };
      expect([account.name, id, name, found]).toEqual([account.name, id, name, expected]);
    }
  }

  /** Every account in memory and on disk. */
  async compareAll(): Promise<void> {
    for (const account of this.accounts) {
      this.compare(account);
      expect(this.office.keys.principal(account.key)?.account ?? null).toBe(account.id);
      for (const { id, key } of account.keys) {
        expect(this.office.keys.principal(key)).toMatchObject({ account: account.id, key: id });
      }
      for (const old of account.oldKeys) expect(this.office.keys.principal(old)?.account ?? null).toBeNull();
      expect(this.onDisk(account)).toEqual(this.model.onDisk(account.name));
    }
    const { holds, heldTokens, expectedTokens, waiting, searchesHeld, uncommitted } = this.office.ledger.totals();
    const expected = this.expectedHolds();
    expect(holds).toBe(expected.holds);
    if (holds === 0) expect([heldTokens, expectedTokens, waiting]).toEqual([0, 0, 0]);
    expect(searchesHeld).toBe(expected.searches);
    expect(uncommitted).toBe(this.model.pending);
  }

  /** Nothing is open anymore: the invariants, recomputed from the journal, hold, and nothing is held. */
  async expectQuiet(): Promise<void> {
    await this.drain();
    await this.compareAll();
    expect(await this.office.accounts.verify()).toEqual({ accounts: this.accounts.length, violations: [] });
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
  async continuations(turns = 8): Promise<void> {
    for (let turn = 0; turn < turns; turn += 1) await null;
  }
}

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
