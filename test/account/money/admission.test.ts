// Which requests may start, the order of the checks, and what is held and charged.
import { by } from "../../fixtures/principals.ts";
import { describe, expect, test } from "bun:test";
import { isRefusal } from "../../../src/core/refusals.ts";
import type { Hold, Usage } from "../../../src/core/types.ts";
import { StoreUnavailable } from "../../../src/core/types.ts";
import { ask, coderAsk, model, noon, Office, output, plans, type SpecPlan } from "../office.ts";

async function officeWith(plan: SpecPlan = "free", credit = 0) {
  const office = new Office();
  const { id } = await office.accounts.create({ email: "a@x", plan, credit });
  const show = () => office.accounts.show("a@x");
  return { office, id, show };
}

const hour = 3_600_000;

describe("the reservation", () => {
  // allowance 30,000 of the free plan; credit, budget, admitted?
  const rows = [
    [0, 30_000, true],
    [0, 30_001, false],
    [0, 0, true],
    [1, 30_001, true],
    [1_000_000, 1_030_000, true],
    [1_000_000, 1_030_001, false],
  ] as const;
  for (const [credit, budget, fits] of rows) {
    test(`of ${budget} ${fits ? "fits" : "does not fit"} into 30,000 and ${credit} of credit`, async () => {
      const { office, id, show } = await officeWith("free", credit);
      const admitted = office.admit(id, ask(budget));
      expect(isRefusal(admitted)).toBe(!fits);
      expect((await show()).reserved).toBe(fits ? budget : 0);
      const told = {
        spendable: 30_000 + credit,
        requested: budget,
        resets_at: Date.parse("2026-03-29T00:00:00Z") / 1_000,
      };
      if (!fits) expect(admitted).toEqual({ refusal: "quota_exceeded", detail: { site_url: "http://site", ...told } });
    });
  }

  test("20 open default requests hold 81,920, and the next does not fit into 83,000", async () => {
    const { office, id, show } = await officeWith("plus", 3_000);
    const holds = Array.from({ length: 20 }, () => office.hold(id));
    expect((await show()).reserved).toBe(81_920);
    expect(office.admit(id)).toMatchObject({ refusal: "quota_exceeded" });
    for (const hold of holds) hold[Symbol.dispose]();
    expect((await show()).reserved).toBe(0);
  });

  test("a balance for exactly k admits k of 1,000 at once, 200 rounds", async () => {
    for (let round = 0; round < 200; round += 1) {
      const k = (round * 37) % 700;
      const rest = (round * 101) % 4_096;
      const { office, id } = await officeWith("free", 700 * 4_096);
      await office.spend(id, 30_000 + 700 * 4_096 - k * 4_096 - rest);
      let admitted = 0;
      for (let i = 0; i < 1_000; i += 1) {
        // A new minute now and then, so that flood protection does not decide.
        if (i % 120 === 0) office.now += 60_000;
        if (!isRefusal(office.admit(id))) admitted += 1;
      }
      expect(admitted).toBe(k);
    }
  });
});

describe("a hold", () => {
  // reserved, billed, credit before -> allowance left, credit after
  const rows = [
    [4_096, 4_096, 0, 25_904, 0],
    [4_096, 1, 0, 29_999, 0],
    [4_096, 0, 0, 30_000, 0],
    [4_096, 5_000, 0, 25_000, 0],
    [4_096, 30_001, 0, 0, -1],
    [4_096, 30_001, 10, 0, 9],
    [30_000, 130_000, 50_000, 0, -50_000],
  ] as const;
  for (const [reserved, billed, credit, left, creditAfter] of rows) {
    test(`of ${reserved} settled with ${billed} and ${credit} of credit leaves ${left} and ${creditAfter}`, async () => {
      const { office, id, show } = await officeWith("free", credit);
      using hold = office.hold(id, ask(reserved));
      await hold.settle(output(billed), false, office.now);
      const after = await show();
      expect([after.allowance.left, after.credit, after.reserved]).toEqual([left, creditAfter, 0]);
      expect(await office.verify()).toEqual({ accounts: 1, violations: [] });
    });
  }

  test("credit below 0 counts against the next day's allowance until it is paid", async () => {
    const { office, id } = await officeWith();
    await office.spend(id, 40_000);
    office.now += 24 * hour;
    expect(isRefusal(office.admit(id, ask(20_000)))).toBe(false);
    expect(isRefusal(office.admit(id, ask(1)))).toBe(true);
  });

  test("is resolved exactly once: a second settle is a bug, dispose after settle nothing", async () => {
    const { office, id, show } = await officeWith();
    const hold = office.hold(id);
    const other = office.hold(id);
    await hold.settle(output(10), false, office.now);
    expect(() => hold.settle(output(10), false, office.now)).toThrow("exactly once");
    hold[Symbol.dispose]();
    hold[Symbol.dispose]();
    expect((await show()).reserved).toBe(4_096);
    other[Symbol.dispose]();
    expect(() => other.settle(output(10), false, office.now)).toThrow("exactly once");
    expect(await show()).toMatchObject({ reserved: 0, allowance: { left: 29_990 } });
  });

  test("that was given back leaves no line in the journal", async () => {
    const { office, id } = await officeWith();
    office.hold(id)[Symbol.dispose]();
    expect(await office.accounts.usage("a@x", 10)).toEqual([]);
  });

  test("that is open over midnight is paid by the day on which it settles", async () => {
    const { office, id, show } = await officeWith();
    office.now = Date.UTC(2026, 2, 28, 23, 59, 59, 999);
    using hold = office.hold(id);
    await office.spend(id, 29_000 - 4_096);
    office.now += 1;
    expect((await show()).allowance).toEqual({ day: "2026-03-29", granted: 30_000, left: 30_000 });
    await hold.settle(output(3_000), false, office.now);
    expect((await show()).allowance.left).toBe(27_000);
    office.now -= 1;
    expect((await show()).allowance).toEqual({ day: "2026-03-28", granted: 30_000, left: 5_096 });
  });

  test("whose charge the disk does not take in time charges nothing", async () => {
    const { office, id, show } = await officeWith("free", 100);
    office.storage.immediate = false;
    using hold = office.hold(id);
    const settled = hold.settle(output(30_050), false, office.now);
    office.journal.flush();
    expect((await show()).credit).toBe(50);
    office.storage.giveUp();
    await expect(settled).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await show()).toMatchObject({ allowance: { left: 30_000 }, credit: 100, reserved: 0 });
  });

  test("whose day cannot be read charges nothing and goes back", async () => {
    const { office, id } = await officeWith();
    {
      using hold = office.hold(id);
      office.database.run("DROP TABLE quota_use");
      office.now += 24 * hour;
      await expect(hold.settle(output(5), false, office.now)).rejects.toBeInstanceOf(StoreUnavailable);
    }
    expect(office.ledger.totals()).toEqual({
      accounts: 1,
      holds: 0,
      heldTokens: 0,
      expectedTokens: 0,
      waiting: 0,
      searchesHeld: 0,
      uncommitted: 0,
    });
  });

  test("is not acknowledged before its charge is on disk", async () => {
    const { office, id } = await officeWith();
    office.storage.immediate = false;
    using hold = office.hold(id);
    let acknowledged = false;
    const settled = hold.settle(output(5), false, office.now).then(() => (acknowledged = true));
    office.journal.flush();
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
    expect(acknowledged).toBe(false);
    expect(await office.accounts.usage("a@x", 10)).toEqual([]);
    office.storage.succeed();
    await settled;
    expect((await office.accounts.usage("a@x", 10)).length).toBe(1);
  });
});

describe("the order of checks", () => {
  test("flood protection comes before the balance, and its refusals reserve nothing", async () => {
    const { office, id, show } = await officeWith();
    for (let i = 0; i < 120; i += 1) office.admit(id, ask(65_536));
    expect(office.admit(id, ask(65_536))).toEqual({ refusal: "too_many_requests", detail: { seconds: 60 } });
    expect(office.admit(id, ask(1))).toEqual({ refusal: "too_many_requests", detail: { seconds: 60 } });
    expect((await show()).reserved).toBe(0);
  });

  test("a malformed request counts for flood protection", async () => {
    const { office, id } = await officeWith();
    for (let i = 0; i < 120; i += 1) expect(office.admission.countRequest(id, office.monotonic)).toBeNull();
    expect(office.admission.countRequest(id, office.monotonic + 1_000)).toMatchObject({ detail: { seconds: 59 } });
    expect(office.admit(id)).toMatchObject({ refusal: "too_many_requests" });
  });

  test("a full window can be asked about before a request is read, and refuses and counts then only", async () => {
    const { office, id } = await officeWith();
    for (let i = 0; i < 120; i += 1) {
      expect(office.admission.refuseFlooded(id, office.monotonic)).toBeNull();
      expect(office.admission.countRequest(id, office.monotonic)).toBeNull();
    }
    expect(office.admission.refuseFlooded(id, office.monotonic + 1_000)).toMatchObject({ detail: { seconds: 59 } });
    expect(office.admission.refuseFlooded(id, office.monotonic + 60_000)).toBeNull();
  });

  test("a disabled account gets nothing, and nothing of it is counted", async () => {
    const { office, id, show } = await officeWith();
    office.storage.immediate = false;
    const disabled = office.accounts.setDisabled(id, true);
    await office.underWay(); // not on disk yet
    for (let i = 0; i < 120; i += 1) expect(office.admit(id)).toEqual({ refusal: "invalid_api_key" });
    expect(office.admit(id, coderAsk())).toMatchObject({ refusal: "invalid_api_key" });
    office.storage.immediate = true;
    office.storage.succeed();
    await disabled;
    expect(await show()).toMatchObject({ reserved: 0, coder_calls: { used: 0 } });
    await office.accounts.setDisabled(id, false);
    using _hold = office.hold(id);
  });

  test("a new key opens no new window", async () => {
    const { office, id } = await officeWith();
    for (let i = 0; i < 120; i += 1) office.admit(id, ask(0));
    const { api_key } = await office.accounts.rotateKey("a@x");
    expect(office.admit(office.keys.principal(api_key)!.account, ask(0))).toMatchObject({
      refusal: "too_many_requests",
    });
  });

  test("while the disk takes no writes nothing is admitted", async () => {
    const { office, id, show } = await officeWith();
    office.storage.writable = false;
    for (const asked of [ask(), coderAsk(), coderAsk("/v1/responses")]) {
      expect(office.admit(id, asked)).toEqual({ refusal: "quota_unverified" });
    }
    expect(await show()).toMatchObject({ reserved: 0, coder_calls: { used: 0 } });
    office.storage.writable = true;
    expect(isRefusal(office.admit(id))).toBe(false);
  });

  test("a balance that cannot be read is a refusal", async () => {
    const { office, id } = await officeWith();
    const after = office.restart();
    office.database.run("DROP TABLE accounts");
    expect(after.admit(id)).toEqual({ refusal: "quota_unverified" });
    expect(after.admit(id, coderAsk())).toEqual({ refusal: "quota_unverified" });
    expect(() => after.keys.principal(`sk-tg-${"0".repeat(43)}`)).toThrow(StoreUnavailable);
  });
});

describe("core-coder-1", () => {
  for (const [plan, calls] of [
    ["free", 3],
    ["plus", 20],
    ["standard", 40],
    ["pro", 60],
  ] as const) {
    test(`has ${calls} calls a window on ${plan}, not counted by flood protection, without a reservation`, async () => {
      const { office, id, show } = await officeWith(plan);
      for (let i = 0; i < calls; i += 1) office.hold(id, coderAsk(i % 2 === 0 ? "/v1/messages" : undefined));
      expect(office.admit(id, coderAsk())).toEqual({
        refusal: "coder_quota_reached",
        detail: {
          model: "core-coder-1",
          site_url: "http://site",
          used: calls,
          limit: calls,
          resets_at: Date.parse("2026-03-28T16:00:00Z") / 1_000,
        },
      });
      expect(await show()).toMatchObject({
        reserved: 0,
        allowance: { left: plans[plan].tokensPerDay },
        coder_calls: { window: "2026-03-28T12:00:00.000Z", used: calls, limit: calls },
      });
      for (let i = 0; i < 120; i += 1) expect(isRefusal(office.admit(id, ask(0)))).toBe(false);
    });
  }

  for (const opens of [0, 4, 8, 12, 16, 20]) {
    test(`a window opens at ${opens}:00 UTC and unused calls are lost`, async () => {
      const { office, id, show } = await officeWith();
      office.now = Date.UTC(2026, 2, 28) + opens * hour - 1;
      for (let i = 0; i < 3; i += 1) office.hold(id, coderAsk());
      expect(isRefusal(office.admit(id, coderAsk()))).toBe(true);
      office.now += 1;
      expect((await show()).coder_calls).toEqual({ window: new Date(office.now).toISOString(), used: 0, limit: 3 });
      for (let i = 0; i < 3; i += 1) office.hold(id, coderAsk());
      expect(isRefusal(office.admit(id, coderAsk()))).toBe(true);
    });
  }

  test("is open until it is settled or given back: its account cannot be erased before, and nothing leaks", async () => {
    const { office, id } = await officeWith();
    const erase = () => office.accounts.erase("a@x", async () => {});
    const given = office.hold(id, coderAsk());
    const settled = office.hold(id, coderAsk());
    await expect(erase()).rejects.toThrow("a@x is disabled and has 2 open requests; delete it when they ended");
    given[Symbol.dispose]();
    given[Symbol.dispose]();
    await expect(erase()).rejects.toThrow("1 open requests");
    await settled.settle(output(10), false, office.now);
    settled[Symbol.dispose]();
    expect(office.ledger.totals()).toMatchObject({ holds: 0, heldTokens: 0 });
    expect(await erase()).toMatchObject({ id });
  });

  test("a call is counted on disk before it is ready, and stays counted when it fails", async () => {
    const { office, id } = await officeWith();
    office.storage.immediate = false;
    const hold = office.hold(id, coderAsk());
    let ready = false;
    const waited = hold.ready!.then(() => (ready = true));
    office.journal.flush();
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
    expect(ready).toBe(false);
    office.storage.succeed();
    await waited;
    hold[Symbol.dispose]();
    expect((await office.restart().accounts.show("a@x")).coder_calls.used).toBe(1);
  });

  test("a call that the disk does not take is not counted", async () => {
    const { office, id, show } = await officeWith();
    office.storage.immediate = false;
    const hold = office.hold(id, coderAsk());
    office.journal.flush();
    office.storage.giveUp();
    await expect(hold.ready).rejects.toBeInstanceOf(StoreUnavailable);
    expect((await show()).coder_calls.used).toBe(0);
  });

  test("its tokens are listed and not billed", async () => {
    const { office, id } = await officeWith();
    using hold = office.hold(id, coderAsk());
    await hold.ready;
    await hold.settle({ inputFresh: 7, inputCached: 2, output: 11, reasoning: 3 }, true, office.now);
    expect(await office.accounts.usage("a@x", 10)).toMatchObject([
      { model: "core-coder-1", input: 9, cached_input: 2, output: 11, reasoning: 3, billed_tokens: 0, cost_usd: 0 },
    ]);
    expect(await office.verify()).toEqual({ accounts: 1, violations: [] });
  });

  test("on /v1/responses it is reserved, counted by flood protection and billed in tokens", async () => {
    const { office, id, show } = await officeWith("plus");
    using hold = office.hold(id, coderAsk("/v1/responses"));
    expect(await show()).toMatchObject({ reserved: 65_536, coder_calls: { used: 0 } });
    await hold.settle(output(1_000), false, office.now);
    expect((await show()).allowance.left).toBe(80_000 - 1_600);
    for (let i = 0; i < 119; i += 1) office.admit(id, ask(0));
    expect(office.admit(id, coderAsk("/v1/responses"))).toMatchObject({ refusal: "too_many_requests" });
  });
});

describe("searches of the day", () => {
  for (const [plan, searches] of [
    ["free", 3],
    ["plus", 30],
    ["standard", 50],
    ["pro", 60],
  ] as const) {
    test(`are ${searches} on ${plan}`, async () => {
      const { office, id, show } = await officeWith(plan);
      const taken = Array.from({ length: searches + 5 }, () => office.searches.take(id, office.now));
      expect(taken.filter((hold) => hold !== null).length).toBe(searches);
      for (const hold of taken) hold?.keep();
      expect(office.searches.take(id, office.now)).toBeNull();
      expect((await show()).searches).toEqual({ day: "2026-03-28", used: searches, limit: searches });
    });
  }

  test("50 at once with 3 left are 3, and what found nothing goes back", async () => {
    const { office, id, show } = await officeWith();
    const taken = Array.from({ length: 50 }, () => office.searches.take(id, office.now)).filter(
      (hold) => hold !== null,
    );
    expect(taken.length).toBe(3);
    taken[0]?.keep();
    for (const hold of taken) hold[Symbol.dispose]();
    expect((await show()).searches.used).toBe(1);
    expect(Array.from({ length: 50 }, () => office.searches.take(id, office.now)).filter(Boolean).length).toBe(2);
  });

  test("one kept after midnight counts for the day it was taken on", async () => {
    const { office, id, show } = await officeWith();
    const takenAt = office.now;
    const hold = office.searches.take(id, takenAt);
    office.now += 24 * hour;
    hold?.keep();
    expect(() => hold?.keep()).toThrow("exactly once");
    expect((await show()).searches.used).toBe(0);
    office.now = takenAt;
    expect((await show()).searches.used).toBe(1);
    office.journal.flush();
    expect(await office.verify()).toEqual({ accounts: 1, violations: [] });
    expect((await office.restart().accounts.show("a@x")).searches.used).toBe(1);
  });

  test("renew at midnight", async () => {
    const { office, id } = await officeWith();
    office.now = Date.UTC(2026, 2, 28, 23, 59, 59, 999);
    for (let i = 0; i < 3; i += 1) office.searches.take(id, office.now)?.keep();
    expect(office.searches.take(id, office.now)).toBeNull();
    expect(office.searches.take(id, office.now + 1)).not.toBeNull();
  });
});

describe("the wall clock", () => {
  test("renews the allowance at 00:00:00.000 UTC, and not a millisecond before", async () => {
    const { office, id, show } = await officeWith();
    office.now = Date.UTC(2026, 2, 28, 23, 59, 59, 999);
    await office.spend(id, 30_000);
    expect((await show()).allowance.left).toBe(0);
    office.now += 1;
    expect((await show()).allowance.left).toBe(30_000);
  });

  for (const [name, step] of [
    ["-1 s", -1_000],
    ["-1 day", -24 * hour],
    ["+40 days", 40 * 24 * hour],
  ] as const) {
    for (const flushed of [true, false]) {
      const when = flushed ? "with everything on disk" : "while charges are on their way";
      test(`stepping ${name} and back ${when} grants no day twice`, async () => {
        const { office, id, show } = await officeWith();
        office.now = Date.UTC(2026, 2, 28);
        office.storage.immediate = flushed;
        const settled: Promise<Usage>[] = [];
        const settle = (hold: Hold, tokens: number) => settled.push(hold.settle(output(tokens), false, office.now));
        settle(office.hold(id), 25_000);
        office.searches.take(id, office.now)?.keep();
        if (flushed) office.journal.flush();
        office.now += step;
        settle(office.hold(id), 20_000);
        office.now -= step;
        expect((await show()).allowance.left).toBe(5_000);
        expect((await show()).searches.used).toBe(1);
        office.now += step;
        expect((await show()).allowance.left).toBe(10_000);
        office.journal.flush();
        if (!flushed) office.storage.succeed();
        await Promise.all(settled);
        for (const now of [office.now, office.now - step]) {
          const again = office.restart();
          again.now = now;
          expect((await again.accounts.show("a@x")).allowance.left).toBe(now === office.now ? 10_000 : 5_000);
        }
      });
    }
  }

  test("makes the same journal in every time zone", async () => {
    const before = process.env["TZ"];
    const offsets = new Set<number>();
    const journals = new Set<string>();
    try {
      for (const zone of ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati", "Pacific/Pago_Pago"]) {
        process.env["TZ"] = zone;
        offsets.add(new Date(noon).getTimezoneOffset());
        const { office, id } = await officeWith();
        // Three days by the half hour, over a change to summer time.
        for (let halfHour = 0; halfHour < 144; halfHour += 1) {
          office.now = Date.UTC(2026, 2, 7) + (halfHour * hour) / 2;
          if (office.ledger.allowanceLeft(office.ledger.account(id), office.now) > 0) await office.spend(id, 2_500);
          if (!isRefusal(office.admit(id, coderAsk()))) office.searches.take(id, office.now)?.keep();
        }
        office.journal.flush();
        const lines = office.database.query("SELECT at, kind, period, used, credit_delta FROM journal").all();
        journals.add(JSON.stringify([lines, await office.accounts.show("a@x")]));
      }
    } finally {
      if (before === undefined) delete process.env["TZ"];
      else process.env["TZ"] = before;
    }
    expect(offsets.size).toBe(5);
    expect(journals.size).toBe(1);
  });

  test("41 days asleep are one renewal", async () => {
    const { office, id, show } = await officeWith();
    await office.spend(id, 30_000);
    office.now = noon + 41 * 24 * hour;
    expect((await show()).spendable).toBe(30_000);
  });
});

test("a hosted reply is billed at three rates", async () => {
  const { office, id } = await officeWith();
  const price = { kind: "split", inputCents: 195, cachedInputCents: 20, outputCents: 390 } as const;
  using hold = office.hold(id, ask(4_096, { model: model("open-01-3BIT-REAP", price), endpoint: "/v1/messages" }));
  await hold.settle({ inputFresh: 1_000, inputCached: 500, output: 100, reasoning: 40 }, false, office.now);
  expect(await office.accounts.usage("a@x", 1)).toMatchObject([
    { endpoint: "/v1/messages", input: 1_500, cached_input: 500, output: 100, reasoning: 40, billed_tokens: 488 },
  ]);
});

describe("calls of the search service", () => {
  /** Free: 3 searches a day, so 15 calls. */
  const callAll = (office: Office, id: number): number => {
    let calls = 0;
    for (let search = office.searches.take(id, office.now); search !== null;) {
      using held = search;
      while (calls < 1_000 && held.call()) calls += 1;
      search = office.searches.take(id, office.now);
    }
    return calls;
  };

  test("end for the day after five times the plan's searches, though none of them counted", async () => {
    const { office, id, show } = await officeWith();
    expect(callAll(office, id)).toBe(15);
    expect(office.searches.take(id, office.now)).toBeNull();
    expect((await show()).searches).toMatchObject({ used: 0, limit: 3 });
    expect(office.ledger.totals().searchesHeld).toBe(0);
    await office.accounts.changePlan("a@x", "plus");
    expect(callAll(office, id)).toBe(5 * 30 - 15);
  });

  test("of searches that run beside each other are counted together", async () => {
    const { office, id } = await officeWith();
    using one = office.searches.take(id, office.now)!;
    using other = office.searches.take(id, office.now)!;
    let calls = 0;
    while (calls < 1_000 && (calls % 2 === 0 ? one : other).call()) calls += 1;
    expect(calls).toBe(15);
    expect([one.call(), other.call()]).toEqual([false, false]);
  });

  test("are not forgotten by a restart, nor granted twice by a clock that steps back", async () => {
    const { office, id } = await officeWith();
    callAll(office, id);
    office.journal.flush();
    for (const step of [0, -1, -24 * hour, 24 * hour]) {
      const again = office.restart();
      again.now = noon + step;
      const isSameDay = step === 0 || step === -1;
      expect([step, callAll(again, id)]).toEqual([step, isSameDay ? 0 : 15]);
      again.journal.flush();
      again.now = noon;
      expect(again.searches.take(id, again.now)).toBeNull();
      again.now = noon + step;
      expect(again.searches.take(id, again.now)).toBeNull();
    }
  });
});

describe("a wall clock that steps", () => {
  for (const step of [61_000, -61_000, 24 * hour, -24 * hour, 40 * 24 * hour]) {
    test(`${step} ms opens no flood window and locks nobody out`, async () => {
      const { office, id } = await officeWith();
      const admit = (wall: number, monotonic: number) =>
        office.admission.admit(
          { ...by(id), ask: ask(0), inputTokens: 0, requestId: `req-${crypto.randomUUID()}` },
          { wall, monotonic },
        );
      for (let i = 0; i < 120; i += 1) expect(isRefusal(admit(noon + (i % 2) * step, 1_000))).toBe(false);
      expect(admit(noon + step, 31_000)).toEqual({ refusal: "too_many_requests", detail: { seconds: 30 } });
      expect(admit(noon, 60_999)).toEqual({ refusal: "too_many_requests", detail: { seconds: 1 } });
      expect(isRefusal(admit(noon + step, 61_000))).toBe(false);
    });
  }
});
