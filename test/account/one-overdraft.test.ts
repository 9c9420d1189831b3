// Nodes that report anything, up to all that is believed, for requests of which nearly nothing was expected: whatever comes in
// which order, neither the balance nor a limit of a key or of its end users is exceeded by more than one request's charge, and
// what is charged is what the client is told. TOLLGATE_LINE_EVENTS sets how many events, TOLLGATE_SEED repeats a run.
import { describe, expect, test } from "bun:test";
import type { RecordedHold } from "../../src/account/money/admission.ts";
import { billedTokens, ratesOf, usageWithin } from "../../src/account/money/price.ts";
import { assert } from "../../src/core/assert.ts";
import { dayMs } from "../../src/core/units.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import type { Model, Price, Usage } from "../../src/core/types.ts";
import { by } from "../fixtures/principals.ts";
import { randomOf, seedOfRun } from "../fixtures/random.ts";
import { ask, model, Office, output } from "./office.ts";

const contextTokens = 196_608;
const split: Price = { kind: "split", inputCents: 195, cachedInputCents: 20, outputCents: 390 };
const models: readonly Model[] = [
  model("core-1.6-lite"),
  model("open-01-3BIT-REAP", split),
  { ...model("core-3", { kind: "flat", cents: 335 }), budgetLimitsAnswer: false },
  { ...model("own-1", split), tier: "own" },
];
const users = ["ada", "bob"] as const;
/** A day's limits of two keys, and of each end user of the second. */
const limits = [
  { perDay: 3_000, perUser: null },
  { perDay: 12_000, perUser: 3_000 },
] as const;

describe("a usage beyond what was expected", () => {
  const read = (inputFresh: number): Usage => ({ ...output(0), inputFresh });

  async function open(count: number, expects: number) {
    const office = new Office();
    const { id } = await office.accounts.create({ email: "a@x" });
    const holds = Array.from({ length: count }, () => office.hold(id, ask(10), expects));
    return { office, id, holds, balance: () => office.ledger.balance(office.ledger.account(id), office.now) };
  }

  test("is believed of one request, and of others as far as it was expected", async () => {
    const { office, holds, balance } = await open(30, 990);
    const charged: Usage[] = [];
    for (const hold of holds) charged.push(await hold.settle(read(20_000), false, office.now));
    expect(charged[0]).toEqual(read(20_000));
    expect(charged.slice(1)).toEqual(Array(29).fill(read(1_000)));
    expect(balance()).toBe(30_000 - 20_000 - 29 * 1_000);
  });

  test("is believed of all where the account has it", async () => {
    const { office, holds, balance } = await open(10, 100);
    for (const hold of holds) expect(await hold.settle(read(2_500), false, office.now)).toEqual(read(2_500));
    expect(balance()).toBe(5_000);
  });

  test("is written down as an estimate where it is cut", async () => {
    const { office, holds } = await open(30, 990);
    for (const hold of holds) await hold.settle(read(20_000), false, office.now);
    const rows = await office.accounts.usage("a@x", 30);
    expect(rows.map(({ input, estimated }) => [input, estimated])).toEqual([
      ...Array(29).fill([1_000, true]),
      [20_000, false],
    ]);
  });

  test("keeps a further round from what others are expected to cost", async () => {
    const { office, id, holds } = await open(30, 990);
    const [one, two] = holds as [(typeof holds)[0], (typeof holds)[0]];
    expect(one.expect!(read(990), 150_000, office.now)).toBe(true); // the one that may go beyond
    expect(two.expect!(read(990), 150_000, office.now)).toBe(false);
    expect(office.ledger.account(id).expected).toBe(30 * 1_000 + 150_000);
    expect(await two.settle(read(9_000), false, office.now)).toEqual(read(1_000));
    expect(await one.settle(read(190_000), false, office.now)).toEqual(read(190_000));
  });

  test.each([
    [{ ...output(50), inputFresh: 900, inputCached: 50 }, 1_000, { inputFresh: 900, inputCached: 50, output: 50 }],
    [{ ...output(50), inputFresh: 901, inputCached: 50 }, 1_000, { inputFresh: 900, inputCached: 50, output: 50 }],
    [{ ...output(50), inputFresh: 900, inputCached: 90 }, 60, { inputFresh: 0, inputCached: 10, output: 50 }],
    [{ ...output(50), inputFresh: 900, reasoning: 40 }, 30, { inputFresh: 0, output: 30, reasoning: 30 }],
    [{ ...output(0), inputFresh: 900, cacheWritten: 800 }, 300, { inputFresh: 300, cacheWritten: 300 }],
    [{ ...output(5), inputFresh: 900 }, 0, { inputFresh: 0, output: 0 }],
  ] as const)("%j for %d tokens is cut where no client sees it first", (usage, tokens, cut) => {
    expect(usageWithin(ratesOf({ kind: "flat", cents: 500 }), usage, tokens)).toEqual({ ...usage, ...cut });
  });
});

// ---------------------------------------------------------------------------------------------------------------

const events = Number(process.env["TOLLGATE_LINE_EVENTS"] ?? 12_000);
const eventsOfWorld = 600;
const seed = seedOfRun();

type Open = { hold: RecordedHold; key: number; user: string | null; asks: Model; spent: Usage; begun: boolean };

test(`${events} random events: a limit is exceeded by one request's charge at most (TOLLGATE_SEED=${seed})`, async () => {
  const random = randomOf(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)]!;
  const seen = { whole: 0, cut: 0, overdrawn: 0, keyExceeded: 0, userExceeded: 0, rounds: 0, ended: 0, grew: 0 };
  for (let world = 0; world * eventsOfWorld < events; world += 1) {
    try {
      await runWorld();
    } catch (thrown) {
      throw new Error(`world ${world} of TOLLGATE_SEED=${seed}`, { cause: thrown });
    }
  }
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(0);

  async function runWorld(): Promise<void> {
    const office = new Office();
    const { id } = await office.accounts.create({ email: "a@x" });
    const account = office.ledger.account(id);
    const keys: number[] = [];
    for (const [place, { perDay, perUser }] of limits.entries()) {
      const ofUsers = perUser === null ? {} : { forwards_users: true, limit_end_user_day: perUser };
      keys.push((await office.accountKeys.create(id, { name: `${place}`, limit_day: perDay, ...ofUsers })).id);
    }
    /** The most that one request was charged, in all, by key and by end user. */
    const costliest = new Map<string, number>();
    const used = new Map<string, number>();
    let open: Open[] = [];
    let request = 0;

    for (let at = 0; at < eventsOfWorld; at += 1) {
      const roll = random();
      if (roll < 0.5) arrive();
      else if (roll < 0.85) await settle();
      else if (roll < 0.89) goOn();
      else if (roll < 0.92) grow();
      else if (roll < 0.97) leave();
      else if (roll < 0.98) await office.accounts.addCredit("a@x", 1 + below(40_000));
      else {
        office.now += pick([1_000, 61_000, dayMs]);
        office.admission.line.look(office.moment);
      }
      await hear();
      check();
    }
    for (const { hold } of open) hold[Symbol.dispose]();
    expect(office.ledger.totals()).toMatchObject({ holds: 0, heldTokens: 0, expectedTokens: 0, waiting: 0 });
    expect(await office.verify()).toEqual({ accounts: 1, violations: [] });

    function arrive(): void {
      const key = random() < 0.3 ? 1 : pick(keys);
      const user = key === keys[1] ? pick(users) : null;
      const asks = pick(models);
      const budget = pick([1, 10, 10, 100, 4_096]);
      const isOpen = asks.tier === "own";
      const asked = ask(isOpen ? 65_536 : budget, { model: asks, ...(isOpen ? { openBudget: true } : {}) });
      const reads = pick([1, 50, 50, 200, 5_000]);
      const number = `r${(request += 1)}`;
      const hold = office.admission.admit(
        { ...by(id, key), ask: asked, inputTokens: reads, requestId: number, endUser: user },
        office.moment,
      );
      if (isRefusal(hold)) return;
      open.push({ hold, key, user, asks, spent: output(0), begun: hold.state === "begun" });
    }

    function take(): Open | null {
      const begun = open.filter((each) => each.begun);
      if (begun.length === 0) return null;
      const taken = pick(begun);
      open = open.filter((each) => each !== taken);
      return taken;
    }

    /** As much as is believed, or a little more than expected, or less. */
    function reported({ hold, spent }: Open): Usage {
      const most = pick([100, 600, 600, 5_000, contextTokens - 70_000]);
      const { ask: asked } = hold.record;
      const budget = hold.outputHeld?.held ?? asked.outputTokensMax;
      const written = asked.model.budgetLimitsAnswer ? Math.max(0, budget - spent.output) : 65_536;
      const [inputFresh, inputCached] = [below(most + 1), pick([0, 0, below(most + 1)])];
      return {
        inputFresh: spent.inputFresh + inputFresh,
        inputCached: spent.inputCached + inputCached,
        output: spent.output + below(Math.min(written, pick([10, written])) + 1),
        reasoning: 0,
      };
    }

    async function settle(): Promise<void> {
      const one = take();
      if (one === null) return;
      const { hold, key, user, asks } = one;
      const usage = reported(one);
      const before = office.ledger.balance(account, office.now);
      const charged = await hold.settle(usage, false, office.now);
      const cost = billedTokens(ratesOf(asks.price), charged);
      expect(before - office.ledger.balance(account, office.now)).toBe(cost);
      const isWhole = Bun.deepEquals(charged, usage);
      seen[isWhole ? "whole" : "cut"] += 1;
      // What a client has seen is cut only where nothing said how long an answer may become.
      if (asks.budgetLimitsAnswer && charged.output < usage.output)
        throw new Error("what was delivered is not charged");
      for (const name of ["", `key ${key}`, `user ${user}`]) {
        costliest.set(name, Math.max(costliest.get(name) ?? 0, cost));
        const today = `${name} ${Math.floor(office.now / dayMs)}`;
        used.set(today, (used.get(today) ?? 0) + cost);
      }
    }

    function goOn(): void {
      const one = open.find((each) => each.begun);
      if (one === undefined) return;
      one.spent = reported(one);
      const goes = one.hold.expect!(one.spent, below(50_000), office.now);
      seen[goes ? "rounds" : "ended"] += 1;
    }

    function grow(): void {
      const one = open.find(({ hold, begun }) => begun && hold.outputHeld != null);
      if (one === undefined) return;
      const { held } = one.hold.outputHeld!;
      if (one.hold.grow!(held, office.now) > held) seen.grew += 1;
    }

    function leave(): void {
      if (open.length === 0) return;
      const one = pick(open);
      open = open.filter((each) => each !== one);
      one.hold[Symbol.dispose]();
    }

    async function hear(): Promise<void> {
      await null;
      await null;
      for (const each of open) each.begun = each.hold.state === "begun";
      open = open.filter(({ hold: { state } }) => state === "begun" || state === "waiting");
    }

    function check(): void {
      within("", -office.ledger.balance(account, office.now), "overdrawn");
      const today = Math.floor(office.now / dayMs);
      for (const [place, { perDay, perUser }] of limits.entries()) {
        const key = `key ${keys[place]}`;
        within(key, (used.get(`${key} ${today}`) ?? 0) - perDay, "keyExceeded");
        if (perUser === null) continue;
        for (const user of users) {
          within(`user ${user}`, (used.get(`user ${user} ${today}`) ?? 0) - perUser, "userExceeded");
        }
      }
    }

    function within(name: string, exceeded: number, what: "overdrawn" | "keyExceeded" | "userExceeded"): void {
      if (exceeded > 0) seen[what] += 1;
      const most = costliest.get(name) ?? 0;
      assert(exceeded <= most, `${name} is exceeded by ${exceeded}, one request's charge is ${most}`);
    }
  }
}, 120_000);
