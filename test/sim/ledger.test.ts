// The accounting against its model: random requests, purchases, clock steps, crashes and disk faults, compared after
// every operation. TOLLGATE_LEDGER_OPERATIONS sets how many (50,000 by default), TOLLGATE_SEED
// repeats a run.
import { expect, test } from "bun:test";
import type { SearchHold } from "../../src/account/searches.ts";
import { isRefusal } from "../../src/refusals.ts";
import type { Endpoint, Hold, PlanId, Price } from "../../src/types.ts";
import { ask, coderAsk, model, noon, Office } from "../account/office.ts";
import { LedgerModel } from "./ledger-model.ts";

const operations = Number(process.env["TOLLGATE_LEDGER_OPERATIONS"] ?? 50_000);
const operationsPerWorld = 25_000;
const seed = Number(process.env["TOLLGATE_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

/** mulberry32: small, and the same everywhere for a seed. */
function randomOf(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const planIds: readonly PlanId[] = ["free", "plus", "standard", "pro"];
const endpoints: readonly Endpoint[] = ["/v1/chat/completions", "/v1/messages", "/v1/responses"];
const prices: readonly (readonly [Price, readonly number[]])[] = [
  [{ kind: "flat", cents: 335 }, [335, 335, 335]],
  [{ kind: "flat", cents: 780 }, [780, 780, 780]],
  [{ kind: "split", inputCents: 195, cachedInputCents: 20, outputCents: 390 }, [195, 20, 390]],
  [{ kind: "split", inputCents: 383, cachedInputCents: 39, outputCents: 1912 }, [383, 39, 1912]],
];
const day = 86_400_000;

type Open = { account: string; request: string; hold: Hold; rates: readonly number[]; coder: boolean };
type Account = { name: string; id: number; key: string; oldKeys: string[] };

class Simulation {
  office = new Office();
  readonly model = new LedgerModel();
  readonly random: () => number;
  readonly accounts: Account[] = [];
  open: Open[] = [];
  searches: { account: string; takenAt: number; hold: SearchHold }[] = [];
  /** Movements in the batch that the storage has. */
  underWay = 0;
  requests = 0;
  references = 0;
  /** References of purchases on their way to disk. */
  readonly buying = new Set<string>();
  readonly done = new Map<string, number>();

  constructor(readonly seed: number) {
    this.random = randomOf(seed);
  }

  below(limit: number): number {
    return Math.floor(this.random() * limit);
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!;
  }

  async start(accounts: number): Promise<void> {
    for (let i = 0; i < accounts; i += 1) {
      const email = `a${i}@x`;
      const plan = this.pick(planIds);
      const { id, api_key } = await this.office.accounts.create({ email, plan });
      this.accounts.push({ name: email, id, key: api_key, oldKeys: [] });
      this.model.create(email, plan);
    }
    this.office.storage.immediate = false;
  }

  /** One random operation; returns the account it was about. */
  async step(): Promise<Account> {
    const account = this.accounts[Math.floor(this.random() ** 2 * this.accounts.length)]!;
    const roll = this.random();
    const table: readonly [number, string, () => void | Promise<void>][] = [
      [0.26, "request", () => this.request(account)],
      [0.2, "settle", () => this.settle()],
      [0.06, "release", () => this.release()],
      [0.05, "coder call", () => this.coderCall(account)],
      [0.04, "search", () => this.search(account)],
      [0.03, "end of a search", () => this.endSearch()],
      [0.03, "purchase", () => this.buy(account)],
      [0.02, "plan", () => this.changePlan(account)],
      [0.01, "rotation", () => this.rotate(account)],
      [0.05, "time", () => this.time()],
      [0.22, "commit", () => this.commit()],
      [0.03, "fault", () => this.fault()],
    ];
    let below = 0;
    for (const [share, name, run] of table) {
      below += share;
      if (roll >= below) continue;
      this.done.set(name, (this.done.get(name) ?? 0) + 1);
      await run();
      break;
    }
    return account;
  }

  request(account: Account): void {
    const [price, rates] = this.pick(prices);
    const budget = this.pick([0, 1, 100, 4_096, 4_096, 4_096, 65_536, this.below(65_536)]);
    const request = `r${(this.requests += 1)}`;
    const asked = ask(budget, { endpoint: this.pick(endpoints), model: model("core-3", price) });
    const admitted = this.office.admission.admit(account.id, asked, request, this.office.now);
    const seconds = this.model.count(account.name, this.office.now);
    if (seconds > 0) expect(admitted).toEqual({ refusal: "too_many_requests", detail: { seconds } });
    else if (this.model.reserve(account.name, request, budget, this.office.now)) {
      if (isRefusal(admitted)) throw new Error(`${request} of ${budget} was refused: ${admitted.refusal}`);
      this.open.push({ account: account.name, request, hold: admitted, rates, coder: false });
    } else expect(admitted).toMatchObject({ refusal: "quota_exceeded" });
  }

  coderCall(account: Account): void {
    const request = `r${(this.requests += 1)}`;
    const admitted = this.office.admission.admit(account.id, coderAsk(), request, this.office.now);
    if (!this.model.takeCall(account.name, this.office.now)) {
      expect(admitted).toMatchObject({ refusal: "coder_quota_reached" });
      return;
    }
    if (isRefusal(admitted)) throw new Error(`${request} was refused: ${admitted.refusal}`);
    this.watch(admitted.ready!);
    this.open.push({ account: account.name, request, hold: admitted, rates: [0, 0, 0], coder: true });
  }

  /** Lower than, equal to or above the reservation. */
  settle(): void {
    const open = this.takeOpen();
    if (open === null) return;
    const tokens = [this.below(3_000), this.below(2_000), this.below(this.pick([10, 4_000, 100_000]))];
    const [inputFresh = 0, inputCached = 0, output = 0] = tokens;
    const usage = { inputFresh, inputCached, output, reasoning: Math.floor(output / 2) };
    this.watch(open.hold.settle(usage, this.random() < 0.1, this.office.now));
    open.hold[Symbol.dispose]();
    if (open.coder) this.model.note(open.account);
    else this.model.settle(open.account, open.request, open.rates, tokens, this.office.now);
  }

  release(): void {
    const open = this.takeOpen();
    if (open === null) return;
    open.hold[Symbol.dispose]();
    open.hold[Symbol.dispose]();
    this.model.release(open.account, open.request);
  }

  search(account: Account): void {
    const takenAt = this.office.now;
    const hold = this.office.searches.take(account.id, takenAt);
    expect(hold !== null).toBe(this.model.takeSearch(account.name, takenAt));
    if (hold !== null) this.searches.push({ account: account.name, takenAt, hold });
  }

  endSearch(): void {
    const search = this.searches.pop();
    if (search === undefined) return;
    const found = this.random() < 0.6;
    if (found) search.hold.keep();
    search.hold[Symbol.dispose]();
    this.model.endSearch(search.account, search.takenAt, found);
  }

  buy(account: Account): void {
    const isRepeat = this.random() < 0.3 && this.references > 0;
    const reference = isRepeat ? `${1 + this.below(this.references)}` : `${(this.references += 1)}`;
    const tokens = 1_000 + this.below(200_000);
    const isNew = this.model.buy(account.name, tokens, reference);
    const bought = this.office.accounts.addCredit(account.name, tokens, reference);
    this.watch(bought.then(({ credited }) => expect(credited).toBe(isNew)));
    if (!isNew) return;
    this.buying.add(reference);
    bought.catch(() => this.model.forget(reference)).finally(() => this.buying.delete(reference));
  }

  async changePlan(account: Account): Promise<void> {
    await this.drain();
    const plan = this.pick(planIds);
    const changed = this.office.accounts.changePlan(account.name, plan);
    this.office.journal.flush();
    this.office.storage.succeed();
    await changed;
    this.model.changePlan(account.name, plan);
  }

  async rotate(account: Account): Promise<void> {
    await this.drain();
    const rotated = this.office.accounts.rotateKey(account.name);
    expect(this.office.keys.account(account.key)).toBeNull();
    this.office.journal.flush();
    this.office.storage.succeed();
    account.oldKeys = [account.key, ...account.oldKeys].slice(0, 3);
    account.key = (await rotated).api_key;
  }

  time(): void {
    const toMidnight = day - (this.office.now % day);
    this.office.now += this.pick([
      this.below(1_000),
      this.below(20_000),
      this.below(20_000),
      60_000,
      4 * 3_600_000,
      toMidnight - 1,
      toMidnight,
      -1_000,
      -day,
      this.below(10) === 0 ? 40 * day : 1,
    ]);
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

  async fault(): Promise<void> {
    const { storage } = this.office;
    const kind = this.pick(["lost", "written, not acknowledged", "written twice", "torn", "busy", "crash"]);
    this.done.set(`fault: ${kind}`, (this.done.get(`fault: ${kind}`) ?? 0) + 1);
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

  busy(): void {
    const account = this.pick(this.accounts);
    this.office.storage.writable = false;
    const refused = this.office.admission.admit(account.id, coderAsk(), "never", this.office.now);
    expect(refused).toEqual({ refusal: "quota_unverified" });
    this.office.storage.writable = true;
  }

  /** The process dies, having written the first `written` movements that are pending, and starts again. */
  async crash(written: number): Promise<void> {
    this.model.crash(written);
    this.office = this.office.restart();
    this.office.storage.immediate = false;
    this.open = [];
    this.searches = [];
    this.underWay = 0;
    // Purchases that died with the process may be made again: the disk says which they are.
    for (const reference of this.buying) {
      if (!this.office.records.hasEntry(`credit:${reference}`)) this.model.forget(reference);
    }
    this.buying.clear();
    await this.compareAll();
  }

  /** Brings everything that is pending to disk. */
  async drain(): Promise<void> {
    while (this.office.storage.waiting || this.model.pending > 0) await this.commit();
  }

  compare(account: Account): void {
    const { ledger, now } = this.office;
    const loaded = ledger.account(account.id);
    const expected = this.model.expected(account.name, now);
    const left = ledger.allowanceLeft(loaded, now);
    const calls = ledger.use(loaded, "coder_calls", Math.floor(now / (4 * 3_600_000))).used;
    const searches = ledger.use(loaded, "searches", Math.floor(now / day)).used;
    if (
      loaded.plan.id !== expected.plan ||
      left !== expected.left ||
      loaded.credit !== expected.credit ||
      loaded.held !== expected.reserved ||
      calls !== expected.calls ||
      searches !== expected.searches ||
      left < 0 ||
      left > loaded.plan.tokensPerDay
    ) {
      const found = { left, credit: loaded.credit, reserved: loaded.held, calls, searches, plan: loaded.plan.id };
      throw new Error(`${account.name} has ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
    }
  }

  /** Every account in memory and on disk, and the invariants recomputed from the journal. */
  async compareAll(): Promise<void> {
    for (const account of this.accounts) {
      this.compare(account);
      expect(this.office.keys.account(account.key)).toBe(account.id);
      for (const old of account.oldKeys) expect(this.office.keys.account(old)).toBeNull();
      expect(this.onDisk(account)).toEqual(this.model.onDisk(account.name));
    }
    const { holds, heldTokens, searchesHeld, uncommitted } = this.office.ledger.totals();
    expect(holds).toBe(this.open.filter(({ coder }) => !coder).length);
    if (holds === 0) expect(heldTokens).toBe(0);
    expect(searchesHeld).toBe(this.searches.length);
    expect(uncommitted).toBe(this.model.pending);
  }

  onDisk({ id }: Account) {
    const { database } = this.office;
    const { credit } = database.query("SELECT credit FROM accounts WHERE id = ?").get(id) as { credit: number };
    const sum = (quota: string) =>
      (database.query("SELECT coalesce(sum(used), 0) AS sum FROM quota_use WHERE account_id = ? AND quota = ?").get(id, quota) as { sum: number }) // prettier-ignore
      .sum;
    return { credit, tokens: sum("allowance"), calls: sum("coder_calls"), searches: sum("searches") };
  }

  takeOpen(): Open | null {
    if (this.open.length === 0) return null;
    const [open] = this.open.splice(this.below(this.open.length), 1);
    return open!;
  }

  /** A promise that a lost batch rejects; anything else it rejects with is a failure of the test. */
  watch(promise: Promise<unknown>): void {
    promise.catch((thrown: Error) => {
      if (thrown.name !== "StoreUnavailable") throw thrown;
    });
  }

  /** Lets what awaited a batch go on, without a turn of the event loop, in which the journal would send by itself. */
  async continuations(): Promise<void> {
    for (let i = 0; i < 8; i += 1) await null;
  }
}

/** A simulation from its start to a quiet end, with every comparison on the way. */
async function run(simulation: Simulation, count: number): Promise<void> {
  await simulation.start(40);
  let operation = 0;
  try {
    for (; operation < count; operation += 1) {
      simulation.compare(await simulation.step());
      if (operation % 2_000 === 0) await simulation.compareAll();
    }
    await simulation.drain();
    for (const { hold, account, request } of simulation.open.splice(0)) {
      hold[Symbol.dispose]();
      simulation.model.release(account, request);
    }
    while (simulation.searches.length > 0) simulation.endSearch();
    await simulation.drain();
    await simulation.compareAll();
    expect(await simulation.office.accounts.verify()).toEqual({ accounts: 40, violations: [] });
    expect(simulation.office.ledger.totals()).toMatchObject({
      holds: 0,
      heldTokens: 0,
      searchesHeld: 0,
      uncommitted: 0,
    });
  } catch (thrown) {
    throw new Error(`operation ${operation} of TOLLGATE_SEED=${simulation.seed}`, { cause: thrown });
  }
}

test(
  `${operations} random operations leave every account as the model says (TOLLGATE_SEED=${seed})`,
  async () => {
    const done = new Map<string, number>();
    // A world each, since the days that a world has seen make its crashes dearer.
    for (let world = 0; world * operationsPerWorld < operations; world += 1) {
      const simulation = new Simulation(seed + world);
      await run(simulation, Math.min(operationsPerWorld, operations - world * operationsPerWorld));
      for (const [name, count] of simulation.done) done.set(name, (done.get(name) ?? 0) + count);
    }
    if (process.env["TOLLGATE_LEDGER_OPERATIONS"] !== undefined) console.log(Object.fromEntries(done));
  },
  60_000 + operations,
);

test("the same start makes the same run", async () => {
  const runs = await Promise.all(
    [1, 1].map(async (same) => {
      const simulation = new Simulation(same);
      await simulation.start(3);
      for (let i = 0; i < 500; i += 1) await simulation.step();
      return simulation.accounts.map(({ name }) => simulation.model.expected(name, noon));
    }),
  );
  expect(runs[0]).toEqual(runs[1]!);
});
