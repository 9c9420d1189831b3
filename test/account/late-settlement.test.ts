// Holds that are gone on with from what was written down of them, and ends whose hold was given back meanwhile.
import { describe, expect, test } from "bun:test";
import type { RecordedHold } from "../../src/account/money/admission.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import { by } from "../fixtures/principals.ts";
import { ask, Office, output } from "./office.ts";

/** An account with 30,000 tokens of the day, and a request of it. */
async function admitted() {
  const office = new Office();
  const { id } = await office.accounts.create({ email: "a@x", plan: "free" });
  const hold = office.admission.admit({ ...by(id), ask: ask(4_096), inputTokens: 0, requestId: "r1" }, office.moment);
  if (isRefusal(hold)) throw new Error(hold.refusal);
  return { office, account: office.ledger.account(id), hold: hold as RecordedHold };
}

describe("a hold that is gone on with", () => {
  test("is charged as the one that was admitted", async () => {
    const { office, account, hold } = await admitted();
    const again = office.admission.resume(account, hold.record, 0);
    await again.settle(output(1_000), false, office.now);
    expect([account.held, account.holds, account.begun, account.expected]).toEqual([0, 0, 0, 0]);
    expect(office.ledger.spendable(account, office.now)).toBe(29_000);
  });

  test("that waits stands in line again, and begins when others have settled", async () => {
    const { office, account, hold } = await admitted();
    const second = office.admission.admit(
      { ...by(account.id), ask: ask(4_096), inputTokens: 100_000, requestId: "r2" },
      office.moment,
    ) as RecordedHold;
    expect(second.state).toBe("waiting");
    const { record } = second;
    second[Symbol.dispose]();
    account.held += record.budget;
    account.waitingHeld += record.budget;
    account.holds += 1;
    const again = office.admission.resume(account, record, office.moment.monotonic);
    await hold.settle(output(10), false, office.now);
    expect([again.state, account.waitingHeld]).toEqual(["begun", 0]);
  });
});

describe("an end whose hold was given back", () => {
  test("is charged where it still fits", async () => {
    const { office, account, hold } = await admitted();
    const { record } = hold;
    hold[Symbol.dispose]();
    expect(office.admission.settleLate(account, record, output(4_096), false, office.now)).toBe(true);
    expect(office.ledger.spendable(account, office.now)).toBe(30_000 - 4_096);
    expect([account.held, account.holds]).toEqual([0, 0]);
  });

  test("is not charged where others have it by now: nothing is overdrawn", async () => {
    const { office, account, hold } = await admitted();
    const { record } = hold;
    hold[Symbol.dispose]();
    await office.spend(account.id, 27_000);
    expect(office.admission.settleLate(account, record, output(4_096), false, office.now)).toBe(false);
    expect(office.ledger.spendable(account, office.now)).toBe(3_000);
    expect([account.held, account.holds, account.credit]).toEqual([0, 0, 0]);
  });
});
