// The accounts as the command line and the console use them.
import { describe, expect, test } from "bun:test";
import { AccountError } from "../../../src/account/people/accounts.ts";
import { StoreUnavailable } from "../../../src/core/types.ts";
import { Passwords } from "../../../src/account/sign-in/passwords.ts";
import { ask, noon, Office, output } from "../office.ts";

describe("a new account's e-mail is one that nobody can mistake for another", () => {
  test.each([
    ["ada.lovelace+gate@mail.example.org"],
    ["o'brien_1@x"],
    ["operator@localhost"],
    ["ada@xn--bcher-kva.example"],
    [`${"a".repeat(64)}@${"b".repeat(63)}.org`],
  ])("%s is taken", async (email) => {
    expect((await new Office().accounts.create({ email })).email).toBe(email);
  });

  test.each([
    ["a letter of another script", "\u0430dmin@x.org"],
    ["a character that nobody sees", "ad\u200bmin@x.org"],
    ["a soft hyphen", "ad\u00admin@x.org"],
    ["an order of writing", "\u202eadmin@x.org"],
    ["a wide letter", "\uff41dmin@x.org"],
    ["an accent of its own", "a\u0301da@x.org"],
    ["a variation selector", "admin\ufe0f@x.org"],
    ["a tag character", "admin\u{e0061}@x.org"],
    ["a domain in other letters", "ada@b\u00fccher.example"],
    ["a full stop that is none", "ada@x\u3002org"],
    ["two dots", "ada@x..org"],
    ["a dot at the end", "ada@x.org."],
    ["a hyphen at the end of a label", "ada@x-.org"],
    ["two signs", "ada@x@y.org"],
    ["a space", "a da@x.org"],
    ["a control character", "ada\u0007@x.org"],
    ["a quoted part", '"ada"@x.org'],
  ])("%s is refused", async (_, email) => {
    expect(new Office().accounts.create({ email })).rejects.toThrow("is not an e-mail address");
  });

  test("and one from before goes on working", async () => {
    const office = new Office();
    const { id } = await office.accounts.create({ email: "old@x", password: "correct horse" });
    office.database.run("UPDATE accounts SET email = 'd\u00e9j\u00e0@b\u00fccher.example' WHERE id = ?", [id]);
    const name = "d\u00e9j\u00e0@b\u00fccher.example";
    expect((await office.accounts.signIn(name, "correct horse"))?.id).toBe(id);
    await office.accounts.changePlan(name, "pro");
    expect((await office.accounts.show(name)).plan).toBe("pro");
  });
});

describe("the last operator", () => {
  test("is not disabled, nor are two by each other at once", async () => {
    const office = new Office();
    const { accounts } = office;
    const [one, two] = [
      await accounts.create({ email: "1@x", operator: true }),
      await accounts.create({ email: "2@x" }),
    ];
    const refused = "1@x is the only operator; make another one first";
    await expect(accounts.checkNotLastOperator(one.id)).rejects.toThrow(refused);
    await accounts.checkNotLastOperator(two.id); // no operator
    const three = await accounts.create({ email: "3@x", operator: true });
    const disable = (id: number) =>
      office.units.change(async (unit) => {
        await unit.accounts.checkNotLastOperator(id);
        await unit.accounts.setDisabled(id, true);
      });
    office.storage.immediate = false;
    const [first, second] = [disable(one.id), disable(three.id)];
    await office.underWay();
    office.storage.immediate = true;
    office.storage.succeed();
    await first;
    await expect(second).rejects.toThrow("only operator");
  });
});

test("an account that the disk did not take does not exist", async () => {
  const office = new Office();
  office.storage.immediate = false;
  const created = office.accounts.create({ email: "a@x", credit: 5 });
  await office.underWay();
  office.storage.giveUp();
  await expect(created).rejects.toBeInstanceOf(StoreUnavailable);
  office.storage.immediate = true;
  await office.accounts.create({ email: "a@x", credit: 7 });
  expect((await office.accounts.show("a@x")).credit).toBe(7);
  expect(await office.verify()).toEqual({ accounts: 1, violations: [] });
});

describe("what cannot be done is said in one line", () => {
  const rows: readonly (readonly [string, (office: Office) => Promise<unknown>])[] = [
    ["no account has the e-mail b@x", ({ accounts }) => accounts.show("b@x")],
    ["no account has the e-mail b@x", ({ accounts }) => accounts.usage("b@x", 1)],
    ["no account has the e-mail b@x", ({ accounts }) => accounts.changePlan("b@x", "pro")],
    ["no account has the e-mail b@x", ({ accounts }) => accounts.rotateKey("b@x")],
    ["no account has the e-mail b@x", ({ accounts }) => accounts.addCredit("b@x", 1)],
    ["no plan is called gold; the plans are free, plus, standard, pro", (o) => o.accounts.changePlan("a@x", "gold")],
    ["no plan is called toString", ({ accounts }) => accounts.create({ email: "b@x", plan: "toString" })],
    ["is not an e-mail address", ({ accounts }) => accounts.create({ email: "b" })],
    ["is not an e-mail address", ({ accounts }) => accounts.create({ email: "b@x\ny" })],
    ["is not an e-mail address", ({ accounts }) => accounts.create({ email: `${"b".repeat(260)}@x` })],
    ["is not an e-mail address", ({ accounts }) => accounts.create({ email: "b\ud800@x" })],
    ["is a name of deleted accounts", ({ accounts }) => accounts.create({ email: "Deleted-1@Invalid" })],
    ["is a name of deleted accounts", ({ accounts }) => accounts.create({ email: "deleted-1-2@invalid" })],
    ["must be well-formed text", ({ accounts }) => accounts.addCredit("a@x", 1, "order \udfff")],
    ["must not be empty", ({ accounts }) => accounts.create({ email: "b@x", password: "" })],
    ...[0, -1, 0.5, Number.NaN, 1e15].map(
      (tokens) => ["credit is a whole number", (o: Office) => o.accounts.addCredit("a@x", tokens)] as const,
    ),
  ];
  for (const [message, run] of rows) {
    test(`${message}: ${run.toString().replace(/.*=>\s*/s, "")}`, async () => {
      const office = new Office();
      await office.accounts.create({ email: "a@x" });
      const thrown = await run(office).then(
        () => null,
        (error: unknown) => error,
      );
      expect(thrown).toBeInstanceOf(AccountError);
      expect((thrown as Error).message).toContain(message);
      expect((thrown as Error).message).not.toContain("\n");
    });
  }
});

test("an account is deleted although another has the name that it would get", async () => {
  const office = new Office();
  const { id } = await office.accounts.create({ email: "a@x", credit: 5 });
  for (const email of ["other@x", "third@x"]) await office.accounts.create({ email });
  // As a stranger could call itself before that was refused.
  office.database.run("UPDATE accounts SET email = 'Deleted-1@invalid' WHERE email = 'other@x'");
  office.database.run("UPDATE accounts SET email = 'deleted-1-2@invalid' WHERE email = 'third@x'");
  expect(await office.accounts.erase("a@x", async () => {})).toEqual({ id, name: "deleted-1-3@invalid" });
  expect((await office.accounts.show("deleted-1-3@invalid")).credit).toBe(5);
  expect(await office.verify()).toEqual({ accounts: 3, violations: [] });
});

describe("the number of accounts", () => {
  test("is that of those who are there, before and after one was made, could not be made or was erased", async () => {
    const office = new Office();
    const { accounts, storage } = office;
    const onDisk = (): number => office.records.count();
    await accounts.create({ email: "a@x" });
    expect(await accounts.count()).toBe(1);
    await accounts.create({ email: "b@x" });
    expect(await accounts.count()).toBe(2);
    storage.immediate = false;
    const lost = accounts.create({ email: "lost@x" });
    await office.underWay();
    storage.giveUp();
    await expect(lost).rejects.toThrow(StoreUnavailable);
    storage.immediate = true;
    expect(await accounts.count()).toBe(2);
    const { name } = await accounts.erase("a@x", async () => {});
    expect([await accounts.count(), onDisk()]).toEqual([1, 1]);
    await accounts.erase(name, async () => {}); // once more, for what it had stored
    expect([await accounts.count(), onDisk()]).toEqual([1, 1]);
    await accounts.create({ email: "c@x" });
    expect([await accounts.count(), onDisk()]).toEqual([2, 2]);
  });

  test("is right where it is first asked for while an account is made or erased, and leaves out no other", async () => {
    const office = new Office();
    const { accounts } = office;
    await accounts.create({ email: "a@x" });
    const made = accounts.create({ email: "b@x" });
    expect(await accounts.count()).toBe(1);
    await made;
    expect(await accounts.count()).toBe(2);
    for (const email of ["Deleted-7@invalid", "deleted-7x@invalid"]) {
      office.database.run(
        `UPDATE accounts SET email = '${email}', disabled_at = 1 WHERE email = 'b@x' OR email LIKE 'deleted%'`,
      );
      expect(office.records.count()).toBe(email === "deleted-7x@invalid" ? 2 : 1);
    }
  });

  test("is asked of the disk once", async () => {
    const office = new Office();
    let asked = 0;
    const count = office.records.count.bind(office.records);
    office.records.count = () => {
      asked += 1;
      return count();
    };
    for (let round = 0; round < 3; round += 1) {
      await office.accounts.create({ email: `${round}@x` });
      expect(await office.accounts.count()).toBe(round + 1);
    }
    expect(asked).toBe(1);
  });
});

test("a password that was hashed while its account was deleted is not set", async () => {
  const hashed = Promise.withResolvers<string>();
  const passwords = new Passwords({ hash: () => hashed.promise, verify: async () => true });
  const { accounts } = new Office(undefined, passwords);
  const { id } = await accounts.create({ email: "a@x" });
  const changed = accounts.changePassword(id, "battery staple");
  await accounts.erase("a@x", async () => {});
  hashed.resolve("battery staple");
  await expect(changed).rejects.toThrow("deleted account");
  expect((await accounts.record(id))!.passwordHash).toBeNull();
});

test("an account that is enabled while it is being deleted is deleted all the same, and nobody comes in", async () => {
  const { accounts, ledger, keys } = new Office();
  const { id, api_key } = await accounts.create({ email: "a@x" });
  await accounts.erase("a@x", async () => {
    await accounts.setDisabled(id, false);
    expect(keys.principal(api_key)).not.toBeNull();
  });
  expect([ledger.account(id).disabled, keys.principal(api_key)]).toEqual([true, null]);
  await expect(accounts.setDisabled(id, false)).rejects.toThrow("deleted account");
  const { id: other } = await accounts.create({ email: "b@x" });
  await expect(accounts.erase("b@x", () => Promise.reject(new Error("disk")))).rejects.toThrow("disk");
  await accounts.setDisabled(other, false);
  expect(ledger.account(other).disabled).toBe(false);
});

test("whoever said the password comes in while it is still that one", async () => {
  const { accounts, passwords, units } = new Office();
  const { id } = await accounts.create({ email: "a@x", password: "leaked password" });
  expect(await passwords.owner(units, "a@x", "wrong password")).toBeNull();
  const thief = (await passwords.owner(units, "a@x", "leaked password"))!;
  expect(await accounts.isAsItWas(thief)).toBe(true);
  await accounts.changePassword(id, "owner's password");
  expect(await accounts.isAsItWas(thief)).toBe(false);
  expect(await accounts.signIn("a@x", "owner's password")).not.toBeNull();
});

test("nothing is given to a deleted account, but what it paid for counts", async () => {
  const office = new Office();
  const { id } = await office.accounts.create({ email: "a@x", password: "correct horse" });
  const request = await office.purchases.ask(id, { kind: "credit", tokens: 9 }, "");
  const { name } = await office.accounts.erase("a@x", async () => {});
  const { accounts, purchases } = office;
  for (const attempt of [
    () => accounts.rotateKey(name),
    () => accounts.rotateKey(id),
    () => accounts.addCredit(name, 5),
    () => accounts.changePlan(name, "pro"),
    () => accounts.changePassword(id, "battery staple"),
    () => accounts.setDisabled(id, false),
  ]) {
    const refusal = attempt().then(
      () => "done",
      (thrown) => thrown.message,
    );
    expect(await refusal).toBe(`${name} is a deleted account`);
  }
  // What it asked for went with it.
  for (const decide of [purchases.approve.bind(purchases), purchases.decline.bind(purchases)]) {
    await expect(decide(request, "")).rejects.toThrow("this request is withdrawn already");
  }
  await purchases.paid({ id: "stripe:1", account: id, tokens: 7, paidAt: noon });
  expect((await accounts.show(name)).credit).toBe(7);
});

test("an account that the database refuses does not exist, and neither does its opening credit", async () => {
  const office = new Office();
  const { id } = await office.accounts.create({ email: "a@x" });
  office.storage.immediate = false;
  const told: number[] = [];
  const refused = office.accounts.create({ email: "b@x", credit: 7 }, (_, created) => told.push(created));
  const spent = office.spend(id, 10);
  // Another account got the e-mail in a way that nobody thought of.
  await office.underWay();
  office.database.run("UPDATE accounts SET email = 'b@x'");
  office.storage.succeed();
  await expect(refused).rejects.toBeInstanceOf(StoreUnavailable);
  await spent;
  office.storage.immediate = true;
  expect((await office.accounts.show("b@x")).allowance.left).toBe(29_990);
  expect(office.ledger.ifLoaded(told[0]!)).toBeNull();
  expect(office.ledger.totals().uncommitted).toBe(0);
  expect((await office.accounts.create({ email: "c@x", credit: 8 })).id).toBeGreaterThan(told[0]!);
  expect(await office.verify()).toEqual({ accounts: 2, violations: [] });
});

describe("credit", () => {
  test("of the same reference counts once, 100 times in turn and at once, and over a restart", async () => {
    const office = new Office();
    await office.accounts.create({ email: "a@x" });
    const credited: boolean[] = [];
    const buy = async (of: Office) =>
      credited.push((await of.accounts.addCredit("a@x", 1_000_000, "order-7")).credited);
    await Promise.all(Array.from({ length: 50 }, () => buy(office)));
    for (let i = 0; i < 49; i += 1) await buy(office);
    const after = office.restart();
    await buy(after);
    expect(credited.filter(Boolean).length).toBe(1);
    expect((await after.accounts.show("a@x")).credit).toBe(1_000_000);
    expect(await after.verify()).toEqual({ accounts: 1, violations: [] });
  });

  test("cannot be spent before it is on disk", async () => {
    const office = new Office();
    const { id } = await office.accounts.create({ email: "a@x" });
    office.storage.immediate = false;
    const bought = office.accounts.addCredit("a@x", 1_000_000);
    await office.underWay();
    expect(office.admit(id, ask(30_001))).toMatchObject({ refusal: "quota_exceeded" });
    office.storage.succeed();
    await bought;
    office.hold(id, ask(30_001));
  });
});

test("a plan change acts at once: the same use, the new plan's amount", async () => {
  const office = new Office();
  const { id } = await office.accounts.create({ email: "a@x", plan: "plus" });
  await office.spend(id, 50_000);
  await office.accounts.changePlan("a@x", "free");
  expect((await office.accounts.show("a@x")).allowance).toEqual({ day: "2026-03-28", granted: 30_000, left: 0 });
  await office.accounts.changePlan("a@x", "pro");
  expect((await office.accounts.show("a@x")).allowance.left).toBe(615_000);
  expect((await office.restart().accounts.show("a@x")).allowance.left).toBe(615_000);
});

test("the usage lists replies newest first, with what they cost", async () => {
  const office = new Office();
  const { id } = await office.accounts.create({ email: "a@x", credit: 5 });
  for (let i = 1; i <= 5; i += 1) {
    office.now = noon + i * 1_000;
    using hold = office.hold(id);
    await hold.settle(output(i), i === 5, office.now);
  }
  const usage = await office.accounts.usage("a@x", 3);
  expect(usage.map((row) => row.billed_tokens)).toEqual([5, 4, 3]);
  expect(usage[0]).toEqual({
    time: "2026-03-28T12:00:05.000Z",
    request_id: expect.stringMatching(/^req-/),
    endpoint: "/v1/chat/completions",
    model: "core-3",
    input: 0,
    cached_input: 0,
    output: 5,
    reasoning: 0,
    billed_tokens: 5,
    cost_usd: 0.000025,
    estimated: true,
    key: "default",
    end_user: null,
  });
});

// Eight argon2 hashes of 50 ms, more on a loaded machine.
