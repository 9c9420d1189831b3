// Who of an account's requests begins and who waits for its others: each rule of the line, and random traffic of one
// account, whose overdraft must never be more than one request's charge. TOLLGATE_LINE_EVENTS sets how many events (20,000
// by default), TOLLGATE_SEED repeats a run.
import { describe, expect, test } from "bun:test";
import { queueMaxWaitMs } from "../../../src/core/limits.ts";
import { dayMs } from "../../../src/core/units.ts";
import { floodWindowMs } from "../../../src/account/money/flood.ts";
import { balanceWaitingAccountMax } from "../../../src/account/money/balance-line.ts";
import { isRefusal } from "../../../src/core/refusals.ts";
import { defaultKey, type Hold, type Model, noKey, type Refusal, type Usage } from "../../../src/core/types.ts";
import { randomOf, seedOfRun } from "../../fixtures/random.ts";
import { ask, coderAsk, model, Office, output } from "../office.ts";

type Heard = Refusal | null | "waits" | "unavailable";

/** An account of the free plan: 30,000 tokens of the day, and a model whose tokens cost one of balance each. */
class Line {
  readonly office = new Office();
  id = 0;

  static async open(credit = 0): Promise<Line> {
    const line = new Line();
    line.id = (await line.office.accounts.create({ email: "a@x", credit })).id;
    return line;
  }

  hold(budget: number, inputTokens: number, by: Model = model("core-3")): Hold & { heard: () => Promise<Heard> } {
    const hold = this.office.hold(this.id, ask(budget, { model: by }), inputTokens);
    let heard: Heard = hold.ready === null ? null : "waits";
    void hold.ready?.then((answer) => (heard = answer));
    return Object.assign(hold, {
      heard: async () => {
        await null;
        await null;
        return heard;
      },
    });
  }

  async settle(hold: Hold, inputFresh: number): Promise<void> {
    await hold.settle({ ...output(0), inputFresh }, false, this.office.now);
  }

  look(): boolean {
    return this.office.admission.line.look(this.office.moment);
  }

  get account() {
    return this.office.ledger.account(this.id);
  }
}

const quotaExceeded = {
  refusal: "quota_exceeded",
  detail: {
    site_url: "http://site",
    spendable: expect.any(Number),
    requested: expect.any(Number),
    resets_at: Date.parse("2026-03-29T00:00:00Z") / 1_000,
  },
} as const;

describe("a request", () => {
  test("alone begins whatever it reads, if its budget fits", async () => {
    const line = await Line.open();
    expect(line.hold(30_000, 196_608).ready).toBeNull();
    expect(line.office.admit(line.id, ask(1), 0)).toEqual(quotaExceeded);
  });

  test("whose input does not fit beside the others waits, and reserves its budget at once", async () => {
    const line = await Line.open();
    const first = line.hold(1_000, 20_000);
    const second = line.hold(1_000, 8_001);
    expect([await first.heard(), await second.heard()]).toEqual([null, "waits"]);
    expect(await line.office.accounts.show("a@x")).toMatchObject({ reserved: 2_000, spendable: 28_000 });
    expect(line.office.admit(line.id, ask(28_001), 0)).toEqual(quotaExceeded);
    await line.settle(first, 20_000);
    expect(await second.heard()).toBeNull();
    await line.settle(second, 8_001);
    expect(line.office.ledger.totals()).toMatchObject({ holds: 0, heldTokens: 0, expectedTokens: 0, waiting: 0 });
  });

  test("that fits exactly does not wait", async () => {
    const line = await Line.open();
    line.hold(1_000, 20_000);
    expect(line.hold(1_000, 8_000).ready).toBeNull();
  });

  test("is refused after its wait when the others used the balance up, and holds nothing any more", async () => {
    const line = await Line.open();
    const first = line.hold(1, 190_000);
    const others = Array.from({ length: 99 }, () => line.hold(1, 190_000));
    expect(await Promise.all(others.map((each) => each.heard()))).toEqual(Array(99).fill("waits"));
    await line.settle(first, 190_000);
    expect(await Promise.all(others.map((each) => each.heard()))).toEqual(Array(99).fill(quotaExceeded));
    const { credit, reserved } = await line.office.accounts.show("a@x");
    expect([credit, reserved]).toEqual([-160_000, 0]);
    for (const each of others) each[Symbol.dispose]();
    expect(await line.office.verify()).toEqual({ accounts: 1, violations: [] });
  });

  test("hears of what became of it before it asked", async () => {
    const line = await Line.open();
    const first = line.hold(1, 190_000);
    const [refused, begun] = [line.office.hold(line.id, ask(1), 20_000), line.office.hold(line.id, ask(1), 20_000)];
    refused[Symbol.dispose]();
    first[Symbol.dispose]();
    expect([await refused.ready, await begun.ready]).toMatchObject([{ refusal: "busy" }, null]);
    const late = line.office.hold(line.id, ask(1), 20_000);
    await line.settle(begun, 190_000);
    expect(await late.ready).toEqual(quotaExceeded);
  });

  test("that costs nothing never waits, and nobody waits for it", async () => {
    const line = await Line.open();
    const free = model("own", { kind: "flat", cents: 0 });
    expect(line.hold(1, 190_000, free).ready).toBeNull();
    expect(line.hold(1, 190_000).ready).toBeNull();
    expect(line.hold(1, 190_000, free).ready).toBeNull();
    expect(line.office.admit(line.id, coderAsk())).toMatchObject({ ready: expect.any(Promise) });
  });

  test("is expected at its model's prices", async () => {
    const line = await Line.open();
    const dear = model("dear", { kind: "split", inputCents: 1_000, cachedInputCents: 100, outputCents: 5_000 });
    line.hold(100, 10_000, dear);
    expect(line.account.expected).toBe(100 * 10 + 10_000 * 2);
  });

  test("of a model whose budget does not limit the answer is expected to write a usual one", async () => {
    const line = await Line.open();
    line.hold(1, 10_000, { ...model("core-3"), budgetLimitsAnswer: false });
    expect(line.account.expected).toBe(14_096);
  });
});

describe("the line", () => {
  async function waiting(count: number, credit = 0) {
    const line = await Line.open(credit);
    const first = line.hold(1, 190_000);
    return { line, first, others: Array.from({ length: count }, () => line.hold(1, 20_000)) };
  }
  const heard = (holds: readonly { heard: () => Promise<Heard> }[]) => Promise.all(holds.map((each) => each.heard()));

  test("is first in, first out, also for those that would fit", async () => {
    const { line, first } = await waiting(0);
    const large = line.hold(1, 29_000);
    const small = line.hold(1, 1);
    first[Symbol.dispose]();
    expect(await heard([large, small])).toEqual([null, null]);
    const later = line.hold(1, 29_000);
    expect(await heard([later, line.hold(1, 1)])).toEqual(["waits", "waits"]);
  });

  test("is left without a trace by a client that goes, and the next one takes the place", async () => {
    const { line, first, others } = await waiting(3);
    others[0]![Symbol.dispose]();
    others[0]![Symbol.dispose]();
    first[Symbol.dispose]();
    expect(await heard(others.slice(1))).toEqual([null, "waits"]);
    others[1]![Symbol.dispose]();
    expect(await heard([others[2]!])).toEqual([null]);
    others[2]![Symbol.dispose]();
    expect(line.office.ledger.totals()).toMatchObject({ holds: 0, heldTokens: 0, expectedTokens: 0, waiting: 0 });
  });

  test("has an end for each account", async () => {
    const { line } = await waiting(balanceWaitingAccountMax - 1);
    line.office.now += floodWindowMs;
    line.hold(1, 20_000);
    const detail = { reason: "too_many_waiting", position: balanceWaitingAccountMax + 1 };
    expect(line.office.admit(line.id, ask(1), 20_000)).toMatchObject({ refusal: "busy", detail });
    expect(await line.office.accounts.show("a@x")).toMatchObject({ reserved: balanceWaitingAccountMax + 1 });
  });

  test("is waited in no longer than in that of the nodes", async () => {
    const { line, others } = await waiting(2);
    line.office.now += queueMaxWaitMs - 1;
    expect(line.look()).toBe(true);
    line.office.now += 1;
    expect(line.look()).toBe(false);
    expect(await heard(others)).toMatchObject([{ refusal: "busy" }, { refusal: "busy" }]);
    line.office.admission.line.maxWaitMs = 5_000;
    const next = line.hold(1, 20_000);
    line.office.now += 5_000;
    line.look();
    const detail = { reason: "waited_too_long", position: 1 };
    expect(await next.heard()).toMatchObject({ refusal: "busy", detail });
  });

  test("moves with a purchase, another plan and midnight", async () => {
    const bought = await waiting(1);
    await bought.line.office.accounts.addCredit("a@x", 1_000_000);
    const upgraded = await waiting(1);
    await upgraded.line.office.accounts.changePlan("a@x", "pro");
    const slept = await Line.open();
    slept.office.now += dayMs / 2 - 1;
    await slept.office.spend(slept.id, 20_000);
    slept.hold(1, 9_000);
    const other = slept.hold(1, 9_000);
    for (const [line, hold] of [
      [bought.line, bought.others[0]!],
      [upgraded.line, upgraded.others[0]!],
      [slept, other],
    ] as const) {
      expect(await hold.heard()).toBe("waits");
      if (line === slept) line.office.now += 1;
      line.look();
      expect(await hold.heard()).toBeNull();
    }
  });

  test("starts nothing of an account that was disabled, nor while nothing could be charged", async () => {
    const disabled = await waiting(1);
    await disabled.line.office.accounts.setDisabled(disabled.line.id, true);
    disabled.line.look();
    expect(await heard(disabled.others)).toEqual([{ refusal: "invalid_api_key" }]);
    const { line, first, others } = await waiting(1);
    line.office.storage.writable = false;
    first[Symbol.dispose]();
    expect(await heard(others)).toEqual(["waits"]);
    line.office.storage.writable = true;
    line.look();
    expect(await heard(others)).toEqual([null]);
  });

  test("starts nothing of a key that was revoked, replaced or has expired, and goes on with the others", async () => {
    const { line, first } = await waiting(0);
    const { accounts, accountKeys, now } = line.office;
    const named = await accountKeys.create(line.id, { name: "revoked" });
    const brief = await accountKeys.create(line.id, { name: "brief", expires_at: new Date(now + 2).toISOString() });
    const holdOf = (key: number) => line.office.hold(line.id, ask(1), 20_000, key);
    const voided = [holdOf(named.id), holdOf(defaultKey), holdOf(brief.id)];
    const browser = holdOf(noKey);
    await accountKeys.revoke(line.id, named.id);
    await accounts.rotateKey("a@x");
    line.office.now += 2;
    line.look();
    first[Symbol.dispose]();
    expect(await Promise.all(voided.map(({ ready }) => ready))).toEqual(Array(3).fill({ refusal: "invalid_api_key" }));
    expect(await browser.ready).toBeNull();
    browser[Symbol.dispose]();
    expect(line.office.ledger.totals()).toMatchObject({ holds: 0, heldTokens: 0, expectedTokens: 0, waiting: 0 });
  });

  test("asks to be looked at when somebody waits and nobody did", async () => {
    const line = await Line.open();
    let asked = 0;
    line.office.admission.line.onWaiting = () => void (asked += 1);
    line.hold(1, 190_000);
    expect(asked).toBe(0);
    const holds = [line.hold(1, 20_000), line.hold(1, 20_000)];
    expect(asked).toBe(1);
    for (const hold of holds) hold[Symbol.dispose]();
    line.hold(1, 20_000);
    expect(asked).toBe(2);
  });
});

describe("a further round", () => {
  const spent = (inputFresh: number): Usage => ({ ...output(0), inputFresh });

  test("is not begun when the account's requests came to all that it has", async () => {
    const line = await Line.open();
    const hold = line.hold(1_000, 2_000);
    expect(hold.expect!(spent(2_500), 9_000, line.office.now)).toBe(true);
    expect(line.account.expected).toBe(1_000 + 2_500 + 9_000);
    expect(hold.expect!(spent(11_500), 17_501, line.office.now)).toBe(true); // alone, it may go beyond once
    expect(line.account.expected).toBe(30_001);
    expect(hold.expect!(spent(29_001), 10, line.office.now)).toBe(false);
  });

  test("is counted beside the account's other requests, which wait for it", async () => {
    const line = await Line.open();
    const one = line.hold(1_000, 2_000);
    line.hold(1_000, 2_000);
    void one.expect!(spent(2_000), 20_000, line.office.now);
    const third = line.hold(1_000, 4_000);
    expect(await third.heard()).toBe("waits");
    void one.expect!(spent(3_000), 1_000, line.office.now); // read less than expected
    expect(await third.heard()).toBeNull();
  });
});

// ---------------------------------------------------------------------------------------------------------------

const events = Number(process.env["TOLLGATE_LINE_EVENTS"] ?? 20_000);
const seed = seedOfRun();

type Request = { hold: Hold; heard: Heard; cost: number; input: number; budget: number; number: number };

test(`${events} random events: the overdraft is one request's, nobody is stuck, and the sums are equal (TOLLGATE_SEED=${seed})`, async () => {
  const random = randomOf(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)]!;
  const seen = { waited: 0, refused: 0, begun: 0, deepest: 0 };
  let at = 0;
  try {
    for (let world = 0; at < events; world += 1) await runWorld(Math.min(events, at + 2_000));
  } catch (thrown) {
    throw new Error(`event ${at} of TOLLGATE_SEED=${seed}`, { cause: thrown });
  }
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(0);

  async function runWorld(until: number): Promise<void> {
    const { office, id, account } = await Line.open(below(3) * 40_000);
    let open: Request[] = [];
    let costliest = 0;
    let number = 0;
    for (; at < until; at += 1) {
      const roll = random();
      if (roll < 0.45) arrive();
      else if (roll < 0.65) await settle();
      else if (roll < 0.75) end((each) => each.heard === null);
      else if (roll < 0.82) end((each) => each.heard === "waits");
      else if (roll < 0.86) await office.accounts.addCredit("a@x", 1 + below(60_000));
      else if (roll < 0.9) office.now += pick([1, 1_000, 61_000, 61_000, 300_000]);
      else if (roll < 0.91) office.now += dayMs;
      else if (roll < 0.912) await office.accounts.changePlan("a@x", "plus");
      else office.admission.line.look(office.moment);
      await hear();
      check();
    }
    office.admission.line.look(office.moment);
    while (open.length > 0) {
      await hear();
      if (open.length > 0) end((each) => each.heard === null);
      await hear();
    }
    expect(office.ledger.totals()).toMatchObject({ holds: 0, heldTokens: 0, expectedTokens: 0, waiting: 0 });
    expect([account.begun, account.waitingHeld, office.admission.line.length]).toEqual([0, 0, 0]);
    expect(await office.verify()).toEqual({ accounts: 1, violations: [] });

    function arrive(): void {
      const budget = pick([0, 1, 1, 100, 4_096, below(20_000)]);
      const input = pick([0, 10, 2_000, below(30_000), 190_000]);
      const hold = office.admit(id, ask(budget), input);
      if (isRefusal(hold)) return;
      const cost = Math.max(1, budget + input);
      costliest = Math.max(costliest, cost);
      const request: Request = {
        hold,
        heard: hold.ready === null ? null : "waits",
        cost,
        input,
        budget,
        number: number++,
      };
      if (request.heard === "waits") seen.waited += 1;
      void hold.ready?.then((answer) => (request.heard = answer));
      open.push(request);
    }

    async function settle(): Promise<void> {
      const request = take((each) => each.heard === null);
      if (request === null) return;
      const usage = {
        inputFresh: below(request.input + 1),
        inputCached: 0,
        output: below(request.budget + 1),
        reasoning: 0,
      };
      await request.hold.settle(random() < 0.7 ? { ...usage, inputFresh: request.input } : usage, false, office.now);
    }

    function end(which: (each: Request) => boolean): void {
      take(which)?.hold[Symbol.dispose]();
    }

    function take(which: (each: Request) => boolean): Request | null {
      const those = open.filter(which);
      if (those.length === 0) return null;
      const taken = pick(those);
      open = open.filter((each) => each !== taken);
      return taken;
    }

    async function hear(): Promise<void> {
      const waitedBefore = open.filter(({ heard }) => heard === "waits");
      await null;
      await null;
      // First in, first out: whoever heard something came before whoever still waits.
      const still = waitedBefore.filter(({ heard }) => heard === "waits").map((each) => each.number);
      const told = waitedBefore.filter(({ heard }) => heard !== "waits").map((each) => each.number);
      if (Math.max(-1, ...told) > Math.min(Infinity, ...still)) throw new Error(`${told} were told before ${still}`);
      seen.begun += waitedBefore.filter(({ heard }) => heard === null).length;
      seen.refused += waitedBefore.filter(({ heard }) => heard !== null && heard !== "waits").length;
      open = open.filter(({ heard }) => heard === null || heard === "waits");
    }

    function check(): void {
      const begun = open.filter(({ heard }) => heard === null);
      const waits = open.length - begun.length;
      const sum = (of: readonly Request[], what: "cost" | "budget") =>
        of.reduce((total, each) => total + each[what], 0);
      const found = [account.expected, account.begun, account.waiting?.length ?? 0, account.held, account.holds];
      const expected = [sum(begun, "cost"), begun.length, waits, sum(open, "budget"), open.length];
      if (found.join() !== expected.join()) throw new Error(`${found} is not ${expected}`);
      if (begun.length === 0 && waits > 0) throw new Error(`${waits} wait for nobody`);
      const balance = office.ledger.balance(account, office.now);
      if (-balance > costliest) throw new Error(`the overdraft is ${-balance}, one request's charge ${costliest}`);
      if (balance < 0) seen.deepest = Math.max(seen.deepest, -balance);
    }
  }
}, 120_000);
