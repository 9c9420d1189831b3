// The accounting against its model: random requests, purchases, clock steps, crashes and disk faults, compared after
// every operation. TOLLGATE_LEDGER_OPERATIONS sets how many (15,000 by default, 30,000 in the longer form), TOLLGATE_SEED
// repeats a run.
import { by } from "../fixtures/principals.ts";
import { expect, test } from "bun:test";
import type { SearchHold } from "../../src/account/money/searches.ts";
import { centsPerMillionBalanceTokens } from "../../src/core/limits.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import type { Hold, Price, Refusal } from "../../src/core/types.ts";
import type { Endpoint } from "../fixtures/endpoints.ts";
import { ask, coderAsk, model, noon } from "../account/office.ts";
import { longForm } from "../fixtures/optional.ts";
import { seedOfRun } from "../fixtures/random.ts";
import { shortOf } from "./ledger-model.ts";
import { LedgerWorld, runWorlds, type SimulatedAccount, simulatedModels, userNames } from "./ledger-world.ts";

const operations = Number(process.env["TOLLGATE_LEDGER_OPERATIONS"] ?? (longForm ? 30_000 : 15_000));
const operationsPerWorld = 10_000;
const seed = seedOfRun();

const endpoints: readonly Endpoint[] = ["/v1/chat/completions", "/v1/messages", "/v1/responses"];
const prices: readonly (readonly [Price, readonly number[]])[] = [
  [{ kind: "flat", cents: 335 }, [335, 335, 335]],
  [{ kind: "flat", cents: 780 }, [780, 780, 780]],
  [{ kind: "split", inputCents: 195, cachedInputCents: 20, outputCents: 390 }, [195, 20, 390]],
  [{ kind: "split", inputCents: 383, cachedInputCents: 39, outputCents: 1912 }, [383, 39, 1912]],
  [{ kind: "split", inputCents: 0, cachedInputCents: 0, outputCents: 0 }, [0, 0, 0]],
  [
    {
      kind: "split",
      inputCents: 0,
      cachedInputCents: 0,
      outputCents: 12,
      parts: { input: 5_000, cachedInput: 1, output: 3_457 },
    },
    [0.5, 0.0001, 12.3457],
  ],
];

type Open = {
  account: string;
  request: string;
  hold: Hold;
  rates: readonly number[];
  coder: boolean;
  /** What came of its wait. */
  answer: Refusal | null | "waits";
};

class Simulation extends LedgerWorld {
  open: Open[] = [];
  searches: { account: string; takenAt: number; hold: SearchHold }[] = [];
  requests = 0;
  references = 0;

  expectedHolds() {
    return { holds: this.open.length, searches: this.searches.length };
  }

  /** One random operation; returns the account it was about. */
  async step(): Promise<SimulatedAccount> {
    const account = this.pickAccount();
    const roll = this.random();
    const table: readonly [number, string, () => void | Promise<void>][] = [
      [0.28, "request", () => this.request(account)],
      [0.08, "growth", () => this.grow()],
      [0.16, "settle", () => this.settle()],
      [0.05, "release", () => this.release()],
      [0.05, "coder call", () => this.coderCall(account)],
      [0.04, "search", () => this.search(account)],
      [0.03, "end of a search", () => this.endSearch()],
      [0.03, "purchase", () => this.buy(account)],
      [0.01, "plan", () => this.changePlan(account)],
      [0.01, "reload of plans", () => this.reloadPlans()],
      [0.01, "rotation", () => this.rotate(account)],
      [0.03, "key", () => this.changeKeys(account)],
      [0.05, "time", () => this.time()],
      [0.16, "commit", () => this.commit()],
      [0.01, "fault", () => this.fault()],
    ];
    let below = 0;
    for (const [share, name, run] of table) {
      below += share;
      if (roll >= below) continue;
      this.count(name);
      await run();
      break;
    }
    return account;
  }

  request(account: SimulatedAccount): void {
    const { now } = this.office;
    const modelId = this.random() < 0.4 ? "own-1" : this.pick(simulatedModels);
    // As if the configuration were read again between two requests: what runs keeps the price that it found.
    const [price, rates] = this.pick(prices);
    const budget = this.pick([0, 1, 100, 100, 500, 4_096, 65_536, this.below(65_536)]);
    const request = `r${(this.requests += 1)}`;
    const own = modelId === "own-1" && price.kind === "split";
    const asks = own ? { ...model(modelId, price), tier: "own" as const } : model(modelId, price);
    const isOpen = own && budget > 0 && this.random() < 0.6;
    const opened = isOpen ? { openBudget: true as const } : {};
    const asked = ask(budget, { endpoint: this.pick(endpoints), model: asks, ...opened });
    const reads = this.pick([0, 100, this.below(20_000), 60_000, 196_608, 196_608]);
    const simulated = this.random() < 0.4 ? null : (account.keys[this.below(account.keys.length)] ?? null);
    const key = simulated?.id ?? 1;
    const named = this.random() < 0.7 ? this.pick(userNames) : null;
    const asker = by(account.id, key);
    const admitted = this.office.admission.admit(
      { ...asker, ask: asked, inputTokens: reads, requestId: request, endUser: named },
      this.office.moment,
    );
    /** Only keys that may name somebody are believed. */
    const user = key > 1 && this.model.namesUsers(account.name, key) ? named : null;
    if (user !== null) this.count("request for an end user");
    if (key > 1) this.count("request by a named key");
    const forbidden = this.model.forbids(account.name, key, modelId, now);
    if (forbidden !== null) {
      this.count(`refused: ${forbidden}`);
      return expect(admitted).toMatchObject({ refusal: forbidden });
    }
    const seconds = this.model.count(account.name, now);
    if (seconds > 0) return expect(admitted).toEqual({ refusal: "too_many_requests", detail: { seconds } });
    const wanted = { budget: own ? null : budget, reads, writes: budget, rates, isOpen };
    const expected = this.model.reserve(account.name, request, wanted, now, key, user);
    if (expected !== "begins" && expected !== "waits") {
      this.count(`refused: ${expected}`);
      return expect(isRefusal(admitted) && shortOf(admitted.refusal)).toBe(expected);
    }
    if (isRefusal(admitted)) throw new Error(`${request} of ${budget} was refused: ${admitted.refusal}`);
    this.count(expected);
    expect([request, admitted.ready === null]).toEqual([request, expected === "begins"]);
    const open: Open = { account: account.name, request, hold: admitted, rates, coder: false, answer: "waits" };
    if (admitted.ready === null) open.answer = null;
    else void admitted.ready.then((answer) => (open.answer = answer));
    this.open.push(open);
  }

  /** Those who waited have heard what the model says. */
  async hear(): Promise<void> {
    this.look();
    await this.continuations();
    for (const open of [...this.open]) {
      if (open.coder) continue;
      const refused = this.model.refused.get(open.request);
      const heard = open.answer === null ? "begins" : open.answer === "waits" ? "waits" : shortOf(open.answer.refusal);
      const expected = refused ?? (this.model.waits(open.account, open.request) ? "waits" : "begins");
      if (heard !== expected) throw new Error(`${open.request} heard ${heard}, expected ${expected}`);
      if (refused === undefined) {
        const { held, most } = open.hold.outputHeld ?? {};
        const output = heard === "begins" ? this.model.outputOf(open.account, open.request) : null;
        if (held !== output?.held || most !== output?.most) {
          throw new Error(`${open.request} holds ${held} of ${most}, expected ${output?.held} of ${output?.most}`);
        }
        continue;
      }
      this.count(`waited: ${refused}`);
      this.open.splice(this.open.indexOf(open), 1);
    }
  }

  coderCall(account: SimulatedAccount): void {
    const request = `r${(this.requests += 1)}`;
    const admitted = this.office.admission.admit(
      { ...by(account.id), ask: coderAsk(), inputTokens: 0, requestId: request },
      this.office.moment,
    );
    const forbidden = this.model.forbids(account.name, 1, "core-coder-1", this.office.now);
    if (forbidden !== null) return expect(admitted).toMatchObject({ refusal: forbidden });
    if (!this.model.takeCall(account.name, this.office.now)) {
      expect(admitted).toMatchObject({ refusal: "coder_quota_reached" });
      return;
    }
    if (isRefusal(admitted)) throw new Error(`${request} was refused: ${admitted.refusal}`);
    this.watch(admitted.ready!);
    this.open.push({ account: account.name, request, hold: admitted, rates: [0, 0, 0], coder: true, answer: null });
  }

  /** An answer without a named budget came so far: more is held, of what nobody else has. */
  grow(): void {
    const growing = this.open.filter(({ hold, answer }) => answer === null && hold.outputHeld != null);
    if (growing.length === 0) return;
    const { hold, account, request, rates } = this.pick(growing);
    const before = hold.outputHeld!.held;
    const written = this.pick([before, before, this.below(before + 1), this.below(2 * before)]);
    const { reserved } = this.model.expected(account, this.office.now);
    const held = hold.grow!(written, this.office.now) as number;
    expect([request, held]).toEqual([request, this.model.grow(account, request, written, this.office.now)]);
    this.count(held > before ? "grew" : "found no more");
    if (held === before) return;
    const after = this.model.expected(account, this.office.now);
    // A few tokens may cost less than a balance token.
    const least = Math.floor(((held - before) * rates[2]!) / centsPerMillionBalanceTokens);
    this.check(after.reserved >= reserved + least, `${request} holds more, and its account does not`);
    this.check(after.reserved <= after.left + after.credit, `${request} holds what is not there`);
  }

  check(is: boolean, otherwise: string): void {
    if (!is) throw new Error(otherwise);
  }

  /** Lower than, equal to or above the reservation. */
  settle(): void {
    const open = this.takeOpen(({ answer }) => answer === null);
    if (open === null) return;
    const written = open.hold.outputHeld?.held ?? this.pick([10, 4_000, 100_000]);
    const tokens = [this.below(3_000), this.below(2_000), this.below(this.random() < 0.9 ? written + 1 : 100_000)];
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
    this.model.release(open.account, open.request, this.office.now);
  }

  search(account: SimulatedAccount): void {
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

  buy(account: SimulatedAccount): void {
    const isRepeat = this.random() < 0.3 && this.references > 0;
    const reference = isRepeat ? `${1 + this.below(this.references)}` : `${(this.references += 1)}`;
    const tokens = 1_000 + this.below(200_000);
    const bought = this.office.units.change(async ({ accounts }) => {
      const { credited } = await accounts.addCredit(account.id, tokens, reference);
      expect(credited).toBe(this.model.buy(account.name, tokens, reference));
    });
    this.watch(bought);
  }

  busy(): void {
    const account = this.pick(this.accounts);
    this.office.storage.writable = false;
    const refused = this.office.admission.admit(
      { ...by(account.id), ask: coderAsk(), inputTokens: 0, requestId: "never" },
      this.office.moment,
    );
    const forbidden = this.model.forbids(account.name, 1, "core-coder-1", this.office.now);
    expect(refused).toMatchObject({ refusal: forbidden ?? "quota_unverified" });
    this.office.storage.writable = true;
  }

  forgetOpen(): void {
    this.open = [];
    this.searches = [];
  }

  takeOpen(mayBe: (open: Open) => boolean = () => true): Open | null {
    const open = this.open.filter(mayBe);
    if (open.length === 0) return null;
    const taken = this.pick(open);
    this.open.splice(this.open.indexOf(taken), 1);
    return taken;
  }

  /** A promise that a lost batch rejects; anything else it rejects with is a failure of the test. */
  watch(promise: Promise<unknown>): void {
    promise.catch((thrown: Error) => {
      if (thrown.name !== "StoreUnavailable") throw thrown;
    });
  }
}

/** A simulation from its start to a quiet end, with every comparison on the way. */
async function run(simulation: Simulation, count: number): Promise<void> {
  await simulation.start(16);
  let operation = 0;
  try {
    for (; operation < count; operation += 1) {
      const account = await simulation.step();
      await simulation.hear();
      for (const each of simulation.hasLost ? simulation.accounts : [account]) simulation.compare(each);
      simulation.hasLost = false;
      if (operation % 2_000 === 0) await simulation.compareAll();
    }
    await simulation.drain();
    for (const { hold, account, request } of simulation.open.splice(0)) {
      hold[Symbol.dispose]();
      simulation.model.release(account, request, simulation.office.now);
    }
    while (simulation.searches.length > 0) simulation.endSearch();
    await simulation.expectQuiet();
  } catch (thrown) {
    throw new Error(`operation ${operation} of TOLLGATE_SEED=${simulation.seed}`, { cause: thrown });
  }
}

test(
  `${operations} random operations leave every account as the model says (TOLLGATE_SEED=${seed})`,
  async () => {
    const done = await runWorlds({ operations, operationsPerWorld, seed }, (each) => new Simulation(each), run);
    if (process.env["TOLLGATE_LEDGER_OPERATIONS"] !== undefined) console.log(done);
  },
  120_000 + 4 * operations, // a busy machine takes twenty times as long as an idle one
);

test("the same start makes the same run", async () => {
  const runs = await Promise.all(
    [1, 1].map(async (same) => {
      const simulation = new Simulation(same);
      await simulation.start(3);
      for (let i = 0; i < 500; i += 1) {
        await simulation.step();
        await simulation.hear();
      }
      return simulation.accounts.map(({ name }) => simulation.model.expected(name, noon));
    }),
  );
  expect(runs[0]).toEqual(runs[1]!);
});
