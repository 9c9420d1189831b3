// Requests for credit or a plan, decided once, and payments, credited once.
import { describe, expect, test } from "bun:test";
import { AccountError } from "../../src/account/accounts.ts";
import { DecidedOtherwise } from "../../src/account/purchases.ts";
import { purchaseRequestsPendingMax } from "../../src/core/limits.ts";
import { StoreUnavailable } from "../../src/core/types.ts";
import { Office } from "./office.ts";

async function setUp() {
  const office = new Office();
  const { id } = await office.accounts.create({ email: "a@x" });
  const ask = (tokens = 1_000_000) => office.purchases.ask(id, { kind: "credit", tokens }, "please");
  const credit = async () => (await office.accounts.show("a@x")).credit;
  return { office, id, ask, credit };
}

test("an approved request is credited, and approved again changes nothing", async () => {
  const { office, ask, credit } = await setUp();
  const request = await ask();
  expect(request).toMatchObject({ state: "pending", tokens: 1_000_000, note: "please" });
  let audited = 0;
  for (let time = 0; time < 3; time++) {
    const approved = await office.purchases.approve(request, "paid in cash", () => audited++);
    expect(approved).toMatchObject({ state: "approved", decisionNote: "paid in cash", decidedAt: office.now });
  }
  expect([await credit(), audited]).toEqual([1_000_000, 1]);
});

test("100 approvals at once credit once", async () => {
  const { office, ask, credit } = await setUp();
  const request = await ask();
  office.storage.immediate = false;
  let audited = 0;
  const all = Array.from({ length: 100 }, () => office.purchases.approve(request, "", () => audited++));
  office.journal.flush();
  office.storage.immediate = true;
  office.storage.succeed();
  expect(new Set((await Promise.all(all)).map(({ state }) => state))).toEqual(new Set(["approved"]));
  expect([await credit(), audited]).toEqual([1_000_000, 1]);
});

test("an approved plan acts at once", async () => {
  const { office, id } = await setUp();
  const request = await office.purchases.ask(id, { kind: "plan", plan: "pro" }, "");
  await office.purchases.approve(request, "");
  expect((await office.accounts.show("a@x")).plan).toBe("pro");
});

describe("a request that was decided cannot be decided otherwise", () => {
  const decisions = ["approve", "decline", "withdraw"] as const;
  for (const first of decisions) {
    for (const second of decisions.filter((each) => each !== first)) {
      test(`${first}, then ${second}`, async () => {
        const { office, ask, credit } = await setUp();
        const request = await ask();
        await office.purchases[first](request, "");
        await expect(office.purchases[second](request, "")).rejects.toBeInstanceOf(DecidedOtherwise);
        expect(await credit()).toBe(first === "approve" ? 1_000_000 : 0);
      });

      test(`${first} and ${second} at once`, async () => {
        const { office, ask, credit } = await setUp();
        const request = await ask();
        office.storage.immediate = false;
        const one = office.purchases[first](request, "");
        const other = office.purchases[second](request, "");
        await expect(other).rejects.toBeInstanceOf(DecidedOtherwise);
        office.journal.flush();
        office.storage.immediate = true;
        office.storage.succeed();
        await one;
        expect(await credit()).toBe(first === "approve" ? 1_000_000 : 0);
      });
    }
  }
});

test("an approval that the disk did not take leaves the request pending, and can be given again", async () => {
  const { office, ask, credit } = await setUp();
  const request = await ask();
  office.storage.immediate = false;
  const approval = office.purchases.approve(request, "");
  office.journal.flush();
  office.storage.giveUp();
  await expect(approval).rejects.toBeInstanceOf(StoreUnavailable);
  expect([office.consoleRecords.request(request.id)!.state, await credit()]).toEqual(["pending", 0]);
  office.storage.immediate = true;
  await office.purchases.approve(request, "");
  expect(await credit()).toBe(1_000_000);
  expect(await office.accounts.verify()).toMatchObject({ violations: [] });
});

test("credit and decision are in one commit: a crash leaves both or neither", async () => {
  const { office, ask } = await setUp();
  const request = await ask();
  office.storage.immediate = false;
  void office.purchases.approve(request, "");
  office.journal.flush();
  const before = office.restart();
  expect(before.consoleRecords.request(request.id)!.state).toBe("pending");
  await before.purchases.approve(request, "");
  expect((await before.accounts.show("a@x")).credit).toBe(1_000_000);
});

test("an account has few pending requests, also when it sends many at once", async () => {
  const { office, ask, id } = await setUp();
  const all = await Promise.allSettled(Array.from({ length: 20 }, () => ask()));
  const refused = all.filter((each) => each.status === "rejected");
  expect(refused.length).toBe(20 - purchaseRequestsPendingMax);
  expect((refused[0] as PromiseRejectedResult).reason).toBeInstanceOf(AccountError);
  const [request] = office.consoleRecords.requestsOf(id, Number.MAX_SAFE_INTEGER, 1);
  await office.purchases.withdraw(request!);
  await ask();
  await expect(ask()).rejects.toThrow("may be pending");
});

test("a payment that is told 100 times, at once and one after another, is credited once", async () => {
  const { office, id, credit } = await setUp();
  const payment = { id: "stripe:pi_1", account: id, tokens: 2_000_000, paidAt: office.now };
  const first = await Promise.all(Array.from({ length: 50 }, () => office.purchases.paid(payment)));
  const later: { credited: boolean }[] = [];
  for (let time = 0; time < 50; time++) later.push(await office.purchases.paid(payment));
  expect([...first, ...later].filter(({ credited }) => credited).length).toBe(1);
  expect(await credit()).toBe(2_000_000);
  expect(office.consoleRecords.paymentsOf(id, 10)).toEqual([payment]);
  const restarted = office.restart();
  expect(await restarted.purchases.paid(payment)).toEqual({ credited: false });
  expect((await restarted.accounts.show("a@x")).credit).toBe(2_000_000);
});
