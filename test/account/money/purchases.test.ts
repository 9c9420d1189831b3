// Requests for credit or a plan, decided once, and payments, credited once.
import { describe, expect, test } from "bun:test";
import { DecidedOtherwise } from "../../../src/account/money/purchases.ts";
import { StoreUnavailable } from "../../../src/core/types.ts";
import { Office } from "../office.ts";

async function setUp() {
  const office = new Office();
  const { id } = await office.accounts.create({ email: "a@x" });
  const ask = (tokens = 1_000_000) => office.purchases.ask(id, { kind: "credit", tokens }, "please");
  const credit = async () => (await office.accounts.show("a@x")).credit;
  return { office, id, ask, credit };
}

test("100 approvals at once credit once", async () => {
  const { office, ask, credit } = await setUp();
  const request = await ask();
  office.storage.immediate = false;
  let audited = 0;
  const all = Array.from({ length: 100 }, () => office.purchases.approve(request, "", () => audited++));
  await office.underWay();
  office.storage.immediate = true;
  office.storage.succeed();
  expect(new Set((await Promise.all(all)).map(({ state }) => state))).toEqual(new Set(["approved"]));
  expect([await credit(), audited]).toEqual([1_000_000, 1]);
});

describe("a request that was decided cannot be decided otherwise", () => {
  const decisions = ["approve", "decline", "withdraw"] as const;
  for (const first of decisions) {
    for (const second of decisions.filter((each) => each !== first)) {
      test(`${first} and ${second} at once`, async () => {
        const { office, ask, credit } = await setUp();
        const request = await ask();
        office.storage.immediate = false;
        const one = office.purchases[first](request, "");
        const other = office.purchases[second](request, "");
        await office.underWay();
        office.storage.immediate = true;
        office.storage.succeed();
        await one;
        await expect(other).rejects.toBeInstanceOf(DecidedOtherwise);
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
  await office.underWay();
  office.storage.giveUp();
  await expect(approval).rejects.toBeInstanceOf(StoreUnavailable);
  expect([office.records.request(request.id)!.state, await credit()]).toEqual(["pending", 0]);
  office.storage.immediate = true;
  await office.purchases.approve(request, "");
  expect(await credit()).toBe(1_000_000);
  expect(await office.verify()).toMatchObject({ violations: [] });
});

test("credit and decision are in one commit: a crash leaves both or neither", async () => {
  const { office, ask } = await setUp();
  const request = await ask();
  office.storage.immediate = false;
  void office.purchases.approve(request, "");
  await office.underWay();
  const before = office.restart();
  expect(before.records.request(request.id)!.state).toBe("pending");
  await before.purchases.approve(request, "");
  expect((await before.accounts.show("a@x")).credit).toBe(1_000_000);
});
