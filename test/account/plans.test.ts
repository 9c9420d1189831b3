// What a shop's own plans allow: amounts, requests a minute, models, no balance at all; and what becomes of accounts and
// open requests when the plans are others.
import { describe, expect, test } from "bun:test";
import { LiveCatalog } from "../../src/core/catalog.ts";
import { amountMax } from "../../src/core/limits.ts";
import { planOf, plansById, replacePlans, unconfiguredPlans } from "../../src/core/plans.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import type { Plan } from "../../src/core/types.ts";
import { verify } from "../../src/store/verify/verify.ts";
import { by } from "../fixtures/principals.ts";
import { ask, coderAsk, model, noon, Office, output } from "./office.ts";

const plan = (id: string, more: Partial<Plan> = {}): Plan => ({
  id,
  as: id,
  name: id,
  tokensPerDay: 1_000,
  coderCallsPerWindow: 0,
  searchesPerDay: 0,
  requestsPerMinute: 120,
  models: null,
  unlimited: false,
  ...more,
});
const unlimited = plan("home", {
  tokensPerDay: amountMax,
  coderCallsPerWindow: amountMax,
  searchesPerDay: amountMax,
  requestsPerMinute: amountMax,
  unlimited: true,
});

async function officeOf(...offered: Plan[]) {
  const live = structuredClone(plansById(offered));
  const office = new Office(undefined, undefined, live);
  const made = await office.accounts.create({ email: "a@x", plan: offered[0]!.id });
  return { office, id: made.id, replace: (...next: Plan[]) => replacePlans(live, plansById(next)), live };
}

const refusalOf = (admitted: ReturnType<Office["admit"]>) => (isRefusal(admitted) ? admitted.refusal : null);

describe("an unlimited plan", () => {
  test("refuses nothing, also below zero, and records what is used", async () => {
    const { office, id, replace } = await officeOf(plan("team"), unlimited);
    const first = office.hold(id, ask(1_000));
    await first.settle(output(6_000), false, noon);
    expect(await office.accounts.show("a@x")).toMatchObject({ credit: -5_000, spendable: -5_000 });
    await office.accounts.changePlan("a@x", "home");
    for (let request = 0; request < 500; request += 1) {
      using hold = office.hold(id, ask(65_536), 1_000_000);
      expect(hold.ready).toBeNull();
      await hold.settle(output(10_000), false, noon);
    }
    for (let call = 0; call < 100; call += 1) office.hold(id, coderAsk())[Symbol.dispose]();
    expect(await office.accounts.show("a@x")).toMatchObject({
      credit: -5_000,
      spendable: null,
      allowance: { granted: null, left: null },
      coder_calls: { used: 100, limit: null },
    });
    expect((await office.accounts.usage("a@x", 1))[0]).toMatchObject({ billed_tokens: 10_000 });
    expect((await office.verify()).violations).toEqual([]);
    replace(plan("team"), plan("home", { requestsPerMinute: 10_000 }));
    expect(refusalOf(office.admit(id))).toBe("quota_exceeded");
  });

  test("holds its keys, and their end users, to what each may spend, whatever a node reports", async () => {
    for (const [limits, endUser] of [
      [{ limit_day: 30_000 }, null],
      [{ forwards_users: true, limit_end_user_day: 30_000 }, "ada"],
    ] as const) {
      const { office, id } = await officeOf(unlimited);
      const { id: key } = await office.accountKeys.create(id, { name: "key", ...limits });
      const holds = Array.from({ length: 30 }, (_, at) =>
        office.admission.admit(
          { ...by(id, key), ask: ask(10), inputTokens: 990, requestId: `r${at}`, endUser },
          office.moment,
        ),
      );
      const charged: number[] = [];
      for (const hold of holds) {
        if (isRefusal(hold)) throw new Error(hold.refusal);
        charged.push((await hold.settle({ ...output(10), inputFresh: 20_000 }, false, noon)).inputFresh);
      }
      expect(charged).toEqual([20_000, ...Array<number>(29).fill(990)]);
    }
  });

  test("that gets a balance while a request is open does not leave it with a debt, nor the other way around", async () => {
    const { office, id, replace } = await officeOf(unlimited);
    const began = office.hold(id, ask(4_096));
    replace(plan("home", { tokensPerDay: 100 }));
    await began.settle(output(50_000), false, noon);
    expect(await office.accounts.show("a@x")).toMatchObject({ credit: 0, spendable: 0, reserved: 0 });
    replace(plan("home", { tokensPerDay: 60_000 }));
    const limited = office.hold(id, ask(10_000));
    replace(unlimited);
    await limited.settle(output(90_000), false, noon);
    expect(await office.accounts.show("a@x")).toMatchObject({ credit: 0, spendable: null, reserved: 0 });
    expect(office.ledger.totals()).toMatchObject({ holds: 0, heldTokens: 0, expectedTokens: 0 });
    expect((await verify(office.database, office.ledger, plansById([unlimited]))).violations).toEqual([]);
  });
});

describe("requests a minute", () => {
  test("are the plan's, from the moment in which it changes", async () => {
    const { office, id, replace } = await officeOf(plan("slow", { requestsPerMinute: 3 }));
    const outcomes = (count: number) =>
      Array.from({ length: count }, () => {
        const early = office.admission.refuseFlooded(id, 0);
        if (early !== null) return early.refusal;
        const admitted = office.admit(id, ask(0));
        if (!isRefusal(admitted)) admitted[Symbol.dispose]();
        return refusalOf(admitted);
      });
    expect(outcomes(4)).toEqual([null, null, null, "too_many_requests"]);
    replace(plan("slow", { requestsPerMinute: 7 }));
    expect(outcomes(3)).toContain(null);
    replace(plan("slow", { requestsPerMinute: 2 }));
    expect(outcomes(2)).toEqual(["too_many_requests", "too_many_requests"]);
  });

  test("count for malformed requests of an account that nobody has asked for yet", async () => {
    const { office, live } = await officeOf(plan("slow", { requestsPerMinute: 1 }));
    const { id } = await office.accounts.create({ email: "b@x" });
    const next = new Office(office.database, undefined, live);
    expect(next.admission.countRequest(id, 0)).toBeNull();
    expect(next.admission.countRequest(id, 0)).toMatchObject({ refusal: "too_many_requests" });
  });
});

test("a plan's models are those that it names, by id or by another name", async () => {
  const { office, id } = await officeOf(plan("a", { models: ["house", "gpt-5"] }));
  const own = { ...model("m"), tier: "own" as const };
  expect(refusalOf(office.admit(id, ask(1, { model: { ...own, id: "house" } })))).toBeNull();
  expect(refusalOf(office.admit(id, ask(1, { model: { ...own, aliases: ["gpt-5"] } })))).toBeNull();
  expect(refusalOf(office.admit(id, ask(1, { model: own })))).toBe("model_not_in_plan");
  expect(refusalOf(office.admit(id, coderAsk()))).toBe("model_not_in_plan");
});

describe("a plan that is no longer configured", () => {
  test("works as the first one under its own name, is told of, and comes back with what it has then", async () => {
    const { office, id, replace, live } = await officeOf(plan("gold", { tokensPerDay: 9_000 }), plan("base"));
    const open = office.hold(id, ask(5_000));
    replace(plan("base", { tokensPerDay: 50 }), plan("dear"));
    await open.settle(output(40), false, noon);
    expect(await office.accounts.show("a@x")).toMatchObject({ plan: "gold", allowance: { granted: 50, left: 10 } });
    const onlyBase = ask(1, { model: { ...model("m"), plans: ["base"] } });
    const onlyGold = ask(1, { model: { ...model("m"), plans: ["gold"] } });
    expect([office.admit(id, onlyBase), office.admit(id, onlyGold)].map(refusalOf)).toEqual([
      null,
      "model_not_in_plan",
    ]);
    expect(unconfiguredPlans(live, await office.accounts.byPlan())).toEqual([
      expect.stringContaining('1 account is on the plan "gold", which is not configured: what "base" has holds'),
    ]);
    await expect(office.accounts.create({ email: "b@x", plan: "gold" })).rejects.toThrow(
      "no plan is called gold; the plans are base, dear",
    );
    expect((await office.accounts.create({ email: "b@x" })).plan).toBe("base");
    replace(plan("base"), plan("gold", { tokensPerDay: 700 }));
    expect(await office.accounts.show("a@x")).toMatchObject({ plan: "gold", allowance: { granted: 700 } });
    expect(unconfiguredPlans(live, await office.accounts.byPlan())).toEqual([]);
  });

  test("does so too where the account is loaded later, by whatever name, and where it was created under it", async () => {
    const { office } = await officeOf(plan("constructor"));
    const live = structuredClone(plansById([plan("base", { tokensPerDay: 70 })]));
    const next = new Office(office.database, undefined, live);
    expect(await next.accounts.show("a@x")).toMatchObject({ plan: "constructor", allowance: { granted: 70 } });
    replacePlans(live, plansById([plan("base", { tokensPerDay: 80 })]));
    expect(await next.accounts.show("a@x")).toMatchObject({ allowance: { granted: 80 } });
  });

  test("has no limit anymore that its plan no longer names, nor one of the plan that stands in", () => {
    const limits = { parallel: 1, tokensPerMinute: 9, weight: 3, priority: "bulk", priorityMax: "bulk" } as const;
    const live = structuredClone(plansById([plan("a", limits), plan("b", limits)]));
    const [a, b] = [planOf(live, "a"), planOf(live, "b")];
    replacePlans(live, plansById([plan("a")]));
    expect([a, b]).toEqual([plan("a"), { ...plan("a"), id: "b", name: "b" }]);
  });

  test("is the same object for ever, as accounts hold it", () => {
    const live = new LiveCatalog({
      models: new Map(),
      plans: plansById([plan("a"), plan("b")]),
      creditPacksTokens: [],
    });
    const [a, b] = [planOf(live.plans, "a"), planOf(live.plans, "b")];
    const offer = (...plans: Plan[]) =>
      live.replace({ models: new Map(), plans: plansById(plans), creditPacksTokens: [] });
    offer(plan("b", { tokensPerDay: 5 }));
    expect([planOf(live.plans, "a"), a.tokensPerDay, a.as, b.as]).toEqual([a, 5, "b", "b"]);
    offer(plan("c"), plan("a", { tokensPerDay: 6 }));
    expect([planOf(live.plans, "a"), a.tokensPerDay, a.as, b.as, Object.keys(live.plans)]).toEqual([
      a,
      6,
      "a",
      "c",
      ["c", "a"],
    ]);
  });
});
