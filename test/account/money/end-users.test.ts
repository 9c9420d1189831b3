// The people behind keys that may name them: what each may use a day, that usage knows them, and that no flood of invented
// names takes memory or disk without bound.
import { describe, expect, test } from "bun:test";
import { perEndUser } from "../../../src/account/money/end-users.ts";
import type { NewKey } from "../../../src/account/people/account-keys.ts";
import { Folding } from "../../../src/store/ledger/folding.ts";
import { otherEndUsers } from "../../../src/core/end-user.ts";
import { isRefusal } from "../../../src/core/refusals.ts";
import type { Hold, Refusal } from "../../../src/core/types.ts";
import { by } from "../../fixtures/principals.ts";
import { ask, coderAsk, Office, output } from "../office.ts";

const dayMs = 86_400_000;

async function officeWith(key: Partial<NewKey> = {}) {
  const office = new Office();
  const { id } = await office.accounts.create({ email: "a@x", plan: "pro", credit: 1_000_000 });
  const made = await office.accountKeys.create(id, { name: "bot", forwards_users: true, ...key });
  return { office, id, key: made.id };
}

let requests = 0;
const admit = (
  office: Office,
  id: number,
  key: number,
  endUser: string | null,
  budget = 0,
  reads = 0,
): Hold | Refusal =>
  office.admission.admit(
    { ...by(id, key), ask: ask(budget), inputTokens: reads, requestId: `req-${(requests += 1)}`, endUser },
    office.moment,
  );

function held(office: Office, id: number, key: number, endUser: string | null, budget = 0, reads = 0): Hold {
  const hold = admit(office, id, key, endUser, budget, reads);
  if (isRefusal(hold)) throw new Error(JSON.stringify(hold));
  return hold;
}

async function spend(office: Office, id: number, key: number, endUser: string | null, tokens: number): Promise<void> {
  using hold = held(office, id, key, endUser);
  await hold.settle(output(tokens), false, office.now);
}

const namesOf = async (office: Office, id: number) =>
  (await office.accounts.usage(id, 100)).map(({ end_user }) => end_user).reverse();

const check = async (office: Office) => expect((await office.verify()).violations).toEqual([]);

describe("an end user", () => {
  test("is known in usage rows where the key may say so, and nowhere else", async () => {
    const { office, id, key } = await officeWith();
    const other = await office.accountKeys.create(id, { name: "silent", limit_day: 1_000 });
    await spend(office, id, key, "ada", 10);
    await spend(office, id, other.id, "ada", 10);
    await spend(office, id, 1, "ada", 10);
    await spend(office, id, key, null, 10);
    expect(await namesOf(office, id)).toEqual(["ada", null, null, null]);
    expect(office.database.query("SELECT count(*) AS n FROM end_users").get()).toEqual({ n: 1 });
    await check(office);
  });

  test("is known for coder calls, too, which no limit of tokens counts", async () => {
    const { office, id, key } = await officeWith({ limit_end_user_day: 1 });
    const admitted = office.admission.admit(
      { ...by(id, key), ask: coderAsk(), inputTokens: 0, requestId: "req-coder", endUser: "ada" },
      office.moment,
    );
    using hold = admitted as Hold;
    await hold.settle(output(500), false, office.now);
    expect(await namesOf(office, id)).toEqual(["ada"]);
    expect(isRefusal(admit(office, id, key, "ada", 1))).toBe(false);
    await check(office);
  });

  test("has a limit a day of its own, which names it when it refuses and renews at midnight", async () => {
    const { office, id, key } = await officeWith({ limit_end_user_day: 1_000 });
    await spend(office, id, key, "ada", 600);
    expect(admit(office, id, key, "ada", 401)).toMatchObject({
      refusal: "end_user_quota_exceeded",
      detail: { end_user: "ada", key: "bot", limit: 1_000, period: "day", spendable: 400, requested: 401 },
    });
    expect(isRefusal(admit(office, id, key, "bob", 1_000))).toBe(false);
    expect(admit(office.restart(), id, key, "ada", 401)).toMatchObject({ refusal: "end_user_quota_exceeded" });
    office.now += dayMs;
    expect(isRefusal(admit(office, id, key, "ada", 1_000))).toBe(false);
  });

  test("is refused for the key's limit where that is the tighter one", async () => {
    const { office, id, key } = await officeWith({ limit_day: 500, limit_end_user_day: 1_000 });
    await spend(office, id, key, "ada", 400);
    expect(admit(office, id, key, "bob", 101)).toMatchObject({ refusal: "key_quota_exceeded" });
    expect(isRefusal(admit(office, id, key, "bob", 100))).toBe(false);
  });

  test("holds its budgets: any number at once stay within the limit", async () => {
    const { office, id, key } = await officeWith({ limit_end_user_day: 1_000 });
    const all = Array.from({ length: 100 }, () => admit(office, id, key, "ada", 90));
    const holds = all.filter((each): each is Hold => !isRefusal(each));
    expect(holds).toHaveLength(11);
    await Promise.all(holds.map((hold) => hold.settle(output(90), false, office.now)));
    for (const hold of holds) hold[Symbol.dispose]();
    expect(admit(office, id, key, "ada", 11)).toMatchObject({ detail: { spendable: 10 } });
    expect(isRefusal(admit(office, id, key, "ada", 10))).toBe(false);
    await check(office);
  });

  test("waits for its own requests, and keeps no other end user's waiting", async () => {
    const { office, id, key } = await officeWith({ limit_day: 100_000, limit_end_user_day: 1_000 });
    using first = held(office, id, key, "ada", 100, 800);
    using second = held(office, id, key, "ada", 100, 800);
    expect([first.ready === null, second.ready === null]).toEqual([true, false]);
    using other = held(office, id, key, "bob", 100, 800);
    expect(other.ready).toBeNull();
    await first.settle(output(950), false, office.now);
    expect(await second.ready).toMatchObject({ refusal: "end_user_quota_exceeded", detail: { end_user: "ada" } });
  });

  test("who asks too often takes nothing of what others share, flood protection included", async () => {
    const { office, id, key } = await officeWith({ end_user_requests_per_minute: 2 });
    const asked = (name: string) => {
      const admitted = admit(office, id, key, name, 1);
      return isRefusal(admitted) ? admitted.refusal : "begins";
    };
    const ada = Array.from({ length: 300 }, () => asked("ada"));
    expect(ada).toEqual([...Array(2).fill("begins"), ...Array(298).fill("rate_limited")]);
    expect([asked("bob"), asked("bob"), asked("bob"), asked("eve")]).toEqual([
      "begins",
      "begins",
      "rate_limited",
      "begins",
    ]);
  });

  test("has the lower of what its plan and its key say", () => {
    const of = (plan: number | undefined, ofKey: number | null) =>
      perEndUser(
        "endUserParallel",
        { plan: { endUserParallel: plan } } as never,
        { limits: { endUserParallel: ofKey } } as never,
      );
    expect([of(2, 3), of(3, 2), of(undefined, 4), of(5, null), of(undefined, null)]).toEqual([2, 2, 4, 5, null]);
  });

  test("that nobody named has the limit with all others who were not named", async () => {
    const { office, id, key } = await officeWith({ limit_end_user_day: 1_000 });
    await spend(office, id, key, "", 1_000);
    expect(admit(office, id, key, "", 1)).toMatchObject({ detail: { end_user: "(nobody named)" } });
    expect(isRefusal(admit(office, id, key, "ada", 1))).toBe(false);
    expect(await namesOf(office, id)).toEqual([null]);
  });

  test("is another one with another key", async () => {
    const { office, id, key } = await officeWith({ limit_end_user_day: 1_000 });
    const other = await office.accountKeys.create(id, { name: "two", forwards_users: true, limit_end_user_day: 10 });
    await spend(office, id, key, "ada", 1_000);
    await spend(office, id, other.id, "ada", 10);
    expect(admit(office, id, other.id, "ada", 1)).toMatchObject({ detail: { key: "two", limit: 10 } });
    await office.accountKeys.rename(id, other.id, "three");
    expect(admit(office, id, other.id, "ada", 1)).toMatchObject({ detail: { key: "three" } });
    await check(office);
  });

  test("is limited by a key that gets a limit for each, what was asked for before counts; and by none that forwards nobody", async () => {
    const { office, id, key } = await officeWith();
    await spend(office, id, key, "ada", 300);
    using hold = held(office, id, key, "ada", 400);
    await office.accountKeys.limit(id, key, { limit_end_user_day: 1_000 });
    expect(admit(office, id, key, "ada", 301)).toMatchObject({ detail: { limit: 1_000, spendable: 300 } });
    await hold.settle(output(600), false, office.now);
    expect(admit(office, id, key, "ada", 101)).toMatchObject({ detail: { limit: 1_000, spendable: 100 } });
    await office.accountKeys.limit(id, key, { limit_end_user_day: 2_000 });
    expect(admit(office.restart(), id, key, "ada", 1_101)).toMatchObject({
      detail: { limit: 2_000, spendable: 1_100 },
    });
    await check(office);
  });

  test("is no longer known, nor limited, where its key stops to say for whom it asks", async () => {
    const { office, id, key } = await officeWith({ limit_end_user_day: 100 });
    await spend(office, id, key, "ada", 100);
    const none = { forwards_users: false, limit_end_user_day: null };
    expect(await office.accountKeys.limit(id, key, { forwards_users: false })).toMatchObject(none);
    await spend(office, id, key, "ada", 1_000);
    expect(await namesOf(office, id)).toEqual(["ada", null]);
    for (const wrong of [{ limit_end_user_day: 5 }, { forwards_users: false, limit_end_user_day: 5 }]) {
      const limited = await office.accountKeys.limit(id, key, wrong).catch((error: Error) => error);
      expect(limited).toMatchObject({ message: "a key limits its end users only where it forwards who they are" });
    }
    expect((await new Office(office.database).accountKeys.list(id))[1]).toMatchObject(none);
    await office.accountKeys.limit(id, key, { forwards_users: true, limit_end_user_day: 200 });
    expect(admit(office, id, key, "ada", 101)).toMatchObject({ detail: { limit: 200, spendable: 100 } });
    await check(office);
  });

  test("whose charge was lost has its tokens back", async () => {
    const { office, id, key } = await officeWith({ limit_end_user_day: 1_000 });
    office.storage.immediate = false;
    using hold = held(office, id, key, "ada");
    const settled = hold.settle(output(1_000), false, office.now);
    expect(isRefusal(admit(office, id, key, "ada", 1))).toBe(true);
    office.journal.flush();
    office.storage.giveUp();
    await settled.catch(() => {});
    expect(isRefusal(admit(office, id, key, "ada", 1_000))).toBe(false);
    await check(office);
  });

  test("has what a batch that was written twice charged once", async () => {
    const { office, id, key } = await officeWith({ limit_end_user_day: 1_000 });
    office.storage.immediate = false;
    using hold = held(office, id, key, "ada");
    const settled = hold.settle(output(600), false, office.now);
    office.journal.flush();
    office.storage.write();
    office.storage.write();
    office.storage.succeed();
    await settled;
    await check(office);
    expect(admit(office.restart(), id, key, "ada", 401)).toMatchObject({ detail: { spendable: 400 } });
  });

  test("needs a key that may name it to be limited", async () => {
    const { office, id } = await officeWith();
    const wanted = { name: "x", limit_end_user_day: 5 };
    await expect(office.accountKeys.create(id, wanted)).rejects.toThrow("only where it forwards who they are");
    const zero = { ...wanted, forwards_users: true, limit_end_user_day: 0 };
    await expect(office.accountKeys.create(id, zero)).rejects.toThrow("whole number of balance tokens");
  });
});

describe("a flood of invented names", () => {
  test("stays in bounded memory and in bounded tables, and then shares one limit", async () => {
    const office = new Office(undefined, undefined, undefined, [20, 50]);
    const { id } = await office.accounts.create({ email: "a@x", plan: "pro", credit: 1_000_000 });
    const { id: key } = await office.accountKeys.create(id, {
      name: "bot",
      forwards_users: true,
      limit_end_user_day: 100,
    });
    await spend(office, id, key, "ada", 40);
    let most = 0;
    for (let i = 0; i < 110; i += 1) {
      await spend(office, id, key, `invented ${i}`, 1);
      most = Math.max(most, office.ledger.endUsers.size);
    }
    expect(most).toBeLessThanOrEqual(21);
    const known = () => (office.database.query("SELECT count(*) AS n FROM end_users").get() as { n: number }).n;
    expect(known()).toBe(51); // 50 of that day, and the others
    const others = (await namesOf(office, id)).filter((name) => name === otherEndUsers);
    expect(others).toHaveLength(61);
    office.now += 60_000;
    // who is known goes on as before, after a restart too; who is not shares what is left of one limit
    expect(admit(office, id, key, "ada", 61)).toMatchObject({ detail: { end_user: "ada", spendable: 60 } });
    const again = office.restart();
    again.now += 60_000;
    expect(admit(again, id, key, "invented 200", 40)).toMatchObject({
      detail: { end_user: otherEndUsers, spendable: 39 },
    });
    expect(admit(again, id, key, "invented 0", 100)).toMatchObject({
      detail: { end_user: "invented 0", spendable: 99 },
    });
    await check(again);
    // the next day has room for new ones
    again.now += dayMs;
    await spend(again, id, key, "invented 300", 1);
    expect((await again.accounts.usage(id, 1))[0]).toMatchObject({ end_user: "invented 300" });
    await check(again);
  });

  test("does not make those forgotten whose minute counts, until they are too many for any gateway", async () => {
    const office = new Office(undefined, undefined, undefined, [20, 1_000]);
    const { id } = await office.accounts.create({ email: "a@x", plan: "pro", credit: 1_000_000 });
    const perMinute = { forwards_users: true, end_user_requests_per_minute: 1 };
    const { id: key } = await office.accountKeys.create(id, { name: "bot", ...perMinute });
    const refusals = async (names: number, of: string) => {
      let refused = 0;
      for (let i = 0; i < names; i += 1) {
        office.now += 1;
        const admitted = admit(office, id, key, `${of} ${i}`, 1);
        if (isRefusal(admitted)) refused += 1;
        else await admitted.settle(output(1), false, office.now);
      }
      return refused;
    };
    expect([await refusals(40, "person"), await refusals(40, "person")]).toEqual([0, 40]);
    office.now += 60_000;
    expect(await refusals(100, "person")).toBe(0);
    expect(office.ledger.endUsers.size).toBeLessThanOrEqual(101);
    office.now += 60_000;
    expect(await refusals(100, "other")).toBe(0);
    expect(office.ledger.endUsers.size).toBeLessThanOrEqual(101);
    await check(office);
  });

  test("that is never charged leaves nothing on disk, and nothing of a day's room is taken", async () => {
    const office = new Office(undefined, undefined, undefined, [20, 50]);
    const { id } = await office.accounts.create({ email: "a@x", plan: "pro", credit: 1_000_000 });
    const { id: key } = await office.accountKeys.create(id, { name: "bot", forwards_users: true });
    for (let i = 0; i < 100; i += 1) held(office, id, key, `invented ${i}`)[Symbol.dispose]();
    expect(office.ledger.endUsers.size).toBeLessThanOrEqual(21);
    await spend(office, id, key, "ada", 1);
    expect(await namesOf(office, id)).toEqual(["ada"]);
    expect(office.database.query("SELECT count(*) AS n FROM end_users").get()).toEqual({ n: 1 });
  });

  test("forgets nobody who is being answered", async () => {
    const office = new Office(undefined, undefined, undefined, [20, 5_000]);
    const { id } = await office.accounts.create({ email: "a@x", plan: "pro", credit: 1_000_000 });
    const { id: key } = await office.accountKeys.create(id, {
      name: "bot",
      forwards_users: true,
      limit_end_user_day: 100,
    });
    using hold = held(office, id, key, "ada", 60);
    for (let i = 0; i < 100; i += 1) held(office, id, key, `invented ${i}`)[Symbol.dispose]();
    expect(admit(office, id, key, "ada", 41)).toMatchObject({ detail: { end_user: "ada", spendable: 40 } });
    await hold.settle(output(60), false, office.now);
    await check(office);
  });
});

describe("who it was is erased", () => {
  test("of one end user, of all keys, and what was used stays", async () => {
    const { office, id, key } = await officeWith({ limit_end_user_day: 1_000 });
    office.database.run("PRAGMA secure_delete = FAST"); // as every ledger on disk
    const other = await office.accountKeys.create(id, { name: "two", forwards_users: true });
    await spend(office, id, key, "ada@example.org", 10);
    await spend(office, id, other.id, "ada@example.org", 20);
    await spend(office, id, key, "bob", 30);
    expect(await office.accountKeys.eraseEndUser(id, "ada@example.org")).toEqual({ keys: ["bot", "two"] });
    expect(await namesOf(office, id)).toEqual([null, null, "bob"]);
    expect(Buffer.from(office.database.serialize()).includes("ada@example.org")).toBe(false);
    await check(office);
    await spend(office, id, key, "ada@example.org", 5);
    expect(await namesOf(office, id)).toEqual([null, null, "bob", "ada@example.org"]);
    await check(office);
    expect(() => office.accountKeys.endUser(id, "nobody")).toThrow("no end user of the account is called");
  });

  test("while it is being answered, and what it is charged then names it again", async () => {
    const { office, id, key } = await officeWith({ limit_end_user_day: 1_000 });
    await spend(office, id, key, "ada", 10);
    using hold = held(office, id, key, "ada", 100);
    await office.accountKeys.eraseEndUser(id, "ada");
    expect(admit(office, id, key, "ada", 891)).toMatchObject({ detail: { spendable: 890 } });
    await hold.settle(output(100), false, office.now);
    expect(await namesOf(office, id)).toEqual([null, "ada"]);
    await check(office);
  });

  test("with the last of its lines that are kept one by one", async () => {
    const { office, id, key } = await officeWith({ limit_end_user_day: 1_000 });
    for (let i = 0; i < 40; i += 1) await spend(office, id, key, `old ${i}`, 1);
    await spend(office, id, key, "ada", 1);
    office.now += 10 * dayMs;
    await spend(office, id, key, "ada", 1);
    await spend(office, id, 1, null, 1);
    const folding = new Folding(office.database);
    const before = office.now - 5 * dayMs;
    for (let steps = 0; folding.hasWork(before); steps += 1) {
      expect(steps).toBeLessThan(50);
      folding.fold(before, 7);
    }
    expect(office.database.query("SELECT name FROM end_users WHERE name IS NOT NULL").all()).toEqual([{ name: "ada" }]);
    expect(await namesOf(office, id)).toEqual(["ada", null]);
    await check(office.restart());
  });

  test("with its account", async () => {
    const { office, id, key } = await officeWith();
    office.database.run("PRAGMA secure_delete = FAST");
    for (const name of ["ada@example.org", "bob@example.org"]) await spend(office, id, key, name, 10);
    await office.accounts.erase("a@x", async () => {});
    const everything = Buffer.from(office.database.serialize());
    expect(everything.includes("@example.org")).toBe(false);
    expect(await namesOf(office, id)).toEqual([null, null]);
    await check(office);
  });
});
